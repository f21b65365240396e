// Claims that are to grow (pkg/controller/volume/expand): who grows them is the driver's resizer; here that is said, once a size. What the
// built-in provisioner made has no size of its own, and grows here: first the volume, then what the claim says of it.
#include "controllers/common.h"
#include "controllers/services.h"
#include "model/quantity.h"

namespace berth::controllers {
namespace {

model::Quantity size_at(const json::Value& claim, json::Path path) {
  return model::Quantity::parse(json::get_string(claim, path)).value_or(model::Quantity());
}

/// Keys are "ns/name" of claims.
class VolumeExpander final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "persistentvolume-expander-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "volume_expand"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().persistent_volume_claim, kinds().persistent_volume}; }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind != kinds().persistent_volume_claim) return;
    if (!event.after) {
      said_.erase(event.object().key());
      return;
    }
    const auto claim = event.after->parsed();
    if (json::get_string(*claim, {"status", "phase"}) == "Bound" &&
        size_at(*claim, {"status", "capacity", "storage"}) < size_at(*claim, {"spec", "resources", "requests", "storage"}))
      sink.add(event.after->key());
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef claim = cache.get(kinds().persistent_volume_claim, ns, name);
    if (!claim) return plan;
    const auto document = claim->parsed();
    const ObjectRef volume = cache.get(kinds().persistent_volume, "", json::get_string(*document, {"spec", "volumeName"}));
    const std::string wanted(json::get_string(*document, {"spec", "resources", "requests", "storage"}));
    if (!volume) return plan;
    if (is_made_here(*volume->parsed())) return grow(*claim, *document, *volume, wanted);
    if (json::find(*volume->parsed(), {"spec", "csi"}) == nullptr || said_[key] == wanted) return plan;
    said_[key] = wanted;
    plan.events.push_back(note_about(kinds().persistent_volume_claim, *claim, "Normal", "ExternalExpanding",
                                     "waiting for an external controller to expand this PVC"));
    return plan;
  }

 private:
  static bool is_made_here(const json::Value& volume) {
    return json::get_string(volume, {"metadata", "annotations", "pv.kubernetes.io/provisioned-by"}) == kLocalProvisioner;
  }

  static Plan grow(const Object& claim, const json::Value& document, const Object& volume, const std::string& wanted) {
    Plan plan;
    if (!(size_at(document, {"status", "capacity", "storage"}) < size_at(document, {"spec", "resources", "requests", "storage"})))
      return plan;
    if (size_at(*volume.parsed(), {"spec", "capacity", "storage"}) < size_at(document, {"spec", "resources", "requests", "storage"}))
      plan.writes.push_back(
          patch_object(kinds().persistent_volume, volume, {{"spec", json::Object{{"capacity", json::Object{{"storage", wanted}}}}}}));
    json::Object status = json::get_object(document, {"status"});
    status["capacity"] = json::Object{{"storage", wanted}};
    if (auto write = patch_status(kinds().persistent_volume_claim, claim, document, status)) {
      write->stage = 1;
      write->on_success = note_about(kinds().persistent_volume_claim, claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded");
      plan.writes.push_back(std::move(*write));
    }
    return plan;
  }

  std::map<std::string, std::string> said_;  ///< By claim: of which size it was said.
};

}  // namespace

ControllerPtr make_volume_expander() { return std::make_unique<VolumeExpander>(); }

}  // namespace berth::controllers
