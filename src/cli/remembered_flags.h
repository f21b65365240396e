// Flags whose values outlive the process: `berth up` finds its nodes again as they were asked for (README: "the next start has everything
// as it was").
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct RememberedFlag {
  std::string name;
  bool is_file = false;  ///< Found again from wherever the next start is typed.
};

class RememberedFlags {
 public:
  /// Reads DIRECTORY/up.json and gives each of the flags that was not typed the value of the last start, as if it had been typed. The error
  /// names the file when it is not one of ours.
  static Result<RememberedFlags> recall(CLI::App& app, const std::string& directory, const std::vector<RememberedFlag>& flags);
  /// What differs from the flags typed, for people: "as at the last start: --nodes 3", "--zones 2 (3 at the last start)".
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// Keeps what is in force now. An empty value is forgotten.
  [[nodiscard]] Result<void> save() const;

 private:
  std::string file_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> notes_;
};

}  // namespace berth::cli
