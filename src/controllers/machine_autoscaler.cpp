#include "controllers/common.h"
#include "controllers/machines.h"

namespace berth::controllers {
namespace {

using json::get_string;

constexpr std::string_view kTargetFinalizer = "machinetarget.autoscaling.openshift.io";
constexpr std::string_view kMinSize = "machine.openshift.io/cluster-api-autoscaler-node-group-min-size";
constexpr std::string_view kMaxSize = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size";
constexpr std::string_view kOwner = "autoscaling.openshift.io/machineautoscaler";

class MachineAutoscalerController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "machine-autoscaler-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().machine_autoscaler, kinds().machine_set}; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().machine_autoscaler) return sink.add(event.object().key());
    cache.for_each_in(kinds().machine_autoscaler, event.object().ns(), [&](const ObjectRef& object) {
      if (get_string(*object->parsed(), {"spec", "scaleTargetRef", "name"}) == event.object().name()) sink.add(object->key());
    });
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef object = cache.get(kinds().machine_autoscaler, ns, name);
    if (!object) return plan;
    const auto parsed = object->parsed();
    const json::Value& document = *parsed;
    const std::string target(get_string(document, {"spec", "scaleTargetRef", "name"})),
        last(get_string(document, {"status", "lastTargetRef", "name"}));
    if (object->is_deleting()) {
      for (const std::string& one : {target, last}) release(plan, key, cache.get(kinds().machine_set, ns, one));
      if (plan.writes.empty() && has_finalizer(document, kTargetFinalizer))
        plan.writes.push_back(remove_finalizer(kinds().machine_autoscaler, *object, document, kTargetFinalizer));
      return plan;
    }
    if (!has_finalizer(document, kTargetFinalizer)) {
      plan.writes.push_back(add_finalizer(kinds().machine_autoscaler, *object, document, kTargetFinalizer));
      return plan;
    }
    if (!last.empty() && last != target) release(plan, key, cache.get(kinds().machine_set, ns, last));
    const std::string_view kind = get_string(document, {"spec", "scaleTargetRef", "kind"});
    const ObjectRef set = kind == "MachineSet" ? cache.get(kinds().machine_set, ns, target) : nullptr;
    if (!set) return plan;  // It comes with an event.
    bind(plan, key, *object, document, *set);
    return plan;
  }

 private:
  static void release(Plan& plan, const std::string& key, const ObjectRef& set) {
    if (!set || get_string(*set->parsed(), {"metadata", "annotations", kOwner}) != key) return;
    plan.writes.push_back(patch_object(
        kinds().machine_set, *set,
        {{"metadata", json::Object{{"annotations", json::Object{{kMinSize, nullptr}, {kMaxSize, nullptr}, {kOwner, nullptr}}}}}}));
  }

  static void bind(Plan& plan, const std::string& key, const Object& object, const json::Value& document, const Object& set) {
    const auto set_document_parsed = set.parsed();
    const json::Value& set_document = *set_document_parsed;
    const std::string_view owner = get_string(set_document, {"metadata", "annotations", kOwner});
    if (!owner.empty() && owner != key) {
      plan.events.push_back(note_about(kinds().machine_autoscaler, object, "Warning", "FailedUpdate",
                                       fmt::format("{} is already the target of MachineAutoscaler {}", set.key(), owner)));
      return;
    }
    const std::string low = std::to_string(json::get_int(document, {"spec", "minReplicas"})),
                      high = std::to_string(json::get_int(document, {"spec", "maxReplicas"}));
    if (owner != key || get_string(set_document, {"metadata", "annotations", kMinSize}) != low ||
        get_string(set_document, {"metadata", "annotations", kMaxSize}) != high) {
      Write write =
          patch_object(kinds().machine_set, set,
                       {{"metadata", json::Object{{"annotations", json::Object{{kMinSize, low}, {kMaxSize, high}, {kOwner, key}}}}}});
      write.on_success = note_about(kinds().machine_autoscaler, object, "Normal", "SuccessfulUpdate",
                                    fmt::format("Updated MachineAutoscaler target: {}", set.key()));
      plan.writes.push_back(std::move(write));
    }
    json::Object status = json::get_object(document, {"status"});
    status["lastTargetRef"] = *json::find(document, {"spec", "scaleTargetRef"});
    if (auto write = patch_status(kinds().machine_autoscaler, object, document, status)) plan.writes.push_back(std::move(*write));
  }
};

}  // namespace

ControllerPtr make_machine_autoscaler_controller() { return std::make_unique<MachineAutoscalerController>(); }

}  // namespace berth::controllers
