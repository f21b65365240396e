// Claims in use and bound volumes outlive their deletion (pkg/controller/volume/pvcprotection, pvprotection): the finalizers that admission
// put on them fall when nobody needs them any more.
#include "controllers/common.h"
#include "controllers/pod_volumes.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kClaimFinalizer = "kubernetes.io/pvc-protection";
constexpr std::string_view kVolumeFinalizer = "kubernetes.io/pv-protection";

/// The node is done with the pod, or it was removed by force.
bool is_shut_down(const json::Value& pod) {
  const json::Value* grace = json::find(pod, {"metadata", "deletionGracePeriodSeconds"});
  return json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr && grace != nullptr && grace->is_int64() && grace->get_int64() == 0;
}

/// Does a pod that a node knows of use the claim? An unscheduled pod does not: no node starts a pod on a claim that is going. A finished
/// one does: its volumes may still be mounted.
bool uses_claim(const json::Value& pod, const std::string& claim) {
  if (json::get_string(pod, {"spec", "nodeName"}).empty()) return false;
  for (const auto& volume : json::get_array(pod, {"spec", "volumes"})) {
    if (json::get_string(volume, {"persistentVolumeClaim", "claimName"}) == claim) return true;
    // A generic ephemeral volume's claim is named after pod and volume.
    if (json::find(volume, "ephemeral") != nullptr && !is_shut_down(pod) &&
        fmt::format("{}-{}", json::get_string(pod, {"metadata", "name"}), json::get_string(volume, {"name"})) == claim)
      return true;
  }
  return false;
}

/// Keys: "NAMESPACE/NAME" of a claim, "NAME" of a volume.
class VolumeProtection final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "volume-protection-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().persistent_volume, kinds().persistent_volume_claim, kinds().pod};
  }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind != kinds().pod) {
      if (event.after && event.after->is_deleting()) sink.add(event.after->key());
      return;
    }
    std::set<std::string> touched = claims_of_volumes(event.pod_before);
    for (const std::string& claim : touched) {
      const auto users = users_.find(claim);
      if (users == users_.end()) continue;
      users->second.erase(event.object().name());
      if (users->second.empty()) users_.erase(users);
    }
    for (const std::string& claim : claims_of_volumes(event.pod_after)) {
      users_[claim].insert(event.object().name());
      touched.insert(claim);
    }
    for (const std::string& key : touched) {
      const auto [ns, name] = split_key(key);
      if (const ObjectRef claim = cache.get(kinds().persistent_volume_claim, ns, name); claim && claim->is_deleting()) sink.add(key);
    }
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto slash = key.find('/');
    const bool is_claim = slash != std::string::npos;
    const Kind kind = is_claim ? kinds().persistent_volume_claim : kinds().persistent_volume;
    const std::string ns = is_claim ? key.substr(0, slash) : std::string();
    const std::string name = is_claim ? key.substr(slash + 1) : key;
    const ObjectRef object = cache.get(kind, ns, name);
    if (!object || !object->is_deleting()) return plan;
    const auto parsed = object->parsed();
    const json::Value& document = *parsed;
    const auto finalizer = is_claim ? kClaimFinalizer : kVolumeFinalizer;
    if (!has_finalizer(document, finalizer)) return plan;
    bool in_use = !is_claim && json::get_string(document, {"status", "phase"}) == "Bound";
    if (const auto users = users_.find(key); is_claim && users != users_.end())
      in_use = std::ranges::any_of(users->second, [&](const std::string& pod) {
        const ObjectRef user = cache.get(kinds().pod, ns, pod);
        return user && uses_claim(*user->parsed(), name);
      });
    if (!in_use) plan.writes.push_back(remove_finalizer(kind, *object, document, finalizer));
    return plan;
  }

 private:
  std::map<std::string, std::set<std::string>> users_;  ///< By claim: names of the pods whose volumes name it.
};

}  // namespace

ControllerPtr make_volume_protection_controller() { return std::make_unique<VolumeProtection>(); }

}  // namespace berth::controllers
