// Flow control's objects: which requests belong together, and what part of the server they may take (flowcontrol.apiserver.k8s.io/v1,
// apiserver/pkg/apis/flowcontrol/bootstrap). Pure.
#pragma once
#include <string>
#include <vector>

#include "apiserver/auth_interfaces.h"

namespace berth::apiserver::flow {

/// A PriorityLevelConfiguration.
struct PriorityLevel {
  std::string name, uid;
  bool is_exempt = false;
  int nominal_shares = 0;
  int queues = 0;  ///< 0: what finds no room is refused at once.
  int hand_size = 0;
  int queue_length_limit = 0;
  bool is_vital = false;  ///< The cluster's own: goes on when memory is scarce.
};

/// A FlowSchema.
struct FlowSchema {
  enum class Distinguisher { kNone, kByUser, kByNamespace };
  struct Rule {
    std::vector<std::string> verbs, groups, resources;  ///< Resources as "pods" or "pods/status"; "*" is every one.
    std::vector<std::string> urls;                      ///< Of requests that are for no resource; "*" is every one.
  };
  std::string name, uid;
  int precedence = 0;  ///< The lowest that matches counts.
  std::size_t level = 0;
  Distinguisher distinguisher = Distinguisher::kNone;
  std::vector<std::string> users, groups;
  std::vector<Rule> rules;
};

/// Kubernetes' bootstrap configuration: the mandatory and the suggested objects, schemas by precedence.
const std::vector<PriorityLevel>& default_levels();
const std::vector<FlowSchema>& default_schemas();

/// Where a request belongs. The last schema takes everybody.
struct Classified {
  const FlowSchema* schema = nullptr;
  std::size_t level = 0;
  std::string flow;  ///< Who shares a queue within schema and level.
};
Classified classify(const UserInfo& user, const Attributes& attributes);

}  // namespace berth::apiserver::flow
