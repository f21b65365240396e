// What NetworkPolicies allow the pods of a node, as chains of rules (networking.k8s.io/v1, by the words of its documentation). Pure.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/selector.h"

namespace berth::node::services {

/// A pod as policies see it: as one to be guarded, where it is of this node, and as a peer.
struct PolicyPod {
  std::string ns, name;
  model::Labels labels;
  std::vector<std::string> addresses;  ///< Of both families; none: it has none yet, or those of its node.
  struct Port {
    std::string name, protocol;
    int number = 0;
    friend bool operator==(const Port&, const Port&) = default;
  };
  std::vector<Port> ports;  ///< Those that have a name.
  bool is_local = false;
  friend bool operator==(const PolicyPod&, const PolicyPod&) = default;
};

/// Nothing that counts of a pod that is over or lives in its node's network: it keeps no address.
PolicyPod policy_pod(const json::Value& pod, const std::string& node);

struct PolicyInput {
  std::vector<const PolicyPod*> pods;
  std::map<std::string, model::Labels> namespaces;
  std::vector<std::shared_ptr<const json::Value>> policies;
};

/// Chains of rules, and which chain guards which address.
struct PolicyRules {
  std::map<std::string, std::vector<std::string>> chains;
  /// By (map, address): the pod's chain. Maps: ingress4, ingress6, egress4, egress6.
  std::map<std::pair<std::string, std::string>, std::string> guards;
  friend bool operator==(const PolicyRules&, const PolicyRules&) = default;
};

/// A pod that a policy selects for a direction is closed in it but for what all its policies allow together; from itself a pod may always
/// be reached, and from its node.
PolicyRules compile_policies(const PolicyInput& input);

/// Takes whatever is there of ours away and sets all; `table` is of the family inet.
std::string whole_policies(const PolicyRules& rules, const std::string& table);
/// What leads from one to the next, in one transaction. Empty: nothing to do.
std::string policies_between(const PolicyRules& before, const PolicyRules& after, const std::string& table);
std::string no_policies(const std::string& table);

}  // namespace berth::node::services
