// The life of a descheduler: a cluster that changes, cycle after cycle, with a server that refuses now and then and answers in any order.
// What is asked for and why stands in NAME.txt beside this; BERTH_RECORD=1 writes it anew. What must hold of every plan is judged by plain
// code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "descheduler/descheduler.h"
#include "descheduler/execution.h"
#include "descheduler/memory.h"
#include "placement/profiles.h"
#include "placement/trial.h"
#include "tests/descheduler/world.h"
#include "tests/support/life.h"

namespace berth::descheduler::test {
namespace {

constexpr std::array<const char*, 3> kSets = {"web", "db", "cache"};

class Life {
 public:
  struct Subject {
    std::uint64_t seed = 0;
    const char* policy = "";
    PlacementCheck check = PlacementCheck::kBetterPlace;
    std::size_t cycles = 14, most_in_flight = 3;
    int refusals = 15;
    bool spreads = false, asks_usage = false, waits = false;
  };
  explicit Life(Subject subject) : dice_(subject.seed), subject_(subject), now_(*parse_rfc3339("2026-01-02T12:00:00Z")) {
    profiles_.add(*placement::Framework::create(placement::default_profile(placement::Era::k136)));
    auto read = parse_policy(subject.policy, "policy.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    if (read) policy_ = std::move(*read);
  }

  std::string run() {
    for (int i = 0; i < 5; ++i) make_node();
    for (int i = 0; i < 14; ++i) make_pod();
    for (std::size_t i = 0; i < subject_.cycles && !::testing::Test::HasFailure(); ++i) {
      for (int changes = 3 + dice_.below(5); changes > 0; --changes) change();
      now_ += std::chrono::seconds(30 + 60 * dice_.below(40));
      cycle();
    }
    return text_;
  }

 private:
  void say(const std::string& line) { text_ += line + "\n"; }

  // The cluster.

  void make_node() {
    const std::string name = fmt::format("n{}", dice_.below(7));
    json::Value node = yaml("{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: 'True'}]}}");
    json::set(node, {"metadata", "name"}, json::Value(name));
    json::set(
        node, {"metadata", "labels"},
        json::Object{{"kubernetes.io/hostname", name}, {"zone", dice_.chance(50) ? "a" : "b"}, {"disk", dice_.chance(60) ? "ssd" : "hdd"}});
    json::set(node, {"status", "allocatable"},
              json::Object{{"cpu", std::to_string(1 + dice_.below(3))}, {"memory", "4Gi"}, {"pods", dice_.chance(80) ? "12" : "4"}});
    if (dice_.chance(15)) json::set(node, {"spec", "taints"}, json::Array{taint()});
    if (dice_.chance(8)) json::set(node, {"spec", "unschedulable"}, json::Value(true));
    if (dice_.chance(6)) json::find(node, {"status", "conditions"})->get_array()[0].get_object()["status"] = "False";
    objects_["Node/" + name] = std::move(node);
  }
  json::Value taint() {
    constexpr std::array<const char*, 3> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
    return json::Object{
        {"key", dice_.chance(70) ? "old" : "worn"}, {"value", dice_.chance(50) ? "yes" : ""}, {"effect", dice_.of(kEffects)}};
  }
  void make_pod() {
    json::Value pod = yaml("{kind: Pod, apiVersion: v1, spec: {schedulerName: default-scheduler}}");
    const std::string set = dice_.of(kSets), name = fmt::format("{}-{}", set, ++pods_);
    json::set(pod, {"metadata", "name"}, json::Value(name));
    json::set(pod, {"metadata", "namespace"}, json::Value(dice_.chance(80) ? "default" : "other"));
    json::set(pod, {"metadata", "uid"}, json::Value("u-" + name));
    json::set(pod, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(now_ - std::chrono::seconds(60 * dice_.below(200)))));
    json::set(pod, {"metadata", "labels", "app"}, json::Value(set));
    constexpr std::array<const char*, 5> kKinds = {"ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet", "Job"};
    if (const std::string kind = dice_.of(kKinds); !dice_.chance(6))
      json::set(pod, {"metadata", "ownerReferences"},
                json::Array{json::Object{{"apiVersion", kind == "Job" ? "batch/v1" : "apps/v1"},
                                         {"kind", kind},
                                         {"name", set},
                                         {"uid", kind + set},
                                         {"controller", true}}});
    json::set(pod, {"spec", "priority"}, json::Value(dice_.chance(6) ? 2'000'000'000 : 10 * dice_.below(3)));
    json::Object container{{"name", "c"}, {"image", dice_.chance(80) ? "i" : "j"}};
    constexpr std::array<const char*, 4> kCpus = {"100m", "250m", "400m", "900m"};
    if (!dice_.chance(10)) container["resources"] = json::Object{{"requests", json::Object{{"cpu", dice_.of(kCpus)}, {"memory", "128Mi"}}}};
    json::set(pod, {"spec", "containers"}, json::Array{std::move(container)});
    if (dice_.chance(15)) json::set(pod, {"spec", "nodeSelector", "disk"}, json::Value(dice_.chance(60) ? "ssd" : "hdd"));
    if (dice_.chance(15)) json::set(pod, {"spec", "tolerations"}, json::Array{json::Object{{"key", "old"}, {"operator", "Exists"}}});
    if (dice_.chance(8)) json::set(pod, {"spec", "volumes"}, json::Array{json::Object{{"name", "v"}, {"emptyDir", json::Object()}}});
    if (dice_.chance(8)) json::set(pod, {"metadata", "annotations", "descheduler.alpha.kubernetes.io/evict"}, json::Value("true"));
    if (dice_.chance(6))
      json::set(pod, {"metadata", "annotations", "descheduler.alpha.kubernetes.io/prefer-no-eviction"}, json::Value("true"));
    const json::Object selector{{"matchLabels", json::Object{{"app", set}}}};
    if (dice_.chance(12))
      json::set(pod, {"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
                json::Array{json::Object{{"labelSelector", selector}, {"topologyKey", "kubernetes.io/hostname"}}});
    if (subject_.spreads && dice_.chance(70))
      json::set(pod, {"spec", "topologySpreadConstraints"},
                json::Array{json::Object{{"maxSkew", 1},
                                         {"topologyKey", dice_.chance(70) ? "zone" : "kubernetes.io/hostname"},
                                         {"whenUnsatisfiable", dice_.chance(60) ? "DoNotSchedule" : "ScheduleAnyway"},
                                         {"labelSelector", selector}}});
    const bool waits = subject_.waits && dice_.chance(30);
    if (!waits)
      if (const std::string node = some("Node"); !node.empty()) json::set(pod, {"spec", "nodeName"}, json::Value(node));
    if (waits)
      json::find(pod, {"spec", "containers"})->get_array()[0].get_object()["resources"] =
          json::Object{{"requests", json::Object{{"cpu", "900m"}}}};
    if (waits && dice_.chance(40)) json::set(pod, {"metadata", "labels", "pod-group.scheduling.sigs.k8s.io"}, json::Value("gang"));
    give_status(pod);
    objects_[fmt::format("Pod/{}/{}", json::get_string(pod, {"metadata", "namespace"}), name)] = std::move(pod);
  }
  void give_status(json::Value& pod) {
    const bool is_placed = !json::get_string(pod, {"spec", "nodeName"}).empty();
    json::set(pod, {"status", "phase"},
              json::Value(!is_placed         ? "Pending"
                          : dice_.chance(10) ? "Failed"
                          : dice_.chance(5)  ? "Succeeded"
                                             : "Running"));
    if (!is_placed) {
      json::set(pod, {"status", "conditions"},
                json::Array{json::Object{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}});
      return;
    }
    json::set(pod, {"status", "startTime"}, *json::find(pod, {"metadata", "creationTimestamp"}));
    json::set(pod, {"status", "conditions"}, json::Array{json::Object{{"type", "Ready"}, {"status", dice_.chance(85) ? "True" : "False"}}});
    constexpr std::array<const char*, 3> kReasons = {"CrashLoopBackOff", "ImagePullBackOff", "Completed"};
    json::Object state{{"running", json::Object()}};
    if (dice_.chance(20)) state = json::Object{{"waiting", json::Object{{"reason", dice_.of(kReasons)}}}};
    if (json::get_string(pod, {"status", "phase"}) == "Failed")
      state = json::Object{{"terminated", json::Object{{"reason", "Error"}, {"exitCode", dice_.below(3)}}}};
    json::set(pod, {"status", "containerStatuses"},
              json::Array{json::Object{{"name", "c"}, {"restartCount", 40 * dice_.below(4)}, {"state", std::move(state)}}});
  }
  std::string some(std::string_view kind) {
    std::vector<std::string> names;
    for (const auto& [key, object] : objects_)
      if (key.starts_with(kind)) names.push_back(std::string(json::get_string(object, {"metadata", "name"})));
    return names.empty() ? std::string() : dice_.of(names);
  }
  void change() {
    switch (dice_.below(8)) {
      case 0:
        return make_node();
      case 1:
      case 2:
      case 3:
        return make_pod();
      case 4: {
        const auto from = objects_.lower_bound("Pod/");
        if (from == objects_.end()) return;
        auto at = from;
        std::advance(at, dice_.below(static_cast<std::size_t>(std::distance(from, objects_.end()))));
        if (!at->first.starts_with("Pod/")) return;
        if (dice_.chance(50))
          objects_.erase(at);
        else
          give_status(at->second);
        return;
      }
      case 5: {
        const std::string name = some("Node");
        if (name.empty()) return;
        json::Value& node = objects_.at("Node/" + name);
        if (dice_.chance(40))
          json::set(node, {"spec", "taints"}, json::Array{taint()});
        else
          json::set(node, {"metadata", "labels", "disk"}, json::Value(dice_.chance(50) ? "ssd" : "hdd"));
        return;
      }
      case 6: {
        json::Value budget = yaml("{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: b, namespace: default}}");
        json::set(budget, {"spec", "selector", "matchLabels", "app"}, json::Value(dice_.of(kSets)));
        json::set(budget, {"status", "disruptionsAllowed"}, json::Value(dice_.below(3)));
        objects_["Budget"] = std::move(budget);
        return;
      }
      default:
        if (const std::string name = some("Node"); dice_.chance(30) && !name.empty()) objects_.erase("Node/" + name);
    }
  }

  // A cycle.

  void cycle() {
    Snapshot snapshot;
    for (const auto& [key, object] : objects_) snapshot.add(object);
    if (subject_.asks_usage)
      for (const auto& [key, object] : objects_)
        if (key.starts_with("Node/"))
          snapshot.node_usage[key.substr(5)] = {{"cpu", 200 * dice_.below(12)}, {"memory", std::int64_t{1} << 30}};
    for (const auto& [key, pod] : snapshot.pods)
      if (subject_.asks_usage) snapshot.pod_usage[key] = {{"cpu", 150}, {"memory", std::int64_t{64} << 20}};
    snapshot.finish();
    memory_.look_at(snapshot, now_);
    CycleOptions options;
    options.now = now_;
    options.check = subject_.check;
    options.lists_everyone = true;
    options.counts_budgets = dice_.chance(70);
    options.nodes_are_coming = subject_.waits && dice_.chance(20);
    for (const auto& [key, pod] : snapshot.pods)
      if (memory_.is_moved(*pod)) options.moved.insert(pod->view().meta.uid);
    say(fmt::format("cycle at {}, {} moved before{}", format_rfc3339(now_), options.moved.size(),
                    options.counts_budgets ? "" : ", budgets are the server's"));
    auto execution = Execution::begin(policy_, snapshot, profiles_, options, subject_.most_in_flight);
    if (!execution) return say("error: " + execution.error().message);
    std::vector<Step> open;
    std::map<std::string, Answer> answers;
    std::set<std::string> asked;
    std::size_t steps = 0;
    while (!execution->is_over()) {
      for (Step& step : execution->due()) {
        const std::string pod = step.removal.pod->key();
        say(step.kind == Step::Kind::kEvict
                ? fmt::format("  evict {} from {}{}", pod, step.removal.pod->node(), step.waits ? ", after the others" : "")
                : fmt::format("  keep {} for {}", step.node, pod));
        EXPECT_TRUE(asked.insert(step.kind == Step::Kind::kEvict ? pod : pod + "@" + step.node).second) << pod << " is asked for twice\n"
                                                                                                        << text_;
        EXPECT_TRUE(!step.waits || open.empty()) << "a step that counts on others came before they were answered";
        if (step.kind == Step::Kind::kEvict) judge_eviction(*step.removal.pod, options);
        open.push_back(std::move(step));
      }
      EXPECT_LE(open.size(), subject_.most_in_flight);
      if (open.empty() || ++steps > 500) break;
      const auto at = open.begin() + dice_.below(open.size());
      Answer answer;
      if (dice_.chance(subject_.refusals))
        answer = dice_.chance(60) ? Answer{Outcome::kProtected, "Cannot evict pod as it would violate the pod's disruption budget."}
                                  : Answer{Outcome::kFailed, "the server is away"};
      if (answer.outcome != Outcome::kEvicted) say(fmt::format("  {} is refused: {}", at->removal.pod->key(), answer.message));
      if (at->kind == Step::Kind::kEvict) answers[at->removal.pod->key()] = answer;
      execution->answered(*at, answer);
      open.erase(at);
      if (dice_.chance(2)) execution->stop();
    }
    EXPECT_TRUE(execution->is_over() || steps > 500) << text_;
    const CycleResult result = std::move(*execution).result();
    text_ += to_text(result, false, 100);
    judge_result(result, answers, snapshot);
    carry_on(result);
  }

  void judge_eviction(const Pod& pod, const CycleOptions& options) {
    const model::PodView& view = pod.view();
    EXPECT_FALSE(options.moved.contains(view.meta.uid) && subject_.check != PlacementCheck::kOff && !view.is_terminal())
        << view.name() << " was moved already";
    const bool is_asked_for =
        std::ranges::any_of(view.meta.annotations, [](const auto& one) { return one.first == "descheduler.alpha.kubernetes.io/evict"; });
    if (is_asked_for) return;
    const auto owner = view.meta.owner_references.empty() ? std::string() : view.meta.owner_references.front().kind;
    EXPECT_NE(owner, "DaemonSet") << view.name();
    EXPECT_LT(view.priority, 2'000'000'000) << view.name();
  }
  void judge_result(const CycleResult& result, const std::map<std::string, Answer>& answers, const Snapshot& snapshot) {
    std::map<std::string, std::uint64_t> by_node, by_namespace;
    std::set<std::string> met;
    for (const Removal& removal : result.removals) {
      EXPECT_NE(removal.outcome, Outcome::kPlanned) << removal.pod->key();
      const auto answered = answers.find(removal.pod->key());
      const bool went = answered != answers.end() && answered->second.outcome == Outcome::kEvicted;
      if (goes(removal.outcome)) {
        EXPECT_TRUE(went) << removal.pod->key() << " is said to have gone\n" << text_;
        EXPECT_TRUE(met.insert(removal.pod->key()).second) << removal.pod->key() << " went twice";
        ++by_node[removal.pod->node()];
        ++by_namespace[removal.pod->view().ns()];
      }
    }
    for (const auto& [key, answer] : answers)
      EXPECT_TRUE(answer.outcome != Outcome::kEvicted || met.contains(key)) << key << " went, and is not told of\n" << text_;
    for (const auto& [node, count] : by_node) EXPECT_LE(count, policy_.max_evictions_per_node.value_or(UINT64_MAX)) << node;
    for (const auto& [ns, count] : by_namespace) EXPECT_LE(count, policy_.max_evictions_per_namespace.value_or(UINT64_MAX)) << ns;
    EXPECT_LE(met.size(), policy_.max_evictions_total.value_or(UINT64_MAX));
    EXPECT_EQ(result.evicted(), met.size());
    for (const Standing& one : result.standing) {
      EXPECT_FALSE(answers.contains(one.pod->key())) << one.pod->key();
      EXPECT_TRUE(snapshot.pods.contains(one.pod->key()));
    }
  }
  /// Who went comes back where the scheduler puts it.
  void carry_on(const CycleResult& result) {
    for (const Removal& removal : result.removals) {
      if (!goes(removal.outcome)) continue;
      const auto at = objects_.find("Pod/" + removal.pod->key());
      if (at == objects_.end()) continue;
      json::Value pod = std::move(at->second);
      objects_.erase(at);
      if (removal.pod->view().is_terminal() || removal.destination.empty() || !objects_.contains("Node/" + removal.destination)) continue;
      const std::string name = fmt::format("{}-{}", json::get_string(pod, {"metadata", "labels", "app"}), ++pods_);
      json::set(pod, {"metadata", "name"}, json::Value(name));
      json::set(pod, {"metadata", "uid"}, json::Value("u-" + name));
      json::set(pod, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(now_)));
      json::set(pod, {"spec", "nodeName"}, json::Value(removal.destination));
      json::set(pod, {"status", "startTime"}, json::Value(format_rfc3339(now_)));
      objects_[fmt::format("Pod/{}/{}", json::get_string(pod, {"metadata", "namespace"}), name)] = std::move(pod);
    }
  }

  berth::testing::Dice dice_;
  Subject subject_;
  TimePoint now_;
  placement::Profiles profiles_;
  Policy policy_;
  Memory memory_;
  std::map<std::string, json::Value> objects_;
  int pods_ = 0;
  std::string text_;
};

constexpr const char* kByUse = R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders: [{source: KubernetesMetrics}]
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {evictLocalStoragePods: true}}
  - {name: LowNodeUtilization, args: {useDeviationThresholds: true, thresholds: {cpu: 15}, targetThresholds: {cpu: 20}, metricsUtilization: {source: KubernetesMetrics}, evictionLimits: {node: 2}}}
  plugins:
    balance: {enabled: [LowNodeUtilization]}
)";

constexpr const char* kByRules = R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 3
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {nodeFit: true, minReplicas: 2}}
  - {name: RemovePodsViolatingNodeAffinity, args: {nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}}
  - {name: RemovePodsViolatingNodeTaints, args: {includePreferNoSchedule: true, excludedTaints: [worn=yes]}}
  - {name: RemovePodsHavingTooManyRestarts, args: {podRestartThreshold: 80, states: [CrashLoopBackOff, Running]}}
  - {name: RemoveDuplicates, args: {excludeOwnerKinds: [Job]}}
  - {name: RemovePodsViolatingInterPodAntiAffinity, args: {}}
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeAffinity, RemovePodsViolatingNodeTaints, RemovePodsViolatingInterPodAntiAffinity, RemovePodsHavingTooManyRestarts]}
    balance: {enabled: [RemoveDuplicates]}
)";

constexpr const char* kByAge = R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 4
profiles:
- name: old
  pluginConfig:
  - {name: DefaultEvictor, args: {evictFailedBarePods: true, minPodAge: 20m, noEvictionPolicy: Mandatory}}
  - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 5400, states: [Running, CrashLoopBackOff], ownerKinds: {exclude: [DaemonSet]}, namespaces: {exclude: [other]}}}
  - {name: RemoveFailedPods, args: {minPodLifetimeSeconds: 1200, reasons: [Error], exitCodes: [1, 2], excludeOwnerKinds: [Job]}}
  plugins:
    deschedule: {enabled: [RemoveFailedPods, PodLifeTime]}
- name: not ready
  pluginConfig:
  - {name: DefaultEvictor, args: {priorityThreshold: {value: 15}, labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [db]}]}}}
  - {name: PodLifeTime, args: {conditions: [{type: Ready, status: "False"}], labelSelector: {matchLabels: {app: web}}}}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
)";

constexpr const char* kBySpread = R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNamespace: 5
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {evictLocalStoragePods: true, ignorePodsWithoutPDB: false}}
  - {name: RemovePodsViolatingTopologySpreadConstraint, args: {constraints: [DoNotSchedule, ScheduleAnyway]}}
  - {name: RemoveDuplicates, args: {}}
  plugins:
    balance: {enabled: [RemovePodsViolatingTopologySpreadConstraint, RemoveDuplicates]}
)";

constexpr const char* kByEmptiness = R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {evictLocalStoragePods: true, nodeFit: true}}
  - {name: HighNodeUtilization, args: {thresholds: {cpu: 45, pods: 45}, evictableNamespaces: {exclude: [other]}, numberOfNodes: 1}}
  plugins:
    balance: {enabled: [HighNodeUtilization]}
)";

constexpr const char* kByRequests = R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: zone=a
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {evictLocalStoragePods: true, nodeFit: true}}
  - {name: LowNodeUtilization, args: {thresholds: {cpu: 25, pods: 30}, targetThresholds: {cpu: 40, pods: 60}}}
  plugins:
    balance: {enabled: [LowNodeUtilization]}
)";

constexpr const char* kForRoom = R"(
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {evictLocalStoragePods: true}}
  - {name: Defragmentation, args: {minPendingSeconds: 600, maxMovesPerPod: 4}}
  plugins:
    balance: {enabled: [Defragmentation]}
)";

void play(const char* name, Life::Subject subject) {
  const std::string text = Life(subject).run();
  if (!::testing::Test::HasFailure()) testing::expect_life(fmt::format("tests/descheduler/lives/{}.txt", name), subject.seed, text);
  const char* seeds = std::getenv("BERTH_SEEDS");
  const std::uint64_t first = subject.seed;
  for (std::uint64_t seed = 1; seed <= (seeds != nullptr ? std::stoull(seeds) : 3) && !::testing::Test::HasFailure(); ++seed) {
    subject.seed = 1000 * first + seed;
    (void)Life(subject).run();
  }
}

TEST(DeschedulerLives, ByRules) { play("by_rules", {.seed = 1, .policy = kByRules, .cycles = 20}); }
TEST(DeschedulerLives, ByAge) { play("by_age", {.seed = 2, .policy = kByAge, .check = PlacementCheck::kOff, .cycles = 20}); }
TEST(DeschedulerLives, BySpread) { play("by_spread", {.seed = 3, .policy = kBySpread, .spreads = true}); }
TEST(DeschedulerLives, ByEmptiness) { play("by_emptiness", {.seed = 4, .policy = kByEmptiness, .check = PlacementCheck::kOff}); }
TEST(DeschedulerLives, ByUse) { play("by_use", {.seed = 5, .policy = kByUse, .refusals = 5, .asks_usage = true}); }
TEST(DeschedulerLives, ByRequests) { play("by_requests", {.seed = 6, .policy = kByRequests}); }
TEST(DeschedulerLives, ForRoom) { play("for_room", {.seed = 7, .policy = kForRoom, .most_in_flight = 2, .waits = true}); }

}  // namespace
}  // namespace berth::descheduler::test
