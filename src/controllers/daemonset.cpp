// DaemonSets: one pod on every node that fits (pkg/controller/daemon). Where a pod belongs is asked of placement/, by the rules that the
// scheduler then binds it by, held to its node by an affinity on metadata.name.
#include "controllers/common.h"
#include "controllers/daemonset_ledger.h"
#include "controllers/revisions.h"
#include "controllers/taints.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

constexpr std::size_t kBurst = 1000;  ///< Creates, and deletes, of one step.
constexpr const char* kTemplateGeneration = "deprecated.daemonset.template.generation";

class DaemonSetController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "daemonset-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().daemon_set, kinds().pod, kinds().node, kinds().controller_revision};
  }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override;
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;

 private:
  static json::Value daemon_template(const json::Value& document, const std::string& hash);
  void take_pod(const Event& event, const Cache& cache, KeySink& sink);
  void take_node(const Event& event, const Cache& cache, KeySink& sink);
  daemon::Steps next_steps(const std::string& key, daemon::Ledger& ledger, const daemon::Wish& wish, TimePoint now,
                           std::optional<Duration>& pause);
  static void carry_out(Plan& plan, const Object& object, const json::Value& pod_template, const daemon::Steps& steps);
  static json::Object status_of(const json::Value& document, const daemon::Counts& counts);

  /// Failed pods of one node: the first is replaced at once, the next ones after 1 s, 2 s, … 15 min.
  struct Backoff {
    Duration delay{0};
    TimePoint last{};
    /// Zero: go on, which counts as one more; else what is left to wait.
    Duration wait(TimePoint now) {
      constexpr Duration kBase = std::chrono::seconds(1), kMost = std::chrono::minutes(15);
      if (delay > Duration{0} && now - last < delay) return delay - (now - last);
      delay = delay == Duration{0} || now - last > 2 * kMost ? kBase : std::min(2 * delay, kMost);
      last = now;
      return Duration{0};
    }
  };

  daemon::NodeFactsMap nodes_;
  std::map<std::string, daemon::Ledger> ledgers_;                   ///< By key.
  std::map<std::string, std::map<std::string, Backoff>> backoffs_;  ///< By key and node.
};

std::vector<Toleration> daemon_tolerations(bool host_network) {
  std::vector<Toleration> all = {
      {kTaintNotReady, "Exists", "", "NoExecute", {}},      {kTaintUnreachable, "Exists", "", "NoExecute", {}},
      {kTaintDiskPressure, "Exists", "", "NoSchedule", {}}, {kTaintMemoryPressure, "Exists", "", "NoSchedule", {}},
      {kTaintPidPressure, "Exists", "", "NoSchedule", {}},  {kTaintUnschedulable, "Exists", "", "NoSchedule", {}}};
  if (host_network) all.push_back({kTaintNetworkUnavailable, "Exists", "", "NoSchedule", {}});
  return all;
}

void DaemonSetController::on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) {
  if (event.kind == kinds().pod) return take_pod(event, cache, sink);
  if (event.kind == kinds().node) return take_node(event, cache, sink);
  if (event.kind == kinds().daemon_set) return sink.add(event.object().key());
  if (event.object().controller_kind() == "DaemonSet") sink.add(event.object().ns() + "/" + event.object().controller_name());
}

void DaemonSetController::take_pod(const Event& event, const Cache& cache, KeySink& sink) {
  enqueue_pod_owners(kinds().daemon_set, event, cache, sink);
  const auto ledger_of = [&](const ObjectRef& pod) -> daemon::Ledger* {
    if (!pod || pod->controller_kind() != "DaemonSet") return nullptr;
    const auto found = ledgers_.find(pod->ns() + "/" + std::string(pod->controller_name()));
    return found == ledgers_.end() ? nullptr : &found->second;
  };
  daemon::Ledger *was = ledger_of(event.before), *is = ledger_of(event.after);
  if (was != nullptr && was != is) was->take_pod(event.pod_before, nullptr);
  if (is != nullptr) is->take_pod(was == is ? event.pod_before : nullptr, event.pod_after);
  // Somebody may adopt it.
  if (event.after && event.after->controller_uid().empty())
    for (const ObjectRef& set : cache.selecting(kinds().daemon_set, event.after->ns(), event.after->labels()))
      if (const auto ledger = ledgers_.find(set->key()); ledger != ledgers_.end()) ledger->second.forget();
}

void DaemonSetController::take_node(const Event& event, const Cache& cache, KeySink& sink) {
  const std::string& name = event.object().name();
  const daemon::NodeFacts* now_known = nullptr;
  if (!event.after) {
    nodes_.erase(name);
  } else {
    daemon::NodeFacts facts{event.after->labels(), {}};
    if (event.after->text()->find("\"taints\"") != std::string::npos) {
      const auto parsed = event.after->parsed();
      const json::Value& document = *parsed;
      for (const json::Value& taint : json::get_array(document, {"spec", "taints"})) facts.taints.push_back(model::parse_taint(taint));
    }
    const auto it = nodes_.find(name);
    if (it != nodes_.end() && it->second == facts) return;
    now_known = &(nodes_[name] = std::move(facts));
  }
  for (auto& [key, ledger] : ledgers_) ledger.take_node(name, now_known);
  cache.for_each(kinds().daemon_set, [&](const ObjectRef& set) { sink.add(set->key()); });
}

json::Value DaemonSetController::daemon_template(const json::Value& document, const std::string& hash) {
  json::Value pod_template = json::get_object(document, {"spec", "template"});
  json::set(pod_template, {"metadata", "labels", "controller-revision-hash"}, json::Value(hash));
  const std::string_view generation = json::get_string(document, {"metadata", "annotations", kTemplateGeneration});
  if (!generation.empty()) json::set(pod_template, {"metadata", "labels", "pod-template-generation"}, json::Value(generation));
  json::Array tolerations = json::get_array(pod_template, {"spec", "tolerations"});
  for (const Toleration& own : daemon_tolerations(json::get_bool(pod_template, {"spec", "hostNetwork"}))) {
    const bool there = std::any_of(tolerations.begin(), tolerations.end(), [&](const json::Value& t) {
      return json::get_string(t, {"key"}) == own.key && json::get_string(t, {"operator"}) == "Exists" &&
             json::get_string(t, {"effect"}) == own.effect && json::find(t, "tolerationSeconds") == nullptr;
    });
    if (!there) tolerations.push_back(json::Object{{"key", own.key}, {"operator", own.op}, {"effect", own.effect}});
  }
  json::set(pod_template, {"spec", "tolerations"}, std::move(tolerations));
  return pod_template;
}

Plan DaemonSetController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const ObjectRef object = cache.get(kinds().daemon_set, ns, name);
  if (!object) {
    backoffs_.erase(key);
    ledgers_.erase(key);
    return plan;
  }
  const auto parsed = object->parsed();
  const json::Value& document = *parsed;
  const model::Selector selector = label_selector_of(document);
  if (selector.is_everything()) {
    plan.events.push_back(note_about(kinds().daemon_set, *object, "Warning", "SelectingAll",
                                     "This daemon set is selecting all pods. A non-empty selector is required."));
    return plan;
  }
  // Its revisions may be gone before its pods: nothing can be told of a set on its way out.
  if (object->is_deleting()) return plan;
  const Revisions revisions = sync_revisions(plan, kinds().daemon_set, *object, document, cache);
  daemon::Wish wish{.hash = revisions.update_hash,
                    .template_generation = std::string(json::get_string(document, {"metadata", "annotations", kTemplateGeneration})),
                    .min_ready = seconds_at(document, {"spec", "minReadySeconds"}),
                    .rolling = json::get_string(document, {"spec", "updateStrategy", "type"}) != "OnDelete"};
  const json::Value pod_template = daemon_template(document, wish.hash);
  daemon::Ledger& ledger = ledgers_[key];
  daemon::Ledger::Basis basis{object->uid(), spec_text(*object), wish.hash, wish.template_generation};
  if (!ledger.is_of(basis)) {
    Claim claim = claim_pods(kinds().daemon_set, *object, selector, cache, any_pod);
    std::ranges::move(claim.writes, std::back_inserter(plan.writes));
    ledger.build(std::move(basis), selector, claim.pods, nodes_, model::PodView::parse(pod_template));
  }
  ledger.refresh(wish, now);
  const daemon::Counts& counts = ledger.counts();
  wish.max_surge = scaled_value(json::find(document, {"spec", "updateStrategy", "rollingUpdate", "maxSurge"}), counts.desired, true, 0);
  wish.max_unavailable =
      scaled_value(json::find(document, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}), counts.desired, true, 1);
  if (wish.max_surge == 0 && wish.max_unavailable == 0) wish.max_unavailable = 1;

  std::optional<Duration> pause;  // Until a failed pod may be replaced.
  const daemon::Steps steps = next_steps(key, ledger, wish, now, pause);
  carry_out(plan, *object, pod_template, steps);

  std::set<std::string> live = {revisions.update_name};
  for (const auto& [hash, pods] : ledger.hashes()) live.insert(name + "-" + hash);
  truncate_history(plan, document, revisions, live);
  if (auto write = patch_status(kinds().daemon_set, *object, document, status_of(document, counts)))
    plan.writes.push_back(std::move(*write));
  if (const auto due = ledger.next_due()) plan.requeue_after = *due - now;
  if (pause && (!plan.requeue_after || *pause < *plan.requeue_after)) plan.requeue_after = pause;
  plan.cooldown = std::min<Duration>(Duration(static_cast<std::int64_t>(nodes_.size()) * 10), std::chrono::milliseconds(100));
  return plan;
}

daemon::Steps DaemonSetController::next_steps(const std::string& key, daemon::Ledger& ledger, const daemon::Wish& wish, TimePoint now,
                                              std::optional<Duration>& pause) {
  std::set<std::string> open;  // Whatever is asked for may fail: such a node is looked at again.
  daemon::Steps steps = daemon::keep_nodes(ledger.open_nodes(), wish, now, [&](const std::string& node) {
    // A node that refuses the pod would otherwise be asked as fast as it can answer.
    const Duration left = backoffs_[key][node].wait(now);
    if (left > Duration{0}) pause = pause ? std::min(*pause, left) : left;
    open.insert(node);
    return left == Duration{0};
  });
  open.insert(steps.create_on.begin(), steps.create_on.end());
  for (const PodRef& pod : steps.remove) open.insert(daemon::target_node(*pod));
  ledger.settle(std::move(open));
  if (steps.empty() && ledger.is_outdated()) return daemon::roll(ledger.all_nodes(), wish, now);
  return steps;
}

void DaemonSetController::carry_out(Plan& plan, const Object& object, const json::Value& pod_template, const daemon::Steps& steps) {
  const auto found = [&](const PodRef& pod, const char* type, const char* reason, const char* how, const char* what) {
    if (plan.events.size() >= kBurst) return;
    plan.events.push_back(note_about(kinds().daemon_set, object, type, reason,
                                     fmt::format("Found {} daemon pod {}/{} on node {}, will try to {} it", how, pod->ns(), pod->name(),
                                                 daemon::target_node(*pod), what)));
  };
  for (const PodRef& pod : steps.failed) found(pod, "Warning", "FailedDaemonPod", "failed", "kill");
  for (const PodRef& pod : steps.succeeded) found(pod, "Normal", "SucceededDaemonPod", "succeeded", "delete");
  const auto burst = static_cast<std::size_t>(burst_of(object, kBurst));
  for (std::size_t i = 0; i < std::min(steps.create_on.size(), burst); ++i) {
    json::Value pod = pod_from_template(pod_template, kinds().daemon_set, object, object.name() + "-");
    json::Object term{
        {"matchFields", json::Array{json::Object{
                            {"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{json::Value(steps.create_on[i])}}}}}};
    json::set(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
              json::Object{{"nodeSelectorTerms", json::Array{std::move(term)}}});
    Write write = create_object(kinds().pod, object.ns(), std::move(pod));
    write.slow_start = true;
    write.stage = 1;
    write.on_success = note_about(kinds().daemon_set, object, "Normal", "SuccessfulCreate", "Created pod: {}");
    write.on_failure = note_about(kinds().daemon_set, object, "Warning", "FailedCreate", "Error creating: {}");
    plan.add(std::move(write), object.text_bytes());
  }
  for (std::size_t i = 0; i < std::min(steps.remove.size(), kBurst); ++i) {
    const PodInfo& pod = *steps.remove[i];
    Write write = delete_object(kinds().pod, *pod.object);
    write.stage = 1;
    write.on_success = note_about(kinds().daemon_set, object, "Normal", "SuccessfulDelete", "Deleted pod: " + pod.name());
    write.on_failure = note_about(kinds().daemon_set, object, "Warning", "FailedDelete", "Error deleting: {}");
    plan.writes.push_back(std::move(write));
  }
}

json::Object DaemonSetController::status_of(const json::Value& document, const daemon::Counts& counts) {
  json::Object status = json::get_object(document, {"status"});
  status["desiredNumberScheduled"] = counts.desired;
  status["currentNumberScheduled"] = counts.current;
  status["numberMisscheduled"] = counts.misscheduled;
  status["numberReady"] = counts.ready;
  for (const auto& [field, value] : {std::pair{"updatedNumberScheduled", counts.updated},
                                     {"numberAvailable", counts.available},
                                     {"numberUnavailable", counts.desired - counts.available},
                                     {"observedGeneration", json::get_int(document, {"metadata", "generation"})}}) {
    if (value != 0)
      status[field] = value;
    else
      status.erase(field);
  }
  return status;
}

}  // namespace

ControllerPtr make_daemonset_controller() { return std::make_unique<DaemonSetController>(); }

}  // namespace berth::controllers
