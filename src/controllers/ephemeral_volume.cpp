// Generic ephemeral volumes (pkg/controller/volume/ephemeral): a claim for each, owned by its pod, so that it goes with the pod.
#include <fmt/format.h>

#include "controllers/common.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

using json::get_string;
using json::Value;

/// Keys are "ns/name" of pods.
class EphemeralVolumes final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "ephemeral-volume-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().pod, kinds().persistent_volume_claim}; }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) {
      if (event.pod_after && event.pod_after->has_claim_volumes) sink.add(event.object().key());
      return;
    }
    if (event.after) return;
    // A claim that went while its pod is still to start is made again.
    for (const OwnerReference& owner : owner_references(*event.object().parsed()))
      if (owner.is_controller && owner.kind == "Pod") sink.add(event.object().ns() + "/" + owner.name);
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const PodRef pod = cache.pod(ns, name);
    if (!pod || !pod->is_active()) return plan;
    const auto parsed = pod->object->parsed();
    const Value& document = *parsed;
    for (const Value& volume : json::get_array(document, {"spec", "volumes"})) {
      const Value* claim_template = json::find(volume, {"ephemeral", "volumeClaimTemplate"});
      if (claim_template == nullptr) continue;
      const std::string claim_name = fmt::format("{}-{}", name, get_string(volume, {"name"}));
      if (const ObjectRef claim = cache.get(kinds().persistent_volume_claim, ns, claim_name)) {
        if (!is_of(*claim, *pod))
          plan.error = fmt::format("PVC {}/{} was not created for pod {}/{} (pod is not owner)", ns, claim_name, ns, name);
        continue;
      }
      json::Object metadata = json::get_object(*claim_template, {"metadata"});
      metadata["name"] = claim_name;
      metadata["ownerReferences"] = json::Array{owner_reference(kinds().pod, *pod->object)};
      plan.writes.push_back(create_object(kinds().persistent_volume_claim, ns,
                                          json::Object{{"apiVersion", "v1"},
                                                       {"kind", "PersistentVolumeClaim"},
                                                       {"metadata", std::move(metadata)},
                                                       {"spec", json::get_object(*claim_template, {"spec"})}}));
    }
    return plan;
  }

 private:
  static bool is_of(const client::Object& claim, const PodInfo& pod) {
    return std::ranges::any_of(owner_references(*claim.parsed()),
                               [&](const OwnerReference& owner) { return owner.is_controller && owner.uid == pod.uid(); });
  }
};

}  // namespace

ControllerPtr make_ephemeral_volume_controller() { return std::make_unique<EphemeralVolumes>(); }

}  // namespace berth::controllers
