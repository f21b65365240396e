// Nodes, their heartbeats and pods around the node life cycle and taint eviction controllers, under a virtual clock.
#pragma once
#include "controllers/cluster.h"
#include "controllers/taints.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers::testing {

using std::chrono::minutes;
using std::chrono::seconds;

inline const TimePoint kStart = *parse_rfc3339("2026-01-05T10:00:00Z");

struct NodeWorld {
  VirtualLoop loop{kStart};
  FakeApi api{loop};
  /// `zone_of` gives each node its zone; by default two zones in turn.
  explicit NodeWorld(
      int nodes = 1, NodeLifecycleOptions options = {}, const std::function<int(int)>& zone_of = [](int node) { return node % 2; }) {
    api.engine.add(make_node_lifecycle_controller(options));
    api.engine.add(make_taint_eviction_controller());
    for (int i = 0; i < nodes; ++i) {
      api.put(kinds().node,
              yaml(fmt::format(
                  "{{apiVersion: v1, kind: Node, metadata: {{name: n{}, labels: {{topology.kubernetes.io/zone: z{}}}}}, spec: {{}}, "
                  "status: {{conditions: [{{type: Ready, status: 'True', reason: KubeletReady}}]}}}}",
                  i, zone_of(i))));
      beat(i);
    }
    api.engine.start();
  }
  void beat(int node) {
    api.put(kinds().lease, yaml(fmt::format("{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: n{}, namespace: "
                                            "kube-node-lease}}, spec: {{renewTime: '{}'}}}}",
                                            node, format_rfc3339_micro(loop.now()))));
  }
  /// Lets time pass while the first `alive` nodes send heartbeats.
  void run(Duration d, int alive) {
    const TimePoint end = loop.now() + d;
    while (loop.now() < end) {
      for (int i = 0; i < alive; ++i) beat(i);
      loop.run_for(std::min<Duration>(seconds(10), end - loop.now()));
    }
  }
  bool has_taint(const std::string& node, const char* key, const char* effect) const {
    for (const Taint& taint : node_taints(api.get(kinds().node, node)))
      if (taint.key == key && taint.effect == effect) return true;
    return false;
  }
  void put_pod(const std::string& name, const std::string& node, const std::string& tolerations) {
    api.put(kinds().pod, yaml(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{nodeName: {}, tolerations: {}}}, "
                                          "status: {{phase: Running, conditions: [{{type: Ready, status: 'True'}}]}}}}",
                                          name, node, tolerations)));
  }
  bool has_pod(const std::string& name) const { return !api.get(kinds().pod, name).is_null(); }
  void put_condition(const std::string& node, const char* type, const char* status) {
    json::Value document = api.get(kinds().node, node);
    json::Array conditions = json::get_array(document, {"status", "conditions"});
    remove_condition(conditions, type);
    conditions.push_back(
        json::Object{{"type", type}, {"status", status}, {"reason", "Said"}, {"lastHeartbeatTime", format_rfc3339(loop.now())}});
    json::set(document, {"status", "conditions"}, std::move(conditions));
    api.put(kinds().node, document);
  }
  /// When each node got its NoExecute taint, in order of time.
  std::vector<TimePoint> eviction_times() const {
    std::vector<TimePoint> times;
    for (const json::Value& node : api.all(kinds().node))
      for (const Taint& taint : node_taints(node))
        if (taint.effect == "NoExecute") times.push_back(taint.time_added);
    std::ranges::sort(times);
    return times;
  }
  void taint(const std::string& list) {
    json::Value node = api.get(kinds().node, "n0");
    json::set(node, {"spec", "taints"}, yaml(list));
    api.put(kinds().node, node);
  }
};

}  // namespace berth::controllers::testing
