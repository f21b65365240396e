// What of which requests is written down: audit.k8s.io/v1 Policy (apiserver/pkg/audit/policy).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/auth/interfaces.h"
#include "base/error.h"

namespace berth::apiserver::audit {

enum class Level { kNone, kMetadata, kRequest, kRequestResponse };
enum class Stage { kRequestReceived, kResponseStarted, kResponseComplete, kPanic };
std::string_view to_string(Level level);
std::string_view to_string(Stage stage);

struct GroupResources {
  std::string group;
  std::vector<std::string> resources, names;
};
/// Empty lists say nothing.
struct Rule {
  Level level = Level::kNone;
  std::vector<std::string> users, groups, verbs, namespaces, urls;
  std::vector<GroupResources> resources;
  std::vector<Stage> omit_stages;
  bool omit_managed_fields = false;
};

/// What is to be written of one request.
struct Decision {
  Level level = Level::kNone;
  std::vector<Stage> omit_stages;
  bool omit_managed_fields = false;
  [[nodiscard]] bool omits(Stage stage) const;
};

struct Policy {
  std::vector<Rule> rules;
  std::vector<Stage> omit_stages;  ///< Of all rules.
  /// By the first rule that matches; nothing is written where none does. Thread-safe.
  [[nodiscard]] Decision decide(const UserInfo& user, const Attributes& attributes) const;
};

/// The error lists every problem with file, line, field path and what is allowed.
Result<Policy> parse_policy(std::string_view text, const std::string& file);

}  // namespace berth::apiserver::audit
