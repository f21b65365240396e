// What controllers pay for a pod, however many others there are: the whole engine under a virtual clock, writes answered at once.
#include <fmt/format.h>

#include "bench/bench.h"
#include "controllers/engine.h"
#include "controllers/services.h"
#include "controllers/workloads.h"

namespace berth::bench {
namespace {

using namespace controllers;

/// Makes what is to be made and takes status patches into the objects they are about.
class PatchedApi final : public Api {
 public:
  explicit PatchedApi(VirtualLoop& loop) : loop_(loop), engine(loop, *this, {}, nullptr) {}

  void put(Kind kind, json::Value document) {
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    engine.observe(kind, std::make_shared<Object>(document), false);
  }
  void erase(Kind kind, json::Value document) {
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    engine.observe(kind, std::make_shared<Object>(document), true);
  }
  void send(const Write& write, std::function<void(ApiResult<json::Value>)> done) override {
    ++writes;
    loop_.post([this, write, done = std::move(done)] {
      if (write.verb == Write::Verb::kCreate) return done(create(write));
      const ObjectRef object = engine.cache().get(write.kind, write.ns, write.name);
      if (!object || write.verb != Write::Verb::kPatch) return done(json::Value(json::Object{}));
      json::Value document = object->document();
      json::Object status = json::get_object(document, {"status"});
      for (const auto& [key, value] : json::get_object(write.body, {"status"})) status[key] = value;
      json::set(document, {"status"}, std::move(status));
      put(write.kind, document);
      done(engine.cache().get(write.kind, write.ns, write.name)->document());
    });
  }
  void note(std::string_view, const EventNote&) override {}

  std::int64_t writes = 0;

 private:
  json::Value create(const Write& write) {
    json::Value document = write.body;
    std::string name(json::get_string(document, {"metadata", "name"}));
    if (name.empty()) name = fmt::format("{}{}", json::get_string(document, {"metadata", "generateName"}), revision_);
    json::set(document, {"metadata", "name"}, json::Value(name));
    json::set(document, {"metadata", "uid"}, json::Value(name));
    put(write.kind, document);
    return engine.cache().get(write.kind, write.ns, name)->document();
  }

  VirtualLoop& loop_;
  std::int64_t revision_ = 0;

 public:
  Engine engine;
};

/// As an API server stores it, of one of `apps` ReplicaSets.
json::Value stored_pod(const std::string& name, std::size_t app, bool is_ready) {
  const std::string owner = fmt::format("app-{}", app);
  return *json::parse(fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{0}","namespace":"team","uid":"{0}","creationTimestamp":"2026-01-05T10:00:00Z",
"labels":{{"app":"{1}","tier":"web","pod-template-hash":"5b7c"}},
"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{1}","uid":"{1}","controller":true,"blockOwnerDeletion":true}}]}},
"spec":{{"nodeName":"{2}","containers":[{{"name":"c","image":"nginx","resources":{{"requests":{{"cpu":"100m","memory":"200Mi"}}}},
"volumeMounts":[{{"name":"kube-api-access-x7k2p","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}]}}],
"volumes":[{{"name":"kube-api-access-x7k2p","projected":{{"sources":[{{"serviceAccountToken":{{"path":"token"}}}}]}}}}]}},
"status":{{"phase":"{3}","conditions":[{{"type":"Ready","status":"{4}","lastTransitionTime":"2026-01-05T10:00:00Z"}}]}}}})",
      name, owner, is_ready ? "node-1" : "", is_ready ? "Running" : "Pending", is_ready ? "True" : "False"));
}

/// One namespace with a quota and 500 budgets and Services: pods come, become ready and go beside `pods` others.
json::Object busy_namespace(const Options& options, std::size_t pods) {
  constexpr std::size_t kApps = 500;
  VirtualLoop loop(*parse_rfc3339("2026-01-05T10:00:00Z"));
  PatchedApi api(loop);
  api.engine.add(make_resource_quota_controller());
  api.engine.add(make_disruption_controller());
  api.engine.add(make_endpoints_controller());
  api.engine.add(make_endpoint_slice_controller());
  api.put(kinds().resource_quota,
          *json::parse(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"team","uid":"q"},
"spec":{"hard":{"pods":"1000000","requests.cpu":"100000","requests.memory":"1000Ti","count/pods":"1000000"}}})"));
  for (std::size_t i = 0; i < kApps; ++i) {
    api.put(
        kinds().pod_disruption_budget,
        *json::parse(fmt::format(R"({{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"b-{0}","namespace":"team",
"uid":"b-{0}","generation":1}},"spec":{{"maxUnavailable":"10%","selector":{{"matchLabels":{{"app":"app-{0}"}}}}}}}})",
                                 i)));
    api.put(kinds().replica_set,
            *json::parse(fmt::format(R"({{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{{"name":"app-{0}","namespace":"team",
"uid":"app-{0}"}},"spec":{{"replicas":{1},"selector":{{"matchLabels":{{"app":"app-{0}"}}}}}}}})",
                                     i, pods / kApps)));
  }
  for (std::size_t i = 0; i < pods; ++i) api.put(kinds().pod, stored_pod(fmt::format("old-{:06}", i), i % kApps, true));
  api.engine.start();
  loop.run_for(std::chrono::seconds(30));
  const auto changes = static_cast<std::size_t>(3000 * options.scale);
  const std::int64_t writes = api.writes;
  const double start = now_seconds();
  for (std::size_t i = 0; i < changes; ++i) {
    const std::string name = fmt::format("new-{}", i);
    for (const bool is_ready : {false, true}) {
      api.put(kinds().pod, stored_pod(name, i % kApps, is_ready));
      loop.run_for(std::chrono::milliseconds(60));
    }
    api.erase(kinds().pod, stored_pod(name, i % kApps, true));
    loop.run_for(std::chrono::milliseconds(60));
  }
  const double seconds = now_seconds() - start;
  return {{"standing_pods", pods},
          {"budgets", kApps},
          {"pods", changes},
          {"seconds", seconds},
          {"microseconds_per_pod", std::round(seconds * 1e6 / static_cast<double>(changes))},
          {"writes_per_pod", static_cast<double>(api.writes - writes) / static_cast<double>(changes)}};
}

/// One DaemonSet over `nodes` nodes: its pods become ready one after the other.
json::Object daemon_set(const Options& options, std::size_t nodes) {
  VirtualLoop loop(*parse_rfc3339("2026-01-05T10:00:00Z"));
  PatchedApi api(loop);
  api.engine.add(make_daemonset_controller());
  for (std::size_t i = 0; i < nodes; ++i)
    api.put(kinds().node,
            *json::parse(fmt::format(
                R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n-{0}","uid":"n-{0}","labels":{{"zone":"{1}"}}}}}})", i, i % 3)));
  json::Value set =
      *json::parse(R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d","namespace":"team","uid":"d","generation":1},
"spec":{"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"c","image":"i"}]}},
"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1}}}})");
  api.put(kinds().daemon_set, set);
  api.engine.start();
  loop.run_for(std::chrono::seconds(30));
  const auto turn = [&](json::Value pod, bool is_ready) {
    const json::Array terms =
        json::get_array(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    json::set(pod, {"spec", "nodeName"}, terms[0].at("matchFields").at(0).at("values").at(0));
    json::set(pod, {"status"},
              json::Object{{"phase", "Running"},
                           {"conditions", json::Array{json::Object{{"type", "Ready"},
                                                                   {"status", is_ready ? "True" : "False"},
                                                                   {"lastTransitionTime", "2026-01-05T10:00:00Z"}}}}});
    api.put(kinds().pod, std::move(pod));
  };
  std::vector<json::Value> pods;
  api.engine.cache().for_each_pod([&](const PodRef& pod) { pods.push_back(pod->object->document()); });
  if (pods.size() != nodes) return {{"error", fmt::format("{} pods on {} nodes", pods.size(), nodes)}};
  for (const json::Value& pod : pods) turn(pod, true);
  loop.run_for(std::chrono::seconds(5));
  const auto changes = static_cast<std::size_t>(2000 * options.scale);
  const double start = now_seconds();
  for (std::size_t i = 0; i < changes; ++i) {
    turn(pods[i % nodes], i / nodes % 2 == 1);
    loop.run_for(std::chrono::milliseconds(120));
  }
  const double seconds = now_seconds() - start;
  return {{"nodes", nodes},
          {"pods", changes},
          {"seconds", seconds},
          {"microseconds_per_pod", std::round(seconds * 1e6 / static_cast<double>(changes))}};
}

const Register kSmallNamespace({"ControllersNamespace/100Pods",
                                "a pod's three events through quota, 500 budgets and Endpoints, beside 100 pods",
                                [](const Options& options) { return busy_namespace(options, 100); }});
const Register kLargeNamespace({"ControllersNamespace/100000Pods", "the same beside 100,000 pods of one namespace",
                                [](const Options& options) { return busy_namespace(options, 100'000); }});
const Register kSmallDaemonSet({"ControllersDaemonSet/100Nodes", "a daemon pod's change of readiness, 100 nodes",
                                [](const Options& options) { return daemon_set(options, 100); }});
const Register kLargeDaemonSet({"ControllersDaemonSet/5000Nodes", "the same on 5,000 nodes",
                                [](const Options& options) { return daemon_set(options, 5000); }});

}  // namespace
}  // namespace berth::bench
