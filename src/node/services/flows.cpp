#include "node/services/flows.h"

namespace berth::node::services {

void FlowTargets::add(const ServicePort& port) {
  if (port.protocol != "udp" || port.serving.empty()) return;
  std::set<Address> serving;
  for (const Endpoint& e : port.serving) serving.emplace(e.address, e.port);
  // Two Services may name one address and port: whoever has it, a flow to either's endpoints stands.
  by_address_[{port.cluster_ip, port.port}].insert(serving.begin(), serving.end());
  for (const std::string& ip : port.external_ips) by_address_[{ip, port.port}].insert(serving.begin(), serving.end());
  if (port.node_port != 0) by_node_port_[port.node_port].insert(serving.begin(), serving.end());
}

bool FlowTargets::is_stale(const Flow& flow) const {
  const Address answers{flow.answers, flow.answers_port};
  if (const auto found = by_address_.find({flow.asked, flow.asked_port}); found != by_address_.end() && !found->second.contains(answers))
    return true;
  const auto found = by_node_port_.find(flow.asked_port);
  return found != by_node_port_.end() && !found->second.contains(answers);
}

}  // namespace berth::node::services
