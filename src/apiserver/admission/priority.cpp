// Priority: pods get the number and the preemption policy of their PriorityClass; at most one class is the global default (SPEC C1).
#include "apiserver/admission/plugins.h"
#include "model/features.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kCriticalPodAnnotation = "scheduler.alpha.kubernetes.io/critical-pod";

class Priority final : public AdmissionPlugin {
 public:
  explicit Priority(const AdmissionContext& context)
      : classes_(context.mirror("scheduling.k8s.io", "priorityclasses")),
        has_groups_(model::has(context.features, model::Feature::kWorkloadAwarePreemption)) {}
  [[nodiscard]] std::string_view name() const override { return "Priority"; }

  bool add_circumstances(const AdmissionRequest&, Circumstances& circumstances) override {
    circumstances.add([this] { return classes_.generation(); });
    return true;
  }

  Admitted mutate(AdmissionRequest& request) override {
    if (has_groups_ && request.operation == Operation::kCreate && request.kind->group == "scheduling.k8s.io")
      return resolve_groups(request);
    if (!request.is("", "pods")) return {};
    if (request.operation == Operation::kUpdate) return keep_on_update(request);
    return request.operation == Operation::kCreate ? resolve(request) : Admitted();
  }

  Admitted validate(const AdmissionRequest& request) override {
    if (!request.is("scheduling.k8s.io", "priorityclasses")) return {};
    if (request.operation != Operation::kCreate && request.operation != Operation::kUpdate) return {};
    if (!json::get_bool(request.object, {"globalDefault"})) return {};
    const auto global_default = find_default();
    const auto own_name = json::get_string(request.object, {"metadata", "name"});
    if (global_default == nullptr || json::get_string(*global_default, {"metadata", "name"}) == own_name) return {};
    return std::unexpected(request.forbidden(fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                                                         json::get_string(*global_default, {"metadata", "name"}))));
  }

 private:
  static Admitted keep_on_update(AdmissionRequest& request) {
    auto& spec = json::ensure_object(request.object, {"spec"});
    for (std::string_view field : {"priority", "preemptionPolicy"}) {
      if (spec.contains(field)) continue;
      if (const auto* old = json::find(request.old_object, {"spec", field})) spec[field] = *old;
    }
    return {};
  }

  [[nodiscard]] Mirror::Document find_default() const {
    // Should there be several (written while the plugin was off), the lowest value counts.
    Mirror::Document best;
    for (auto& candidate : classes_.list()) {
      if (!json::get_bool(*candidate, {"globalDefault"})) continue;
      if (best == nullptr || json::get_int(*candidate, {"value"}) < json::get_int(*best, {"value"})) best = candidate;
    }
    return best;
  }

  Admitted resolve(AdmissionRequest& request) {
    auto& spec = json::ensure_object(request.object, {"spec"});
    auto class_name = std::string(json::get_string(request.object, {"spec", "priorityClassName"}));
    const auto* critical = json::find(request.object, {"metadata", "annotations", kCriticalPodAnnotation});
    if (class_name.empty() && critical != nullptr && request.ns == "kube-system") class_name = "system-cluster-critical";

    const auto priority_class = class_name.empty() ? find_default() : classes_.get("", class_name);
    if (!class_name.empty() && priority_class == nullptr) return unknown_class(request, class_name);
    const std::int64_t value = priority_class ? json::get_int(*priority_class, {"value"}) : 0;
    const std::string policy(priority_class ? json::get_string(*priority_class, {"preemptionPolicy"}, "PreemptLowerPriority")
                                            : std::string_view("PreemptLowerPriority"));
    if (const auto* given = json::find(request.object, {"spec", "priority"});
        given != nullptr && json::get_int(request.object, {"spec", "priority"}) != value)
      return std::unexpected(request.forbidden(fmt::format(
          "the integer value of priority ({}) must not be provided in pod spec; priority admission controller computed {} from the given "
          "PriorityClass name",
          json::serialize(*given), value)));
    if (const auto given = json::get_string(request.object, {"spec", "preemptionPolicy"});
        json::find(request.object, {"spec", "preemptionPolicy"}) != nullptr && given != policy)
      return std::unexpected(request.forbidden(fmt::format(
          "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority admission controller computed {} from the "
          "given PriorityClass name",
          given, policy)));
    if (priority_class != nullptr) spec["priorityClassName"] = json::get_string(*priority_class, {"metadata", "name"});
    spec["priority"] = value;
    spec["preemptionPolicy"] = policy;
    return {};
  }

  /// PodGroups and the templates of Workloads have the same two fields, without a preemption policy.
  Admitted resolve_groups(AdmissionRequest& request) {
    if (request.is("scheduling.k8s.io", "podgroups")) {
      json::ensure_object(request.object, {"spec"});
      return resolve_group(request, *json::find(request.object, "spec"), "pod group");
    }
    if (!request.is("scheduling.k8s.io", "workloads")) return {};
    json::Value* templates = json::find(request.object, {"spec", "podGroupTemplates"});
    if (templates == nullptr || !templates->is_array()) return {};
    for (json::Value& one : templates->get_array())
      if (one.is_object())
        if (auto resolved = resolve_group(request, one, "pod group template"); !resolved) return resolved;
    return {};
  }

  Admitted resolve_group(const AdmissionRequest& request, json::Value& group, std::string_view word) {
    const std::string class_name(json::get_string(group, {"priorityClassName"}));
    const auto priority_class = class_name.empty() ? find_default() : classes_.get("", class_name);
    if (!class_name.empty() && priority_class == nullptr) return unknown_class(request, class_name);
    const std::int64_t value = priority_class ? json::get_int(*priority_class, {"value"}) : 0;
    if (const auto* given = json::find(group, "priority"); given != nullptr && json::get_int(group, {"priority"}) != value)
      return std::unexpected(request.forbidden(fmt::format(
          "the integer value of priority ({}) must not be provided in {} spec; priority admission controller computed {} from the given "
          "PriorityClass name",
          json::serialize(*given), word, value)));
    auto& members = group.get_object();
    if (priority_class != nullptr) members["priorityClassName"] = json::get_string(*priority_class, {"metadata", "name"});
    members["priority"] = value;
    return {};
  }

  static Admitted unknown_class(const AdmissionRequest& request, std::string_view name) {
    return std::unexpected(request.forbidden(fmt::format("no PriorityClass with name {} was found", name)));
  }

  Mirror& classes_;
  bool has_groups_;
};

}  // namespace

PluginResult make_priority(const AdmissionContext& context) { return std::make_unique<Priority>(context); }

}  // namespace berth::apiserver
