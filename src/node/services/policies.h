// NetworkPolicies of a node's pods: watches policies, pods and namespaces, and keeps the kernel's rules in step.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "node/services/kernel.h"
#include "node/services/policy_table.h"

namespace berth::node::services {

struct PolicyOptions {
  std::string node;
  std::string table;             ///< The node's own: policies_table_of.
  std::vector<PolicyPod> peers;  ///< What stands for pods that do not exist as such: the node's name service.
  Duration pause = std::chrono::milliseconds(20);
};

std::string policies_table_of(const std::string& directory);

/// Lives on the client's loop, on whose thread it is made and goes. The rules stay when it goes. Who may not list policies, pods and
/// namespaces has none enforced, and is told so in the log.
class Policies {
 public:
  Policies(client::Client& client, std::unique_ptr<Kernel> kernel, PolicyOptions options);
  ~Policies();
  Policies(const Policies&) = delete;
  static Result<void> remove(Kernel& kernel, const std::string& table);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::node::services
