// PodDisruptionBudget status (pkg/controller/disruption): how many pods there are, how many are wanted healthy, how many may go.
#include <fmt/format.h>

#include <map>

#include "base/clock.h"
#include "base/json_scan.h"
#include "controllers/budget_ledger.h"
#include "controllers/common.h"
#include "controllers/custom_kinds.h"
#include "controllers/selector_words.h"
#include "controllers/workloads.h"
#include "model/selector.h"

namespace berth::controllers {
namespace {

/// An eviction that did not lead to a deletion within this time counts no more.
constexpr Duration kDeletionTimeout = std::chrono::minutes(2);
constexpr Duration kStaleMark = std::chrono::minutes(2);

class DisruptionController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "disruption-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "controllermanager"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().pod_disruption_budget, kinds().pod, kinds().replica_set, kinds().deployment, kinds().stateful_set,
            kinds().replication_controller};
  }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod_disruption_budget) {
      ledger_.take_budget(event, cache);
      if (event.after) sink.add(event.after->key());
      return;
    }
    if (event.kind != kinds().pod) return owner_changed(event, cache, sink);
    if (event.pod_after && event.pod_after->has_disruption_condition) sink.add("/" + event.after->key());
    const std::vector<ObjectRef> matching = ledger_.take_pod(event, cache, [&](const std::string& key) { sink.add(key); });
    if (matching.size() < 2) return;
    ambiguous_[matching[0]->key()].push_back(
        note_about(kinds().pod, event.object(), "Warning", "MultiplePodDisruptionBudgets",
                   fmt::format("Pod \"{}\"/\"{}\" matches multiple PodDisruptionBudgets.  Chose \"{}\" arbitrarily.", event.object().ns(),
                               event.object().name(), matching[0]->name())));
    sink.add(matching[0]->key());
  }

  /// Keys are "ns/name" of budgets, and "/ns/name" of pods that somebody meant to disrupt.
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    if (key.starts_with('/')) return clear_stale_mark(key.substr(1), now, cache);
    Plan plan;
    const auto [ns, name] = split_key(key);
    if (const auto notes = ambiguous_.find(key); notes != ambiguous_.end()) {
      plan.events = std::move(notes->second);
      ambiguous_.erase(notes);
    }
    const ObjectRef object = cache.get(kinds().pod_disruption_budget, ns, name);
    if (!object) return plan;
    const auto parsed = object->parsed();
    const json::Value& document = *parsed;
    const model::Selector selector = selector_of(kinds().pod_disruption_budget, document);
    const BudgetCounts& counts = ledger_.counts(key);
    if (counts.pods == 0)
      plan.events.push_back(note_about(kinds().pod_disruption_budget, *object, "Normal", "NoPods", "No matching pods found"));
    const Expected counted = expected_pods(document, *object, counts, cache);
    if (!counted.error.empty()) {
      fail_safe(plan, *object, document, counted.error, now);
      return plan;
    }
    if (counted.has_unmanaged)
      plan.events.push_back(note_about(kinds().pod_disruption_budget, *object, "Warning", "UnmanagedPods",
                                       fmt::format("Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. "
                                                   "As a result, the status of the PDB cannot be calculated "
                                                   "correctly, which may result in undefined behavior. To account for these pods please "
                                                   "set \".spec.minAvailable\" field of the PDB to an integer value.",
                                                   selector_in_go_words(json::find(document, {"spec", "selector"})))));
    const std::int64_t expected = counted.count;
    const std::int64_t desired = desired_healthy(document, expected);
    json::Object disrupted;
    std::int64_t healthy = counts.healthy;
    for (const auto& [pod_name, since] : json::get_object(document, {"status", "disruptedPods"})) {
      const PodRef pod = cache.pod(ns, std::string_view(pod_name));
      const auto started = since.is_string() ? parse_rfc3339(json::as_view(since)) : std::nullopt;
      if (!pod || pod->deleting || !started || !selector.matches(pod->labels())) continue;
      if (const Duration left = *started + kDeletionTimeout - now; left > Duration{0}) {
        disrupted[pod_name] = since;
        healthy -= is_healthy(*pod);
        plan.requeue_after = plan.requeue_after ? std::min(*plan.requeue_after, left) : left;
        continue;
      }
      plan.events.push_back(note_about(kinds().pod, *pod->object, "Warning", "NotDeleted",
                                       fmt::format("Pod was expected by PDB {}/{} to be deleted but it wasn't", ns, ns)));
    }
    const std::int64_t allowed = expected <= 0 ? 0 : std::max<std::int64_t>(0, healthy - desired);
    json::Object status = json::get_object(document, {"status"});
    status["observedGeneration"] = json::get_int(document, {"metadata", "generation"});
    status["disruptionsAllowed"] = allowed;
    status["currentHealthy"] = healthy;
    status["desiredHealthy"] = desired;
    status["expectedPods"] = expected;
    if (disrupted.empty())
      status.erase("disruptedPods");
    else
      status["disruptedPods"] = std::move(disrupted);
    json::Array conditions = json::get_array(document, {"status", "conditions"});
    set_condition(conditions,
                  {"DisruptionAllowed", allowed > 0 ? "True" : "False", allowed > 0 ? "SufficientPods" : "InsufficientPods", ""}, now);
    for (json::Value& condition : conditions)
      if (condition.is_object()) condition.get_object()["observedGeneration"] = status["observedGeneration"];
    status["conditions"] = std::move(conditions);
    if (auto write = patch_status(kinds().pod_disruption_budget, *object, document, status, true)) plan.writes.push_back(std::move(*write));
    return plan;
  }

 private:
  /// A pod that was to be disrupted and is still there after a while was spared. A node's own marks may take any time.
  static Plan clear_stale_mark(const std::string& key, TimePoint now, const Cache& cache) {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const PodRef pod = cache.pod(ns, name);
    if (!pod || !pod->is_active()) return plan;
    const auto parsed = pod->object->parsed();
    const json::Value& document = *parsed;
    const json::Value* mark = find_condition(document, "DisruptionTarget");
    if (mark == nullptr || json::get_string(*mark, {"status"}) != "True" || json::get_string(*mark, {"reason"}) == "TerminationByKubelet")
      return plan;
    if (const Duration left = read_time(*mark, {"lastTransitionTime"}) + kStaleMark - now; left > Duration{0}) {
      plan.requeue_after = left;
      return plan;
    }
    json::Array conditions{json::Object{{"type", "DisruptionTarget"},
                                        {"status", "False"},
                                        {"reason", nullptr},
                                        {"message", nullptr},
                                        {"observedGeneration", json::get_int(document, {"metadata", "generation"})},
                                        {"lastTransitionTime", format_rfc3339(now)}}};
    Write write = patch_object(kinds().pod, *pod->object, {{"status", json::Object{{"conditions", std::move(conditions)}}}}, false);
    write.patch_type = PatchType::kStrategicMerge;
    write.subresource = "status";
    plan.writes.push_back(std::move(write));
    return plan;
  }

  struct Expected {
    std::int64_t count = 0;
    bool has_unmanaged = false;  ///< Pods that nobody controls: a share of them cannot be told.
    std::string error;           ///< A controller whose size cannot be read.
  };

  static Kind scalable_kind(std::string_view kind) {
    return kind == "Deployment"              ? kinds().deployment
           : kind == "ReplicaSet"            ? kinds().replica_set
           : kind == "StatefulSet"           ? kinds().stateful_set
           : kind == "ReplicationController" ? kinds().replication_controller
                                             : nullptr;
  }

  /// Of what controls pods only its size counts, and whether a Deployment stands behind it.
  void owner_changed(const Event& event, const Cache& cache, KeySink& sink) const {
    static const json::PathScanner scanner({"spec.replicas"});
    const auto size = [](const ObjectRef& object) {
      std::string_view size_text;
      const HeldText text = object ? object->text() : HeldText();
      return text && scanner.scan(*text, {&size_text, 1}) ? std::string(size_text) : std::string();
    };
    if (event.before && event.after && event.before->controller_uid() == event.after->controller_uid() &&
        size(event.before) == size(event.after))
      return;
    const Object& owner = event.object();
    const auto add = [&](std::string_view kind, std::string_view name) {
      for (const std::string& key : ledger_.budgets_of(owner.ns(), kind, name)) sink.add(key);
    };
    add(event.kind->kind, owner.name());
    if (event.kind == kinds().deployment)
      for (const ObjectRef& set : cache.controlled(kinds().replica_set, owner.uid())) add("ReplicaSet", set->name());
  }

  /// With maxUnavailable or a percentage: what the pods' controllers want; otherwise how many there are.
  static Expected expected_pods(const json::Value& document, const Object& budget, const BudgetCounts& counts, const Cache& cache) {
    Expected expected;
    if (!counts_by_scale(document)) {
      expected.count = json::find(document, {"spec", "minAvailable"}) == nullptr ? 0 : counts.pods;
      return expected;
    }
    expected.has_unmanaged = counts.unmanaged > 0;
    std::map<std::string, std::int64_t> scales;
    for (const auto& [direct, pods] : counts.owners) {
      PodOwner owner = direct;
      if (owner.kind == "ReplicaSet") {
        const ObjectRef set = cache.get(kinds().replica_set, budget.ns(), owner.name);
        if (set && set->controller_kind() == "Deployment") owner = {"Deployment", std::string(set->controller_name())};
      }
      const Kind kind = scalable_kind(owner.kind);
      if (kind == nullptr) {
        if (const auto custom = custom_scale(owner, budget.ns(), cache)) {
          scales[owner.kind + "/" + owner.name] = custom->replicas;
          continue;
        }
        expected.error = first_error(document, budget, cache);
        return expected;
      }
      if (const ObjectRef object = cache.get(kind, budget.ns(), owner.name))
        scales[owner.kind + "/" + owner.name] = json::get_int(*object->parsed(), {"spec", "replicas"}, 1);
    }
    for (const auto& [owner, count] : scales) expected.count += count;
    return expected;
  }

  /// Custom kinds with the subresource tell their size as well.
  static std::optional<CustomScale> custom_scale(const PodOwner& owner, const std::string& ns, const Cache& cache) {
    for (const Kind kind : cache.custom_kinds())
      if (kind->kind == owner.kind)
        if (const ObjectRef object = cache.get(kind, ns, owner.name)) return read_custom_scale(kind, *object->parsed());
    return std::nullopt;
  }

  /// About the first pod whose controller has no size.
  static std::string first_error(const json::Value& document, const Object& budget, const Cache& cache) {
    std::string error;
    cache.for_each_matching(budget.ns(), selector_of(kinds().pod_disruption_budget, document), [&](const PodRef& pod) {
      const std::string_view kind = pod->object->controller_kind();
      if (error.empty() && !kind.empty() && scalable_kind(kind) == nullptr) error = error_of(*pod, cache);
    });
    return error;
  }

  static std::string error_of(const PodInfo& pod, const Cache& cache) {
    for (const OwnerReference& owner : pod.owners)
      if (const Kind kind = owner.is_controller ? cache.find_reference(owner.api_version, owner.kind) : nullptr; kind != nullptr)
        return fmt::format("{}{}{} does not implement the scale subresource", kind->plural, kind->group.empty() ? "" : ".", kind->group);
    return fmt::format("found no controllers for pod \"{}\"", pod.name());
  }

  /// What cannot be counted allows nothing.
  static void fail_safe(Plan& plan, const Object& object, const json::Value& document, const std::string& error, TimePoint now) {
    plan.events.push_back(note_about(kinds().pod_disruption_budget, object, "Warning", "CalculateExpectedPodCountFailed",
                                     "Failed to calculate the number of expected pods: " + error));
    json::Object status = json::get_object(document, {"status"});
    status["disruptionsAllowed"] = 0;
    json::Array conditions = json::get_array(document, {"status", "conditions"});
    set_condition(conditions, {"DisruptionAllowed", "False", "SyncFailed", error}, now);
    for (json::Value& condition : conditions)
      if (condition.is_object()) put_seen(condition.get_object(), json::get_int(document, {"status", "observedGeneration"}));
    status["conditions"] = std::move(conditions);
    if (auto write = patch_status(kinds().pod_disruption_budget, object, document, status, true)) plan.writes.push_back(std::move(*write));
  }

  static void put_seen(json::Object& condition, std::int64_t generation) {
    if (generation != 0)
      condition["observedGeneration"] = generation;
    else
      condition.erase("observedGeneration");
  }

  BudgetLedger ledger_;
  /// Events about pods that several budgets select, told at the next step of the budget that was chosen.
  std::map<std::string, std::vector<EventNote>> ambiguous_;
};

}  // namespace

ControllerPtr make_disruption_controller() { return std::make_unique<DisruptionController>(); }

}  // namespace berth::controllers
