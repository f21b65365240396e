// A cluster through virtual days, from a seed: workloads of every kind come, change and go while nodes are lost, zones fail, the nodes are
// cut off from the control plane, taints storm, and controllers and scheduler die and start again (SPEC I4, D1-D6).
//
// While the story runs: no zone is evicted faster than its rate, and no eviction through the API breaks a PodDisruptionBudget. Then all is
// healed, time passes, and every workload is at its wanted count, no pod is an orphan, waits, or is on a node that is not there.
//
//   BERTH_SIMULATION_SEEDS=500 BERTH_SIMULATION_FIRST=1000 BERTH_SIMULATION_STEPS=400 test_simulation
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/log.h"
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

int setting(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::atoi(text) : fallback;
}

std::string text_of(const json::Value& object, std::initializer_list<std::string_view> path) {
  return std::string(json::get_string(object, path));
}

/// A kind of workload that the story makes.
struct Kind {
  const char *group, *resource, *kind, *api_version;
};
constexpr std::array<Kind, 6> kKinds = {{{"apps", "deployments", "Deployment", "apps/v1"},
                                         {"apps", "replicasets", "ReplicaSet", "apps/v1"},
                                         {"apps", "statefulsets", "StatefulSet", "apps/v1"},
                                         {"apps", "daemonsets", "DaemonSet", "apps/v1"},
                                         {"batch", "jobs", "Job", "batch/v1"},
                                         {"batch", "cronjobs", "CronJob", "batch/v1"}}};

class Story {
 public:
  explicit Story(std::uint64_t seed, const controllers::ManagerOptions& controllers = {})
      : random_(seed), world_(options(seed, controllers)) {
    world_.controller_link().on_request = [this](const net::HttpRequest& request) { see_request(request); };
  }

  void run(int steps) {
    for (int i = 0; i < steps && problems.empty(); ++i) {
      step();
      world_.run(below(3) == 0 ? Duration(seconds(below(10))) : Duration(seconds(below(600))));
    }
    heal();
    // Longer than a CrashLoop's, a Job's and the garbage collector's longest wait for what happened before.
    world_.run(minutes(30));
    check_rest();
  }

  int evictions = 0, taints = 0, refused_evictions = 0, workloads_made = 0;
  std::vector<std::string> problems;

 private:
  static constexpr int kNodes = 9, kZones = 3;

  static WorldOptions options(std::uint64_t seed, const controllers::ManagerOptions& controllers) {
    WorldOptions out{.nodes = kNodes, .node_cpu = "32", .zones = kZones};
    out.scheduler.engine.seed = seed;
    out.controllers = controllers;
    return out;
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  std::string a_node() { return fmt::format("node-{}", 1 + below(kNodes)); }

  void expect(bool holds, std::string problem) {
    if (!holds) problems.push_back(std::move(problem));
  }

  // ---- what happens

  struct Action;
  static const std::array<Action, 23> kActions;

  void step();

  std::string pod_template(const std::string& app, const char* restart_policy) {
    const std::string tolerations =
        below(3) == 0 ? "tolerations: [{key: storm, operator: Exists, effect: NoExecute, tolerationSeconds: 30}], " : "";
    const std::string annotations = std::string_view(restart_policy) == "Never"
                                        ? ", annotations: {sim.berth.dev/complete: \"succeeded:20\", kubesuite/complete: \"succeeded:20\"}"
                                        : "";
    return fmt::format(
        "{{metadata: {{labels: {{app: {}}}{}}}, spec: {{restartPolicy: {}, terminationGracePeriodSeconds: {}, {}containers: [{{name: c, "
        "image: nginx, resources: {{requests: {{cpu: \"{}\"}}}}}}]}}}}",
        app, annotations, restart_policy, below(3) == 0 ? 30 : 1, tolerations, below(2) == 0 ? "100m" : "500m");
  }

  void add_workload() {
    if (workloads_.size() > 10) return;
    const Kind& kind = kKinds[below(kKinds.size())];
    const std::string name = fmt::format("w{}", ++counter_);
    ++workloads_made;
    const std::string selector = fmt::format("selector: {{matchLabels: {{app: {}}}}}", name);
    const std::string kind_name = kind.kind;
    std::string spec;
    if (kind_name == "Job")
      spec = fmt::format("completions: {}, parallelism: 2, backoffLimit: 50, template: {}", 1 + below(5), pod_template(name, "Never"));
    else if (kind_name == "CronJob")
      spec = fmt::format("schedule: \"*/{} * * * *\", concurrencyPolicy: {}, jobTemplate: {{spec: {{backoffLimit: 50, template: {}}}}}",
                         1 + below(20), below(2) == 0 ? "Forbid" : "Allow", pod_template(name, "Never"));
    else if (kind_name == "DaemonSet")
      spec = fmt::format("{}, template: {}", selector, pod_template(name, "Always"));
    else if (kind_name == "StatefulSet")
      spec = fmt::format("replicas: {}, serviceName: none, podManagementPolicy: {}, {}, template: {}", below(5),
                         below(2) == 0 ? "Parallel" : "OrderedReady", selector, pod_template(name, "Always"));
    else
      spec = fmt::format("replicas: {}, {}, template: {}", below(8), selector, pod_template(name, "Always"));
    world_.create(fmt::format("apiVersion: {}\nkind: {}\nmetadata: {{name: {}}}\nspec: {{{}}}\n", kind.api_version, kind.kind, name, spec));
    workloads_.emplace_back(&kind, name);
  }
  static bool has_replicas(const Kind& kind) {
    return std::string_view(kind.resource) == "deployments" || std::string_view(kind.resource) == "replicasets" ||
           std::string_view(kind.resource) == "statefulsets";
  }
  void scale() {
    if (workloads_.empty()) return;
    const auto& [kind, name] = workloads_[below(workloads_.size())];
    if (has_replicas(*kind)) patch(kind->group, kind->resource, name, fmt::format(R"({{"spec":{{"replicas":{}}}}})", below(9)));
  }
  void roll() {
    if (workloads_.empty()) return;
    const auto& [kind, name] = workloads_[below(workloads_.size())];
    if (std::string_view(kind->group) == "apps")
      patch(kind->group, kind->resource, name,
            fmt::format(R"({{"spec":{{"template":{{"metadata":{{"annotations":{{"roll":"{}"}}}}}}}}}})", ++counter_));
  }
  void remove_workload() {
    if (workloads_.empty()) return;
    const std::size_t i = below(workloads_.size());
    const auto [kind, name] = workloads_[i];
    workloads_.erase(workloads_.begin() + static_cast<std::ptrdiff_t>(i));
    remove(kind->group, kind->resource, name, fmt::format(R"({{"propagationPolicy":"{}"}})", below(2) == 0 ? "Background" : "Foreground"));
  }
  void kill_node(const std::string& node, bool dead) {
    patch("", "nodes", node, fmt::format(R"({{"metadata":{{"annotations":{{"sim.berth.dev/dead":"{}"}}}}}})", dead));
  }
  void kill_a_node() { kill_node(a_node(), true); }
  void revive_a_node() { kill_node(a_node(), false); }
  void kill_a_zone() { fail_zone(true); }
  void revive_a_zone() { fail_zone(false); }
  void fail_zone(bool dead) {
    const std::size_t zone = below(kZones);
    for (std::size_t i = zone; i < kNodes; i += kZones) kill_node(fmt::format("node-{}", i + 1), dead);
  }
  void cut_nodes() {
    world_.node_link().cut();
    world_.run(seconds(below(400)));
    world_.node_link().heal();
  }
  void cut_controllers() {
    world_.controller_link().cut();
    world_.run(seconds(below(120)));
    world_.controller_link().heal();
    forget_turns();
  }
  void storm() {
    for (std::uint64_t i = 0; i < 1 + below(3); ++i)
      patch("", "nodes", a_node(),
            fmt::format(R"({{"spec":{{"taints":[{{"key":"storm","value":"{}","effect":"{}"}}]}}}})", below(3),
                        below(3) == 0 ? "NoSchedule" : "NoExecute"));
    forget_turns();  // The storm blew the controller's own taints away: they come again without a turn of their own being due.
  }
  void calm() {
    for (const json::Value& node : list("", "nodes")) untaint(node);
  }
  void untaint(const json::Value& node) {
    json::Array kept;
    for (const json::Value& taint : json::get_array(node, {"spec", "taints"}))
      if (text_of(taint, {"key"}) != "storm") kept.push_back(taint);
    if (kept.size() != json::get_array(node, {"spec", "taints"}).size())
      patch("", "nodes", text_of(node, {"metadata", "name"}),
            json::serialize(json::Object{{"spec", json::Object{{"taints", std::move(kept)}}}}));
  }
  void cordon() { patch("", "nodes", a_node(), R"({"spec":{"unschedulable":true}})"); }
  void uncordon() { patch("", "nodes", a_node(), R"({"spec":{"unschedulable":false}})"); }
  void delete_node() {
    if (list("", "nodes").size() > kNodes - 2) remove("", "nodes", a_node());
  }
  /// Deleted machines are bought again, under their old names.
  void make_nodes() {
    for (int i = 1; i <= kNodes; ++i) {
      const std::string name = fmt::format("node-{}", i);
      if (world_.get("", "nodes", name).is_null())
        world_.create(fmt::format(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}, topology.kubernetes.io/zone: "
            "zone-{1}, topology.kubernetes.io/region: region-1}}, annotations: {{sim.berth.dev/fleet: default}}}}\n",
            name, static_cast<char>('a' + (i - 1) % kZones)));
    }
  }
  void restart_controllers() {
    world_.stop_controllers();
    world_.run(seconds(below(90)));
    world_.start_controllers();
    forget_turns();
  }
  void restart_scheduler() {
    world_.stop_scheduler();
    world_.run(seconds(below(90)));
    world_.start_scheduler();
  }
  void restart_server() {
    world_.stop_server();
    world_.run(seconds(below(60)));
    world_.start_server();
  }
  /// A machine whose clock is wrong takes the controllers over.
  void set_clock() {
    world_.stop_controllers();
    world_.run(seconds(below(20)));
    world_.start_controllers(seconds(below(600)) - seconds(300));
    forget_turns();
  }
  void add_budget() {
    if (workloads_.empty() || budgets_.size() > 3) return;
    const std::string app = workloads_[below(workloads_.size())].second, name = fmt::format("budget{}", ++counter_);
    const std::uint64_t least = 1 + below(4);
    world_.create(
        fmt::format("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {}}}\nspec: {{minAvailable: {}, selector: "
                    "{{matchLabels: {{app: {}}}}}}}\n",
                    name, least, app));
    budgets_[app] = std::max<std::uint64_t>(budgets_[app], least);
  }
  static bool is_ready(const json::Value& pod) {
    for (const json::Value& condition : json::get_array(pod, {"status", "conditions"}))
      if (text_of(condition, {"type"}) == "Ready") return text_of(condition, {"status"}) == "True";
    return false;
  }
  /// As kubectl drain: cordon, then evict what is there through the API, which must keep the budgets.
  void drain() {
    const auto all = world_.pods();
    const std::string node = all.empty() ? a_node() : text_of(all[below(all.size())], {"spec", "nodeName"});
    if (node.empty()) return;
    patch("", "nodes", node, R"({"spec":{"unschedulable":true}})");
    for (const json::Value& pod : all) {
      if (text_of(pod, {"spec", "nodeName"}) != node || json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr) continue;
      const std::string name = text_of(pod, {"metadata", "name"}), app = text_of(pod, {"metadata", "labels", "app"});
      std::uint64_t healthy = 0;
      for (const json::Value& other : world_.pods("app=" + app))
        healthy += is_ready(other) && json::find(other, {"metadata", "deletionTimestamp"}) == nullptr;
      client::Call call;
      call.verb = "create";
      call.gvr = {"", "v1", "pods"};
      call.ns = "default";
      call.name = name;
      call.subresource = "eviction";
      call.body = fmt::format(R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{}","namespace":"default"}}}})", name);
      const bool accepted = world_.client().call_and_wait(call).has_value();
      ++(accepted ? evictions : refused_evictions);
      if (accepted && is_ready(pod) && budgets_.contains(app)) {
        expect(healthy > budgets_[app], fmt::format("eviction of {} broke its budget", name));
      }
      world_.run(milliseconds(below(500)));
    }
  }
  void delete_a_pod() {
    const auto pods = world_.pods();
    if (!pods.empty())
      remove("", "pods", text_of(pods[below(pods.size())], {"metadata", "name"}), below(2) == 0 ? R"({"gracePeriodSeconds":0})" : "");
  }

  // ---- what is watched

  void forget_turns() { last_turn_.clear(); }

  /// Every NoExecute taint of the node controller that is a node's turn (no change from not-ready to unreachable) keeps its zone's
  /// distance.
  void see_request(const net::HttpRequest& request) {
    if (request.method != "PATCH" || !request.path.starts_with("/api/v1/nodes/") || request.body.find("NoExecute") == std::string::npos)
      return;
    const auto body = json::parse(request.body);
    const json::Value node = world_.get("", "nodes", request.path.substr(14));
    if (!body || node.is_null()) return;
    const auto evicts = [](const json::Value& document) {
      return std::ranges::any_of(json::get_array(document, {"spec", "taints"}), [](const json::Value& taint) {
        const std::string key = text_of(taint, {"key"});
        return text_of(taint, {"effect"}) == "NoExecute" &&
               (key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable");
      });
    };
    // A patch on an outdated revision is refused and the node's turn is repeated.
    const std::string revision = text_of(*body, {"metadata", "resourceVersion"});
    if (!evicts(*body) || evicts(node) || (!revision.empty() && revision != text_of(node, {"metadata", "resourceVersion"}))) return;
    ++taints;
    const std::string zone = text_of(node, {"metadata", "labels", "topology.kubernetes.io/zone"});
    const TimePoint now = world_.loop().now();
    if (const auto last = last_turn_.find(zone); last != last_turn_.end()) {
      expect(now - last->second >= milliseconds(9'999), zone + " is evicted faster than 0.1 nodes a second");
    }
    last_turn_[zone] = now;
  }

  // ---- the end

  void heal() {
    world_.node_link().heal();
    world_.controller_link().heal();
    // Now and then what was sold is gone for good.
    if (below(3) != 0) make_nodes();
    world_.run(seconds(5));
    for (int i = 1; i <= kNodes; ++i) {
      kill_node(fmt::format("node-{}", i), false);
      patch("", "nodes", fmt::format("node-{}", i), R"({"spec":{"unschedulable":false}})");
    }
    calm();
    // No new runs of what runs by the clock, so that the end is one.
    for (const auto& [kind, name] : workloads_)
      if (std::string_view(kind->resource) == "cronjobs") patch(kind->group, kind->resource, name, R"({"spec":{"suspend":true}})");
  }

  void check_rest() {
    std::set<std::string> nodes, owners;
    for (const json::Value& node : list("", "nodes")) {
      nodes.insert(text_of(node, {"metadata", "name"}));
      expect(is_ready(node), "not ready: " + json::serialize(node));
      expect(json::get_array(node, {"spec", "taints"}).empty(), "tainted: " + json::serialize(node));
    }
    const auto node_count = static_cast<std::int64_t>(nodes.size());
    std::set<std::string> wanted;
    for (const auto& [kind, name] : workloads_) wanted.insert(name);
    for (const Kind& kind : kKinds) {
      for (const json::Value& object : list(kind.group, kind.resource)) {
        owners.insert(text_of(object, {"metadata", "uid"}));
        const std::string what = fmt::format("{} {}", kind.kind, text_of(object, {"metadata", "name"}));
        if (json::get_array(object, {"metadata", "ownerReferences"}).empty()) {
          expect(wanted.contains(text_of(object, {"metadata", "name"})), what + " was deleted");
        }
        check_workload(kind, object, what, node_count);
      }
    }
    for (const json::Value& pod : world_.pods()) {
      const std::string what = "pod " + json::serialize(pod);
      expect(json::find(pod, {"metadata", "deletionTimestamp"}) == nullptr, "still being deleted: " + what);
      expect(nodes.contains(text_of(pod, {"spec", "nodeName"})), "on a missing node: " + what);
      const std::string phase = text_of(pod, {"status", "phase"});
      expect(phase == "Running" || phase == "Succeeded" || phase == "Failed", "waits: " + what);
      expect(is_ready(pod) == (phase == "Running"), "readiness: " + what);
      for (const json::Value& owner : json::get_array(pod, {"metadata", "ownerReferences"}))
        expect(owners.contains(text_of(owner, {"uid"})), "orphan: " + what);
    }
  }

  void check_workload(const Kind& kind, const json::Value& object, const std::string& what, std::int64_t node_count) {
    expect(json::find(object, {"metadata", "deletionTimestamp"}) == nullptr, what + " is still being deleted");
    const auto status = [&](const char* field) { return json::get_int(object, {"status", field}); };
    const auto expect_count = [&](const char* field, std::int64_t count) {
      expect(status(field) == count,
             fmt::format("{}: {} is {} instead of {}: {}", what, field, status(field), count, json::serialize(object)));
    };
    if (has_replicas(kind)) {
      const auto replicas = json::get_int(object, {"spec", "replicas"}, 1);
      expect_count("replicas", replicas);
      expect_count("readyReplicas", replicas);
      if (std::string_view(kind.resource) == "deployments") {
        expect_count("updatedReplicas", replicas);
      }
    } else if (std::string_view(kind.resource) == "daemonsets") {
      expect_count("desiredNumberScheduled", node_count);
      expect_count("numberReady", node_count);
      expect_count("updatedNumberScheduled", node_count);
      expect_count("numberMisscheduled", 0);
    } else if (std::string_view(kind.resource) == "jobs") {
      expect_count("active", 0);
      if (status("failed") <= 50) {
        expect_count("succeeded", json::get_int(object, {"spec", "completions"}, 1));
      }
    } else {
      expect(json::get_array(object, {"status", "active"}).empty(), what + " has active Jobs");
    }
  }

  // ---- the API

  std::vector<json::Value> list(const char* group, const char* resource) {
    const model::KindInfo* kind = model::find_resource(group, resource);
    auto page = world_.client().list_and_wait(kind->gvr(), kind->namespaced ? "default" : "");
    EXPECT_TRUE(page) << resource;
    return page ? page->items : std::vector<json::Value>();
  }
  void call(const char* verb, const char* group, const char* resource, const std::string& name, const std::string& body) {
    const model::KindInfo* kind = model::find_resource(group, resource);
    client::Call call;
    call.verb = verb;
    call.gvr = kind->gvr();
    call.ns = kind->namespaced ? "default" : "";
    call.name = name;
    call.body = body;
    if (call.verb == "patch") call.content_type = "application/merge-patch+json";
    (void)world_.client().call_and_wait(call);  // What is there no longer needs nothing.
  }
  void patch(const char* group, const char* resource, const std::string& name, const std::string& body) {
    call("patch", group, resource, name, body);
  }
  void remove(const char* group, const char* resource, const std::string& name, const std::string& options = "") {
    call("delete", group, resource, name, options);
  }

  std::mt19937_64 random_;
  World world_;
  std::vector<std::pair<const Kind*, std::string>> workloads_;
  std::map<std::string, std::uint64_t> budgets_;  ///< By app: the largest minAvailable.
  std::map<std::string, TimePoint> last_turn_;    ///< By zone.
  int counter_ = 0;
  bool trace_ = setting("BERTH_SIMULATION_TRACE", 0) != 0;
};

struct Story::Action {
  const char* name;
  std::uint64_t weight;
  void (Story::*act)();
};
const std::array<Story::Action, 23> Story::kActions = {{{"add a workload", 4, &Story::add_workload},
                                                        {"scale", 2, &Story::scale},
                                                        {"roll", 2, &Story::roll},
                                                        {"remove a workload", 1, &Story::remove_workload},
                                                        {"a node dies", 1, &Story::kill_a_node},
                                                        {"a node comes back", 2, &Story::revive_a_node},
                                                        {"a zone dies", 1, &Story::kill_a_zone},
                                                        {"a zone comes back", 2, &Story::revive_a_zone},
                                                        {"nodes cut off", 1, &Story::cut_nodes},
                                                        {"controllers cut off", 1, &Story::cut_controllers},
                                                        {"storm", 1, &Story::storm},
                                                        {"calm", 2, &Story::calm},
                                                        {"cordon", 1, &Story::cordon},
                                                        {"uncordon", 2, &Story::uncordon},
                                                        {"a node is deleted", 1, &Story::delete_node},
                                                        {"nodes are made", 1, &Story::make_nodes},
                                                        {"controllers restart", 1, &Story::restart_controllers},
                                                        {"scheduler restarts", 1, &Story::restart_scheduler},
                                                        {"server restarts", 1, &Story::restart_server},
                                                        {"a wrong clock", 1, &Story::set_clock},
                                                        {"a budget", 2, &Story::add_budget},
                                                        {"drain", 2, &Story::drain},
                                                        {"a pod is deleted", 1, &Story::delete_a_pod}}};

void Story::step() {
  static const std::uint64_t total = std::accumulate(kActions.begin(), kActions.end(), std::uint64_t{0},
                                                     [](std::uint64_t sum, const Action& a) { return sum + a.weight; });
  std::uint64_t at = below(total);
  for (const Action& action : kActions) {
    if (at < action.weight) {
      if (trace_)
        fmt::print("{} {} ({} pods, {} workloads)\n", format_rfc3339(world_.loop().now()), action.name, world_.pods().size(),
                   workloads_.size());
      return (this->*action.act)();
    }
    at -= action.weight;
  }
}

TEST(Simulation, AClusterHealsAfterDaysOfTrouble) {
  log::set_level(log::Level::kError);  // What is cut off says so, again and again.
  const int first = setting("BERTH_SIMULATION_FIRST", 1), seeds = setting("BERTH_SIMULATION_SEEDS", 3),
            steps = setting("BERTH_SIMULATION_STEPS", 60);
  int evictions = 0, refused = 0, taints = 0, workloads = 0;
  for (int seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    const std::string repeat = fmt::format("BERTH_SIMULATION_FIRST={} BERTH_SIMULATION_SEEDS=1 BERTH_SIMULATION_STEPS={}", seed, steps);
    Story story(static_cast<std::uint64_t>(seed));
    story.run(steps);
    for (const std::string& problem : story.problems) ADD_FAILURE() << repeat << "\n" << problem;
    evictions += story.evictions;
    refused += story.refused_evictions;
    taints += story.taints;
    workloads += story.workloads_made;
  }
  if (seeds >= 3 && steps >= 60 && !HasFailure()) {
    EXPECT_GT(workloads, 0);
    EXPECT_GT(taints, 0) << "no node was ever evicted: the story tells nothing";
    EXPECT_GT(evictions, 0);
  }
}

/// What the story says of a cluster with a broken part must name it: an invariant that cannot fail proves nothing.
bool notices(const controllers::ManagerOptions& broken, const char* problem) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Story story(seed, broken);
    story.run(30);
    if (std::ranges::any_of(story.problems, [&](const std::string& one) { return one.find(problem) != std::string::npos; })) return true;
  }
  return false;
}

TEST(Simulation, TheStoryNoticesWhatIsBroken) {
  log::set_level(log::Level::kError);
  controllers::ManagerOptions hasty;
  hasty.node_lifecycle.eviction_rate = 1;
  EXPECT_TRUE(notices(hasty, "evicted faster"));
  const auto without = [](const char* controller) {
    controllers::ManagerOptions options;
    options.disabled.insert(controller);
    return options;
  };
  EXPECT_TRUE(notices(without("garbage-collector-controller"), "orphan: "));
  EXPECT_TRUE(notices(without("pod-garbage-collector-controller"), "on a missing node: "));
  EXPECT_TRUE(notices(without("replicaset-controller"), "readyReplicas is "));
}

}  // namespace
}  // namespace berth::integration
