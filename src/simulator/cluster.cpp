#include "simulator/cluster.h"

#include <fmt/format.h>

#include "model/features.h"
#include "scheduler/group_options.h"
#include "simulator/pools_part.h"
#include "simulator/random.h"

namespace berth::simulator {
namespace {

/// A store that outlives the server that uses it.
class KeptStore final : public store::Store {
 public:
  explicit KeptStore(store::Store& kept) : kept_(kept) {}
  [[nodiscard]] store::StoreState state() const override { return kept_.state(); }
  Result<void> commit(std::span<const store::Record> records, bool sync) override { return kept_.commit(records, sync); }
  Result<void> read(store::Revision after, const std::function<Result<void>(store::Record)>& each) override {
    return kept_.read(after, each);
  }
  Result<void> compact(store::Revision revision) override { return kept_.compact(revision); }

 private:
  store::Store& kept_;
};

/// The server's handler of metrics.k8s.io, which belongs to somebody else.
class Borrowed final : public net::Handler {
 public:
  explicit Borrowed(net::Handler& inner) : inner_(inner) {}
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    inner_.handle(std::move(request), std::move(writer));
  }

 private:
  net::Handler& inner_;
};

}  // namespace

Cluster::Cluster(ClusterOptions options) : options_(std::move(options)), loop_(options_.start), store_(store::make_memory_store()) {
  std::uint64_t seed = options_.seed;
  for (const std::string_view name : kLinkedComponents) links_[std::string(name)] = std::make_shared<Link>(loop_, ++seed);
  client_link_ = std::make_shared<Link>(loop_);
}

Result<std::unique_ptr<Cluster>> Cluster::create(ClusterOptions options) {
  std::unique_ptr<Cluster> out(new Cluster(std::move(options)));
  out->client_ = std::make_unique<client::Client>(out->client_link_, nullptr, "simulator");
  out->node_client_ = std::make_unique<client::Client>(out->links_["nodes"], &out->loop_, "nodes");
  out->autoscaler_client_ = std::make_unique<client::Client>(out->links_["autoscaler"], &out->loop_, "cluster-autoscaler");
  out->pools_client_ = std::make_unique<client::Client>(out->links_["pools"], &out->loop_, "karpenter");
  return out;
}

Cluster::~Cluster() {
  for (const std::string_view name : {"descheduler", "pools", "autoscaler", "scheduler", "controllers", "nodes"}) stop(name);
  if (api_) api_->begin_shutdown();
  stop("server");
}

Result<void> Cluster::start_components() {
  for (const std::string_view name : {"server", "nodes", "controllers", "scheduler", "autoscaler", "pools", "descheduler"})
    if (auto started = start(name); !started) return started;
  return {};
}

bool Cluster::is_running(std::string_view component) const {
  return component == "server"        ? api_ != nullptr
         : component == "scheduler"   ? scheduler_ != nullptr
         : component == "controllers" ? manager_ != nullptr
         : component == "nodes"       ? nodes_ != nullptr
         : component == "autoscaler"  ? autoscaler_ != nullptr
         : component == "pools"       ? pools_ != nullptr
                                      : descheduler_timer_ != TimerId::kNone;
}

Result<void> Cluster::start(std::string_view component) {
  if (is_running(component)) return {};
  if (component == "server") return start_server();
  if (component == "scheduler") return start_scheduler();
  if (component == "autoscaler") return options_.autoscaler ? start_autoscaler() : Result<void>{};
  if (component == "pools") return options_.pools ? start_pools() : Result<void>{};
  if (component == "controllers") start_controllers();
  if (component == "nodes") start_nodes();
  if (component == "descheduler" && options_.descheduler) start_descheduler();
  return {};
}

void Cluster::stop(std::string_view component) {
  if (component == "server" && api_) {
    if (on_server) on_server(nullptr);
    for (const auto& [name, link] : links_) link->lead_to(nullptr);
    client_link_->lead_to(nullptr);
    api_.reset();
  } else if (component == "scheduler") {
    scheduler_.reset();
    informers_.reset();
  } else if (component == "controllers") {
    manager_.reset();
  } else if (component == "nodes") {
    nodes_.reset();
  } else if (component == "autoscaler") {
    autoscaler_.reset();
  } else if (component == "pools") {
    pools_.reset();
  } else if (component == "descheduler" && descheduler_timer_ != TimerId::kNone) {
    loop_.cancel(std::exchange(descheduler_timer_, TimerId::kNone));
    descheduler_.reset();
  }
}

Result<void> Cluster::start_server() {
  apiserver::CacheOptions cache_options;
  cache_options.history_events = 20'000;
  auto cache = apiserver::open_object_cache(std::make_unique<KeptStore>(*store_), loop_, cache_options, true);
  if (!cache) return std::unexpected(cache.error());
  apiserver::ServerOptions server;
  server.features = model::preferred_features();  // As `berth up` has them.
  server.cache = std::move(*cache);
  server.loop = &loop_;
  auto trusting = std::make_shared<apiserver::TrustingAuth>();
  server.authenticator = trusting;
  server.authorizer = trusting;
  server.seed = options_.seed * 1000 + 7 + starts_++;
  server.single_threaded = true;
  // Who wrote which field is half of a small object, and nothing here decides by it.
  server.tracks_every_writer = false;
  // Nobody's watch gets lost here: what only keeps connections alive is not worth a simulated day's time.
  server.bookmark_interval = std::chrono::hours(1);
  auto created = apiserver::ApiServer::create(std::move(server));
  if (!created) return std::unexpected(created.error());
  api_ = std::move(*created);
  if (metrics_handler != nullptr) api_->mount_group_version("metrics.k8s.io", "v1beta1", std::make_shared<Borrowed>(*metrics_handler));
  const auto transport = client::make_in_process_transport(*api_, {"system:admin", {"system:masters", "system:authenticated"}});
  for (const auto& [name, link] : links_) link->lead_to(transport);
  client_link_->lead_to(transport);
  if (on_server) on_server(&api_->cache());
  return {};
}

namespace {

/// What kube-scheduler leaves to chance is drawn: the order of a group's members, and which of equal domains is taken.
std::shared_ptr<const scheduler::GroupOptions> group_options(GangPolicy policy, std::uint64_t seed) {
  if (policy == GangPolicy::kBerth) return nullptr;
  auto out = std::make_shared<scheduler::GroupOptions>();
  if (policy == GangPolicy::kNone) {
    out->gangs = out->topology = out->preemption = false;
    return out;
  }
  out->as_kubernetes = true;
  const auto random = std::make_shared<Random>(seed, "gangs");
  out->order_members = [random](std::vector<placement::PodInfoPtr>& members) {
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[random->below(i)]);
    std::ranges::stable_sort(members, std::greater(), [](const placement::PodInfoPtr& pod) { return pod->view().priority; });
  };
  out->pick_domain = [random](std::size_t count) { return static_cast<std::size_t>(random->below(count)); };
  return out;
}

}  // namespace

Result<void> Cluster::start_scheduler() {
  scheduler::SchedulerOptions options;
  options.engine.seed = options_.seed;
  options.profiles = options_.scheduler.profiles;
  options.on_preemption = on_preemption;
  options.queue.initial_backoff = std::chrono::seconds(options_.scheduler.pod_initial_backoff_seconds);
  options.queue.max_backoff = std::chrono::seconds(options_.scheduler.pod_max_backoff_seconds);
  options.groups = group_options(options_.gangs, options_.seed);
  scheduler_client_ = std::make_unique<client::Client>(links_["scheduler"], &loop_, "scheduler");
  informers_ = std::make_unique<client::InformerFactory>(*scheduler_client_);
  auto created = scheduler::Scheduler::create(*scheduler_client_, *informers_, options);
  if (!created) return std::unexpected(created.error());
  scheduler_ = std::move(*created);
  scheduler_->start();
  informers_->start();
  scheduler_->lead(true);
  return {};
}

void Cluster::start_controllers() {
  ++controller_starts_;
  controllers::ManagerOptions options = options_.controllers;
  options.seed = options_.seed;
  options.simulated_machines = true;
  options.leader_elect = false;
  manager_ = controllers::make_controller_manager(links_["controllers"], controller_loop_, options, &controller_metrics_);
  manager_->start();
}

void Cluster::start_nodes() {
  node::simulated::SimulatedNodesOptions options;
  options.fleet = options_.fleet;
  options.fleet.steady_heartbeats = steady_;
  options.nodes = 0;
  nodes_ = std::make_unique<node::simulated::SimulatedNodes>(*node_client_, options);
  nodes_->start();
}

namespace {

/// For whoever plans: pods of a scheduler that nobody knows are the first profile's.
Result<placement::Profiles> planning_profiles(const scheduler::config::SchedulerConfig& config) {
  auto profiles = placement::Profiles::create(config.profiles);
  if (profiles) profiles->set_otherwise(profiles->find(config.profiles.front().scheduler_name));
  return profiles;
}

}  // namespace

Result<void> Cluster::start_pools() {
  auto profiles = planning_profiles(options_.scheduler);
  if (!profiles) return std::unexpected(profiles.error());
  pools_ = run_pools(*pools_client_, *options_.pools, *profiles, options_.seed);
  return {};
}

Result<void> Cluster::start_autoscaler() {
  auto profiles = planning_profiles(options_.scheduler);
  if (!profiles) return std::unexpected(profiles.error());
  autoscaler::RunnerOptions options;
  options.profiles = *profiles;
  options.scan_interval = options_.autoscaler->scan_interval;
  options.seed = options_.seed;
  autoscaler_ = std::make_unique<autoscaler::Runner>(*autoscaler_client_, std::move(options), autoscaler_metrics_);
  autoscaler_->start();
  return {};
}

void Cluster::start_descheduler() {
  descheduler_timer_ = loop_.schedule_after(options_.descheduler->every, [this] { deschedule(); });
}

/// A cycle asks and waits: it is done in one go, and not at all while the server cannot answer at once.
void Cluster::deschedule() {
  descheduler_timer_ = loop_.schedule_after(options_.descheduler->every, [this] { deschedule(); });
  if (!links_["descheduler"]->is_open() || !options_.descheduler->policy) return;
  if (!descheduler_) {
    auto profiles = placement::Profiles::create(options_.scheduler.profiles);
    if (!profiles) return;
    descheduler::DeschedulerOptions options;
    options.policy = *options_.descheduler->policy;
    options.profiles = *profiles;
    options.era = options_.scheduler.era;
    options.host = "berth";
    options.clock = &loop_;
    descheduler_ =
        std::make_unique<descheduler::Descheduler>(links_["descheduler"], std::move(options), std::make_shared<metrics::Registry>());
  }
  (void)descheduler_->run_once();  // What it could not read it says in the log; the next cycle tries again.
}

Result<void> Cluster::set_scheduler(scheduler::config::SchedulerConfig config) {
  options_.scheduler = std::move(config);
  descheduler_.reset();
  if (!is_running("scheduler")) return {};
  stop("scheduler");
  return start("scheduler");
}

void Cluster::set_descheduler(std::shared_ptr<const descheduler::Policy> policy) {
  stop("descheduler");
  if (!policy) {
    options_.descheduler.reset();
    return;
  }
  if (!options_.descheduler) options_.descheduler = DeschedulerSetting{};
  options_.descheduler->policy = std::move(policy);
  start_descheduler();
}

void Cluster::set_steady_heartbeats(bool steady) {
  steady_ = steady && may_be_steady_;
  if (nodes_) nodes_->set_steady_heartbeats(steady_);
}

Link& Cluster::link(std::string_view component) { return component == "user" ? *client_link_ : *links_.find(component)->second; }

}  // namespace berth::simulator
