// A descheduler's shell over a server that answers from tables: two nodes, of which one has a taint, and a pod on that.
#pragma once
#include <map>

#include "descheduler/descheduler.h"
#include "tests/descheduler/world.h"

namespace berth::descheduler::test {

/// Answers lists and single objects from tables and notes everything else.
class FakeTransport final : public client::Transport {
 public:
  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    if (request.method == "GET") {
      if (forbidden.contains(request.path)) return done({403, {}, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})"});
      if (const auto one = objects.find(request.path); one != objects.end()) return done({200, {}, json::serialize(one->second)});
      json::Array items;
      for (const auto& item : lists[request.path]) items.push_back(item);
      return done({200, {}, json::serialize(json::Object{{"kind", "List"}, {"metadata", json::Object{}}, {"items", std::move(items)}})});
    }
    const int status = request.path.ends_with("/eviction") ? eviction_status : 201;
    sent.push_back(request);
    if (on_sent) on_sent();
    done({status, {}, status == 201 ? "{}" : R"({"kind":"Status","message":"Cannot evict pod","code":)" + std::to_string(status) + "}"});
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest, net::StreamCallbacks) override { return nullptr; }
  void upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)>) override {}

  std::map<std::string, std::vector<json::Value>> lists;
  std::map<std::string, json::Value> objects;
  std::set<std::string> forbidden;
  std::vector<net::HttpRequest> sent;
  std::function<void()> on_sent;
  int eviction_status = 201;
};

struct Shell {
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  std::shared_ptr<metrics::Registry> metrics = std::make_shared<metrics::Registry>();
  DeschedulerOptions options;

  Shell() {
    transport->lists["/api/v1/nodes"] = {yaml("{metadata: {name: old}, spec: {taints: [{key: x, effect: NoSchedule}]}, status: "
                                              "{allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}"),
                                         yaml("{metadata: {name: new}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}")};
    transport->lists["/api/v1/pods"] = {
        yaml("{metadata: {name: a, namespace: ns, uid: u1, ownerReferences: [{kind: ReplicaSet, name: r, uid: r}]}, spec: {nodeName: old, "
             "containers: [{name: c, image: i}]}, status: {phase: Running}}")};
    options.policy = *parse_policy(
        one_plugin("RemovePodsViolatingNodeTaints", "{}", "{}", "gracePeriodSeconds: 5\nevictionFailureEventNotification: true\n"), "p");
    options.profiles.add(*placement::Framework::create(placement::default_profile(placement::Era::k136)));
    options.host = "here";
  }
  CycleResult run() {
    Descheduler descheduler(transport, options, metrics);
    return run(descheduler);
  }
  static CycleResult run(Descheduler& descheduler) {
    auto result = descheduler.run_once();
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? *result : CycleResult{};
  }
};

}  // namespace berth::descheduler::test
