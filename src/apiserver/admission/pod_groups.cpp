// PodGroupProtection: a group that pods belong to outlives its deletion (plugin/pkg/admission/scheduling/podgroupprotection); its finalizer
// falls in controllers/pod_group_protection.cpp. PodGroupWorkloadExists: a group's template is one that there is
// (plugin/pkg/admission/podgroup). JobValidation: as many pods as a gang has belong to its Job (plugin/pkg/admission/job).
#include "apiserver/admission/plugins.h"
#include "apiserver/kinds/kind_table.h"
#include "model/features.h"

namespace berth::apiserver {
namespace {

bool makes_a_group(const AdmissionRequest& request) {
  return request.operation == Operation::kCreate && request.is("scheduling.k8s.io", "podgroups");
}

class PodGroupProtection final : public AdmissionPlugin {
 public:
  explicit PodGroupProtection(const AdmissionContext& context) : is_on_(model::has(context.features, model::Feature::kGenericWorkload)) {}
  [[nodiscard]] std::string_view name() const override { return "PodGroupProtection"; }
  bool add_circumstances(const AdmissionRequest&, Circumstances&) override { return true; }

  Admitted mutate(AdmissionRequest& request) override {
    if (is_on_ && makes_a_group(request)) add_finalizer(request.object, "scheduling.k8s.io/podgroup-protection");
    return {};
  }

 private:
  bool is_on_;
};

class PodGroupWorkloadExists final : public AdmissionPlugin {
 public:
  explicit PodGroupWorkloadExists(const AdmissionContext& context)
      : workloads_(model::has(context.features, model::Feature::kGenericWorkload) ? &context.mirror("scheduling.k8s.io", "workloads")
                                                                                  : nullptr) {}
  [[nodiscard]] std::string_view name() const override { return "PodGroupWorkloadExists"; }

  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    if (workloads_ != nullptr && makes_a_group(request)) circumstances.add([this] { return workloads_->generation(); });
    return true;
  }

  Admitted validate(const AdmissionRequest& request) override {
    if (workloads_ == nullptr || !makes_a_group(request)) return {};
    const json::Value* reference = json::find(request.object, {"spec", "podGroupTemplateRef", "workload"});
    if (reference == nullptr || !reference->is_object()) return {};
    const auto workload_name = json::get_string(*reference, {"workloadName"}),
               wanted = json::get_string(*reference, {"podGroupTemplateName"});
    const auto workload = workloads_->get(request.ns, workload_name);
    if (workload == nullptr) return refused(request, fmt::format("Workload \"{}\" not found", workload_name));
    if (json::find(*workload, {"metadata", "deletionTimestamp"}) != nullptr)
      return refused(request, fmt::format("Workload \"{}\" is being deleted", workload_name));
    for (const auto& one : json::get_array(*workload, {"spec", "podGroupTemplates"}))
      if (json::get_string(one, {"name"}) == wanted) return {};
    return refused(request, fmt::format("PodGroupTemplate \"{}\" not found in Workload \"{}\"", wanted, workload_name));
  }

 private:
  static Admitted refused(const AdmissionRequest& request, const std::string& why) {
    return std::unexpected(request.forbidden("PodGroup rejected: " + why));
  }

  Mirror* workloads_;  ///< Null where there are none.
};

class JobValidation final : public AdmissionPlugin {
 public:
  explicit JobValidation(const AdmissionContext& context)
      : groups_(model::has(context.features, model::Feature::kGenericWorkload) ? &context.mirror("scheduling.k8s.io", "podgroups")
                                                                               : nullptr) {}
  [[nodiscard]] std::string_view name() const override { return "JobValidation"; }

  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    if (groups_ != nullptr && changes_a_job(request)) circumstances.add([this] { return groups_->generation(); });
    return true;
  }

  Admitted validate(const AdmissionRequest& request) override {
    if (groups_ == nullptr || !changes_a_job(request)) return {};
    const auto parallelism = [](const json::Value& job) { return json::get_int(job, {"spec", "parallelism"}, 1); };
    if (parallelism(request.object) == parallelism(request.old_object)) return {};
    const auto named = json::get_string(request.old_object, {"spec", "template", "spec", "schedulingGroup", "podGroupName"});
    if (!named.empty()) {
      const auto group = groups_->get(request.ns, named);
      return group != nullptr && is_gang(*group) ? refused(request, *group) : Admitted{};
    }
    const auto uid = json::get_string(request.old_object, {"metadata", "uid"});
    for (const auto& group : groups_->list(request.ns))
      if (is_gang(*group) && is_controlled_by(*group, uid)) return refused(request, *group);
    return {};
  }

 private:
  static bool changes_a_job(const AdmissionRequest& request) {
    return request.operation == Operation::kUpdate && request.is("batch", "jobs");
  }
  static bool is_gang(const json::Value& group) { return json::find(group, {"spec", "schedulingPolicy", "gang"}) != nullptr; }
  static bool is_controlled_by(const json::Value& group, std::string_view uid) {
    return std::ranges::any_of(json::get_array(group, {"metadata", "ownerReferences"}), [&](const json::Value& owner) {
      return json::get_bool(owner, {"controller"}) && json::get_string(owner, {"uid"}) == uid;
    });
  }
  static Admitted refused(const AdmissionRequest& request, const json::Value& group) {
    return std::unexpected(request.forbidden(fmt::format("cannot change parallelism for a Job referencing gang-scheduled PodGroup \"{}\"",
                                                         json::get_string(group, {"metadata", "name"}))));
  }

  Mirror* groups_;  ///< Null where there are none.
};

}  // namespace

PluginResult make_job_validation(const AdmissionContext& context) { return std::make_unique<JobValidation>(context); }
PluginResult make_pod_group_protection(const AdmissionContext& context) { return std::make_unique<PodGroupProtection>(context); }
PluginResult make_pod_group_workload_exists(const AdmissionContext& context) { return std::make_unique<PodGroupWorkloadExists>(context); }

}  // namespace berth::apiserver
