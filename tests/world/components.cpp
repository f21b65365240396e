#include <algorithm>
#include <array>

#include "node/simulated/devices.h"
#include "placement/profiles.h"
#include "tests/world/component.h"

namespace berth::world {
namespace {

using std::chrono::seconds;

/// What pools may buy: a node for one pod of a processor, or for three at less than three times the price.
constexpr std::string_view kCatalogue = R"(
kind: InstanceTypeCatalogue
zones: [zone-a, zone-b]
instanceTypes:
- {name: one, cpu: "1100m", memory: 8Gi, pods: 20, prices: {on-demand: 0.1}}
- {name: three, cpu: "3100m", memory: 16Gi, pods: 60, prices: {on-demand: 0.25}}
)";

/// Which lease a write stands under, by who says that he writes.
struct Writer {
  std::string_view agent, lease;
};
constexpr std::array<Writer, 4> kWriters{{{"kube-controller-manager", "kube-controller-manager"},
                                          {"scheduler", "kube-scheduler"},
                                          {"cluster-autoscaler", "cluster-autoscaler"},
                                          {"karpenter", "berth-node-pools"}}};

/// As the scheduler has it: nobody configures it otherwise.
placement::Profiles scheduler_profiles() {
  auto out = placement::Profiles::create({placement::default_profile(placement::Era::k136)});
  return out.value();
}

}  // namespace

void World::start_component(Component& component) {
  ++starts_;
  component.process->set_skew(skew_);
  component.process->wire->on_send = [this, of = &component](const net::HttpRequest& request) { watch_leader(*of, request); };
  if (component.name.starts_with("controllers")) return start_controllers(component);
  if (component.name.starts_with("scheduler")) return start_scheduler(component);
  if (component.name.starts_with("autoscaler")) return start_autoscaler(component);
  start_nodes(component);
}

std::string World::identity_of(const Component& component) const { return fmt::format("{}_{}", component.name, starts_); }

void World::restart(Component& component) {
  component.process->loop->schedule_after(seconds(1), [this, of = &component] {
    if (!of->is_wanted) return;
    of->kill();
    start_component(*of);
  });
}

void World::start_controllers(Component& component) {
  controllers::ManagerOptions options;
  options.seed = seed_ * 1000 + starts_;
  options.leader_elect = true;
  options.stands_again = true;
  options.simulated_machines = true;
  options.election_loop = component.process->election.get();
  options.identity = identity_of(component);
  component.manager = controllers::make_controller_manager(component.process->wire, *component.process->loop, options, &metrics_);
  component.manager->on_lost_leadership([this, of = &component] { restart(*of); });
  component.manager->start();
}

void World::start_scheduler(Component& component) {
  ProcessLoop& loop = *component.process->loop;
  client::LeadershipOptions options;
  options.election.name = "kube-scheduler";
  options.election.identity = identity_of(component);
  options.election.lease_duration = client::kOwnTimes.lease_duration;
  options.election.renew_deadline = client::kOwnTimes.renew_deadline;
  options.election.retry_period = client::kOwnTimes.retry_period;
  options.election.seed = seed_ * 1000 + starts_;
  options.user_agent = "scheduler";
  options.stands_again = true;
  options.election_loop = component.process->election.get();
  options.catch_up = [of = &component](std::function<void()> done) { of->informers->catch_up(std::move(done)); };
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
}

void World::start_nodes(Component& component) {
  node::simulated::SimulatedNodesOptions options;
  options.nodes = nodes_;
  options.zones = 2;
  options.node_template.capacity["cpu"] = "4100m";  // Little: what does not fit waits, and comes when others go.
  options.node_template.annotations[std::string(node::simulated::kDevicesAnnotation)] = "gpu.example.com=2";
  component.client = std::make_unique<client::Client>(component.process->wire, component.process->loop.get(), "nodes");
  component.nodes = std::make_unique<node::simulated::SimulatedNodes>(*component.client, options);
  component.nodes->start();
}

/// Groups and pools in one process, as `berth autoscaler --instance-types` has them; each has its Lease, and the process ends with either.
void World::start_autoscaler(Component& component) {
  static const placement::Profiles kProfiles = scheduler_profiles();
  static const pools::Catalogue kTypes = pools::Catalogue::parse(kCatalogue, "types.yaml").value();
  EventLoop* loop = component.process->loop.get();
  const auto lost = [this, of = &component] { restart(*of); };
  pools::RunnerOptions pools;
  pools.catalogue = kTypes;
  pools.keeper.profiles = kProfiles;
  pools.leader_elect = true;
  pools.identity = identity_of(component);
  pools.election_loop = component.process->election.get();
  component.pools_client = std::make_unique<client::Client>(component.process->wire, loop, "karpenter");
  component.pools = std::make_unique<pools::Runner>(*component.pools_client, std::move(pools));
  component.pools->on_lost_leadership(lost);
  component.pools->start();
  autoscaler::RunnerOptions options;
  options.profiles = kProfiles;
  options.seed = seed_ * 1000 + starts_;
  options.leader_elect = true;
  options.identity = identity_of(component);
  options.election_loop = component.process->election.get();
  component.client = std::make_unique<client::Client>(component.process->wire, loop, "cluster-autoscaler");
  component.autoscaler = std::make_unique<autoscaler::Runner>(*component.client, std::move(options), metrics_);
  component.autoscaler->on_lost_leadership(lost);
  component.autoscaler->start();
}

std::string World::holder_of(std::string_view lease) {
  const std::string key = apiserver::make_key("coordination.k8s.io", "leases", "kube-system", lease);
  const std::string stored = all_forms().stored_key(key);
  const auto found = held().items().find(stored);
  if (found == held().items().end()) return "";
  const auto text = all_forms().to_text(key, stored, *found->second.value);
  if (!text) return "";
  return std::string(json::get_string(*json::parse(text->value), {"spec", "holderIdentity"}));
}

void World::watch_leader(Component& component, const net::HttpRequest& request) {
  if (component.name == "nodes" || request.method == "GET" || request.path.find("/leases") != std::string::npos) return;
  // Events are news, no acts.
  if (request.path.find("/events") != std::string::npos) return;
  const std::string_view agent = request.headers.get("User-Agent");
  const auto writer = std::ranges::find(kWriters, agent, &Writer::agent);
  if (writer == kWriters.end()) {
    wrongs.push_back(fmt::format("{} writes ({} {}) as {}", component.name, request.method, request.path, agent));
    return;
  }
  const std::string holder = holder_of(writer->lease);
  if (component.name.starts_with("controllers") && std::exchange(in_control_, holder) != holder) ++changes_of_control_;
  if (holder.starts_with(component.name + "_")) return;
  wrongs.push_back(fmt::format("{} writes ({} {}) while {} holds the lease", component.name, request.method, request.path,
                               holder.empty() ? "nobody" : holder));
}

}  // namespace berth::world
