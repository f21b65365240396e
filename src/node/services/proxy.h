// A node's share in Services: watches Services and EndpointSlices and keeps the kernel's rules in step (kube-proxy's work, SPEC of issue "A
// node that runs what people apply").
#pragma once
#include <memory>
#include <string>

#include "client/client.h"
#include "node/services/kernel.h"

namespace berth::node::services {

struct ProxyOptions {
  std::string node;   ///< Which endpoints are local.
  std::string table;  ///< The node's own table of rules: table_of.
  bool masquerades_local = false;
  std::string pod_block;          ///< RuleOptions::pod_block
  std::uint16_t health_port = 0;  ///< Where it is told whether Services are led as they should be; 0: nowhere.
  /// How long changes are gathered before they go to the kernel together.
  Duration pause = std::chrono::milliseconds(100);
};

/// The table of the node that keeps its things in this directory.
std::string table_of(const std::string& directory);

/// Lives on the client's loop, on whose thread it is made and goes. The rules stay when it goes: connections outlive an agent;
/// `Proxy::remove` takes them away.
class Proxy {
 public:
  Proxy(client::Client& client, std::unique_ptr<Kernel> kernel, ProxyOptions options);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  static Result<void> remove(Kernel& kernel, const std::string& table);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::node::services
