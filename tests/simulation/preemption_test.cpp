// Priorities, disruption budgets, grace periods, failing nodes and a dying scheduler over virtual hours, from a seed (SPEC C2–C4).
//
// While the story runs: no node over its allocatable, no pod moved once bound, and every preemption is judged when it is planned. Then
// everything is healed, time passes, and nobody may wait who could be placed, with or without preemption.
//
//   BERTH_SIMULATION_SEEDS=500 BERTH_SIMULATION_FIRST=1000 BERTH_SIMULATION_STEPS=400 test_simulation
#include <gtest/gtest-spi.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "placement/trial.h"
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using placement::Cluster;
using placement::PodInfoPtr;
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

/// A preemption as it was planned.
struct Plan {
  std::string preemptor_uid, preemptor, node;
  std::int64_t priority = 0;
  std::set<std::string> victims;
  std::set<std::string> there;  ///< Who was on the node, by uid.
  std::set<std::string> peers;  ///< Who of its own app was anywhere, where the pod is spread.
  TimePoint at{};
};

class Story {
 public:
  /// What a broken scheduler makes of a plan before it carries it out; true when it changed it.
  using Mutation =
      std::function<bool(const Cluster&, const PodInfoPtr& pod, const placement::PostFilterResult& all, placement::Candidate&)>;

  explicit Story(std::uint64_t seed, Mutation mutation = {})
      : mutation_(std::move(mutation)),
        random_(seed),
        framework_(*placement::Framework::create(placement::default_profile(placement::Era::k136))),
        world_(options(seed)) {
    for (const auto& [name, value, policy] :
         {std::tuple{"low", 10, ""}, {"middle", 100, ""}, {"high", 1000, ""}, {"patient", 500, "preemptionPolicy: Never\n"}})
      world_.create(
          fmt::format("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {}}}\nvalue: {}\n{}", name, value, policy));
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      pass(milliseconds(below(4) == 0 ? below(200) : below(25'000)));
    }
    heal();
    // Shorter than the five minutes after which everybody is tried again: who could be placed must have been woken.
    for (int i = 0; i < 24; ++i) pass(seconds(10));
    check_rest();
  }

 private:
  static constexpr int kNodes = 5;

  WorldOptions options(std::uint64_t seed) {
    WorldOptions out{.nodes = kNodes, .node_cpu = "8"};
    out.scheduler.engine.seed = seed;
    out.scheduler.on_preemption = [this](const Cluster& cluster, const PodInfoPtr& pod, placement::Candidate& choice) {
      if (mutation_) {
        const auto all = placement::run_post_filter(framework_, cluster, pod, placement::evaluate(*framework_, cluster, *pod), {});
        mutated_ += mutation_(cluster, pod, all, choice);
      }
      judge(cluster, pod, choice);
    };
    return out;
  }

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  template <typename T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  // ---- what happens

  void step() {
    switch (below(15)) {
      case 0:
      case 1:
      case 2:
        return add_workload();
      case 3:
        return add_pod();
      case 4:
      case 5:
        return scale();
      case 6:
        return remove_workload();
      case 7:
      case 8:
        return add_budget();
      case 9:
        return remove_budget();
      case 10:
        return annotate_node(below(2) == 0 ? "true" : "false");
      case 11:
        return cordon(below(2) == 0);
      case 12:
        return kill_scheduler();
      case 13:
        return delete_a_pod();
      default:
        return;
    }
  }

  std::string pod_spec(const std::string& app) {
    static const std::vector<std::string> kClasses = {"low", "low", "middle", "high", "patient"};
    static const std::vector<std::string> kCpus = {"500m", "1", "2", "3", "5"};
    std::string out = fmt::format(
        "priorityClassName: {}, terminationGracePeriodSeconds: {}, containers: [{{name: c, image: nginx, resources: {{requests: {{cpu: "
        "\"{}\"}}}}}}]",
        one_of(kClasses), below(3) == 0 ? 40 : 1, one_of(kCpus));
    if (below(6) == 0)
      out += fmt::format(
          ", affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, "
          "labelSelector: {{matchLabels: {{app: {}}}}}}}]}}}}",
          app);
    if (below(8) == 0)
      out += fmt::format(
          ", topologySpreadConstraints: [{{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, "
          "labelSelector: {{matchLabels: {{app: {}}}}}}}]",
          app);
    return out;
  }

  void add_workload() {
    if (apps_.size() > 14) return;
    const std::string app = fmt::format("app{}", ++counter_);
    apps_.push_back(app);
    world_.create(
        fmt::format("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: {0}}}\nspec: {{replicas: {1}, selector: {{matchLabels: "
                    "{{app: {0}}}}}, template: {{metadata: {{labels: {{app: {0}}}}}, spec: {{{2}}}}}}}\n",
                    app, 1 + below(5), pod_spec(app)));
  }
  void add_pod() {
    const std::string name = fmt::format("bare{}", ++counter_);
    world_.create(
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, labels: {{app: {0}}}}}\nspec: {{{1}}}\n", name, pod_spec(name)));
  }
  void patch(const char* group, const char* resource, const std::string& name, const std::string& body) {
    client::Call call;
    call.verb = "patch";
    call.gvr = model::find_resource(group, resource)->gvr();
    call.ns = std::string_view(resource) == "nodes" ? "" : "default";
    call.name = name;
    call.content_type = "application/merge-patch+json";
    call.body = body;
    (void)world_.client().call_and_wait(call);
  }
  void remove(const char* group, const char* resource, const std::string& name) {
    client::Call call;
    call.verb = "delete";
    call.gvr = model::find_resource(group, resource)->gvr();
    call.ns = "default";
    call.name = name;
    (void)world_.client().call_and_wait(call);
  }
  void scale() {
    if (!apps_.empty()) patch("apps", "replicasets", one_of(apps_), fmt::format(R"({{"spec":{{"replicas":{}}}}})", below(7)));
  }
  void remove_workload() {
    if (apps_.empty()) return;
    const std::size_t i = below(apps_.size());
    remove("apps", "replicasets", apps_[i]);
    apps_.erase(apps_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void add_budget() {
    if (apps_.empty() || budgets_.size() > 5) return;
    const std::string name = fmt::format("budget{}", ++counter_);
    budgets_.push_back(name);
    world_.create(fmt::format(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {}}}\nspec: {{{}, selector: {{matchLabels: {{app: {}}}}}}}\n",
        name, below(2) == 0 ? "minAvailable: 1" : "maxUnavailable: 0", one_of(apps_)));
  }
  void remove_budget() {
    if (budgets_.empty()) return;
    remove("policy", "poddisruptionbudgets", budgets_.back());
    budgets_.pop_back();
  }
  void annotate_node(const char* dead) {
    disturb(patch_node(fmt::format(R"({{"metadata":{{"annotations":{{"sim.berth.dev/dead":"{}"}}}}}})", dead)));
  }
  void cordon(bool is_on) { disturb(patch_node(fmt::format(R"({{"spec":{{"unschedulable":{}}}}})", is_on))); }
  std::string patch_node(const std::string& body) {
    const std::string node = fmt::format("node-{}", 1 + below(kNodes));
    patch("", "nodes", node, body);
    return node;
  }
  void disturb(const std::string& node) { disturbed_[node] = world_.loop().now(); }
  void delete_a_pod() {
    const auto all = world_.pods();
    if (!all.empty()) remove("", "pods", text_of(one_of(all), {"metadata", "name"}));
  }
  void kill_scheduler() {
    world_.stop_scheduler();
    pass(milliseconds(below(3) == 0 ? below(20'000) : below(50)));
    world_.start_scheduler();
    restarted_ = world_.loop().now();
  }
  void heal() {
    for (int i = 1; i <= kNodes; ++i) {
      const std::string node = fmt::format("node-{}", i);
      patch("", "nodes", node, R"({"metadata":{"annotations":{"sim.berth.dev/dead":"false"}},"spec":{"unschedulable":false}})");
      disturb(node);
    }
    pass(seconds(200));  // Longer than any grace period and the nodes' way back.
  }

  // ---- what must hold at any moment

  void pass(Duration d) {
    const TimePoint end = world_.loop().now() + d;
    while (world_.loop().now() < end && !::testing::Test::HasFailure()) {
      world_.run(std::min<Duration>(end - world_.loop().now(), seconds(2)));
      check_now();
    }
  }

  void check_now() {
    std::map<std::string, std::int64_t> used;
    for (const json::Value& document : world_.pods()) {
      const auto view = model::PodView::parse(document);
      if (view.node_name.empty()) continue;
      const auto [at, is_new] = bound_.emplace(view.meta.uid, view.node_name);
      EXPECT_EQ(at->second, view.node_name) << view.key() << " was bound twice";
      if (is_new) bound_at_[view.meta.uid] = {view.node_name, view.priority, world_.loop().now()};
      if (!view.is_terminal())
        used[view.node_name] +=
            placement::PodInfo::make(std::make_shared<model::PodView>(view), placement::Era::k136)->request.total.cpu_milli;
    }
    for (const auto& [node, cpu_milli] : used) EXPECT_LE(cpu_milli, 8000) << node << " is over its allocatable";
  }

  /// A plan is right when the pod fits nowhere without it, it makes room, and no other node would do with fewer broken budgets.
  void judge(const Cluster& cluster, const PodInfoPtr& pod, const placement::Candidate& choice) {
    ++plans_made_;
    const std::string& node = cluster.node(choice.node)->name;
    const auto evaluation = placement::evaluate(*framework_, cluster, *pod);
    EXPECT_TRUE(evaluation.feasible.empty()) << pod->key << " preempts on " << node << " but fits on a node as it is";
    EXPECT_FALSE(pod->view().preemption_never) << pod->key;
    placement::Trial trial = placement::Trial::on_fork(cluster, {});
    Cluster& without = trial.cluster();
    for (const auto& victim : choice.victims) {
      EXPECT_LT(victim->view().priority, pod->view().priority) << victim->key << " is no lower than " << pod->key;
      without.remove_pod(victim->key);
    }
    const auto after = placement::evaluate(*framework_, without, *pod);
    EXPECT_TRUE(std::ranges::any_of(after.feasible, [&](const auto& one) { return one.node == choice.node; }))
        << pod->key << " does not fit on " << node << " after the eviction";
    check_nobody_is_spared_in_vain(cluster, *pod, choice);
    placement::PreemptionOptions all;
    const auto oracle = placement::run_post_filter(framework_, cluster, pod, evaluation, all);
    EXPECT_TRUE(std::ranges::find(oracle.tied, choice.node) != oracle.tied.end())
        << pod->key << ": " << node << " is not among the best candidates";
    for (const auto& other : oracle.candidates)
      EXPECT_GE(other.budget_violations, choice.budget_violations)
          << pod->key << " breaks budgets on " << node << ", but not on " << cluster.node(other.node)->name;
    // A second plan while the first one's victims still go, and nothing happened to it, evicts in vain.
    Plan plan{pod->view().meta.uid, pod->key, node, pod->view().priority, {}, {}, {}, world_.loop().now()};
    for (const auto& other : cluster.node(choice.node)->pods) plan.there.insert(other->view().meta.uid);
    plan.peers = spread_peers(cluster, *pod);
    for (const auto& victim : choice.victims) plan.victims.insert(victim->view().meta.uid);
    if (const auto last = plans_.find(plan.preemptor_uid); last != plans_.end() && !was_overtaken(last->second, *pod, cluster)) {
      ADD_FAILURE() << pod->key << " preempts on " << node << " after it did on " << last->second.node << ", where nothing changed";
    }
    plans_[plan.preemptor_uid] = std::move(plan);
  }

  /// Each victim is needed: with it left where it is, the pod does not fit. (Spreading apart, where one more pod may even help.)
  void check_nobody_is_spared_in_vain(const Cluster& cluster, const placement::PodInfo& pod, const placement::Candidate& choice) {
    if (!pod.view().spread_constraints.empty()) return;
    for (const auto& spared : choice.victims) {
      placement::Trial trial = placement::Trial::on_fork(cluster, {});
      Cluster& with = trial.cluster();
      for (const auto& victim : choice.victims)
        if (victim != spared) with.remove_pod(victim->key);
      const auto evaluation = placement::evaluate(*framework_, with, pod);
      EXPECT_TRUE(std::ranges::none_of(evaluation.feasible, [&](const auto& one) { return one.node == choice.node; }))
          << spared->key << " is evicted for " << pod.key << ", which would fit beside it";
    }
  }

  static std::set<std::string> spread_peers(const Cluster& cluster, const placement::PodInfo& pod) {
    std::set<std::string> out;
    if (pod.view().spread_constraints.empty()) return out;
    for (int i = 1; i <= kNodes; ++i)
      if (const placement::NodeInfo* node = cluster.find_node(fmt::format("node-{}", i)); node != nullptr)
        for (const PodInfoPtr& other : node->pods)
          if (other->view().meta.labels == pod.view().meta.labels) out.insert(other->view().meta.uid);
    return out;
  }

  /// The node of the plan failed or came back, the scheduler was restarted, or a pod of no lower priority took the room, or counts on it.
  bool was_overtaken(const Plan& plan, const placement::PodInfo& pod, const Cluster& cluster) const {
    // Nominations elsewhere do not count for spreading: a peer that was placed meanwhile may have tipped the balance.
    if (!std::ranges::includes(plan.peers, spread_peers(cluster, pod))) return true;
    if (restarted_ >= plan.at) return true;
    if (const auto at = disturbed_.find(plan.node); at != disturbed_.end() && at->second + minutes(10) >= plan.at) return true;
    const auto is_rival = [&](const PodInfoPtr& pod) {
      return pod->view().priority >= plan.priority && !plan.there.contains(pod->view().meta.uid);
    };
    const placement::NodeInfo* node = cluster.find_node(plan.node);
    if (node != nullptr && std::ranges::any_of(node->pods, is_rival)) return true;
    // A higher pod counts on the same room now.
    if (node != nullptr && std::ranges::any_of(cluster.nominated(node->index), [&](const PodInfoPtr& pod) {
          return pod->view().meta.uid != plan.preemptor_uid && is_rival(pod);
        }))
      return true;
    // Or it came and went again.
    return std::ranges::any_of(bound_at_, [&](const auto& one) {
      return one.second.node == plan.node && one.second.at >= plan.at && one.second.priority >= plan.priority &&
             one.first != plan.preemptor_uid;
    });
  }

  // ---- what must hold when everything has settled

  void check_rest() {
    Cluster cluster;
    for (const auto& [group, resource, kind] : {std::tuple{"", "namespaces", "Namespace"},
                                                {"", "nodes", "Node"},
                                                {"policy", "poddisruptionbudgets", "PodDisruptionBudget"},
                                                {"", "pods", "Pod"}}) {
      auto page = world_.client().list_and_wait(model::find_resource(group, resource)->gvr(), "", {});
      ASSERT_TRUE(page);
      for (json::Value& item : page->items) {
        item.get_object()["kind"] = kind;
        cluster.upsert(item);
      }
    }
    EXPECT_EQ(cluster.node_count(), static_cast<std::size_t>(kNodes));
    for (const json::Value& document : world_.pods()) {
      const auto pod = placement::PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(document)), placement::Era::k136);
      EXPECT_FALSE(pod->view().meta.is_deleting) << pod->key << " still goes\n" << json::serialize(document);
      if (!pod->view().node_name.empty() || pod->view().meta.is_deleting) continue;
      const auto evaluation = placement::evaluate(*framework_, cluster, *pod);
      EXPECT_TRUE(evaluation.feasible.empty()) << pod->key << " waits but fits on "
                                               << (evaluation.feasible.empty() ? "" : cluster.node(evaluation.feasible[0].node)->name)
                                               << "\n"
                                               << json::serialize(document);
      const auto room = placement::run_post_filter(framework_, cluster, pod, evaluation);
      EXPECT_EQ(room.choice(), nullptr) << pod->key << " waits, priority " << pod->view().priority << ", but preemption would help\n"
                                        << json::serialize(document);
      EXPECT_EQ(pod->view().nominated_node_name, "") << pod->key << " counts on room that will not come";
    }
  }

  struct Bound {
    std::string node;
    std::int64_t priority;
    TimePoint at;
  };

  Mutation mutation_;
  std::mt19937_64 random_;
  placement::FrameworkPtr framework_;
  std::map<std::string, std::string> bound_;  ///< uid to node.
  std::map<std::string, Bound> bound_at_;
  std::map<std::string, Plan> plans_;  ///< The last one of each preemptor.
  std::map<std::string, TimePoint> disturbed_;
  TimePoint restarted_{};
  std::vector<std::string> apps_, budgets_;
  int counter_ = 0;
  World world_;

 public:
  int plans_made_ = 0, mutated_ = 0;
};

TEST(Simulation, PreemptionStaysRightThroughFailures) {
  const int seeds = setting("BERTH_SIMULATION_SEEDS", 2), first = setting("BERTH_SIMULATION_FIRST", 1),
            steps = setting("BERTH_SIMULATION_STEPS", 60);
  int plans = 0;
  for (int seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(fmt::format("BERTH_SIMULATION_SEEDS=1 BERTH_SIMULATION_FIRST={} BERTH_SIMULATION_STEPS={}", seed, steps));
    Story story(static_cast<std::uint64_t>(seed));
    story.run(steps);
    plans += story.plans_made_;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(plans, seeds) << "the stories hardly preempt: they show nothing";
}

/// A scheduler with one rule of preemption broken must be found out: an invariant that cannot fail proves nothing.
bool is_found_out(const Story::Mutation& mutation, const char* words) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    ::testing::TestPartResultArray problems;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD,
                                                                 &problems);
      Story story(seed, mutation);
      story.run(30);
    }
    for (int i = 0; i < problems.size(); ++i)
      if (std::string_view(problems.GetTestPartResult(i).message()).find(words) != std::string_view::npos) return true;
  }
  return false;
}

TEST(Simulation, ABrokenRuleOfPreemptionIsFoundOut) {
  using placement::Candidate;
  using placement::PostFilterResult;
  const auto too_few = [](const Cluster&, const PodInfoPtr&, const PostFilterResult&, Candidate& choice) {
    choice.victims.pop_back();
    return true;
  };
  EXPECT_TRUE(is_found_out(too_few, "does not fit on"));
  const auto one_more = [](auto&& is_wanted) {
    return [is_wanted](const Cluster& cluster, const PodInfoPtr& pod, const PostFilterResult&, Candidate& choice) {
      for (const auto& other : cluster.node(choice.node)->pods) {
        if (std::ranges::find(choice.victims, other) != choice.victims.end() || !is_wanted(*pod, *other)) continue;
        choice.victims.push_back(other);
        return true;
      }
      return false;
    };
  };
  const auto is_lower = [](const placement::PodInfo& pod, const placement::PodInfo& other) {
    return other.view().priority < pod.view().priority;
  };
  EXPECT_TRUE(is_found_out(one_more(is_lower), "which would fit beside it"));
  EXPECT_TRUE(is_found_out(one_more([&](const auto& pod, const auto& other) { return !is_lower(pod, other); }), "is no lower than"));
  const auto any_other = [](auto&& is_wanted) {
    return [is_wanted](const Cluster&, const PodInfoPtr&, const PostFilterResult& all, Candidate& choice) {
      for (const Candidate& other : all.candidates) {
        if (std::ranges::find(all.tied, other.node) != all.tied.end() || !is_wanted(other, choice)) continue;
        choice = other;
        return true;
      }
      return false;
    };
  };
  EXPECT_TRUE(is_found_out(any_other([](const auto&, const auto&) { return true; }), "is not among the best candidates"));
  EXPECT_TRUE(
      is_found_out(any_other([](const auto& a, const auto& b) { return a.budget_violations > b.budget_violations; }), "breaks budgets on"));
}

}  // namespace
}  // namespace berth::integration
