// Changes of the user's kubeconfig: the context's namespace, contexts and users of logins.
#pragma once
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "cli/command/session.h"

namespace berth::cli {

/// One kubeconfig file, read whole; unknown fields are kept, comments are not.
class KubeconfigFile {
 public:
  /// The file that kubectl would change; one that is not there is empty. The error names it.
  static Result<KubeconfigFile> open(const ConnectionFlags& flags);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string current_context() const;
  /// The inner object ("context", "cluster", "user") of an entry of "contexts", "clusters", "users"; null when it is not there.
  [[nodiscard]] const json::Value* find(std::string_view section, std::string_view name) const;
  /// The names of a section's entries, in order.
  [[nodiscard]] std::vector<std::string> names(std::string_view section) const;
  /// Adds or replaces an entry.
  void put(std::string_view section, const std::string& name, json::Object inner);
  void use_context(const std::string& name);
  /// Writes it whole or not at all, readable by the owner only.
  [[nodiscard]] Result<void> save() const;

 private:
  std::string path_;
  json::Value root_;
};

}  // namespace berth::cli
