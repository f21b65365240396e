#include "cli/nodes/service_proxy.h"

#include <future>
#include <thread>

#include "base/log.h"
#include "cli/command/process.h"
#include "node/agent/own_runtime.h"
#include "node/services/conntrack_settings.h"
#include "node/services/proxy_health.h"

namespace berth::cli {

namespace services = node::services;

namespace {

services::PolicyPod name_service_as_pod(const std::string& address) {
  services::PolicyPod pod{.ns = "kube-system", .name = "kube-dns", .labels = {}, .addresses = {address}, .ports = {}};
  pod.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"k8s-app", "kube-dns"}});
  pod.ports = {{"dns", "udp", 53}, {"dns-tcp", "tcp", 53}};
  return pod;
}

}  // namespace

std::unique_ptr<ServiceProxy> ServiceProxy::start(std::shared_ptr<client::Transport> transport, const std::string& node,
                                                  const std::string& directory, const std::string& dns_address) {
  auto kernel = services::open_kernel();
  if (!kernel) {
    log::warning("proxy", "Services have no addresses on this node: {}", kernel.error().message);
    return nullptr;
  }
  services::ProxyOptions options{.node = node, .table = services::table_of(directory)};
  options.pod_block = node::agent::kPodBlock;
  options.health_port = services::kProxyHealthPort;
  services::raise_conntrack_settings("/proc/sys", std::thread::hardware_concurrency());
  options.masquerades_local = !services::bridged_traffic_passes_rules();
  if (options.masquerades_local)
    log::warning(
        "proxy",
        "bridge-nf-call-iptables is off and stays so (module br_netfilter): pods of this node that meet by a Service see the node's "
        "address, and NetworkPolicies do not part pods of one bridge");
  services::PolicyOptions policies{.node = node, .table = services::policies_table_of(directory), .peers = {}};
  if (!dns_address.empty()) policies.peers.push_back(name_service_as_pod(dns_address));
  return std::unique_ptr<ServiceProxy>(new ServiceProxy(std::move(transport), std::move(*kernel), std::move(options), std::move(policies)));
}

ServiceProxy::ServiceProxy(std::shared_ptr<client::Transport> transport, std::unique_ptr<services::Kernel> kernel,
                           services::ProxyOptions options, services::PolicyOptions policies)
    : loop_(lasting_loop("proxy")), client_(std::move(transport), &loop_, "berth-proxy") {
  std::promise<void> made;
  loop_.post([&] {
    proxy_ = std::make_unique<services::Proxy>(client_, std::move(kernel), std::move(options));
    if (auto second = services::open_kernel())
      policies_ = std::make_unique<services::Policies>(client_, std::move(*second), std::move(policies));
    made.set_value();
  });
  made.get_future().wait();
}

ServiceProxy::~ServiceProxy() {
  std::promise<void> gone;
  loop_.post([&] {
    policies_.reset();
    proxy_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

std::string remove_service_rules(const std::string& directory) {
  auto kernel = services::open_kernel();
  if (!kernel) return {};
  auto removed = services::Proxy::remove(**kernel, services::table_of(directory));
  if (removed) removed = services::Policies::remove(**kernel, services::policies_table_of(directory));
  return removed ? "the rules of Services are gone" : removed.error().message;
}

}  // namespace berth::cli
