// Claims to volumes (pkg/controller/volume/persistentvolume): static binding, and provisioning by the built-in local provisioner.
//
//   claim Pending --- volume found or provisioned: PV.spec.claimRef --> PVC.spec.volumeName --> both Bound
//   claim gone    --- PV Released --> Delete: the PV goes; Retain: it stays
#include <fmt/format.h>

#include "controllers/common.h"
#include "controllers/services.h"
#include "model/quantity.h"
#include "model/selector.h"

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_string;
using json::Object;
using json::Value;

constexpr std::string_view kLocalProvisioner = "berth.dev/local";
constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";

model::Quantity storage_of(std::string_view text) { return model::Quantity::parse(text).value_or(model::Quantity()); }

bool has_modes(const Value& volume, const Value& claim) {
  const json::Array& offered = get_array(volume, {"spec", "accessModes"});
  const json::Array& wanted = get_array(claim, {"spec", "accessModes"});
  return std::all_of(wanted.begin(), wanted.end(), [&](const Value& mode) { return std::find(offered.begin(), offered.end(), mode) != offered.end(); });
}

bool claims(const Value& volume, const client::Object& claim) {
  return get_string(volume, {"spec", "claimRef", "namespace"}) == claim.ns() && get_string(volume, {"spec", "claimRef", "name"}) == claim.name() &&
         (get_string(volume, {"spec", "claimRef", "uid"}).empty() || get_string(volume, {"spec", "claimRef", "uid"}) == claim.uid());
}

/// Keys are "ns/name" of claims and "name" of volumes.
class VolumeBinder final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "persistentvolume-binder-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().persistent_volume, kinds().persistent_volume_claim, kinds().storage_class, kinds().pod}; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) return;
    if (event.kind == kinds().persistent_volume_claim) {
      sink.add(event.object().key());
      if (!event.after) cache.for_each(kinds().persistent_volume, [&](const ObjectRef& volume) { sink.add(volume->name()); });
      return;
    }
    if (event.kind == kinds().persistent_volume && event.after) sink.add(event.after->name());
    // A new volume or class may serve any claim that waits.
    cache.for_each(kinds().persistent_volume_claim, [&](const ObjectRef& claim) { sink.add(claim->key()); });
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override { return key.find('/') == std::string::npos ? volume_step(key, cache) : claim_step(key, cache); }

 private:
  static Plan volume_step(const std::string& name, const Cache& cache) {
    Plan plan;
    const ObjectRef volume = cache.get(kinds().persistent_volume, "", name);
    if (!volume) return plan;
    const Value document = volume->document();
    const std::string ns(get_string(document, {"spec", "claimRef", "namespace"})), claim_name(get_string(document, {"spec", "claimRef", "name"}));
    std::string_view phase = "Available";
    if (!claim_name.empty()) {
      const ObjectRef claim = cache.get(kinds().persistent_volume_claim, ns, claim_name);
      const std::string_view uid = get_string(document, {"spec", "claimRef", "uid"});
      if (claim && (uid.empty() || uid == claim->uid())) {
        phase = get_string(claim->document(), {"spec", "volumeName"}) == name ? "Bound" : "Available";
      } else if (!uid.empty()) {
        phase = "Released";
        if (get_string(document, {"spec", "persistentVolumeReclaimPolicy"}) == "Delete" && !volume->is_deleting()) {
          plan.writes.push_back(delete_object(kinds().persistent_volume, *volume));
          return plan;
        }
      }
    }
    Object status = json::get_object(document, {"status"});
    status["phase"] = phase;
    if (auto write = patch_status(kinds().persistent_volume, *volume, document, status)) plan.writes.push_back(std::move(*write));
    return plan;
  }

  static Plan claim_step(const std::string& key, const Cache& cache) {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef claim = cache.get(kinds().persistent_volume_claim, ns, name);
    if (!claim || claim->is_deleting()) return plan;
    const Value document = claim->document();
    const std::string volume_name(get_string(document, {"spec", "volumeName"}));
    if (!volume_name.empty()) {
      finish(plan, *claim, document, cache.get(kinds().persistent_volume, "", volume_name));
      return plan;
    }
    const ObjectRef reserved = find_volume(*claim, document, cache, true);
    const ObjectRef storage_class = cache.get(kinds().storage_class, "", get_string(document, {"spec", "storageClassName"}));
    const Value class_document = storage_class ? storage_class->document() : Value(Object());
    const bool wait = get_string(class_document, {"volumeBindingMode"}) == "WaitForFirstConsumer" && get_string(document, {"metadata", "annotations", kSelectedNode}).empty();
    const ObjectRef volume = reserved ? reserved : wait ? nullptr : find_volume(*claim, document, cache, false);
    if (volume) {
      bind(plan, *claim, document, *volume);
    } else if (!wait && get_string(class_document, {"provisioner"}) == kLocalProvisioner) {
      provision(plan, *claim, document, class_document);
    } else if (wait) {
      plan.events.push_back(note_about(kinds().persistent_volume_claim, *claim, "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding"));
    }
    return plan;
  }

  /// The smallest volume that fits; `reserved`: only one whose claimRef already names this claim.
  static ObjectRef find_volume(const client::Object& claim, const Value& document, const Cache& cache, bool reserved) {
    ObjectRef best;
    model::Quantity best_size;
    const model::Quantity wanted = storage_of(get_string(document, {"spec", "resources", "requests", "storage"}));
    cache.for_each(kinds().persistent_volume, [&](const ObjectRef& volume) {
      if (volume->is_deleting()) return;
      const Value one = volume->document();
      const bool taken = !get_string(one, {"spec", "claimRef", "name"}).empty();
      if (taken ? !claims(one, claim) : reserved) return;
      if (get_string(one, {"spec", "storageClassName"}) != get_string(document, {"spec", "storageClassName"}) || !has_modes(one, document)) return;
      if (get_string(one, {"spec", "volumeMode"}, "Filesystem") != get_string(document, {"spec", "volumeMode"}, "Filesystem")) return;
      if (const Value* selector = json::find(document, {"spec", "selector"})) {
        const auto compiled = model::Selector::from_label_selector(selector);
        if (!compiled || !compiled->matches(volume->labels())) return;
      }
      const model::Quantity size = storage_of(get_string(one, {"spec", "capacity", "storage"}));
      if (size < wanted && !taken) return;
      if (!best || size < best_size) {
        best = volume;
        best_size = size;
      }
    });
    return best;
  }

  static void bind(Plan& plan, const client::Object& claim, const Value& document, const client::Object& volume) {
    const Value volume_document = volume.document();
    if (get_string(volume_document, {"spec", "claimRef", "uid"}) != claim.uid()) {
      Write write = patch_object(kinds().persistent_volume, volume,
                                 Object{{"spec", Object{{"claimRef", Object{{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"namespace", claim.ns()}, {"name", claim.name()}, {"uid", claim.uid()}}}}}});
      write.stage = 0;
      plan.writes.push_back(std::move(write));
    }
    Write write = patch_object(kinds().persistent_volume_claim, claim,
                               Object{{"metadata", Object{{"annotations", Object{{"pv.kubernetes.io/bind-completed", "yes"}, {"pv.kubernetes.io/bound-by-controller", "yes"}}}}}, {"spec", Object{{"volumeName", volume.name()}}}});
    write.stage = 1;
    plan.writes.push_back(std::move(write));
  }

  /// The claim names its volume: both sides say Bound once the volume names the claim as well.
  static void finish(Plan& plan, const client::Object& claim, const Value& document, const ObjectRef& volume) {
    Object status = json::get_object(document, {"status"});
    if (!volume) {
      if (get_string(document, {"status", "phase"}) == "Bound") status["phase"] = "Lost";
    } else {
      const Value volume_document = volume->document();
      if (get_string(volume_document, {"spec", "claimRef", "name"}).empty()) return bind(plan, claim, document, *volume);
      if (!claims(volume_document, claim)) return;
      status["phase"] = "Bound";
      status["accessModes"] = get_array(volume_document, {"spec", "accessModes"});
      status["capacity"] = json::get_object(volume_document, {"spec", "capacity"});
      plan.enqueue.push_back(volume->name());
    }
    if (auto write = patch_status(kinds().persistent_volume_claim, claim, document, status)) plan.writes.push_back(std::move(*write));
  }

  static void provision(Plan& plan, const client::Object& claim, const Value& document, const Value& storage_class) {
    const std::string node(get_string(document, {"metadata", "annotations", kSelectedNode}));
    Object spec{{"capacity", Object{{"storage", get_string(document, {"spec", "resources", "requests", "storage"})}}},
                {"accessModes", get_array(document, {"spec", "accessModes"})},
                {"persistentVolumeReclaimPolicy", get_string(storage_class, {"reclaimPolicy"}, "Delete")},
                {"storageClassName", get_string(document, {"spec", "storageClassName"})},
                {"volumeMode", get_string(document, {"spec", "volumeMode"}, "Filesystem")},
                {"hostPath", Object{{"path", fmt::format("/var/lib/berth/volumes/pvc-{}", claim.uid())}, {"type", "DirectoryOrCreate"}}},
                {"claimRef", Object{{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"namespace", claim.ns()}, {"name", claim.name()}, {"uid", claim.uid()}}}};
    if (!node.empty())
      spec["nodeAffinity"] = Object{{"required", Object{{"nodeSelectorTerms", json::Array{Object{{"matchExpressions", json::Array{Object{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", json::Array{node}}}}}}}}}}};
    Write write = create_object(kinds().persistent_volume, "",
                                Object{{"apiVersion", "v1"}, {"kind", "PersistentVolume"},
                                       {"metadata", Object{{"name", fmt::format("pvc-{}", claim.uid())}, {"annotations", Object{{"pv.kubernetes.io/provisioned-by", kLocalProvisioner}}}}}, {"spec", std::move(spec)}});
    write.on_success = note_about(kinds().persistent_volume_claim, claim, "Normal", "ProvisioningSucceeded", fmt::format("Successfully provisioned volume pvc-{}", claim.uid()));
    plan.writes.push_back(std::move(write));
  }
};

}  // namespace

ControllerPtr make_volume_binder() { return std::make_unique<VolumeBinder>(); }

}  // namespace berth::controllers
