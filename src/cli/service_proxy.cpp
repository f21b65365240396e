#include "cli/service_proxy.h"

#include <future>

#include "base/log.h"
#include "cli/process.h"

namespace berth::cli {

namespace services = node::services;

std::unique_ptr<ServiceProxy> ServiceProxy::start(std::shared_ptr<client::Transport> transport, const std::string& node,
                                                  const std::string& directory) {
  auto kernel = services::open_kernel();
  if (!kernel) {
    log::warning("proxy", "Services have no addresses on this node: {}", kernel.error().message);
    return nullptr;
  }
  services::ProxyOptions options{.node = node, .table = services::table_of(directory)};
  options.masquerades_local = !services::bridged_traffic_passes_rules();
  if (options.masquerades_local)
    log::info("proxy", "bridge-nf-call-iptables is off and stays so: pods of this node that meet by a Service see the node's address");
  return std::unique_ptr<ServiceProxy>(new ServiceProxy(std::move(transport), std::move(*kernel), std::move(options)));
}

ServiceProxy::ServiceProxy(std::shared_ptr<client::Transport> transport, std::unique_ptr<services::Kernel> kernel,
                           services::ProxyOptions options)
    : loop_(lasting_loop("proxy")), client_(std::move(transport), &loop_, "berth-proxy") {
  std::promise<void> made;
  loop_.post([&] {
    proxy_ = std::make_unique<services::Proxy>(client_, std::move(kernel), std::move(options));
    made.set_value();
  });
  made.get_future().wait();
}

ServiceProxy::~ServiceProxy() {
  std::promise<void> gone;
  loop_.post([&] {
    proxy_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

std::string remove_service_rules(const std::string& directory) {
  auto kernel = services::open_kernel();
  if (!kernel) return {};
  const auto removed = services::Proxy::remove(**kernel, services::table_of(directory));
  return removed ? "the rules of Services are gone" : removed.error().message;
}

}  // namespace berth::cli
