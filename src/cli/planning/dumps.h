// Files that hold a cluster's objects.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::cli {

/// Dumps of `kubectl get -o yaml` or json, manifests, snapshots of etcd. A folder stands for all .yaml, .yml and .json files below it (a
/// must-gather), "-" for standard input. A value.
class Dumps {
 public:
  using Visitor = std::function<void(json::Value object, const std::string& file)>;

  /// The error names the folder without files, or the file that cannot be read.
  static Result<Dumps> find(const std::vector<std::string>& paths);

  /// Hands over every object, with its file; lists are taken apart. May be called several times: files are read anew, one at a time; what
  /// can be read but once is kept, and for the next time what the last file held when looked through for a word. `word`: objects whose text
  /// lacks it may be left out, unread. Errors name the file.
  Result<void> for_each(const Visitor& each, std::string_view word = {}) const;

 private:
  std::vector<std::string> files_;
  std::map<std::string, std::string> kept_;  ///< Texts of standard input and pipes.
  struct Text {
    std::string file, text;
  };
  mutable Text last_;  ///< Empty unless the last reading was for a word.
};

}  // namespace berth::cli
