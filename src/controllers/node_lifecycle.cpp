// The life of nodes (pkg/controller/nodelifecycle): heartbeats by Lease and status, Ready=Unknown after the grace period, conditions into
// taints, NoExecute taints at the zone's rate. Keys: "node/NAME", "zones" (health of the zones, periodic), "evict" (the rate-limited
// queue).
#include "base/json_scan.h"
#include "controllers/cluster.h"
#include "controllers/common.h"
#include "controllers/taints.h"
#include "controllers/zones.h"
#include "model/topology_labels.h"

namespace berth::controllers {
namespace {

constexpr const char* kLeaseNamespace = "kube-node-lease";
/// On the Lease of a simulated node (node/simulated/fleet.h, kHeartbeatsAnnotation): "steady" or "ended 3s ago".
constexpr std::string_view kHeartbeats = "sim.berth.dev/heartbeats";
constexpr const char* kNoSchedule = "NoSchedule";
constexpr const char* kNoExecute = "NoExecute";
/// Nodes with this label do not count for their zone's health.
constexpr const char* kExcludeFromDisruption = "node.kubernetes.io/exclude-disruption";

struct ConditionTaint {
  const char *condition, *status, *taint;
};
constexpr std::array<ConditionTaint, 6> kConditionTaints = {{{"Ready", "False", kTaintNotReady},
                                                             {"Ready", "Unknown", kTaintUnreachable},
                                                             {"MemoryPressure", "True", kTaintMemoryPressure},
                                                             {"DiskPressure", "True", kTaintDiskPressure},
                                                             {"NetworkUnavailable", "True", kTaintNetworkUnavailable},
                                                             {"PIDPressure", "True", kTaintPidPressure}}};
/// Old label names that are kept equal to the present ones. Those of zone and region only where both are there: who registers a node gives
/// it both (model/topology_labels.h); on other nodes nobody asked for the old ones.
struct TwinLabels {
  std::string_view present, old;
  bool makes_old;
};
constexpr std::array<TwinLabels, 4> kTwinLabels = {{{"kubernetes.io/os", "beta.kubernetes.io/os", true},
                                                    {"kubernetes.io/arch", "beta.kubernetes.io/arch", true},
                                                    {model::kRegionLabel.present, model::kRegionLabel.old, false},
                                                    {model::kZoneLabel.present, model::kZoneLabel.old, false}}};

class NodeLifecycleController final : public Controller {
 public:
  explicit NodeLifecycleController(NodeLifecycleOptions options) : options_(options), zones_(options) {}
  [[nodiscard]] std::string_view name() const override { return "node-lifecycle-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "node-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().node, kinds().lease, kinds().pod}; }
  [[nodiscard]] bool counts_heartbeats() const override { return true; }
  [[nodiscard]] int concurrency() const override { return 128; }
  void on_event(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) override;
  void on_start(const Cache&, TimePoint, KeySink& sink) override { sink.add("zones"); }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string&, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.tag != "evict") return;
    if (result || result.error().code == 404)
      zones_.remove(write.name);
    else
      zones_.put_back(write.name);
  }

 private:
  /// What was seen of a node's signs of life, by our own clock: a node's clock may be wrong.
  struct Health {
    bool is_steady = false;  ///< Its Lease counts as renewed until it says otherwise (kHeartbeats).
    TimePoint probed{};      ///< When the last sign of life came.
    std::string heartbeat;   ///< Ready's lastHeartbeatTime.
    std::string renewed;     ///< The Lease's renewTime.
    std::string ready = "";  ///< Ready's status; empty: no such condition.
    std::string zone;
    bool counted = false;                 ///< In the zone's counts.
    bool registered = false;              ///< RegisteredNode was recorded.
    bool pods_marked = false;             ///< Its pods were marked not Ready since it fell silent.
    bool fell_silent = false;             ///< We turned it from Ready to Unknown, and have not told of it yet.
    std::optional<std::int64_t> settled;  ///< The revision of a ready node about which there was nothing to do.
  };
  void take_turn(TimePoint now);
  void see_node(const Event& event, TimePoint now, KeySink& sink);
  void see_heartbeat(const Event& event, TimePoint now, KeySink& sink);
  void see_lease(const Object& lease, TimePoint now, KeySink& sink);
  void count(const Health& health, int sign);
  void update_zones(Plan& plan, TimePoint now, const Cache& cache);
  Plan look_at_node(const std::string& name, TimePoint now, const Cache& cache);
  Plan look_at_zones(TimePoint now, const Cache& cache);
  Plan evict(TimePoint now, const Cache& cache);
  void mark_unknown(Plan& plan, const Object& node, const json::Value& document, TimePoint now) const;
  std::optional<Write> fix_taints(const Object& node, const json::Value& document, Health& health, Plan& plan, TimePoint now);
  void mark_pods(Plan& plan, const std::string& name, const Cache& cache, TimePoint now) const;

  NodeLifecycleOptions options_;
  Zones zones_;
  std::unordered_map<std::string, Health> nodes_;
  std::map<std::string, Zones::Counts> counts_;  ///< By zone, kept as nodes change.
  TimePoint last_turn_{};                        ///< At most a monitor period ago, unless this process stood still.
};

std::string zone_of(const model::Labels& labels) {
  const auto label = [&](const model::LabelGenerations& keys) -> std::string {
    if (const std::string* value = labels.get(keys.present)) return *value;
    if (const std::string* value = labels.get(keys.old)) return *value;
    return {};
  };
  return label(model::kRegionLabel) + ":" + label(model::kZoneLabel);
}

json::Object taint_json(const char* key, const char* effect, TimePoint now) {
  return {{"key", key}, {"effect", effect}, {"timeAdded", format_rfc3339(now)}};
}

bool is_taint(const json::Value& taint, std::string_view key, std::string_view effect) {
  return json::get_string(taint, {"key"}) == key && json::get_string(taint, {"effect"}) == effect;
}

bool has_taint(const json::Array& taints, std::string_view key, std::string_view effect) {
  return std::any_of(taints.begin(), taints.end(), [&](const json::Value& taint) { return is_taint(taint, key, effect); });
}

void drop_taint(json::Array& taints, std::string_view key, std::string_view effect) {
  for (auto it = taints.begin(); it != taints.end();) it = is_taint(*it, key, effect) ? taints.erase(it) : it + 1;
}

Write patch_taints(const Object& node, json::Array taints) {
  json::Value value = taints.empty() ? json::Value(nullptr) : json::Value(std::move(taints));
  return patch_object(kinds().node, node, {{"spec", json::Object{{"taints", std::move(value)}}}});
}

/// The taints that a node's conditions and spec.unschedulable ask for, with the effect NoSchedule.
std::set<std::string> wanted_taints(const json::Value& document) {
  std::set<std::string> wanted;
  for (const ConditionTaint& entry : kConditionTaints)
    if (condition_status(document, entry.condition) == entry.status) wanted.insert(entry.taint);
  if (json::get_bool(document, {"spec", "unschedulable"})) wanted.insert(kTaintUnschedulable);
  return wanted;
}

/// A machine that slept, a process that was stopped or had no turn for long: what nodes said meanwhile waits to be read, or they slept too.
/// Time in which nobody listened is nobody's silence.
void NodeLifecycleController::take_turn(TimePoint now) {
  const TimePoint before = std::exchange(last_turn_, now);
  if (before == TimePoint{} || now - before <= 2 * options_.monitor_period) return;
  for (auto& [name, health] : nodes_) health.probed += now - before;
}

void NodeLifecycleController::on_event(const Event& event, const Cache&, TimePoint now, KeySink& sink) {
  take_turn(now);
  if (event.kind == kinds().node) {
    event.is_heartbeat ? see_heartbeat(event, now, sink) : see_node(event, now, sink);
  } else if (event.kind == kinds().lease && event.after && event.after->ns() == kLeaseNamespace) {
    see_lease(*event.after, now, sink);
  }
}

/// Of each node's Lease in every ten seconds: what counts, out of the bytes.
struct Heartbeat {
  std::string renewed, heartbeats;  ///< spec.renewTime, and the annotation kHeartbeats.
};
Heartbeat read_lease(const Object& lease) {
  static const json::PathScanner scanner({"spec.renewTime", "metadata.annotations"});
  std::array<std::string_view, 2> raw;
  const HeldText text = lease.text();
  Heartbeat out;
  if (!scanner.scan(*text, raw)) return out;
  out.renewed = json::unquote(raw[0]);
  json::for_each_member(raw[1], [&](std::string_view key, std::string_view value) {
    if (json::unquote(key) == kHeartbeats) out.heartbeats = json::unquote(value);
  });
  return out;
}

void NodeLifecycleController::see_lease(const Object& lease, TimePoint now, KeySink& sink) {
  const auto [renewed, heartbeats] = read_lease(lease);
  Health& health = nodes_[lease.name()];
  if (renewed != health.renewed) health.probed = now;
  health.renewed = renewed;
  const bool was_steady = std::exchange(health.is_steady, heartbeats == "steady");
  if (!was_steady || health.is_steady) return;
  // "ended 3s ago": by our own clock, as if each of its heartbeats had been seen.
  if (heartbeats.starts_with("ended ") && heartbeats.ends_with(" ago"))
    health.probed = now - parse_go_duration(std::string_view(heartbeats).substr(6, heartbeats.size() - 10)).value_or(Duration{0});
  sink.add("node/" + lease.name());
}

void NodeLifecycleController::see_node(const Event& event, TimePoint now, KeySink& sink) {
  const std::string& name = event.object().name();
  if (!event.after) {
    if (const auto it = nodes_.find(name); it != nodes_.end()) count(it->second, -1);
    nodes_.erase(name);
    zones_.remove(name);
    sink.add("node/" + name);
    return;
  }
  const auto parsed = event.after->parsed();
  const json::Value& document = *parsed;
  Health& health = nodes_[name];
  count(health, -1);
  health.zone = zone_of(event.after->labels());
  const json::Value* ready = find_condition(document, "Ready");
  std::string heartbeat(ready == nullptr ? std::string_view{} : json::get_string(*ready, {"lastHeartbeatTime"}));
  health.ready = ready == nullptr ? std::string_view{} : json::get_string(*ready, {"status"});
  if (health.probed == TimePoint{})
    health.probed = ready == nullptr ? read_time(document, {"metadata", "creationTimestamp"}) : now;
  else if (heartbeat != health.heartbeat)
    health.probed = now;
  health.heartbeat = std::move(heartbeat);
  if (health.ready != "Unknown") health.pods_marked = false;
  health.counted = event.after->labels().get(kExcludeFromDisruption) == nullptr;
  count(health, 1);
  sink.add("node/" + name);
}

/// lastHeartbeatTime of the Ready condition, out of the bytes; empty where there is none.
std::string read_heartbeat(const Object& node) {
  static const json::PathScanner conditions({"status.conditions"}), members({"type", "lastHeartbeatTime"});
  std::string_view all;
  std::string out;
  const HeldText text = node.text();
  if (conditions.scan(*text, {&all, 1}))
    json::for_each_element(all, [&](std::string_view condition) {
      std::array<std::string_view, 2> raw;
      if (members.scan(condition, raw) && raw[0] == R"("Ready")") out = json::unquote(raw[1]);
    });
  return out;
}

void NodeLifecycleController::see_heartbeat(const Event& event, TimePoint now, KeySink& sink) {
  const std::string& name = event.after->name();
  Health& health = nodes_[name];
  std::string heartbeat = read_heartbeat(*event.after);
  if (heartbeat != health.heartbeat) health.probed = now;
  health.heartbeat = std::move(heartbeat);
  if (health.settled == event.before->revision())
    health.settled = event.after->revision();
  else
    sink.add("node/" + name);
}

void NodeLifecycleController::count(const Health& health, int sign) {
  if (!health.counted) return;
  Zones::Counts& zone = counts_[health.zone];
  (health.ready == "True" ? zone.ready : zone.not_ready) += sign;
  if (zone.ready == 0 && zone.not_ready == 0) counts_.erase(health.zone);
}

Plan NodeLifecycleController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  take_turn(now);
  if (key == "zones") return look_at_zones(now, cache);
  if (key == "evict") return evict(now, cache);
  return look_at_node(key.substr(5), now, cache);
}

Plan NodeLifecycleController::look_at_node(const std::string& name, TimePoint now, const Cache& cache) {
  Plan plan;
  const ObjectRef node = cache.get(kinds().node, "", name);
  if (!node) {
    EventNote note{"v1",     "Node",         "",
                   name,     name,           "",
                   "Normal", "RemovingNode", fmt::format("Node {} event: Removing Node {} from Controller", name, name)};
    plan.events.push_back(std::move(note));
    return plan;
  }
  Health& health = nodes_[name];
  if (!health.registered) {
    health.registered = true;
    plan.events.push_back(note_about(kinds().node, *node, "Normal", "RegisteredNode",
                                     fmt::format("Node {} event: Registered Node {} in Controller", name, name)));
  }
  const Duration grace = health.ready.empty() ? options_.startup_grace_period : options_.monitor_grace_period;
  const TimePoint lost_at = health.probed + grace;
  // One that is steady is neither lost nor to be looked at again before it says so.
  const bool is_lost = !health.is_steady && now > lost_at;
  if (!health.is_steady && !is_lost) plan.requeue_after = lost_at - now + std::chrono::milliseconds(1);
  if (!is_lost && health.settled == node->revision()) return plan;
  const auto parsed = node->parsed();
  const json::Value& document = *parsed;
  if (is_lost) {
    mark_unknown(plan, *node, document, now);
    if (!plan.writes.empty()) {
      health.fell_silent |= health.ready == "True";
      return plan;  // Taints follow when the conditions are there.
    }
  }
  if (auto write = fix_taints(*node, document, health, plan, now)) plan.writes.push_back(std::move(*write));
  json::Object labels;
  for (const auto& [present, old, makes_old] : kTwinLabels) {
    const std::string *value = node->labels().get(present), *copy = node->labels().get(old);
    if (value != nullptr && (copy == nullptr ? makes_old : *copy != *value)) labels[old] = *value;
  }
  if (!labels.empty() && plan.writes.empty())
    plan.writes.push_back(patch_object(kinds().node, *node, {{"metadata", json::Object{{"labels", std::move(labels)}}}}));
  // A kubelet that says itself that it is not ready still speaks for its pods; only for a silent one the control plane does.
  if (health.ready == "Unknown" && !health.pods_marked) {
    health.pods_marked = true;
    if (std::exchange(health.fell_silent, false))
      plan.events.push_back(
          note_about(kinds().node, *node, "Normal", "NodeNotReady", fmt::format("Node {} status is now: NodeNotReady", name)));
    mark_pods(plan, name, cache, now);
  }
  health.settled.reset();
  if (health.ready == "True" && plan.writes.empty()) health.settled = node->revision();
  return plan;
}

void NodeLifecycleController::mark_unknown(Plan& plan, const Object& node, const json::Value& document, TimePoint now) const {
  json::Array conditions = json::get_array(document, {"status", "conditions"});
  bool changed = false;
  for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
    const json::Value* present = find_condition(document, type);
    if (present == nullptr) {
      conditions.push_back(json::Object{{"type", type},
                                        {"status", "Unknown"},
                                        {"reason", "NodeStatusNeverUpdated"},
                                        {"message", "Kubelet never posted node status."},
                                        {"lastHeartbeatTime", json::get_string(document, {"metadata", "creationTimestamp"})},
                                        {"lastTransitionTime", format_rfc3339(now)}});
      changed = true;
    } else if (json::get_string(*present, {"status"}) != "Unknown") {
      changed |= set_condition(conditions, {type, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."}, now);
      for (json::Value& condition : conditions)
        if (json::get_string(condition, {"type"}) == type)
          if (const json::Value* heartbeat = json::find(*present, "lastHeartbeatTime"))
            condition.get_object()["lastHeartbeatTime"] = *heartbeat;
    }
  }
  if (!changed) return;
  Write write = patch_object(kinds().node, node, {{"status", json::Object{{"conditions", std::move(conditions)}}}});
  write.subresource = "status";
  plan.writes.push_back(std::move(write));
}

/// One patch for all taints that may change at once; a NoExecute taint that needs its turn is queued.
std::optional<Write> NodeLifecycleController::fix_taints(const Object& node, const json::Value& document, Health& health, Plan& plan,
                                                         TimePoint now) {
  const json::Array before = json::get_array(document, {"spec", "taints"});
  json::Array taints = before;
  const std::set<std::string> wanted = wanted_taints(document);
  for (const char* key : {kTaintNotReady, kTaintUnreachable, kTaintMemoryPressure, kTaintDiskPressure, kTaintNetworkUnavailable,
                          kTaintPidPressure, kTaintUnschedulable}) {
    const bool present = has_taint(taints, key, kNoSchedule);
    if (wanted.contains(key) && !present) taints.push_back(taint_json(key, kNoSchedule, now));
    if (!wanted.contains(key) && present) drop_taint(taints, key, kNoSchedule);
  }
  const char* key = health.ready == "False" ? kTaintNotReady : health.ready == "Unknown" ? kTaintUnreachable : nullptr;
  if (health.ready == "True" || (zones_.all_down() && key != nullptr)) {
    drop_taint(taints, kTaintNotReady, kNoExecute);
    drop_taint(taints, kTaintUnreachable, kNoExecute);
    zones_.remove(node.name());
  } else if (key != nullptr) {
    const char* other = key == kTaintNotReady ? kTaintUnreachable : kTaintNotReady;
    if (has_taint(taints, other, kNoExecute)) {
      // It had its turn already; only the reason changed.
      drop_taint(taints, other, kNoExecute);
      if (!has_taint(taints, key, kNoExecute)) taints.push_back(taint_json(key, kNoExecute, now));
    } else if (!has_taint(taints, key, kNoExecute)) {
      zones_.add(health.zone, node.name());
      plan.enqueue.emplace_back("evict");
    }
  }
  if (json::equal(json::Value(before), json::Value(taints))) return std::nullopt;
  return patch_taints(node, std::move(taints));
}

void NodeLifecycleController::mark_pods(Plan& plan, const std::string& name, const Cache& cache, TimePoint now) const {
  for (const PodRef& pod : cache.pods_on(name)) {
    if (!pod->ready || pod->deleting) continue;
    json::Array conditions{json::Object{{"type", "Ready"}, {"status", "False"}, {"lastTransitionTime", format_rfc3339(now)}}};
    Write write = patch_object(kinds().pod, *pod->object, {{"status", json::Object{{"conditions", std::move(conditions)}}}}, false);
    write.patch_type = PatchType::kStrategicMerge;
    write.subresource = "status";
    write.may_fail = true;
    write.stage = 1;
    plan.writes.push_back(std::move(write));
    plan.events.push_back(note_about(kinds().pod, *pod->object, "Warning", "NodeNotReady", "Node is not ready"));
  }
}

Plan NodeLifecycleController::look_at_zones(TimePoint now, const Cache& cache) {
  Plan plan;
  plan.requeue_after = options_.monitor_period;
  update_zones(plan, now, cache);
  plan.enqueue.emplace_back("evict");
  return plan;
}

void NodeLifecycleController::update_zones(Plan& plan, TimePoint now, const Cache& cache) {
  const Zones::Transition change = zones_.update(counts_, now);
  if (change == Zones::Transition::kNone) return;
  cache.for_each(kinds().node, [&](const ObjectRef& node) {
    // After all were down it is unknown who is alive: everybody gets a full grace period.
    if (change == Zones::Transition::kRecovered) nodes_[node->name()].probed = now;
    plan.enqueue.push_back("node/" + node->name());
  });
}

Plan NodeLifecycleController::evict(TimePoint now, const Cache& cache) {
  Plan plan;
  update_zones(plan, now, cache);
  for (const std::string& name : zones_.take(now)) {
    const ObjectRef node = cache.get(kinds().node, "", name);
    const std::string& ready = nodes_[name].ready;
    const char* key = ready == "False" ? kTaintNotReady : ready == "Unknown" ? kTaintUnreachable : nullptr;
    if (!node || key == nullptr) {
      zones_.remove(name);
      continue;
    }
    json::Array taints = json::get_array(*node->parsed(), {"spec", "taints"});
    if (has_taint(taints, key, kNoExecute)) {
      zones_.remove(name);
      continue;
    }
    drop_taint(taints, key == kTaintNotReady ? kTaintUnreachable : kTaintNotReady, kNoExecute);
    taints.push_back(taint_json(key, kNoExecute, now));
    Write write = patch_taints(*node, std::move(taints));
    write.tag = "evict";
    plan.writes.push_back(std::move(write));
  }
  plan.requeue_after = zones_.next(now);
  if (plan.requeue_after) plan.requeue_after = std::max<Duration>(*plan.requeue_after, std::chrono::milliseconds(100));
  return plan;
}

}  // namespace

ControllerPtr make_node_lifecycle_controller(NodeLifecycleOptions options) { return std::make_unique<NodeLifecycleController>(options); }

}  // namespace berth::controllers
