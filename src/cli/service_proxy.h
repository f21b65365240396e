// Service addresses of a real node: what watches and sets the rules, on a thread of its own.
#pragma once
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "client/client.h"
#include "node/services/proxy.h"

namespace berth::cli {

class ServiceProxy {
 public:
  /// For the node that keeps its things in `directory`. Null, with the reason in the log, where this machine cannot do it: pods run all the
  /// same.
  static std::unique_ptr<ServiceProxy> start(std::shared_ptr<client::Transport> transport, const std::string& node,
                                             const std::string& directory);
  ~ServiceProxy();

 private:
  ServiceProxy(std::shared_ptr<client::Transport> transport, std::unique_ptr<node::services::Kernel> kernel,
               node::services::ProxyOptions options);
  ThreadLoop& loop_;
  client::Client client_;
  std::unique_ptr<node::services::Proxy> proxy_;
};

/// Takes the rules of the node that kept its things in `directory` away; a line for people, empty where there were none to take.
std::string remove_service_rules(const std::string& directory);

}  // namespace berth::cli
