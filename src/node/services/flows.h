// UDP has no end that the kernel sees: a flow stays led to an endpoint that went, for as long as its client keeps sending. So flows of
// Services that lead to none of their endpoints are forgotten, and the next packet finds one (kube-proxy's conntrack clean-up). Pure.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node/services/service_table.h"

namespace berth::node::services {

/// One UDP flow that the kernel follows: where its client sent it, and who answers.
struct Flow {
  std::string asked, answers;  ///< Addresses in their one text.
  std::uint16_t asked_port = 0, answers_port = 0;
};

/// Where UDP flows of Services may lead: a copy of what matters at one time.
class FlowTargets {
 public:
  /// Ports of other protocols are left out, and those without a serving endpoint: there is nobody else to lead to.
  void add(const ServicePort& port);
  [[nodiscard]] bool empty() const { return by_address_.empty(); }
  /// The flow is one of a Service's and leads to none of its serving endpoints. Traffic policies and hints do not count: what changes
  /// them leaves flows that work alone.
  [[nodiscard]] bool is_stale(const Flow& flow) const;

 private:
  using Address = std::pair<std::string, std::uint16_t>;
  std::map<Address, std::set<Address>> by_address_;
  std::map<std::uint16_t, std::set<Address>> by_node_port_;
};

}  // namespace berth::node::services
