#include "controllers/manager.h"

#include <charconv>

#include <fmt/format.h>

#include "base/log.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

/// Writes through a client; results come on its loop.
class ClientApi final : public Api {
 public:
  explicit ClientApi(client::Client& client) : client_(client) {}

  void send(const Write& write, std::function<void(ApiResult<json::Value>)> done) override {
    using Verb = Write::Verb;
    const client::Gvr gvr = write.kind->gvr();
    if (write.verb == Verb::kDelete) {
      DeleteOptions options = write.delete_options;
      if (!write.uid.empty()) options.precondition_uid = write.uid;
      return client_.remove(gvr, write.ns, write.name, options, std::move(done));
    }
    if (write.verb == Verb::kPatch) return client_.patch(gvr, write.ns, write.name, write.patch_type, write.body, std::move(done), write.subresource);
    if (write.verb == Verb::kUpdate) return client_.update(gvr, write.ns, write.name, write.body, std::move(done), write.subresource);
    client::Call call;
    call.gvr = gvr;
    call.ns = write.ns;
    if (write.verb != Verb::kCreate || !write.subresource.empty()) call.name = write.name;
    call.subresource = write.subresource;
    call.query = write.query;
    switch (write.verb) {
      case Verb::kCreate: call.verb = "create"; call.body = json::serialize(write.body); break;
      case Verb::kGet: call.verb = "get"; break;
      case Verb::kList: call.verb = "list"; break;
      case Verb::kDeleteCollection: call.verb = "deletecollection"; break;
      default: break;
    }
    client_.call(std::move(call), std::move(done));
  }

 private:
  client::Client& client_;
};

bool parse_number(const std::string& text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<void> apply_arguments(const std::map<std::string, std::vector<std::string>>& arguments, ManagerOptions& options) {
  const std::map<std::string_view, Duration*> durations = {
      {"node-monitor-period", &options.node_lifecycle.monitor_period}, {"node-monitor-grace-period", &options.node_lifecycle.monitor_grace_period},
      {"node-startup-grace-period", &options.node_lifecycle.startup_grace_period}};
  const std::map<std::string_view, double*> rates = {{"node-eviction-rate", &options.node_lifecycle.eviction_rate}, {"secondary-node-eviction-rate", &options.node_lifecycle.secondary_eviction_rate},
                                                     {"unhealthy-zone-threshold", &options.node_lifecycle.unhealthy_zone_threshold}};
  for (const auto& [name, values] : arguments) {
    if (values.empty()) continue;
    const std::string& value = values.back();
    double number = 0;
    if (const auto duration = durations.find(name); duration != durations.end()) {
      const auto parsed = parse_go_duration(value);
      if (!parsed || *parsed <= Duration::zero()) return invalid(fmt::format("controller argument {}: \"{}\" is not a duration above zero", name, value));
      *duration->second = *parsed;
    } else if (const auto rate = rates.find(name); rate != rates.end()) {
      if (!parse_number(value, number) || number < 0) return invalid(fmt::format("controller argument {}: \"{}\" is not a number of 0 or more", name, value));
      *rate->second = number;
    } else if (name == "large-cluster-size-threshold" || name == "terminated-pod-gc-threshold") {
      if (!parse_number(value, number)) return invalid(fmt::format("controller argument {}: \"{}\" is not a number", name, value));
      if (name == "large-cluster-size-threshold") options.node_lifecycle.large_cluster_size_threshold = static_cast<int>(number);
      else options.pod_gc.terminated_pod_threshold = static_cast<std::int64_t>(number);
    } else if (name == "controllers") {
      for (const std::string& one : values)
        if (one.starts_with('-')) options.engine.disabled.insert(one.substr(1));
    } else {
      log::warning("controllers", "controller argument {} has no meaning here and is not used", name);
    }
  }
  return {};
}

struct Manager::Impl : std::enable_shared_from_this<Manager::Impl> {
  Impl(client::Client& c, ManagerOptions o)
      : client(c), api(c), options(std::move(o)), registry(options.metrics ? options.metrics : std::make_shared<metrics::Registry>()),
        engine(*c.loop(), api, options.engine, registry.get()), informers(c) {}

  void add_controllers() {
    engine.add(make_replicaset_controller());
    engine.add(make_replication_controller());
    engine.add(make_deployment_controller());
    engine.add(make_garbage_collector());
    engine.add(make_namespace_controller());
    engine.add(make_serviceaccount_controller());
    if (!options.root_ca_pem.empty()) {
      engine.add(make_root_ca_publisher(options.root_ca_pem));
      engine.add(make_serviceaccount_token_controller(options.root_ca_pem));
    }
  }

  void subscribe() {
    for (const Kind kind : engine.watched_kinds()) {
      const auto observe = [weak = weak_from_this(), kind](const ObjectRef& object, bool is_delete) {
        if (const auto self = weak.lock()) self->engine.observe(kind, object, is_delete);
      };
      informers.get(kind->gvr()).add_handler({[observe](const ObjectRef& object) { observe(object, false); },
                                              [observe](const ObjectRef&, const ObjectRef& after) { observe(after, false); },
                                              [observe](const ObjectRef& object) { observe(object, true); }});
    }
  }

  client::Client& client;
  ClientApi api;
  ManagerOptions options;
  std::shared_ptr<metrics::Registry> registry;
  Engine engine;
  client::InformerFactory informers;
  bool running = false;
};

Manager::Manager(client::Client& client, ManagerOptions options) : impl_(std::make_shared<Impl>(client, std::move(options))) { impl_->add_controllers(); }

Manager::~Manager() { impl_->engine.stop(); }

void Manager::start() {
  impl_->subscribe();
  impl_->informers.start();
  impl_->informers.on_synced([weak = std::weak_ptr(impl_)] {
    const auto self = weak.lock();
    if (!self) return;
    self->running = true;
    self->engine.start();
    log::info("controllers", "caches are synced");
  });
}

bool Manager::is_running() const { return impl_->running; }
bool Manager::is_idle() const { return impl_->running && impl_->engine.is_idle(); }

}  // namespace berth::controllers
