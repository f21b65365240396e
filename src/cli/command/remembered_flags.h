// Flags whose values outlive the process: `berth up` finds its cluster again as it was asked for (README: "the next start has everything as
// it was").
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace berth::cli {

/// Whether the value of the flag ("--master-config") is a file's name, so that it is found again from wherever the next start is typed.
bool names_file(std::string_view flag);

class RememberedFlags {
 public:
  /// Reads DIRECTORY/up.json and gives each flag of `app` that was not typed the value of the last start, as if it had been typed; not
  /// those of `left_out` (of one start alone, or said by a configuration file). `configuration`: the file that says them, empty when there
  /// is none. The error names up.json when it is not one of ours.
  static Result<RememberedFlags> recall(CLI::App& app, const std::string& directory, const std::set<std::string>& left_out,
                                        const std::string& configuration);
  /// The configuration file of the last start; empty: there was none.
  static std::string last_configuration(const std::string& directory);
  /// What differs from the flags typed, for people: "as at the last start: --nodes 3", "--zones 2 (3 at the last start)".
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// Keeps what is in force now. An empty value is forgotten.
  [[nodiscard]] Result<void> save() const;

 private:
  using Values = std::map<std::string, std::vector<std::string>>;
  static Result<Values> read(const std::string& file);

  std::string file_;
  Values values_;
  std::vector<std::string> notes_;
};

}  // namespace berth::cli
