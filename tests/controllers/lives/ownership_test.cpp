// Owners and dependents, namespaces that go, quotas that are counted.
#include "controllers/cluster.h"
#include "controllers/quota_ledger.h"
#include "controllers/services.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_string;

TEST(GarbageLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/garbage.txt",
               .seed = 13,
               .edits = 2100,
               .has_memory = true,
               .is_restless = true,
               .readable = 22'000,
               .longest = std::chrono::seconds(4)});
  world.add([] { return make_garbage_collector(); });
  const Kind map = kinds().config_map, secret = kinds().secret, pod = kinds().pod, node = kinds().node;
  world.sorts = {{map, {"default/a", "default/b", "default/c", "other/a"}, "{apiVersion: v1, kind: ConfigMap, metadata: {}}"},
                 {secret, {"default/a", "default/d"}, "{apiVersion: v1, kind: Secret, metadata: {}}"},
                 {pod, {"default/p", "default/q"}, "{apiVersion: v1, kind: Pod, metadata: {}, spec: {}}"},
                 {node, {"n1"}, "{apiVersion: v1, kind: Node, metadata: {}}"}};
  const std::vector<std::string> owners = {
      "[{apiVersion: v1, kind: ConfigMap, name: a, uid: '$uid(ConfigMap default/a)', blockOwnerDeletion: true}]",
      "[{apiVersion: v1, kind: ConfigMap, name: b, uid: '$uid(ConfigMap default/b)', blockOwnerDeletion: true}]",
      "[{apiVersion: v1, kind: ConfigMap, name: c, uid: '$uid(ConfigMap default/c)'}, {apiVersion: v1, kind: Secret, name: a, uid: "
      "'$uid(Secret default/a)', blockOwnerDeletion: true}]",
      "[{apiVersion: v1, kind: ConfigMap, name: a, uid: '$uid(ConfigMap other/a)'}]",
      "[{apiVersion: v1, kind: ConfigMap, name: wrong, uid: '$uid(ConfigMap default/a)'}]",
      "[{apiVersion: v1, kind: Secret, name: a, uid: '$uid(ConfigMap default/a)'}]",
      "[{apiVersion: nobody/v1, kind: Thing, name: a, uid: u-x}]",
      "[{apiVersion: v1, kind: Node, name: n1, uid: '$uid(Node n1)'}]",
      "[{apiVersion: v1, kind: ConfigMap, name: gone, uid: u-gone}, {apiVersion: v1, kind: ConfigMap, name: a, uid: '$uid(ConfigMap "
      "default/a)'}]",
      "[{apiVersion: v1, kind: ConfigMap, name: gone, uid: u-gone}]",
      "[{apiVersion: v1, kind: Pod, name: p, uid: '$uid(Pod default/p)', blockOwnerDeletion: true, controller: true}]",
      ""};
  for (const Kind kind : {map, map, secret, pod, node}) {
    world.fields.push_back({kind, "metadata ownerReferences", owners});
    world.fields.push_back({kind, "metadata finalizers", {"[hold]", "", ""}});
  }
  world.fields.push_back({pod, "spec nodeName", {"n1", ""}});
  world.acts = {{2,
                 [&] {
                   const Sort& sort = world.life.dice.of(world.sorts);
                   const std::string key = world.any(sort.kind);
                   if (key.empty()) return;
                   DeleteOptions options;
                   options.propagation = world.life.dice.chance(60) ? Propagation::kForeground : Propagation::kOrphan;
                   world.remove(sort.kind, key, options,
                                fmt::format("delete {} {}, {}", sort.kind->kind, key,
                                            options.propagation == Propagation::kOrphan ? "orphans stay" : "dependents first"));
                 }},
                {1, [&] {
                   for (const Kind kind : {map, secret, pod})
                     for (const std::string& key : world.keys(kind)) {
                       json::Value one = *world.find(kind, key);
                       if (get_string(one, {"metadata", "deletionTimestamp"}).empty() || !has_finalizer(one, "hold")) continue;
                       json::erase(one, {"metadata", "finalizers"});
                       world.erase(kind, key, fmt::format("{} {} is let go", kind->kind, key));
                     }
                 }}};
  // Nobody outlives all its owners, where these were there once and are gone.
  std::set<std::string> ever;
  world.judge = [&] {
    for (const Kind kind : {map, secret, pod, node})
      for (const std::string& key : world.keys(kind)) ever.insert(std::string(get_string(*world.find(kind, key), {"metadata", "uid"})));
  };
  world.judge_rest = [&] {
    std::set<std::string> there;
    for (const Kind kind : {map, secret, pod, node})
      for (const std::string& key : world.keys(kind)) there.insert(std::string(get_string(*world.find(kind, key), {"metadata", "uid"})));
    for (const Kind kind : {map, secret, pod})
      for (const std::string& key : world.keys(kind)) {
        const json::Value& one = *world.find(kind, key);
        const auto& references = get_array(one, {"metadata", "ownerReferences"});
        const bool dead = !references.empty() && std::ranges::all_of(references, [&](const json::Value& owner) {
          const std::string uid(get_string(owner, {"uid"}));
          return ever.contains(uid) && !there.contains(uid);
        });
        if (dead && get_string(one, {"metadata", "deletionTimestamp"}).empty())
          world.wrong(fmt::format("{} {} outlives its owners", kind->kind, key));
      }
  };
  world.live();
}

TEST(NamespaceLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/namespaces.txt",
               .seed = 14,
               .edits = 900,
               .has_memory = true,
               .readable = 22'000,
               .longest = std::chrono::seconds(8)});
  world.add([] { return make_namespace_controller(); });
  world.add([] { return make_serviceaccount_controller(); });
  world.add([] { return make_root_ca_publisher("PEM"); });
  world.add([] { return make_serviceaccount_token_controller("PEM"); });
  const Kind ns = kinds().namespace_, map = kinds().config_map, secret = kinds().secret, account = kinds().service_account,
             pod = kinds().pod;
  world.sorts = {
      {ns, {"a", "b"}, "{apiVersion: v1, kind: Namespace, metadata: {}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}"},
      {map, {"a/m", "b/m", "a/kube-root-ca.crt"}, "{apiVersion: v1, kind: ConfigMap, metadata: {}, data: {ca.crt: OLD, more: x}}"},
      {pod, {"a/p", "b/p"}, "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1}}"},
      {account, {"a/s", "b/s"}, "{apiVersion: v1, kind: ServiceAccount, metadata: {}}"},
      {secret,
       {"a/t", "b/t"},
       "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {annotations: "
       "{kubernetes.io/service-account.name: s}}}"}};
  world.fields = {{ns, "spec finalizers", {"[kubernetes]", "[kubernetes, other]", "[other]"}},
                  {map, "metadata finalizers", {"[hold, more]", "[hold]", ""}},
                  {map, "data", {"{ca.crt: PEM}", "{ca.crt: PEM, x: y}", "{}"}},
                  {secret, "data", {"{}", "{token: eA==}", "{ca.crt: x, namespace: y}", ""}},
                  {secret, "metadata annotations kubernetes.io/service-account.uid", {"u-other", "$uid(ServiceAccount a/s)", ""}},
                  {secret, "metadata annotations kubernetes.io/service-account.name", {"s", "default", "gone"}},
                  {secret, "type", {"kubernetes.io/service-account-token", "Opaque"}}};
  int tokens = 0;
  world.answer = [&](const Write& write) -> json::Value {
    if (write.subresource == "token") return json::Object{{"status", json::Object{{"token", fmt::format("token-{}", ++tokens)}}}};
    if (write.verb == Write::Verb::kList && world.life.dice.below(60) == 0)
      return json::Object{{"code", world.life.dice.chance(50) ? 404 : 500}, {"message", "x"}};
    return {};
  };
  world.acts = {{2, [&] { world.play_kubelet({"n1"}); }},
                {3,
                 [&] {
                   const std::string key = world.any(ns);
                   if (!key.empty()) world.remove(ns, key, {}, fmt::format("delete Namespace {}", key));
                 }},
                {1, [&] {
                   for (const std::string& key : world.keys(map))
                     if (const json::Value& one = *world.find(map, key);
                         has_finalizer(one, "hold") && !get_string(one, {"metadata", "deletionTimestamp"}).empty())
                       return world.erase(map, key, fmt::format("ConfigMap {} is let go", key));
                 }}};
  world.live();
}

TEST(QuotaLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/quotas.txt",
               .seed = 15,
               .edits = 1500,
               .has_memory = true,
               .readable = 20'000,
               .longest = std::chrono::seconds(4)});
  world.add([] { return make_resource_quota_controller(); });
  const Kind quota = kinds().resource_quota, pod = kinds().pod, service = kinds().service, claim = kinds().persistent_volume_claim,
             map = kinds().config_map;
  constexpr const char* kHard =
      "{pods: '5', requests.cpu: '2', limits.memory: 4Gi, services: '3', services.nodeports: '2', services.loadbalancers: '1', "
      "persistentvolumeclaims: '4', requests.storage: 10Gi, "
      "gold.storageclass.storage.k8s.io/requests.storage: 1Gi, count/configmaps: '2', configmaps: '3', cpu: '3', requests.nvidia.com/gpu: "
      "'2'}";
  world.sorts = {{quota,
                  {"default/q", "default/r", "other/q"},
                  fmt::format("{{apiVersion: v1, kind: ResourceQuota, metadata: {{}}, spec: {{hard: {}}}}}", kHard)},
                 {pod,
                  {"default/a", "default/b", "other/a"},
                  "{apiVersion: v1, kind: Pod, metadata: {}, spec: {containers: [{name: c, resources: {requests: {cpu: 100m}, limits: "
                  "{memory: 1Gi}}}]}}"},
                 {service,
                  {"default/a", "default/b"},
                  "{apiVersion: v1, kind: Service, metadata: {}, spec: {type: NodePort, ports: [{port: 1, nodePort: 30001}, {port: 2, "
                  "nodePort: 30002}]}}"},
                 {claim,
                  {"default/a", "default/b"},
                  "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {}, spec: {storageClassName: gold, resources: {requests: "
                  "{storage: 1Gi}}}}"},
                 {map, {"default/a", "default/b", "other/b"}, "{apiVersion: v1, kind: ConfigMap, metadata: {}}"},
                 {kinds().device_class,
                  {"gpus"},
                  "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {}, spec: {extendedResourceName: nvidia.com/gpu}}"},
                 {kinds().resource_claim,
                  {"default/c"},
                  "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {}, spec: {devices: {requests: [{name: r, exactly: "
                  "{deviceClassName: gpus, count: 2, allocationMode: ExactCount}}]}}}"}};
  world.fields = {
      {quota,
       "spec hard",
       {kHard, "{pods: '1'}", "{count/configmaps: '0', gpus.deviceclass.resource.k8s.io/devices: '1'}",
        "{requests.cpu: '1', gpus.deviceclass.resource.k8s.io/devices: '4', requests.nvidia.com/gpu: '2'}", "{}"}},
      {quota, "spec scopes", {"[Terminating]", "[NotTerminating]", "[BestEffort]", "[NotBestEffort]", "", ""}},
      {quota,
       "spec scopeSelector",
       {"{matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}",
        "{matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}", "", ""}},
      {quota, "status used", {"{pods: '9', requests.cpu: '9'}", "{pods: '0'}", ""}},
      {pod, "status phase", {"Running", "Succeeded", "Failed", "Pending"}},
      {pod, "spec activeDeadlineSeconds", {"5", "0", ""}},
      {pod, "spec priorityClassName", {"high", "low", ""}},
      {pod,
       "spec containers",
       {"[{name: c}]",
        "[{name: c, resources: {requests: {cpu: 300m, memory: 1Mi}}}, {name: d, resources: {limits: {memory: 2Gi, cpu: '1'}}}]",
        "[{name: c, resources: {requests: {cpu: 100m, nvidia.com/gpu: '1'}, limits: {nvidia.com/gpu: '1'}}}]"}},
      {pod,
       "spec initContainers",
       {"[{name: i, resources: {requests: {cpu: '1'}}}]", "[{name: i, restartPolicy: Always, resources: {requests: {cpu: 50m}}}]", ""}},
      {pod, "spec overhead", {"{cpu: 10m}", ""}},
      {service, "spec type", {"NodePort", "LoadBalancer", "ClusterIP", ""}},
      {service, "spec allocateLoadBalancerNodePorts", {"false", ""}},
      {claim, "spec resources", {"{requests: {storage: 1Gi}}", "{requests: {storage: 3Gi}}"}},
      {claim, "spec storageClassName", {"gold", "iron", ""}},
      {kinds().device_class, "spec extendedResourceName", {"nvidia.com/gpu", "other.com/gpu", ""}}};
  // What a quota says is used is what a walk over the objects finds.
  world.judge_rest = [&] {
    QuotaLedger::Stopped stopped;
    for (const std::string& key : world.keys(pod)) {
      const json::Value& one = *world.find(pod, key);
      const auto end = model::quota_stops_counting(*pod, one);
      if (end && world.now > *end) stopped.emplace(get_string(one, {"metadata", "uid"}));
    }
    for (const std::string& key : world.keys(quota)) {
      const json::Value& one = *world.find(quota, key);
      const auto [ns, name] = split_key(key);
      const ObjectRef seen = world.cache().get(quota, ns, name);
      const auto counted = QuotaLedger::recount(seen, world.cache(), stopped);
      for (const auto& [resource, amount] : counted)
        if (get_string(one, {"status", "used", resource}) != amount.to_string())
          world.wrong(fmt::format("{} says {} of {} are used, not {}", key, get_string(one, {"status", "used", resource}), resource,
                                  amount.to_string()));
      std::int64_t pods = 0;
      for (const std::string& pod_key : world.keys(pod)) {
        const json::Value& there = *world.find(pod, pod_key);
        const auto phase = get_string(there, {"status", "phase"});
        const bool counts =
            phase != "Failed" && phase != "Succeeded" && !stopped.contains(std::string(get_string(there, {"metadata", "uid"})));
        pods += split_key(pod_key).first == ns && counts;
      }
      if (json::find(one, {"spec", "hard", "pods"}) != nullptr && json::find(one, {"spec", "scopes"}) == nullptr &&
          json::find(one, {"spec", "scopeSelector"}) == nullptr && get_string(one, {"status", "used", "pods"}) != std::to_string(pods))
        world.wrong(fmt::format("{} counts {} pods, there are {}", key, get_string(one, {"status", "used", "pods"}), pods));
    }
  };
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
