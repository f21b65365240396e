// Pods leave nodes with NoExecute taints (pkg/controller/tainteviction, SPEC D2): at once without a toleration, after the smallest
// tolerationSeconds with one, never when the tolerations used have none. A key is a pod. The clock of a toleration starts when its taint
// came or the pod came to the node, whichever is later: when the controller saw it, by its own clock; for what was there before the
// controller, by the times written down (timeAdded, PodScheduled), so that a restart does not start it anew. Where somebody set a taint
// without timeAdded and a pod's clock runs for it, the controller writes down when it saw the taint: key "/NODE".
#include "controllers/cluster.h"
#include "controllers/common.h"
#include "controllers/taints.h"

namespace berth::controllers {
namespace {

class TaintEvictionController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "taint-eviction-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().node, kinds().pod}; }
  [[nodiscard]] int concurrency() const override { return 256; }
  void on_event(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) override;
  void on_start(const Cache&, TimePoint, KeySink&) override { is_live_ = true; }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.verb == Write::Verb::kDelete && (result || result.error().code == 404)) marked_[key] = write.uid;
  }

 private:
  std::unordered_map<std::string, std::vector<Taint>> tainted_;  ///< NoExecute taints of the nodes that have any; time_added: their start.
  std::unordered_set<std::string> scheduled_;                    ///< Pods with a running timer.
  std::unordered_map<std::string, TimePoint> arrived_;           ///< Pods that were seen to come to a tainted node.
  bool is_live_ = false;                                         ///< What comes now, came now.
  std::unordered_set<std::string> undated_;                      ///< Nodes with a NoExecute taint whose object lacks timeAdded.

  std::map<std::string, EventNote> cancelled_;           ///< Of pods that went before their time, not told yet.
  std::unordered_map<std::string, std::string> marked_;  ///< Uids of pods that were told to go: once is enough.

  static EventNote cancellation(const Object& pod) {
    return note_about(kinds().pod, pod, "Normal", "TaintManagerEviction", "Cancelling deletion of Pod " + pod.key());
  }
  Plan date_taints(const std::string& name, const Cache& cache) const;
};

void TaintEvictionController::on_event(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) {
  if (event.kind == kinds().pod) {
    if (!event.after) {
      const std::string key = event.before->key();
      if (scheduled_.erase(key) > 0) {
        cancelled_.emplace(key, cancellation(*event.before));
        sink.add(key);
      }
      arrived_.erase(key);
      marked_.erase(key);
      return;
    }
    const bool came = !event.pod_after->node.empty() && (!event.pod_before || event.pod_before->node.empty());
    if (came && is_live_ && tainted_.contains(event.pod_after->node)) arrived_[event.after->key()] = now;
    if (event.pod_after->node.empty() || (!tainted_.contains(event.pod_after->node) && !scheduled_.contains(event.after->key()))) return;
    sink.add(event.after->key());
    return;
  }
  const std::string& name = event.object().name();
  std::vector<Taint> taints;
  // Most nodes have no such taint: the parse is spared by a look at the bytes.
  if (event.after && event.after->text()->find("NoExecute") != std::string::npos) taints = node_taints(*event.after->parsed());
  std::erase_if(taints, [](const Taint& taint) { return taint.effect != "NoExecute"; });
  const auto known = tainted_.find(name);
  if (std::ranges::any_of(taints, [](const Taint& taint) { return taint.time_added == TimePoint{}; }))
    undated_.insert(name);
  else
    undated_.erase(name);
  if (taints.empty() && known == tainted_.end()) return;
  for (Taint& taint : taints) {
    // Another clock may be ahead: nothing that is there can have come later than now.
    if (is_live_ || taint.time_added == TimePoint{} || taint.time_added > now) taint.time_added = now;
    if (known == tainted_.end()) continue;
    for (const Taint& old : known->second)
      if (old.matches(taint)) taint.time_added = old.time_added;
  }
  if (known != tainted_.end() && known->second == taints) return;
  if (taints.empty())
    tainted_.erase(known);
  else
    tainted_[name] = std::move(taints);
  for (const PodRef& pod : cache.pods_on(name)) sink.add(pod->object->key());
}

/// When the pod must go: a time in the past for at once, nullopt for never.
std::optional<TimePoint> eviction_time(const PodInfo& pod, const std::vector<Taint>& taints, std::optional<TimePoint> seen_to_arrive) {
  std::optional<TimePoint> earliest;
  const TimePoint arrived = seen_to_arrive ? *seen_to_arrive : pod.scheduled_since != TimePoint{} ? pod.scheduled_since : pod.created;
  for (const Taint& taint : taints) {
    const auto& tolerations = pod.no_execute_tolerations;
    const auto used =
        std::find_if(tolerations.begin(), tolerations.end(), [&](const Toleration& toleration) { return tolerates(toleration, taint); });
    if (used == tolerations.end()) return TimePoint{};
    if (!used->seconds) continue;
    const TimePoint when =
        std::max(taint.time_added, arrived) + std::chrono::seconds(std::clamp<std::int64_t>(*used->seconds, 0, 1'000'000'000));
    if (!earliest || when < *earliest) earliest = when;
  }
  return earliest;
}

Plan TaintEvictionController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  if (key.starts_with('/')) return date_taints(key.substr(1), cache);
  Plan plan;
  const auto [ns, name] = split_key(key);
  const PodRef pod = cache.pod(ns, name);
  if (const auto cancelled = cancelled_.find(key); cancelled != cancelled_.end()) {
    plan.events.push_back(std::move(cancelled->second));
    cancelled_.erase(cancelled);
  }
  if (!pod) {
    marked_.erase(key);
    return plan;
  }
  const auto tainted = tainted_.find(pod->node);
  const auto seen = arrived_.find(key);
  const auto when = tainted == tainted_.end()
                        ? std::nullopt
                        : eviction_time(*pod, tainted->second, seen == arrived_.end() ? std::nullopt : std::optional(seen->second));
  if (!when) {
    marked_.erase(key);
    if (scheduled_.erase(key) > 0) plan.events.push_back(cancellation(*pod->object));
    return plan;
  }
  if (const auto told = marked_.find(key); told != marked_.end() && told->second == pod->object->uid()) return plan;
  if (*when > now) {
    scheduled_.insert(key);
    if (undated_.contains(pod->node)) plan.enqueue.push_back("/" + pod->node);
    plan.requeue_after = *when - now;
    return plan;
  }
  scheduled_.erase(key);
  plan.events.push_back(note_about(kinds().pod, *pod->object, "Normal", "TaintManagerEviction", "Marking for deletion Pod " + key));
  plan_disruption(*pod->object, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now, plan);
  return plan;
}

Plan TaintEvictionController::date_taints(const std::string& name, const Cache& cache) const {
  Plan plan;
  const ObjectRef node = cache.get(kinds().node, "", name);
  const auto known = tainted_.find(name);
  if (!node || known == tainted_.end() || !undated_.contains(name)) return plan;
  json::Array taints = json::get_array(*node->parsed(), {"spec", "taints"});
  for (json::Value& taint : taints) {
    if (json::get_string(taint, {"effect"}) != "NoExecute" || !json::get_string(taint, {"timeAdded"}).empty()) continue;
    for (const Taint& seen : known->second)
      if (seen.key == json::get_string(taint, {"key"})) taint.get_object()["timeAdded"] = format_rfc3339(seen.time_added);
  }
  plan.writes.push_back(patch_object(kinds().node, *node, {{"spec", json::Object{{"taints", std::move(taints)}}}}));
  return plan;
}

}  // namespace

ControllerPtr make_taint_eviction_controller() { return std::make_unique<TaintEvictionController>(); }

}  // namespace berth::controllers
