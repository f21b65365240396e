// DaemonSets on nodes that come, change and go.
#include "controllers/workloads.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

constexpr const char* kSet =
    "{apiVersion: apps/v1, kind: DaemonSet, metadata: {}, spec: {revisionHistoryLimit: 1, selector: {matchLabels: {app: w}}, template: "
    "{metadata: "
    "{labels: {app: w}}, spec: {containers: [{name: c, image: a1}]}}}}";
constexpr const char* kPod = "{apiVersion: v1, kind: Pod, metadata: {labels: {app: w}}, spec: {containers: [{name: c}]}}";
constexpr const char* kNode = "{apiVersion: v1, kind: Node, metadata: {labels: {zone: a}}}";

std::vector<Field> fields() {
  const Kind set = kinds().daemon_set, node = kinds().node, pod = kinds().pod;
  std::vector<Field> out = {
      {set, "spec template spec containers", {"[{name: c, image: a1}]", "[{name: c, image: a2}]", "[{name: c, image: a3}]"}},
      {set, "spec template spec containers", {"[{name: c, image: a1}]", "[{name: c, image: a2}]", "[{name: c, image: a3}]"}},
      {set, "spec template spec nodeSelector", {"{zone: a}", "{zone: b}", "", ""}},
      {set,
       "spec template spec tolerations",
       {"[{key: t, operator: Exists}]", "[{operator: Exists}]",
        "[{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}]", ""}},
      {set, "spec template spec hostNetwork", {"true", ""}},
      {set,
       "spec updateStrategy",
       {"{type: OnDelete}", "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}",
        "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
        "{type: RollingUpdate, rollingUpdate: {maxSurge: 50%, maxUnavailable: 0}}",
        "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}", "", ""}},
      {set,
       "spec updateStrategy",
       {"{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
        "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 100%}}"}},
      {set, "spec minReadySeconds", {"5", "30", "", ""}},
      {set, "spec revisionHistoryLimit", {"0", "2", ""}},
      {set, "spec selector", {"{matchLabels: {app: w}}", "{matchLabels: {app: w}}", "{matchLabels: {app: w}}", "{}"}},
      {set, "metadata annotations deprecated.daemonset.template.generation", {"3", "4", ""}},
      {node, "metadata labels zone", {"a", "b", ""}},
      {node,
       "spec taints",
       {"[{key: t, effect: NoSchedule}]", "[{key: t, effect: NoExecute}]", "[{key: node.kubernetes.io/unreachable, effect: NoExecute}]",
        "[{key: t, effect: PreferNoSchedule}]", "", ""}},
      {node, "spec unschedulable", {"true", ""}},
      {pod, "metadata labels controller-revision-hash", {"", "x"}},
      {pod, "metadata labels pod-template-generation", {"3", "4", ""}},
      {pod, "spec affinity", {""}},
  };
  for (Field& field : pod_fields()) out.push_back(std::move(field));
  return out;
}

TEST(DaemonSetLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/daemon_sets.txt", .seed = 4, .edits = 1800, .has_memory = true, .readable = 25'000});
  world.add([] { return make_daemonset_controller(); });
  world.sorts = {{kinds().daemon_set, {"default/w", "default/w", "default/w"}, kSet},
                 {kinds().node, {"n1", "n2", "n3", "n4"}, kNode},
                 {kinds().node, {"n1", "n2", "n3", "n4"}, kNode},
                 {kinds().pod, {"default/p1"}, kPod}};
  world.fields = fields();
  const auto target = [](const json::Value& pod) {
    if (const auto node = get_string(pod, {"spec", "nodeName"}); !node.empty()) return std::string(node);
    const json::Array& terms =
        get_array(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    return terms.empty() ? std::string() : std::string(json::as_view(terms[0].at("matchFields").at(0).at("values").at(0)));
  };
  world.acts = {
      {3,
       [&] {
         world.play_kubelet({"n1", "n2"});
       }},
      {3, [&] {
         for (const std::string& key : world.keys(kinds().pod)) {
           json::Value pod = *world.find(kinds().pod, key);
           if (!get_string(pod, {"metadata", "deletionTimestamp"}).empty()) {
             world.erase(kinds().pod, key, fmt::format("pod {} is gone", key));
             continue;
           }
           const std::string node = target(pod);
           if (node.empty() || get_string(pod, {"status", "phase"}) == "Failed") continue;
           json::set(pod, {"spec", "nodeName"}, json::Value(node));
           merge(pod,
                 yaml(world.filled_in("status: {phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '$t'}]}")),
                 true);
           world.put(kinds().pod, key, std::move(pod), fmt::format("pod {} is ready on {}", key, node));
         }
       }}};
  // With nobody failing and nothing in the way each node that the set is for has one pod.
  world.judge_rest = [&] {
    for (const std::string& key : world.keys(kinds().daemon_set)) {
      const json::Value& set = *world.find(kinds().daemon_set, key);
      if (json::get_object(set, {"spec", "selector"}).empty() || !get_string(set, {"metadata", "deletionTimestamp"}).empty()) continue;
      const std::int64_t desired = get_int(set, {"status", "desiredNumberScheduled"}),
                         current = get_int(set, {"status", "currentNumberScheduled"});
      if (desired != current || desired > static_cast<std::int64_t>(world.keys(kinds().node).size()))
        world.wrong(fmt::format("{}: {} nodes are to have a pod, {} have, of {}", key, desired, current, world.keys(kinds().node).size()));
    }
  };
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
