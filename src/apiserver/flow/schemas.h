// Flow control's objects as the server uses them: which requests belong together, and what part of the server they may take
// (flowcontrol.apiserver.k8s.io/v1; apiserver/pkg/util/flowcontrol/rule.go). Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apiserver/auth/interfaces.h"
#include "base/json.h"

namespace berth::apiserver::flow {

/// A PriorityLevelConfiguration.
struct PriorityLevel {
  std::string name, uid;
  bool is_exempt = false;
  int shares = 0;
  int lendable_percent = 0;
  std::optional<int> borrowing_limit_percent;  ///< Without: no limit.
  int queues = 0;                              ///< 0: what finds no seat is refused at once.
  int hand_size = 0;
  int queue_length_limit = 0;

  /// The cluster's own: goes on when memory is scarce, and has half of the workers' time whatever the other levels ask for.
  [[nodiscard]] bool is_vital() const;
};

/// A FlowSchema.
struct FlowSchema {
  enum class Distinguisher { kNone, kByUser, kByNamespace };
  struct Subject {
    enum class Kind { kUser, kGroup, kServiceAccount } kind;
    std::string name, ns;  ///< "*": every one.
  };
  struct ResourceRule {
    std::vector<std::string> verbs, groups, resources, namespaces;  ///< Resources as "pods" or "pods/status"; "*" is every one.
    bool is_cluster_scoped = false;                                 ///< Whether requests without a namespace match.
  };
  struct PathRule {
    std::vector<std::string> verbs, urls;
  };
  struct Rule {
    std::vector<Subject> subjects;
    std::vector<ResourceRule> resources;
    std::vector<PathRule> paths;
  };
  std::string name, uid, level;
  int precedence = 0;  ///< The lowest that matches counts; of those alike the first by name.
  Distinguisher distinguisher = Distinguisher::kNone;
  std::vector<Rule> rules;
};

/// From documents that passed validation; what is missing in them is as the defaults have it.
PriorityLevel read_level(const json::Value& document);
FlowSchema read_schema(const json::Value& document);

[[nodiscard]] bool matches(const FlowSchema& schema, const UserInfo& user, const Attributes& attributes);
/// Who shares a queue within the schema.
[[nodiscard]] std::string flow_of(const FlowSchema& schema, const UserInfo& user, const Attributes& attributes);

}  // namespace berth::apiserver::flow
