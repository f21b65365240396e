// Groups of pods outlive their deletion while pods belong to them (pkg/controller/scheduling/podgroupprotection): the finalizer that
// admission put on them falls when no pod that has not finished names the group any more.
#include "controllers/common.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kFinalizer = "scheduling.k8s.io/podgroup-protection";

/// "NAMESPACE/NAME" of the group that the pod holds; empty: none.
std::string group_held_by(const PodRef& pod) {
  return !pod || pod->scheduling_group.empty() || pod->is_finished() ? std::string()
                                                                     : fmt::format("{}/{}", pod->ns(), pod->scheduling_group);
}

/// Keys: "NAMESPACE/NAME" of groups.
class PodGroupProtection final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "podgroup-protection-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().pod_group, kinds().pod}; }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod_group) {
      if (event.after && event.after->is_deleting()) sink.add(event.after->key());
      return;
    }
    const std::string before = group_held_by(event.pod_before), after = group_held_by(event.pod_after);
    if (before == after) return;
    if (const auto members = members_.find(before); members != members_.end()) {
      members->second.erase(event.object().name());
      if (members->second.empty()) {
        members_.erase(members);
        sink.add(before);
      }
    }
    if (!after.empty()) members_[after].insert(event.object().name());
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef group = cache.get(kinds().pod_group, ns, name);
    if (!group || !group->is_deleting() || members_.contains(key)) return plan;
    const auto parsed = group->parsed();
    if (has_finalizer(*parsed, kFinalizer)) plan.writes.push_back(remove_finalizer(kinds().pod_group, *group, *parsed, kFinalizer));
    return plan;
  }

 private:
  std::map<std::string, std::set<std::string>> members_;  ///< By group: names of the pods that hold it.
};

}  // namespace

ControllerPtr make_pod_group_protection_controller() { return std::make_unique<PodGroupProtection>(); }

}  // namespace berth::controllers
