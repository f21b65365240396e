// healthCheckNodePort: where a load balancer asks this node whether a Service with externalTrafficPolicy Local has endpoints here
// (kube-proxy's pkg/proxy/healthcheck).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace berth::node::services {

/// Owns its servers, at every address of the machine. Not thread-safe.
class HealthPorts {
 public:
  HealthPorts();
  ~HealthPorts();
  /// What is answered for a Service from now on; `port` 0: it has none. A port that cannot be had is said in the log, and tried again when
  /// the Service changes.
  void set(const std::string& ns, const std::string& name, std::uint16_t port, int local_endpoints);

 private:
  struct One;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<One>> ports_;
};

}  // namespace berth::node::services
