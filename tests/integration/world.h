// A whole cluster under a virtual clock, on one thread: API server on a memory store, controllers, scheduler, simulated nodes. What happens
// is a function of the calls and the seed.
#pragma once
#include <gtest/gtest.h>

#include "apiserver/server.h"
#include "client/client.h"
#include "client/informer.h"
#include "controllers/manager.h"
#include "node/simulated/simulated_nodes.h"
#include "scheduler/scheduler.h"
#include "tests/integration/link.h"
#include "tests/integration/skewed_loop.h"

namespace berth::integration {

/// Stands between the scheduler and the server: true when it took the request and answers it itself, or never.
using Interceptor = std::function<bool(const net::HttpRequest& request, std::function<void(net::HttpResponse)>& done)>;

struct WorldOptions {
  int nodes = 3;
  std::string node_cpu = "32";
  std::map<std::string, std::string> node_capacity;  ///< What nodes have besides.
  int zones = 3;
  /// How long pods take to stop, if their grace period lets them.
  Duration stop_delay = std::chrono::milliseconds(200);
  Interceptor intercept;        ///< Of the scheduler's requests.
  Interceptor intercept_nodes;  ///< Of the simulated nodes'.
  scheduler::SchedulerOptions scheduler;
  controllers::ManagerOptions controllers;
};

class InterceptedTransport : public client::Transport {
 public:
  InterceptedTransport(std::shared_ptr<client::Transport> below, Interceptor intercept)
      : below_(std::move(below)), intercept_(std::move(intercept)) {}
  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    if (!intercept_ || !intercept_(request, done)) below_->send(std::move(request), std::move(done));
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    return below_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    below_->upgrade(std::move(request), std::move(done));
  }

 private:
  std::shared_ptr<client::Transport> below_;
  Interceptor intercept_;
};

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

class World {
 public:
  explicit World(WorldOptions options = {}) : options_(options), loop_(TimePoint{} + std::chrono::hours(500'000)) {
    for (const auto& link : {client_link_, node_link_, controller_link_, scheduler_link_}) links_.push_back(link.get());
    start_server();
    client_ = std::make_unique<client::Client>(client_link_, nullptr, "test");
    start_nodes();
    start_controllers();
    start_scheduler();
    run(std::chrono::seconds(5));
  }
  ~World() {
    scheduler_.reset();
    informers_.reset();
    manager_.reset();
    nodes_.reset();
    api_->begin_shutdown();
  }

  void start_server() {
    auto cache = apiserver::open_object_cache(std::make_unique<KeptStore>(*store_), loop_, {}, true);
    ASSERT_TRUE(cache) << cache.error().message;
    apiserver::ServerOptions server;
    server.cache = std::move(*cache);
    server.loop = &loop_;
    auto trusting = std::make_shared<apiserver::TrustingAuth>();
    server.authenticator = trusting;
    server.authorizer = trusting;
    server.seed = 7 + starts_++;
    server.single_threaded = true;
    server.features = options_.controllers.features;  // As `berth up` has them, unless the test says otherwise.
    auto created = apiserver::ApiServer::create(std::move(server));
    ASSERT_TRUE(created) << created.error().message;
    api_ = std::move(*created);
    const auto transport = client::make_in_process_transport(*api_, {"system:admin", {"system:masters", "system:authenticated"}});
    for (Link* link : links_) link->lead_to(transport);
  }
  /// Gone at once, as a killed process: everybody's watches end, the store stays.
  void stop_server() {
    for (Link* link : links_) link->lead_to(nullptr);
    api_.reset();
  }
  void start_nodes() {
    auto transport = std::make_shared<InterceptedTransport>(node_link_, options_.intercept_nodes);
    node_client_ = std::make_unique<client::Client>(std::move(transport), &loop_, "nodes");
    node::simulated::SimulatedNodesOptions nodes;
    nodes.nodes = options_.nodes;
    nodes.zones = options_.zones;
    nodes.node_template.capacity["cpu"] = options_.node_cpu;
    for (const auto& [resource, amount] : options_.node_capacity) nodes.node_template.capacity[resource] = amount;
    nodes.fleet.stop_delay = options_.stop_delay;
    nodes_ = std::make_unique<node::simulated::SimulatedNodes>(*node_client_, nodes);
    nodes_->start();
  }
  /// `ahead`: their clock is so much ahead of everybody else's.
  void start_controllers(Duration ahead = Duration{0}) {
    controller_loop_.set_ahead(ahead);
    controllers::ManagerOptions options = options_.controllers;
    options.root_ca_pem = "ca";
    options.election_loop = &controller_loop_;
    manager_ = controllers::make_controller_manager(controller_link_, controller_loop_, options, &metrics_);
    manager_->start();
  }
  void start_scheduler() {
    auto transport = std::make_shared<InterceptedTransport>(scheduler_link_, options_.intercept);
    scheduler_client_ = std::make_unique<client::Client>(std::move(transport), &loop_, "scheduler");
    informers_ = std::make_unique<client::InformerFactory>(*scheduler_client_);
    auto created = scheduler::Scheduler::create(*scheduler_client_, *informers_, options_.scheduler);
    ASSERT_TRUE(created) << created.error().message;
    scheduler_ = std::move(*created);
    scheduler_->start();
    informers_->start();
    scheduler_->lead(true);
  }
  /// Gone at once, as killed processes.
  void stop_controllers() { manager_.reset(); }
  void stop_nodes() { nodes_.reset(); }
  void stop_scheduler() {
    scheduler_.reset();
    informers_.reset();
  }

  scheduler::Scheduler& scheduler() { return *scheduler_; }

  void run(Duration d) { loop_.run_for(d); }
  /// As what lives in the server's own process has it, without anything between.
  std::shared_ptr<client::Transport> own_transport() {
    return client::make_in_process_transport(*api_, {"system:admin", {"system:masters", "system:authenticated"}});
  }
  client::Client& client() { return *client_; }
  VirtualLoop& loop() { return loop_; }
  /// What the test, the simulated nodes, and the controllers, speak to the server over.
  Link& client_link() { return *client_link_; }
  Link& node_link() { return *node_link_; }
  Link& controller_link() { return *controller_link_; }

  /// Creates an object from YAML; the test fails when the server refuses it.
  void create(std::string_view yaml) {
    auto document = json::parse_yaml(yaml);
    ASSERT_TRUE(document) << document.error().message;
    const std::string api_version(json::get_string(*document, {"apiVersion"}));
    const std::size_t slash = api_version.find('/');
    const model::KindInfo* kind =
        model::find_kind(slash == std::string::npos ? "" : api_version.substr(0, slash),
                         slash == std::string::npos ? api_version : api_version.substr(slash + 1), json::get_string(*document, {"kind"}));
    ASSERT_NE(kind, nullptr);
    const auto created = client_->create_and_wait(kind->gvr(), kind->namespaced ? "default" : "", *document);
    ASSERT_TRUE(created) << created.error().message;
  }
  json::Value get(const char* group, const char* resource, const std::string& name) {
    const model::KindInfo* kind = model::find_resource(group, resource);
    auto found = client_->get_and_wait(kind->gvr(), kind->namespaced ? "default" : "", name);
    return found ? *found : json::Value();
  }
  std::vector<json::Value> pods(const std::string& selector = "") {
    client::ListOptions options;
    options.label_selector = selector;
    auto page = client_->list_and_wait({"", "v1", "pods"}, "default", options);
    return page ? page->items : std::vector<json::Value>();
  }
  std::size_t running(const std::string& selector = "") {
    const auto all = pods(selector);
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const json::Value& pod) {
      return json::get_string(pod, {"status", "phase"}) == "Running";
    }));
  }

 private:
  WorldOptions options_;
  VirtualLoop loop_;
  SkewedLoop controller_loop_{loop_};
  std::unique_ptr<store::Store> store_ = store::make_memory_store();
  std::unique_ptr<apiserver::ApiServer> api_;
  std::uint64_t starts_ = 0;
  std::shared_ptr<Link> client_link_ = std::make_shared<Link>(loop_), node_link_ = std::make_shared<Link>(loop_),
                        controller_link_ = std::make_shared<Link>(loop_), scheduler_link_ = std::make_shared<Link>(loop_);
  std::vector<Link*> links_;
  std::unique_ptr<client::Client> client_, node_client_, scheduler_client_;
  std::unique_ptr<node::simulated::SimulatedNodes> nodes_;
  metrics::Registry metrics_;
  std::unique_ptr<controllers::ControllerManager> manager_;
  std::unique_ptr<client::InformerFactory> informers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
};

/// A Deployment of one container that asks for `cpu`.
inline std::string deployment_yaml(const std::string& name, int replicas, const std::string& cpu, const std::string& priority_class = "") {
  return fmt::format(
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {0}}}\nspec:\n  replicas: {1}\n  selector: {{matchLabels: {{app: {0}}}}}\n "
      " template:\n    metadata: {{labels: {{app: {0}}}}}\n"
      "    spec:\n      priorityClassName: \"{3}\"\n      terminationGracePeriodSeconds: 1\n      containers: [{{name: c, image: nginx, "
      "resources: {{requests: {{cpu: \"{2}\"}}}}}}]\n",
      name, replicas, cpu, priority_class);
}

}  // namespace berth::integration
