#include "node/services/proxy.h"

#include <filesystem>
#include <set>

#include "base/lifeline.h"
#include "base/log.h"
#include "client/informer.h"
#include "node/services/addresses.h"
#include "node/services/health_ports.h"
#include "node/services/kernel_flows.h"
#include "node/services/proxy_health.h"
#include "node/services/rules.h"

namespace berth::node::services {
namespace {

const model::Gvr kServices{"", "v1", "services"}, kSlices{"discovery.k8s.io", "v1", "endpointslices"}, kNodes{"", "v1", "nodes"};
constexpr std::string_view kServiceOf = "service";

std::string key_of(std::string_view ns, std::string_view name) { return fmt::format("{}/{}", ns, name); }

std::string service_of_slice(const client::Object& slice) {
  const auto document = slice.parsed();
  return key_of(slice.ns(), json::get_string(*document, {"metadata", "labels", "kubernetes.io/service-name"}));
}

}  // namespace

struct Proxy::Impl : Guarded<Impl> {
  Impl(client::Client& c, std::unique_ptr<Kernel> k, ProxyOptions o)
      : client(c),
        kernel(std::move(k)),
        options(std::move(o)),
        rules({.table = options.table, .masquerades_local = options.masquerades_local, .pod_block = options.pod_block}),
        services(c, kServices),
        slices(c, kSlices),
        own_node(c, kNodes, {.field_selector = "metadata.name=" + options.node}) {
    if (options.health_port != 0) health_server = ProxyHealthServer::start(options.health_port, own_health);
  }

  void start() {
    slices.add_index(std::string(kServiceOf), [](const client::Object& slice) { return std::vector{service_of_slice(slice)}; });
    const auto watch = [this](client::Informer& informer, const auto& key) {
      const auto changed = guarded([key](Impl& self, const client::ObjectRef& object) { self.note(key(*object)); });
      informer.add_handler({.on_add = changed,
                            .on_update = [changed](const client::ObjectRef&, const client::ObjectRef& now) { changed(now); },
                            .on_delete = changed});
      informer.start();
    };
    watch(services, [](const client::Object& service) { return key_of(service.ns(), service.name()); });
    watch(slices, service_of_slice);
    const auto seen = guarded([](Impl& self, const client::ObjectRef& node) { self.set_node(*node); });
    own_node.add_handler({.on_add = seen,
                          .on_update = [seen](const client::ObjectRef&, const client::ObjectRef& node) { seen(node); },
                          .on_delete = [](const client::ObjectRef&) {}});
    own_node.start();
  }

  void set_node(const client::Object& node) {
    own_health.set_node(*node.parsed());
    const std::string now(json::get_string(*node.parsed(), {"metadata", "labels", "topology.kubernetes.io/zone"}));
    if (now == zone) return;
    zone = now;
    services.for_each([this](const client::ObjectRef& service) { note(key_of(service->ns(), service->name())); });
  }

  void note(std::string key) {
    dirty.insert(std::move(key));
    own_health.changes_wait();
    later(options.pause);
  }

  void later(Duration pause) {
    if (is_due) return;
    is_due = true;
    client.loop()->schedule_after(pause, guarded(&Impl::apply));
  }

  /// The ports of one Service as they are now.
  void refresh(const std::string& key) {
    const auto slash = key.find('/');
    const std::string ns = key.substr(0, slash), name_of = key.substr(slash + 1);
    const auto service = services.get(ns, name_of);
    if (!service) {
      health.set(ns, name_of, 0, 0);
      return take(key, {});
    }
    std::vector<std::shared_ptr<const json::Value>> held;
    std::vector<const json::Value*> documents;
    for (const auto& slice : slices.by_index(kServiceOf, key)) {
      held.push_back(slice->parsed());
      documents.push_back(held.back().get());
    }
    ServiceTable ports;
    const auto document = service->parsed();
    add_service(*document, documents, options.node, zone, ports);
    const auto health_port = json::get_int(*document, {"spec", "healthCheckNodePort"});
    health.set(ns, name_of, static_cast<std::uint16_t>(health_port), health_port != 0 ? ready_endpoints_on(documents, options.node) : 0);
    take(key, std::move(ports));
  }

  void take(const std::string& key, ServiceTable ports) {
    std::vector<std::string>& names = ports_of[key];
    for (const std::string& name : names)
      if (!ports.contains(name)) {
        rules.erase(name);
        udp.erase(name);
      }
    names.clear();
    for (auto& [name, port] : ports) {
      names.push_back(name);
      if (port.protocol == "udp") {
        udp[name] = port;
        has_new_udp = true;
      }
      rules.set(name, std::move(port));
    }
    if (names.empty()) ports_of.erase(key);
  }

  void apply() {
    is_due = false;
    if (!services.has_synced() || !slices.has_synced()) return later(options.pause);
    for (const std::string& key : dirty) refresh(key);
    dirty.clear();
    const std::string script = is_in_kernel ? rules.step() : rules.whole();
    if (!script.empty()) {
      auto done = kernel->run(script);
      // Somebody else may have changed our tables: all anew.
      if (!done && is_in_kernel) done = kernel->run(rules.whole());
      if (!done) {
        log::error("proxy", "the rules of {} Service ports were not taken: {}", rules.size(), done.error().message);
        is_in_kernel = false;
        return later(std::chrono::seconds(5));
      }
    }
    if (!is_in_kernel) log::info("proxy", "{} ports of Services lead to their endpoints", rules.size());
    is_in_kernel = true;
    own_health.changes_done();
    if (has_new_udp) forget_flows();
  }

  /// Once the rules lead elsewhere: flows that the kernel still leads to endpoints that went.
  void forget_flows() {
    has_new_udp = false;
    FlowTargets targets;
    for (const auto& [name, port] : udp) targets.add(port);
    if (targets.empty()) return;
    const auto forgotten = forget_udp_flows([&](const Flow& flow) { return targets.is_stale(flow); });
    if (!forgotten && !std::exchange(said_flows_stay, true))
      log::warning("proxy", "UDP flows to endpoints that are gone stay until their clients pause: {}", forgotten.error().message);
    if (forgotten && *forgotten > 0) log::info("proxy", "{} UDP flows led to endpoints that are gone and are led anew", *forgotten);
  }

  client::Client& client;
  std::unique_ptr<Kernel> kernel;
  const ProxyOptions options;
  Rules rules;
  client::Informer services, slices, own_node;
  std::string zone;
  std::set<std::string> dirty;  ///< Services to look at.
  bool is_due = false;
  std::map<std::string, std::vector<std::string>> ports_of;
  std::map<std::string, ServicePort> udp;  ///< By name.
  bool has_new_udp = false, said_flows_stay = false;
  HealthPorts health;
  SystemClock clock;
  ProxyHealth own_health{clock};
  std::unique_ptr<ProxyHealthServer> health_server;
  bool is_in_kernel = false;  ///< Whether the kernel has what the rules were told; unknown at the start and after a failure.
};

Proxy::Proxy(client::Client& client, std::unique_ptr<Kernel> kernel, ProxyOptions options)
    : impl_(std::make_shared<Impl>(client, std::move(kernel), std::move(options))) {
  impl_->start();
  impl_->later(impl_->options.pause);
}
Proxy::~Proxy() = default;

Result<void> Proxy::remove(Kernel& kernel, const std::string& table) { return kernel.run(no_rules(table)); }

std::string table_of(const std::string& directory) {
  return "berth-" + digest(std::filesystem::absolute(directory).lexically_normal().string());
}

}  // namespace berth::node::services
