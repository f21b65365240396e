// HorizontalPodAutoscalers over loads that rise and fall, and servers of metrics that answer what the dice say.
#include "controllers/workloads.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_int;
using json::get_string;

constexpr const char* kScaler =
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {}, spec: {minReplicas: 1, maxReplicas: 10, scaleTargetRef: "
    "{apiVersion: "
    "apps/v1, kind: Deployment, name: w}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: "
    "50}}}]}}";
constexpr const char* kTarget =
    "{apiVersion: apps/v1, kind: Deployment, metadata: {}, spec: {replicas: 3, selector: {matchLabels: {app: w}}, template: {metadata: "
    "{labels: "
    "{app: w}}}}}";
constexpr const char* kPod =
    "{apiVersion: v1, kind: Pod, metadata: {labels: {app: w}}, spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "
    "100m, memory: 64Mi}}}]}, "
    "status: {phase: Running, startTime: '$t-400', conditions: [{type: Ready, status: 'True', lastTransitionTime: '$t-390'}]}}";

std::vector<Field> fields() {
  const Kind hpa = kinds().horizontal_pod_autoscaler, target = kinds().deployment, pod = kinds().pod;
  return {
      {hpa, "spec minReplicas", {"0", "1", "2", "4", ""}},
      {hpa, "spec maxReplicas", {"3", "4", "6", "10"}},
      {hpa,
       "spec scaleTargetRef",
       {"{apiVersion: apps/v1, kind: Deployment, name: w}", "{apiVersion: apps/v1, kind: Deployment, name: w}",
        "{apiVersion: apps/v1, kind: Deployment, name: gone}", "{apiVersion: v1, kind: Pod, name: w}",
        "{apiVersion: x/v1, kind: Thing, name: w}"}},
      {hpa,
       "spec metrics",
       {"[{type: Resource, resource: {name: cpu, target: {averageUtilization: 50}}}]",
        "[{type: Resource, resource: {name: cpu, target: {averageUtilization: 80}}}, {type: Resource, resource: {name: memory, target: "
        "{averageValue: 50Mi}}}]",
        "[{type: ContainerResource, containerResource: {name: cpu, container: c, target: {averageUtilization: 60}}}]",
        "[{type: ContainerResource, containerResource: {name: memory, container: none, target: {averageValue: 1Mi}}}]",
        "[{type: Pods, pods: {metric: {name: rps, selector: {matchLabels: {q: a}}}, target: {averageValue: '10'}}}]",
        "[{type: Object, object: {metric: {name: depth}, describedObject: {apiVersion: v1, kind: Service, name: s}, target: {value: "
        "'20'}}}, {type: Resource, resource: {name: cpu, target: {averageUtilization: 50}}}]",
        "[{type: Object, object: {metric: {name: depth}, describedObject: {apiVersion: v1, kind: Namespace, name: default}, target: "
        "{averageValue: '7'}}}]",
        "[{type: Object, object: {metric: {name: depth}, describedObject: {apiVersion: x.io/v1, kind: Widget, name: s}, target: "
        "{averageValue: '7'}}}]",
        "[{type: External, external: {metric: {name: queue, selector: {matchLabels: {q: a}}}, target: {averageValue: '30'}}}]",
        "[{type: External, external: {metric: {name: queue}, target: {value: '100'}}}]", "[{type: Other}]"}},
      {hpa,
       "spec behavior",
       {"{scaleUp: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1, periodSeconds: 15}]}, scaleDown: "
        "{stabilizationWindowSeconds: 30, policies: [{type: Percent, value: 50, periodSeconds: 60}]}}",
        "{scaleUp: {stabilizationWindowSeconds: 30, selectPolicy: Min, policies: [{type: Pods, value: 2, periodSeconds: 30}, {type: "
        "Percent, value: 100, periodSeconds: 15}]}, scaleDown: {selectPolicy: Disabled}}",
        "{scaleUp: {selectPolicy: Max, policies: [{type: Pods, value: 1, periodSeconds: 15}, {type: Percent, value: 200, periodSeconds: "
        "15}]}, scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Min, policies: [{type: Pods, value: 1, periodSeconds: 15}, {type: "
        "Percent, value: 10, periodSeconds: 15}]}}",
        "{scaleUp: {tolerance: '0.5'}, scaleDown: {tolerance: '0', stabilizationWindowSeconds: 15}}", "", "", ""}},
      {target, "spec replicas", {"0", "1", "2", "3", "5", "10", "12"}},
      {target, "spec selector", {"{matchLabels: {app: w}}", "{matchLabels: {app: w}}", "{matchLabels: {app: none}}"}},
      {pod, "status phase", {"Running", "Pending", "Failed", "Succeeded"}},
      {pod, "status startTime", {"'$t'", "'$t-20'", "'$t-299'", "'$t-300'", "'$t-1000'", ""}},
      {pod,
       "status conditions",
       {"[{type: Ready, status: 'False', lastTransitionTime: '$t'}]", "[{type: Ready, status: 'False', lastTransitionTime: '$t-350'}]",
        "[{type: Ready, status: 'True', lastTransitionTime: '$t-100'}]", "[{type: Ready, status: 'True', lastTransitionTime: '$t'}]", ""}},
      {pod,
       "spec containers",
       {"[{name: c, resources: {requests: {cpu: 100m, memory: 64Mi}}}]", "[{name: c}]",
        "[{name: c, resources: {requests: {cpu: 200m}}}, {name: d, resources: {requests: {cpu: 50m}}}]"}},
      {pod, "spec initContainers", {"[{name: i, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]", "[{name: i}]", "", ""}},
      {pod, "metadata labels app", {"w", "w", "v"}},
  };
}

/// Loads of all that is measured.
struct Meters {
  std::int64_t load = 50;  ///< Of a pod, thousandths of a core; the other metrics go by it.
  json::Value answer(World& world, const Write& write) {
    if (write.verb != Write::Verb::kGet && write.verb != Write::Verb::kList) return {};
    const bool is_resources = write.kind->group == "metrics.k8s.io";
    if (!is_resources && !write.kind->group.ends_with(".metrics.k8s.io")) return {};
    switch (world.life.dice.below(14)) {
      case 0:
        return json::Object{{"code", 503}, {"message", "away"}};
      case 1:
        return json::Object{{"code", 404}, {"message", world.life.dice.chance(50) ? "no such metric" : "page not found"}};
      case 2:
        return json::Object{{"items", json::Array{}}};
      default:
        break;
    }
    json::Array items;
    for (const std::string& key : world.keys(kinds().pod)) {
      const json::Value& pod = *world.find(kinds().pod, key);
      const std::string name(get_string(pod, {"metadata", "name"}));
      if (world.life.dice.below(9) == 0) continue;  // Not measured.
      if (is_resources)
        items.push_back(yaml(world.filled_in(fmt::format(
            "{{metadata: {{name: {}}}, timestamp: '$t-{}', window: 30s, containers: [{{name: c, usage: {{cpu: {}m, memory: {}Mi}}}}]}}",
            name, world.life.dice.of(std::vector<int>{0, 15, 40}), load + world.life.dice.below(9), load))));
      else
        items.push_back(yaml(world.filled_in(
            fmt::format("{{describedObject: {{name: {}}}, timestamp: '$t', windowSeconds: 30, value: '{}m'}}", name, load * 200))));
    }
    return json::Object{{"items", std::move(items)}};
  }
};

TEST(AutoscalerLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/autoscalers.txt",
               .seed = 9,
               .edits = 1500,
               .has_memory = true,
               .is_restless = true,
               .readable = 22'000,
               .steps_an_edit = 24,
               .longest = std::chrono::seconds(90)});
  world.add([] { return make_horizontal_pod_autoscaler_controller({}); });
  world.sorts = {{kinds().horizontal_pod_autoscaler, {"default/h", "default/h", "default/h", "default/rival"}, kScaler},
                 {kinds().deployment, {"default/w"}, kTarget},
                 {kinds().pod, {"default/w-1", "default/w-2", "default/w-3", "default/w-4", "default/w-5"}, kPod},
                 {kinds().pod, {"default/w-1", "default/w-2", "default/w-3", "default/w-4", "default/w-5"}, kPod}};
  world.fields = fields();
  Meters meters;
  world.answer = [&](const Write& write) { return meters.answer(world, write); };
  world.acts = {{3,
                 [&] {
                   meters.load = world.life.dice.of(std::vector<std::int64_t>{0, 10, 40, 44, 45, 46, 50, 54, 55, 56, 70, 100, 200, 500});
                   world.life.tell(fmt::format("[load] {}", meters.load));
                 }},
                {1, [&] { world.put(kinds().deployment, "default/w", yaml(kTarget), "the target is as it was"); }}};
  // Where it decides, it stays within its bounds.
  world.judge = [&] {
    for (const std::string& key : world.keys(kinds().horizontal_pod_autoscaler)) {
      const json::Value& one = *world.find(kinds().horizontal_pod_autoscaler, key);
      const std::int64_t wanted = get_int(one, {"status", "desiredReplicas"});
      if (wanted < 0 || wanted > 12) world.wrong(fmt::format("{} wants {} replicas", key, wanted));
    }
  };
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
