// Questions about clusters that a seed makes: what each is answered stands in lives.txt beside this (BERTH_RECORD=1 writes it anew), and
// what must hold of every answer is counted by plain code.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/life.h"
#include "tests/whatif/dump.h"

namespace berth::whatif::testing {
namespace {

using berth::testing::Dice;

constexpr std::array<const char*, 3> kSets = {"web", "db", "cache"};

/// A cluster by a seed: nodes of three zones, Deployments, a StatefulSet, a DaemonSet, a Job, pods by themselves, budgets, a gang.
class Cluster {
 public:
  explicit Cluster(std::uint64_t seed) : dice_(seed) {
    for (int i = 4 + dice_.below(3); i > 0; --i) make_node();
    dump.yaml("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}");
    for (const char* set : kSets) make_deployment(set);
    make_stateful_set();
    make_job();
    make_gang();
    for (int i = dice_.below(3); i > 0; --i) dump.pod(fmt::format("bare-{}", i), "{app: bare}", "", cpu(), {.node = room_for(1)});
    for (int i = dice_.below(3); i > 0; --i)
      dump.pod(fmt::format("waits-{}", i), "{app: waits}", "", "9", {}, dice_.chance(50) ? "priorityClassName: high" : "");
    std::vector<std::string> some;
    for (const auto& [node, room] : room_)
      if (dice_.chance(70)) some.push_back(node);
    dump.daemon("agent", "100m", some);
    for (const char* set : kSets)
      if (dice_.chance(70))
        dump.budget(set, set, dice_.chance(50) ? fmt::format("minAvailable: {}", 1 + dice_.below(3)) : "maxUnavailable: 34%");
  }

  std::string question() {
    std::string changes;
    for (int i = 1 + dice_.below(2); i > 0; --i) changes += (changes.empty() ? "" : ", ") + change();
    std::string more;
    if (dice_.chance(35)) more += ", each: " + std::string(dice_.chance(60) ? "node" : "zone");
    if (more.empty() && dice_.chance(30)) more += ", preempt: true";
    if (!more.empty() && more.starts_with(", each") && dice_.chance(50))
      more += ", by: " + std::string(dice_.chance(50) ? "drain" : "remove");
    if (dice_.chance(15)) more += ", pack: {}";
    if (dice_.chance(15))
      more +=
          ", capacity: {pod: {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}, spec: {" + Dump::pod_spec(cpu(), "") + "}}}";
    return "{changes: [" + changes + "]" + more + "}";
  }

  Dump dump;

 private:
  void make_node() {
    const std::string zone = fmt::format("{:c}", 'a' + dice_.below(3)), name = fmt::format("{}{}", zone, room_.size() + 1);
    const int cores = 2 + dice_.below(3);
    dump.node(name, zone, std::to_string(cores), dice_.chance(12) ? "taints: [{key: old, effect: NoSchedule}]" : "");
    room_[name] = 1000 * cores;
  }
  std::string cpu() {
    constexpr std::array<const char*, 4> kCpus = {"250m", "500m", "1", "1500m"};
    return dice_.of(kCpus);
  }
  static std::int64_t milli(const std::string& cpu) { return cpu.ends_with("m") ? std::stoi(cpu) : 1000 * std::stoi(cpu); }
  /// A node with room for so many cores; empty where there is none.
  std::string room_for(const std::string& cpu) { return room_for(static_cast<double>(milli(cpu)) / 1000); }
  std::string room_for(double cores) {
    std::vector<std::string> fit;
    for (const auto& [node, room] : room_)
      if (static_cast<double>(room) >= 1000 * cores) fit.push_back(node);
    if (fit.empty()) return "";
    const std::string node = dice_.of(fit);
    room_[node] -= static_cast<std::int64_t>(1000 * cores);
    return node;
  }
  std::vector<PodAt> places(int count, const std::string& cpu) {
    std::vector<PodAt> out;
    for (; count > 0; --count) {
      PodAt at{.node = room_for(cpu)};
      if (dice_.chance(15)) at.status = "{phase: Running, conditions: [{type: Ready, status: 'False'}]}";
      out.push_back(std::move(at));
    }
    return out;
  }
  void make_deployment(const char* set) {
    const std::string amount = cpu();
    std::string spec;
    if (dice_.chance(25))
      spec = fmt::format(
          "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, "
          "labelSelector: {{matchLabels: {{app: {}}}}}}}]}}}}",
          set);
    else if (dice_.chance(25))
      spec = fmt::format(
          "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, "
          "labelSelector: {{matchLabels: {{app: {}}}}}}}]",
          set);
    dump.deployment(set, amount, places(1 + dice_.below(4), amount), spec);
  }
  void make_stateful_set() {
    const int count = 1 + dice_.below(3);
    dump.yaml(fmt::format(
        "{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: log, namespace: shop, uid: s-log}}, spec: {{replicas: {}, "
        "podManagementPolicy: {}, selector: {{matchLabels: {{app: log}}}}, template: {{metadata: {{labels: {{app: log}}}}, spec: "
        "{{{}}}}}}}}}",
        count, dice_.chance(50) ? "Parallel" : "OrderedReady", Dump::pod_spec("500m", "")));
    for (int i = 0; i < count; ++i)
      dump.pod(fmt::format("log-{}", i), "{app: log}", "apiVersion: apps/v1, kind: StatefulSet, name: log, uid: s-log", "500m",
               {.node = room_for("500m")});
  }
  void make_job() {
    if (dice_.chance(40)) return;
    dump.yaml(
        fmt::format("{{apiVersion: batch/v1, kind: Job, metadata: {{name: sum, namespace: shop, uid: j-sum}}, spec: {{parallelism: 2, "
                    "completions: 4, backoffLimit: {}, selector: {{matchLabels: {{job: sum}}}}, template: {{metadata: {{labels: {{job: "
                    "sum}}}}, spec: {{restartPolicy: Never, {}}}}}}}, status: {{active: 2, failed: {}}}}}",
                    dice_.below(3), Dump::pod_spec("500m", ""), dice_.below(2)));
    for (int i = 0; i < 2; ++i)
      dump.pod(fmt::format("sum-{}", i), "{job: sum}", "apiVersion: batch/v1, kind: Job, name: sum, uid: j-sum", "500m",
               {.node = room_for("500m")});
  }
  void make_gang() {
    if (dice_.chance(50)) return;
    dump.yaml(
        "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {namespace: shop, name: g, uid: g}, spec: {schedulingPolicy: "
        "{gang: {minCount: 2}}}}");
    dump.deployment("work", "1", places(2 + dice_.below(2), "1"), "schedulingGroup: {podGroupName: g}");
  }

  std::string some_node() { return std::next(room_.begin(), dice_.below(room_.size()))->first; }
  std::string nodes() { return dice_.chance(60) ? some_node() : fmt::format("zone={}", some_node().substr(0, 1)); }
  std::string change() {
    constexpr std::array<const char*, 4> kAway = {"drain", "fail", "remove", "cordon"};
    switch (dice_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return fmt::format("{{{}: {}}}", dice_.of(kAway), nodes());
      case 4:
        return fmt::format("{{add: m{}, count: {}, zone: {:c}}}", cores_of_some(), 1 + dice_.below(2), 'a' + dice_.below(3));
      case 5:
        return fmt::format("{{taint: {}, taints: ['worn=yes:{}']}}", nodes(), dice_.chance(60) ? "NoExecute" : "NoSchedule");
      case 6:
      case 7:
        return fmt::format("{{scale: shop/{}, replicas: {}}}", dice_.chance(80) ? dice_.of(kSets) : "log", dice_.below(8));
      case 8:
        return fmt::format("{{delete: deployment/shop/{}}}", dice_.of(kSets));
      case 9:
        return fmt::format("{{allocatable: {}, resources: {{cpu: '{}'}}}}", some_node(), 1 + dice_.below(4));
      case 10:
        return fmt::format("{{evict: shop/{}-1-0}}", dice_.of(kSets));
      default:
        return "{apply: {apiVersion: v1, kind: Pod, metadata: {name: new, namespace: shop}, spec: {schedulerName: default-scheduler, "
               "priorityClassName: high, containers: [{name: c, image: x, resources: {requests: {cpu: '2'}}}]}}}";
    }
  }
  /// The size of a node that is there.
  std::string cores_of_some() {
    const std::string name = some_node();
    for (const json::Value& object : dump.objects)
      if (json::get_string(object, {"metadata", "name"}) == name)
        return std::string(json::get_string(object, {"status", "allocatable", "cpu"}));
    return "";
  }

  Dice dice_;
  std::map<std::string, std::int64_t> room_;  ///< By node: milli-cores.
};

/// What an answer comes to, counted from its lists.
class Judge {
 public:
  Judge(const Dump& dump, const json::Value& answer, std::string where) : answer_(answer), where_(std::move(where)) {
    for (const json::Value& object : dump.objects) {
      const auto kind = json::get_string(object, {"kind"}), name = json::get_string(object, {"metadata", "name"});
      if (kind == "Node") nodes_.emplace(name);
      if (kind == "Pod") place_["shop/" + std::string(name)] = json::get_string(object, {"spec", "nodeName"});
    }
    before_ = place_;
  }

  void judge() {
    count();
    follow();
    for (const json::Value& one : json::get_array(answer_, {"nodes"})) {
      const std::string name(json::get_string(one, {"name"}));
      if (nodes_.contains(name)) {
        EXPECT_EQ(json::get_int(one, {"before", "pods"}), pods_on(before_, name)) << where_ << name;
      }
      if (json::find(one, "after") != nullptr && json::find(one, "after")->is_object()) {
        EXPECT_EQ(json::get_int(one, {"after", "pods"}), pods_on(place_, name)) << where_ << name;
        const double before = shrinks() ? 99 : share(one, "before");
        EXPECT_LE(share(one, "after"), std::max(before, 1.0001)) << where_ << name;
      }
    }
  }

 private:
  static std::int64_t pods_on(const std::map<std::string, std::string>& places, const std::string& node) {
    return std::ranges::count_if(places, [&](const auto& one) { return one.second == node; });
  }
  static double share(const json::Value& node, std::string_view when) {
    const json::Value* cpu = json::find(node, {when, "cpu"});
    return cpu == nullptr ? 0 : cpu->to_number<double>();
  }
  /// A node may have become too small for what runs there.
  [[nodiscard]] bool shrinks() const {
    return std::ranges::any_of(json::get_array(answer_, {"question", "changes"}),
                               [](const json::Value& one) { return json::find(one, "allocatable") != nullptr; });
  }
  void count() {
    std::map<std::string, std::int64_t> outcomes;
    for (const json::Value& one : json::get_array(answer_, {"evictions"})) ++outcomes[std::string(json::get_string(one, {"outcome"}))];
    for (const char* outcome : {"evicted", "preempted", "blocked", "lost", "deleted"})
      EXPECT_EQ(summary(answer_, outcome), outcomes[outcome]) << where_ << outcome;
    std::int64_t moved = 0, placed = 0, waiting = 0, waited = 0;
    for (const json::Value& one : json::get_array(answer_, {"moves"})) ++(json::get_string(one, {"from"}).empty() ? placed : moved);
    for (const json::Value& one : json::get_array(answer_, {"pending"})) ++(json::get_bool(one, {"before"}) ? waited : waiting);
    EXPECT_EQ(summary(answer_, "moves"), moved) << where_;
    EXPECT_EQ(summary(answer_, "placed"), placed) << where_;
    EXPECT_EQ(summary(answer_, "pending"), waiting) << where_;
    EXPECT_LE(waited, summary(answer_, "pendingBefore")) << where_;
    EXPECT_EQ(summary(answer_, "pendingBefore"), std::ranges::count_if(before_, [](const auto& one) { return one.second.empty(); }))
        << where_;
  }
  /// Who is where in the end: change by change, who left and then who came.
  void follow() {
    for (std::int64_t change = -1; change < 8; ++change) {
      for (const json::Value& one : json::get_array(answer_, {"evictions"})) {
        const std::string pod(json::get_string(one, {"pod"})), outcome(json::get_string(one, {"outcome"}));
        if (json::get_int(one, {"change"}) != change || outcome == "blocked") continue;
        if (outcome == "lost" || outcome == "deleted")
          place_.erase(pod);
        else
          place_[pod] = "";
      }
      for (const json::Value& one : json::get_array(answer_, {"moves"}))
        if (json::get_int(one, {"change"}) == change) place_[std::string(json::get_string(one, {"pod"}))] = json::get_string(one, {"to"});
    }
    std::set<std::string> waiting;
    for (const json::Value& one : json::get_array(answer_, {"pending"})) {
      const std::string pod(json::get_string(one, {"pod"}));
      EXPECT_TRUE(waiting.insert(pod).second) << where_ << pod << " waits twice";
      place_[pod] = "";
    }
  }

  const json::Value& answer_;
  std::string where_;
  std::set<std::string, std::less<>> nodes_;
  std::map<std::string, std::string> before_, place_;
};

Present present_of(const Dump& dump) {
  Present out(dump.options);
  for (const json::Value& object : dump.objects) out.add(object);
  EXPECT_TRUE(out.finish());
  return out;
}

/// The answer in parts is the whole one.
void expect_parts(Present& present, const json::Value& question, const json::Value& whole, const std::string& where) {
  auto first = present.ask(question, {0, 3});
  ASSERT_TRUE(first) << where;
  for (std::size_t i = 1; i < 3; ++i) {
    const auto next = present.ask(question, {i, 3});
    ASSERT_TRUE(next) << where;
    join_losses(*first, *next);
  }
  EXPECT_EQ(json::serialize(*first), json::serialize(whole)) << where;
}

std::string play(std::uint64_t seed) {
  Cluster cluster(seed);
  Present present = present_of(cluster.dump);
  std::string out;
  for (int i = 0; i < 5 && !::testing::Test::HasFailure(); ++i) {
    const std::string question = cluster.question(), where = fmt::format("seed {}: {}\n", seed, question);
    const json::Value asked = json::parse_yaml_stream("--- " + question)->front();
    const auto answer = present.ask(asked);
    out += fmt::format("==== {}\n", question) + (answer ? to_text(*answer) : answer.error().message + "\n");
    const auto anew = present_of(cluster.dump).ask(asked);
    EXPECT_EQ(answer.has_value(), anew.has_value()) << where;
    if (!answer || !anew) continue;
    EXPECT_EQ(json::serialize(*answer), json::serialize(*anew)) << where << "a present that was asked before answers otherwise";
    const bool is_plan = json::find(asked, "pack") != nullptr;
    if (!is_plan) Judge(cluster.dump, *answer, where).judge();
    if (json::find(asked, "each") != nullptr) expect_parts(present, asked, *answer, where);
    const auto look = present.look_again(*answer);
    EXPECT_TRUE(look && json::get_bool(*look, {"holds"})) << where << (look ? text_of_look(*look) : look.error().message);
  }
  return out;
}

TEST(WhatIfLives, QuestionsOfAllKinds) {
  std::string text;
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) text += fmt::format("######## {}\n", seed) + play(seed);
  if (!HasFailure()) berth::testing::expect_life("tests/whatif/lives.txt", 1, text);
  const char* seeds = std::getenv("BERTH_SEEDS");
  for (std::uint64_t seed = 1000; seed < 1000 + (seeds != nullptr ? std::stoull(seeds) : 20) && !HasFailure(); ++seed) (void)play(seed);
}

}  // namespace
}  // namespace berth::whatif::testing
