#include "tests/world/world.h"

#include <algorithm>

#include "apiserver/etcd/range_claims.h"
#include "apiserver/etcd/shared_cache.h"
#include "client/informer.h"
#include "model/features.h"
#include "node/simulated/devices.h"

namespace berth::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kRepairs = std::chrono::seconds(45);
constexpr std::uint64_t kSchedulingDelayMs = 50;
constexpr const char* kServiceRange = "10.96.0.0/28";
const TimePoint kStart{std::chrono::hours(24 * 365 * 56)};

}  // namespace

/// A component that is killed and started again. Whoever leads does so by a Lease.
struct World::Component {
  std::string name;
  Process* process = nullptr;
  std::shared_ptr<client::Transport> transport;
  bool is_wanted = false;
  // A scheduler's.
  std::unique_ptr<client::Leadership> leadership;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<client::InformerFactory> informers;
  std::unique_ptr<scheduler::Scheduler> scheduler;
  // Controllers', nodes'.
  std::unique_ptr<controllers::ControllerManager> manager;
  std::unique_ptr<node::simulated::SimulatedNodes> nodes;

  void kill() {
    leadership.reset();
    scheduler.reset();
    informers.reset();
    manager.reset();
    nodes.reset();
    client.reset();
  }
  [[nodiscard]] bool runs() const { return scheduler || manager || nodes; }
};

World::World(std::uint64_t seed, int nodes) : start_(kStart), seed_(seed), nodes_(nodes), loop_(kStart), random_(seed, "world") {
  for (std::size_t i = 0; i < kServers; ++i) {
    servers_[i].loop = std::make_unique<ProcessLoop>(loop_);
    start_server(i);
  }
  repair();
  for (const char* name : kComponents) {
    auto component = std::make_unique<Component>();
    component->name = name;
    component->process = &process(name);
    component->process->wire->on_doubt = [this](const std::string& path) { ++doubts_[path]; };
    components_.push_back(std::move(component));
    start(name);
  }
}

World::~World() {
  for (auto& component : components_) component->kill();
  for (std::size_t i = 0; i < kServers; ++i) kill_server(i);
}

/// As `berth server` does, some seconds off each other.
void World::repair() {
  for (Server& server : servers_)
    if (server.api)
      server.loop->post([&server, api = server.api.get()] {
        if (server.api.get() == api) api->repair_service_claims();
      });
  loop_.schedule_after(kRepairs, [this] { repair(); });
}

void World::start_server(std::size_t i) {
  Server& server = servers_[i];
  if (server.api) return;
  const auto again = [this, i] { loop_.schedule_after(seconds(1), [this, i] { start_server(i); }); };
  auto link = std::make_shared<EtcdLink>(etcd_, seed_ * 1000 + ++starts_, server.loop.get());
  if (server.etcd) link->is_cut = server.etcd->is_cut;
  server.etcd = link;
  if (link->is_cut || !etcd_.has_leader || etcd_.is_full) return again();
  link->is_calm = true;
  server.loop->set_skew(skew_);
  apiserver::etcd::FormOptions form;
  form.prefix = kPrefix;
  auto cache = apiserver::etcd::open_shared_cache(link, *server.loop, {}, std::move(form), std::chrono::hours(1), server.loop.get());
  auto claims = apiserver::etcd::open_range_claims(link, {kPrefix, kServiceRange, kFirstNodePort, kLastNodePort});
  if (!cache || !claims) return again();
  apiserver::ServerOptions options;
  options.cache = std::move(*cache);
  options.service_claims = std::move(*claims);
  options.service_cidr = kServiceRange;
  options.node_port_first = kFirstNodePort;
  options.node_port_last = kLastNodePort;
  options.loop = server.loop.get();
  auto trusting = std::make_shared<apiserver::TrustingAuth>();
  options.authenticator = trusting;
  options.authorizer = trusting;
  options.seed = seed_ * 1000 + 500 + starts_;
  options.features = model::preferred_features();  // As `berth up` has them.
  options.single_threaded = true;
  options.watch_flush_pause = Duration::zero();
  auto created = apiserver::ApiServer::create(std::move(options));
  if (!created) {
    wrongs.push_back(fmt::format("server {} does not start: {}", i, created.error().message));
    return again();
  }
  server.api = std::move(*created);
  server.door = std::make_shared<Door>(
      *server.loop, client::make_in_process_transport(*server.api, {"system:admin", {"system:masters", "system:authenticated"}}));
  link->is_calm = false;
  for (auto& process : processes_)
    if (process->wire->leads_nowhere()) lead(*process);
}

void World::kill_server(std::size_t i) {
  Server& server = servers_[i];
  if (!server.api) return;
  for (auto& process : processes_) {
    if (process->server != i || process->wire->leads_nowhere()) continue;
    process->wire->lead_to(nullptr);
    loop_.schedule_after(milliseconds(100 + random_.below(2000)), [this, one = process.get()] {
      if (one->wire->leads_nowhere()) lead(*one);
    });
  }
  server.door->close();
  server.door.reset();
  server.etcd->kill();
  server.api.reset();
  server.loop->go_on();
}

void World::lead(Process& process) {
  for (std::size_t step = 1; step <= kServers; ++step) {
    const std::size_t i = (process.server + step) % kServers;
    if (!servers_[i].api) continue;
    process.server = i;
    return process.wire->lead_to(servers_[i].door);
  }
}

Process& World::process(const std::string& name) {
  for (auto& process : processes_)
    if (process->name == name) return *process;
  auto made = std::make_unique<Process>();
  made->name = name;
  made->loop = std::make_unique<ProcessLoop>(loop_);
  made->election = std::make_unique<ProcessLoop>(loop_);
  made->wire = std::make_shared<Wire>(loop_, *made->loop, seed_ * 1000 + 700 + processes_.size());
  made->server = processes_.size() % kServers;
  lead(*made);
  processes_.push_back(std::move(made));
  return *processes_.back();
}

void World::kill(std::string_view name, bool says_goodbye) {
  for (auto& component : components_)
    if (component->name == name) {
      component->is_wanted = false;
      component->process->wire->is_dumb = !says_goodbye;
      component->kill();
      component->process->wire->is_dumb = false;
      component->process->loop->go_on();
      component->process->election->go_on();
    }
}

void World::stop_process(Process& process) {
  process.loop->stop();
  process.election->stop();
}

void World::continue_process(Process& process) {
  process.loop->go_on();
  loop_.schedule_after(milliseconds(random_.below(kSchedulingDelayMs)), [&process] {
    if (!process.loop->is_stopped()) process.election->go_on();
  });
}

void World::start(std::string_view name) {
  for (auto& component : components_)
    if (component->name == name && !component->runs()) {
      component->is_wanted = true;
      start_component(*component);
    }
}

void World::start_component(Component& component) {
  ++starts_;
  ProcessLoop& loop = *component.process->loop;
  component.process->set_skew(skew_);
  const std::string identity = fmt::format("{}_{}", component.name, starts_);
  component.process->wire->on_send = [this, of = &component](const net::HttpRequest& request) { watch_leader(*of, request); };
  if (component.name.starts_with("controllers")) {
    controllers::ManagerOptions options;
    options.seed = seed_ * 1000 + starts_;
    options.leader_elect = true;
    options.stands_again = true;
    options.election_loop = component.process->election.get();
    options.identity = identity;
    component.manager = controllers::make_controller_manager(component.process->wire, loop, options, &metrics_);
    component.manager->on_lost_leadership([this, of = &component] {
      // Its process ends, and is started again.
      of->process->loop->schedule_after(seconds(1), [this, of] {
        if (!of->is_wanted) return;
        of->kill();
        start_component(*of);
      });
    });
    component.manager->start();
  } else if (component.name.starts_with("scheduler")) {
    client::LeadershipOptions options;
    options.election.name = "kube-scheduler";
    options.election.identity = identity;
    options.election.lease_duration = client::kOwnTimes.lease_duration;
    options.election.renew_deadline = client::kOwnTimes.renew_deadline;
    options.election.retry_period = client::kOwnTimes.retry_period;
    options.election.seed = seed_ * 1000 + starts_;
    options.user_agent = "scheduler";
    options.stands_again = true;
    options.election_loop = component.process->election.get();
    client::LeaderCallbacks callbacks;
    callbacks.on_started_leading = [of = &component] { of->scheduler->lead(true); };
    callbacks.on_stopped_leading = [of = &component] { of->scheduler->lead(false); };
    component.leadership = std::make_unique<client::Leadership>(component.process->wire, std::move(options), &loop, std::move(callbacks));
    component.client = std::make_unique<client::Client>(component.leadership->transport(), &loop, "scheduler");
    component.informers = std::make_unique<client::InformerFactory>(*component.client);
    scheduler::SchedulerOptions scheduling;
    scheduling.engine.seed = seed_;
    auto created = scheduler::Scheduler::create(*component.client, *component.informers, scheduling);
    if (!created) {
      wrongs.push_back("the scheduler does not start: " + created.error().message);
      return;
    }
    component.scheduler = std::move(*created);
    component.scheduler->start();
    component.informers->start();
    component.leadership->start();
  } else {
    node::simulated::SimulatedNodesOptions options;
    options.nodes = nodes_;
    options.zones = 2;
    options.node_template.capacity["cpu"] = "4100m";  // Little: what does not fit waits, and comes when others go.
    options.node_template.annotations[std::string(node::simulated::kDevicesAnnotation)] = "gpu.example.com=2";
    component.client = std::make_unique<client::Client>(component.process->wire, &loop, "nodes");
    component.nodes = std::make_unique<node::simulated::SimulatedNodes>(*component.client, options);
    component.nodes->start();
  }
}

std::string World::holder_of(std::string_view lease) {
  static const apiserver::etcd::StoredForm kForm{{}};
  const std::string key = apiserver::make_key("coordination.k8s.io", "leases", "kube-system", lease);
  const std::string stored = kForm.stored_key(key);
  const auto found = etcd_.items().find(stored);
  if (found == etcd_.items().end()) return "";
  const auto text = kForm.to_text(key, stored, *found->second.value);
  if (!text) return "";
  return std::string(json::get_string(*json::parse(text->value), {"spec", "holderIdentity"}));
}

void World::watch_leader(Component& component, const net::HttpRequest& request) {
  if (component.name == "nodes" || request.method == "GET" || request.path.find("/leases") != std::string::npos) return;
  // Events are news, no acts.
  if (request.path.find("/events") != std::string::npos) return;
  const bool is_scheduler = component.name.starts_with("scheduler");
  const std::string holder = holder_of(is_scheduler ? "kube-scheduler" : "kube-controller-manager");
  if (!is_scheduler && std::exchange(in_control_, holder) != holder) ++changes_of_control_;
  if (holder.starts_with(component.name + "_")) return;
  wrongs.push_back(fmt::format("{} writes ({} {}) while {} holds the lease", component.name, request.method, request.path,
                               holder.empty() ? "nobody" : holder));
}

}  // namespace berth::world
