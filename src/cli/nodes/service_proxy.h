// Service addresses and NetworkPolicies of a real node: what watches and sets the rules, on a thread of its own.
#pragma once
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "client/client.h"
#include "node/services/policies.h"
#include "node/services/proxy.h"

namespace berth::cli {

class ServiceProxy {
 public:
  /// For the node that keeps its things in `directory`. `dns_address`: of its name service, which policies see as a pod of kube-system with
  /// the label k8s-app=kube-dns; empty: it has none. Null, with the reason in the log, where this machine cannot do it: pods run all the
  /// same.
  static std::unique_ptr<ServiceProxy> start(std::shared_ptr<client::Transport> transport, const std::string& node,
                                             const std::string& directory, const std::string& dns_address);
  ~ServiceProxy();

 private:
  ServiceProxy(std::shared_ptr<client::Transport> transport, std::unique_ptr<node::services::Kernel> kernel,
               node::services::ProxyOptions options, node::services::PolicyOptions policies);
  ThreadLoop& loop_;
  client::Client client_;
  std::unique_ptr<node::services::Proxy> proxy_;
  std::unique_ptr<node::services::Policies> policies_;
};

/// Takes the rules of the node that kept its things in `directory` away; a line for people, empty where there were none to take.
std::string remove_service_rules(const std::string& directory);

}  // namespace berth::cli
