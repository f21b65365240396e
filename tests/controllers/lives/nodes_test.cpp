// Nodes that fall silent, are tainted and come back; pods that leave them; what is collected.
#include "controllers/cluster.h"
#include "controllers/taints.h"
#include "controllers/zones.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_string;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kNode =
    "{apiVersion: v1, kind: Node, metadata: {labels: {topology.kubernetes.io/zone: a, kubernetes.io/os: linux}}, spec: {}, status: "
    "{conditions: [{type: "
    "Ready, status: 'True', reason: KubeletReady, lastHeartbeatTime: '$t'}]}}";
constexpr const char* kPod =
    "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}, "
    "{type: PodScheduled, status: 'True', lastTransitionTime: '$t-60'}]}}";

std::string conditions(const std::string& ready, const std::string& more = "") {
  return fmt::format("[{{type: Ready, status: '{}', reason: Said, lastHeartbeatTime: '$t'}}{}]", ready, more);
}

std::vector<Field> node_fields() {
  const Kind node = kinds().node;
  return {{node,
           "status conditions",
           {conditions("True"), conditions("False"), conditions("Unknown"),
            conditions("True", ", {type: MemoryPressure, status: 'True'}, {type: DiskPressure, status: 'True'}"),
            conditions("True", ", {type: PIDPressure, status: 'True'}, {type: NetworkUnavailable, status: 'True'}"), ""}},
          {node, "status conditions", {conditions("True"), conditions("True"), conditions("False"), conditions("Unknown")}},
          {node, "spec unschedulable", {"true", "", ""}},
          {node,
           "metadata labels",
           {"{topology.kubernetes.io/zone: a}", "{topology.kubernetes.io/zone: b, topology.kubernetes.io/region: r}",
            "{failure-domain.beta.kubernetes.io/zone: c}",
            "{kubernetes.io/os: linux, beta.kubernetes.io/os: windows, kubernetes.io/arch: arm64}",
            "{topology.kubernetes.io/zone: b, failure-domain.beta.kubernetes.io/zone: x}",
            "{topology.kubernetes.io/zone: a, node.kubernetes.io/exclude-disruption: ''}", "{}"}},
          {node,
           "spec taints",
           {"[{key: t, effect: NoExecute}]", "[{key: t, effect: NoExecute, timeAdded: '$t-100'}]",
            "[{key: t, value: v, effect: NoExecute, timeAdded: '$t+100'}, {key: u, effect: NoExecute}]", "[{key: t, effect: NoSchedule}]",
            "[{key: node.kubernetes.io/unreachable, effect: NoExecute}]", "[{key: node.kubernetes.io/out-of-service, effect: NoExecute}]",
            "", ""}}};
}

std::vector<Field> toleration_fields() {
  const Kind pod = kinds().pod;
  return {{pod,
           "spec tolerations",
           {"[{operator: Exists}]", "[{key: t, operator: Exists, tolerationSeconds: 20}]",
            "[{key: t, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 0}]",
            "[{key: t, operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {key: u, operator: Exists, tolerationSeconds: 40}]",
            "[{key: t, operator: Exists, effect: NoSchedule}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, "
            "tolerationSeconds: 10}]",
            "[{key: t, operator: Exists, tolerationSeconds: -7}]",
            "[{key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 10}, {key: node.kubernetes.io/unreachable, "
            "operator: Exists, tolerationSeconds: 10}, {key: t, operator: Exists}]",
            "", ""}},
          {pod, "spec nodeName", {"n1", "n2", "n3", ""}},
          {pod,
           "status conditions",
           {"[{type: Ready, status: 'True'}, {type: PodScheduled, status: 'True', lastTransitionTime: '$t-60'}]",
            "[{type: PodScheduled, status: 'True', lastTransitionTime: '$t'}]", ""}}};
}

void beat(World& world, const std::string& node, const std::string& annotations = "") {
  json::Value lease =
      yaml(world.filled_in(fmt::format("{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{{}}}, spec: {{renewTime: '{}'}}}}",
                                       annotations, format_rfc3339_micro(world.now))));
  world.put(kinds().lease, "kube-node-lease/" + node, std::move(lease),
            fmt::format("{} renews its lease{}", node, annotations.empty() ? "" : ", " + annotations));
}

TEST(NodeLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/nodes.txt",
               .seed = 30,
               .edits = 1400,
               .has_memory = true,
               .is_restless = true,
               .readable = 25'000,
               .steps_an_edit = 60,
               .longest = seconds(40)});
  world.add([] {
    return make_node_lifecycle_controller({.monitor_grace_period = seconds(50),
                                           .startup_grace_period = seconds(60),
                                           .eviction_rate = 0.1,
                                           .secondary_eviction_rate = 0.05,
                                           .large_cluster_size_threshold = 4});
  });
  world.sorts = {{kinds().node, {"n1", "n2", "n3", "n4", "n5", "n6"}, kNode},
                 {kinds().node, {"n1", "n2", "n3", "n4", "n5", "n6"}, kNode},
                 {kinds().pod, {"default/p", "default/q"}, kPod}};
  world.fields = node_fields();
  for (Field& field : node_fields()) world.fields.push_back(std::move(field));
  world.fields.push_back({kinds().pod, "spec nodeName", {"n1", "n2"}});
  world.acts = {{4,
                 [&] {
                   for (const std::string& node : world.keys(kinds().node))
                     if (world.life.dice.chance(70)) beat(world, node);
                 }},
                {1,
                 [&] {
                   const std::string node = world.any(kinds().node);
                   if (!node.empty())
                     beat(world, node,
                          world.life.dice.chance(50) ? "annotations: {sim.berth.dev/heartbeats: steady}"
                                                     : "annotations: {sim.berth.dev/heartbeats: ended 30s ago}");
                 }},
                {1, [&] { beat(world, "n9"); }},
                {1, [&] {
                   const std::string ready = world.life.dice.of(std::vector<std::string>{"True", "False", "Unknown"});
                   for (const std::string& node : world.keys(kinds().node)) {
                     json::Value one = *world.find(kinds().node, node);
                     json::set(one, {"status", "conditions"}, yaml("v: " + world.filled_in(conditions(ready))).at("v"));
                     world.put(kinds().node, node, std::move(one), fmt::format("{} is ready: {}", node, ready));
                   }
                 }}};
  world.live();
}

TEST(TaintLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/taints.txt",
               .seed = 31,
               .edits = 1600,
               .has_memory = true,
               .readable = 25'000,
               .longest = seconds(12)});
  world.add([] { return make_taint_eviction_controller(); });
  const std::vector<std::string> pods = {"default/p", "default/q", "default/r", "other/p"};
  world.sorts = {{kinds().node, {"n1", "n2"}, kNode}, {kinds().pod, pods, kPod}, {kinds().pod, pods, kPod}};
  for (int i = 0; i < 2; ++i)
    for (auto list : {node_fields, toleration_fields})
      for (Field& field : list()) world.fields.push_back(std::move(field));
  std::erase_if(world.fields, [](const Field& field) { return field.path == "status conditions" && field.kind == kinds().node; });
  world.acts = {{2, [&] { world.play_kubelet({"n1", "n2"}); }}};
  world.judge_rest = [&] {
    for (const std::string& key : world.keys(kinds().pod)) {
      const json::Value& pod = *world.find(kinds().pod, key);
      const json::Value* node = world.find(kinds().node, std::string(get_string(pod, {"spec", "nodeName"})));
      if (node == nullptr || !get_string(pod, {"metadata", "deletionTimestamp"}).empty()) continue;
      for (const Taint& taint : node_taints(*node)) {
        if (taint.effect != "NoExecute") continue;
        bool stays = false;
        for (const json::Value& one : get_array(pod, {"spec", "tolerations"})) {
          const auto effect = get_string(one, {"effect"}), op = get_string(one, {"operator"}), name = get_string(one, {"key"});
          const bool fits = (effect.empty() || effect == "NoExecute") && (name.empty() ? op == "Exists" : name == taint.key) &&
                            (op == "Exists" || get_string(one, {"value"}) == taint.value);
          if (!fits) continue;
          stays = json::find(one, "tolerationSeconds") == nullptr;
          break;  // The first that fits counts.
        }
        if (!stays) world.wrong(fmt::format("{} stays in spite of {}", key, taint.key));
      }
    }
  };
  world.live();
}

TEST(PodCollectorLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/collected_pods.txt",
               .seed = 32,
               .edits = 1000,
               .has_memory = true,
               .is_restless = true,
               .readable = 18'000,
               .steps_an_edit = 40,
               .longest = seconds(30)});
  world.add([] { return make_pod_garbage_collector({.terminated_pod_threshold = 2}); });
  const std::vector<std::string> pods = {"default/p", "default/q", "default/r", "other/p", "other/q"};
  world.sorts = {{kinds().node, {"n1", "n2"}, kNode},
                 {kinds().pod, pods, kPod},
                 {kinds().pod, pods, kPod},
                 {kinds().pod, pods, "{apiVersion: v1, kind: Pod, metadata: {finalizers: [x]}, spec: {}}"}};
  world.fields = {{kinds().pod, "status phase", {"Running", "Succeeded", "Failed", "Pending"}},
                  {kinds().pod, "status phase", {"Succeeded", "Failed"}},
                  {kinds().pod, "status reason", {"Evicted", "Other", ""}},
                  {kinds().pod, "metadata creationTimestamp", {"'$t-50'", "'$t-20'", "'$t'"}},
                  {kinds().pod, "spec nodeName", {"n1", "n2", "n3", ""}},
                  {kinds().pod, "metadata finalizers", {""}},
                  {kinds().node,
                   "spec taints",
                   {"[{key: node.kubernetes.io/out-of-service, effect: NoExecute}]",
                    "[{key: node.kubernetes.io/out-of-service, effect: NoExecute}]", ""}},
                  {kinds().node, "status conditions", {conditions("True"), conditions("Unknown"), conditions("False")}}};
  world.acts = {{2, [&] {
                   const std::string key = world.any(kinds().pod);
                   if (!key.empty()) world.remove(kinds().pod, key, {}, fmt::format("delete Pod {}", key));
                 }}};
  world.live();
}

TEST(NodeTtlLives, AreAsRecorded) {
  // The whole of the steps between 90 and 501 nodes, up and down, by a plain list of the last answers.
  const auto led = make_node_ttl_controller();
  struct Keys final : KeySink {
    std::vector<std::string> keys;
    void add(std::string key, Duration) override { keys.push_back(std::move(key)); }
  } sink;
  Cache cache;
  std::vector<std::string> names;
  berth::testing::LongLife life("tests/controllers/lives/node_ttl.txt", 33, 8'000);
  int revision = 0;
  std::string last;
  const auto see = [&](const std::string& name, bool is_delete, const char* ttl) {
    sink.keys.clear();
    json::Value node =
        yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}, uid: u-{}, resourceVersion: '{}'{}}}}}", name, name,
                         ++revision, *ttl == 0 ? "" : fmt::format(", annotations: {{node.alpha.kubernetes.io/ttl: '{}'}}", ttl)));
    const Event event = cache.apply(kinds().node, std::make_shared<Object>(node), is_delete);
    led->on_event(event, cache, {}, sink);
    for (const std::string& key : sink.keys)
      for (const Write& write : led->reconcile(key, {}, cache).writes) {
        const std::string wanted(get_string(write.body, {"metadata", "annotations", "node.alpha.kubernetes.io/ttl"}));
        if (wanted != last) life.tell(fmt::format("with {} nodes: {} s", cache.size(kinds().node), wanted));
        last = wanted;
      }
    if (sink.keys.empty() && !is_delete) life.tell(fmt::format("{} has {} already", name, ttl));
  };
  for (int round = 0; round < 3; ++round) {
    const int most = round == 0 ? 505 : round == 1 ? 105 : 95;
    for (int i = 0; i < most; ++i) see(fmt::format("n{:03}", i), false, "");
    see("n000", false, "15");
    see("n000", false, "0");
    for (int i = most - 1; i >= 0; --i) {
      see("n000", false, "7");
      if (i > 0) see(fmt::format("n{:03}", i), true, "");
    }
    see("n000", true, "");
  }
  life.expect_as_recorded();
}

/// Rates of zones alone, over thousands of turns: nobody is taken twice, nobody who was put aside; and never more than the rate allows.
TEST(ZoneLives, AreAsRecorded) {
  berth::testing::LongLife life("tests/controllers/lives/zones.txt", 34, 16'000);
  Zones zones({.eviction_rate = 0.1, .secondary_eviction_rate = 0.01, .large_cluster_size_threshold = 5});
  TimePoint now = *parse_rfc3339("2026-01-05T10:00:00Z");
  std::map<std::string, Zones::Counts> counts;
  std::map<std::string, std::string> queued;
  std::map<std::string, int> taken_of;
  const TimePoint start = now;
  for (int i = 0; i < 3000; ++i) {
    now += milliseconds(life.dice.of(std::vector<int>{0, 100, 999, 1000, 5000, 10000, 10001}));
    const std::string zone = life.dice.of(std::vector<std::string>{"a", "b", "c"}), node = zone + std::to_string(life.dice.below(8));
    std::string said = fmt::format("{:.1f} ", std::chrono::duration<double>(now - start).count());
    switch (life.dice.below(8)) {
      case 0:
        counts[zone] = {life.dice.below(7), life.dice.below(7)};
        if (life.dice.chance(20)) counts.erase(zone);
        if (life.dice.chance(10))
          for (auto& [name, count] : counts) count.ready = 0;
        for (const auto& [name, count] : counts) said += fmt::format("{} {}+{} ", name, count.ready, count.not_ready);
        {
          const auto change = zones.update(counts, now);
          said += fmt::format("-> {}{}", static_cast<int>(change), zones.all_down() ? " all down" : "");
          if (change == Zones::Transition::kAllDown) queued.clear();
        }
        for (const char* name : {"a", "b", "c"}) said += fmt::format(" {}:{}", name, static_cast<int>(zones.state(name)));
        break;
      case 1:
      case 2:
        zones.add(zone, node);
        queued.emplace(node, zone);
        said += "add " + node;
        break;
      case 3:
        zones.remove(node);
        queued.erase(node);
        said += "remove " + node;
        break;
      default: {
        const auto taken = zones.take(now);
        said += fmt::format("take: {}", fmt::join(taken, " "));
        for (const std::string& one : taken) {
          EXPECT_TRUE(queued.contains(one)) << life.last() << one << " was not waiting";
          ++taken_of[queued[one]];
          // Who was taken is done, or comes back.
          if (life.dice.chance(70)) {
            zones.remove(one);
            queued.erase(one);
          } else {
            zones.put_back(one);
            said += fmt::format(", {} back", one);
            --taken_of[queued[one]];
          }
        }
      }
    }
    const auto next = zones.next(now);
    said += next ? fmt::format(" next {}", format_go_duration(*next)) : " next never";
    life.tell(std::move(said));
  }
  const double most = std::chrono::duration<double>(now - start).count() * 0.1 + 1;
  for (const auto& [zone, count] : taken_of) EXPECT_LE(count, most) << zone;
  life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::controllers::lives
