// One word for all of berth: whose behaviour it has where the documents (OpenShift 3.11 and 4, Kubernetes up to 1.20) and today's
// Kubernetes differ (SPEC I13; docs/differences.md has the table).
#pragma once
#include <optional>
#include <string>

#include "node/eviction/kubelet_config.h"
#include "placement/profile.h"

namespace CLI {
class App;
}

namespace berth::cli {

inline constexpr const char* kNodeCompatibility = "Which pod is evicted first, and whether thresholds are taken from allocatable";

class Compatibility {
 public:
  /// --compatibility; `acts_on` says what the word changes in this command.
  void add_to(CLI::App& app, const std::string& acts_on);
  /// The scheduler's release; nullopt when no word was given (a configuration's own version then counts).
  [[nodiscard]] std::optional<placement::Era> era() const;
  /// Of nodes: what the documents say of eviction and allocatable, when that was asked for.
  void apply(node::eviction::KubeletSettings& settings) const;
  [[nodiscard]] bool is_given() const { return !word_.empty(); }
  [[nodiscard]] bool follows_documents() const { return word_ == "1.20" || word_ == "documents"; }

 private:
  std::string word_;
};

}  // namespace berth::cli
