// Pods that nobody else removes (pkg/controller/podgc): on nodes that are no more, terminating without ever having had a node, on nodes out
// of service, and finished ones beyond a threshold. One key, looked at periodically.
#include "controllers/cluster.h"
#include "controllers/common.h"
#include "controllers/taints.h"

namespace berth::controllers {
namespace {

class PodGarbageCollector final : public Controller {
 public:
  explicit PodGarbageCollector(PodGarbageCollectorOptions options) : options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "pod-garbage-collector-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().pod, kinds().node}; }
  void on_event(const Event& event, const Cache& cache, TimePoint now, KeySink&) override {
    if (event.kind == kinds().pod) return see_pod(event, cache);
    const std::string& name = event.object().name();
    suspects_.erase(name);
    if (!event.after) {
      missing_since_[name] = now;
      homeless_.insert(name);
    } else {
      missing_since_.erase(name);
      confirmed_.erase(name);
      homeless_.erase(name);
      if (event.after->text()->find("node.kubernetes.io/out-of-service") != std::string::npos) suspects_.insert(name);
    }
  }
  void on_start(const Cache&, TimePoint, KeySink& sink) override { sink.add("gc"); }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string&, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.verb == Write::Verb::kGet && !result && result.error().code == 404) confirmed_.insert(write.name);
  }

 private:
  void see_pod(const Event& event, const Cache& cache) {
    finished_ -= event.pod_before && event.pod_before->is_finished();
    finished_ += event.pod_after && event.pod_after->is_finished();
    if (event.pod_after && !event.pod_after->node.empty() && !cache.get(kinds().node, "", event.pod_after->node))
      homeless_.insert(event.pod_after->node);
  }
  void remove(Plan& plan, const PodInfo& pod, std::string_view why, TimePoint now) const;
  void collect_orphans(Plan& plan, const Cache& cache, TimePoint now);
  void collect_finished(Plan& plan, const Cache& cache, TimePoint now) const;

  PodGarbageCollectorOptions options_;
  // Kept as objects change: a look at everything, every period, costs more than all that is ever found.
  std::set<std::string> suspects_;                  ///< Nodes whose objects mention the out-of-service taint.
  std::set<std::string> homeless_;                  ///< Nodes that the cache does not have and that pods may name.
  std::int64_t finished_ = 0;                       ///< Pods that have ended.
  std::map<std::string, TimePoint> missing_since_;  ///< Nodes named by pods that the cache does not have.
  std::set<std::string> confirmed_;                 ///< Of those, the ones the server does not have either.
};

Plan PodGarbageCollector::reconcile(const std::string&, TimePoint now, const Cache& cache) {
  Plan plan;
  plan.requeue_after = options_.period;
  collect_orphans(plan, cache, now);
  std::set<std::string> out_of_service;
  for (const std::string& name : suspects_) {
    const ObjectRef node = cache.get(kinds().node, "", name);
    if (!node) continue;
    const auto parsed = node->parsed();
    const json::Value& document = *parsed;
    if (condition_status(document, "Ready") == "True") continue;
    for (const Taint& taint : node_taints(document))
      if (taint.key == "node.kubernetes.io/out-of-service") out_of_service.insert(name);
  }
  for (const std::string& node : out_of_service)
    for (const PodRef& pod : cache.pods_on(node))
      if (pod->deleting) remove(plan, *pod, "PodGC: node is out of service", now);
  for (const PodRef& pod : cache.pods_on(""))
    if (pod->deleting) remove(plan, *pod, "", now);
  collect_finished(plan, cache, now);
  return plan;
}

void PodGarbageCollector::collect_orphans(Plan& plan, const Cache& cache, TimePoint now) {
  std::erase_if(homeless_, [&](const std::string& node) { return cache.pods_on(node).empty(); });
  for (const std::string& node : homeless_) missing_since_.emplace(node, now);
  std::erase_if(missing_since_, [&](const auto& entry) { return !homeless_.contains(entry.first); });
  std::erase_if(confirmed_, [&](const std::string& node) { return !homeless_.contains(node); });  // Asked about again, should one come.
  for (const auto& [name, since] : missing_since_) {
    const Duration left = since + options_.quarantine - now;
    if (left > Duration{0}) {
      plan.requeue_after = std::min(*plan.requeue_after, left);
      continue;
    }
    if (!confirmed_.contains(name)) {
      Write write;
      write.verb = Write::Verb::kGet;
      write.kind = kinds().node;
      write.name = name;
      write.may_fail = true;
      plan.writes.push_back(std::move(write));
      plan.requeue_after = std::min<Duration>(*plan.requeue_after, std::chrono::milliseconds(10));
      continue;
    }
    for (const PodRef& pod : cache.pods_on(name)) remove(plan, *pod, "PodGC: node no longer exists", now);
  }
}

void PodGarbageCollector::collect_finished(Plan& plan, const Cache& cache, TimePoint now) const {
  if (options_.terminated_pod_threshold <= 0 || finished_ <= options_.terminated_pod_threshold) return;
  std::vector<PodRef> finished;
  cache.for_each_pod([&](const PodRef& pod) {
    if (pod->is_finished()) finished.push_back(pod);
  });
  const std::int64_t surplus = static_cast<std::int64_t>(finished.size()) - options_.terminated_pod_threshold;
  if (surplus <= 0) return;
  const auto is_evicted = [](const PodRef& pod) {
    return pod->object->text()->find("Evicted") != std::string::npos &&
           json::get_string(*pod->object->parsed(), {"status", "reason"}) == "Evicted";
  };
  std::vector<std::tuple<bool, TimePoint, std::string_view, PodRef>> order;  // The evicted go first, then the oldest.
  for (const PodRef& pod : finished) order.emplace_back(!is_evicted(pod), pod->created, pod->name(), pod);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) < std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });
  std::ranges::transform(order, finished.begin(), [](const auto& entry) { return std::get<3>(entry); });
  for (std::int64_t i = 0; i < surplus; ++i)
    if (!finished[static_cast<std::size_t>(i)]->deleting) remove(plan, *finished[static_cast<std::size_t>(i)], "", now);
}

/// Marks the pod Failed where it is not finished, then removes it without grace: nobody is there to confirm its end.
void PodGarbageCollector::remove(Plan& plan, const PodInfo& pod, std::string_view why, TimePoint now) const {
  if (plan.is_full()) return;
  json::Object status;
  const std::int64_t generation = pod.is_finished() ? 0 : json::get_int(*pod.object->parsed(), {"metadata", "generation"});
  if (!pod.is_finished()) status = json::Object{{"phase", "Failed"}, {"observedGeneration", generation}};
  if (!why.empty() && !pod.is_finished())
    status["conditions"] = json::Array{json::Object{{"type", "DisruptionTarget"},
                                                    {"status", "True"},
                                                    {"reason", "DeletionByPodGC"},
                                                    {"message", why},
                                                    {"observedGeneration", generation},
                                                    {"lastTransitionTime", format_rfc3339(now)}}};
  if (!status.empty()) {
    Write mark = patch_object(kinds().pod, *pod.object, {{"status", std::move(status)}}, false);
    mark.patch_type = PatchType::kStrategicMerge;
    mark.subresource = "status";
    mark.may_fail = true;
    plan.writes.push_back(std::move(mark));
  }
  Write write = delete_object(kinds().pod, *pod.object);
  write.delete_options.grace_period_seconds = 0;
  write.stage = 1;
  plan.writes.push_back(std::move(write));
}

}  // namespace

ControllerPtr make_pod_garbage_collector(PodGarbageCollectorOptions options) { return std::make_unique<PodGarbageCollector>(options); }

}  // namespace berth::controllers
