// Claims to volumes (pkg/controller/volume/persistentvolume): static binding, and provisioning by the built-in local provisioner.
//
//   claim Pending --- volume found or provisioned: PV.spec.claimRef --> PVC.spec.volumeName --> both Bound
//   claim gone    --- PV Released --> Delete: the PV goes (when the built-in provisioner made it); Retain: it stays
#include <fmt/format.h>

#include "controllers/common.h"
#include "controllers/services.h"
#include "controllers/volume_facts.h"

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_string;
using json::Value;

constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
constexpr std::string_view kIsDefaultClass = "storageclass.kubernetes.io/is-default-class";
constexpr std::string_view kIsDefaultClassBeta = "storageclass.beta.kubernetes.io/is-default-class";

EventNote about_claim(const client::Object& claim, std::string_view type, std::string_view reason, std::string message) {
  return note_about(kinds().persistent_volume_claim, claim, type, reason, std::move(message));
}

/// Keys are "ns/name" of claims and "name" of volumes.
class VolumeBinder final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "persistentvolume-binder-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "persistentvolume-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().persistent_volume, kinds().persistent_volume_claim, kinds().storage_class};
  }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    const client::Object& object = event.object();
    if (event.kind == kinds().persistent_volume_claim) {
      const auto parsed = object.parsed();
      const Value& document = *parsed;
      const ClaimFacts claim = ClaimFacts::of(object, document);
      if (event.after && !claim.bind_completed)
        waiting_[object.key()] = claim.storage_class;
      else
        waiting_.erase(object.key());
      sink.add(object.key());
      if (!claim.volume_name.empty()) sink.add(claim.volume_name);
      return;
    }
    if (event.kind == kinds().storage_class) return wake(sink, object.name());
    const auto parsed = object.parsed();
    const Value& document = *parsed;
    VolumeFacts volume = VolumeFacts::of(object, document);
    sink.add(object.name());
    if (volume.has_claim())
      sink.add(volume.claim_ns + "/" + volume.claim_name);
    else
      wake(sink, volume.storage_class);
    if (event.after)
      volumes_.put(std::move(volume));
    else
      volumes_.erase(object.name());
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    return key.find('/') == std::string::npos ? volume_step(key, now, cache) : claim_step(key, cache);
  }

 private:
  /// Looks again at the claims that wait for something of this class, or for a default class.
  void wake(KeySink& sink, std::string_view storage_class) const {
    for (const auto& [key, wanted] : waiting_)
      if (wanted == storage_class || wanted.empty()) sink.add(key);
  }

  Plan volume_step(const std::string& name, TimePoint now, const Cache& cache) const {
    Plan plan;
    const ObjectRef volume = cache.get(kinds().persistent_volume, "", name);
    const VolumeFacts* facts = volumes_.find(name);
    if (!volume || facts == nullptr) return plan;
    const auto parsed = volume->parsed();
    const Value& document = *parsed;
    if (!facts->has_claim() || facts->claim_uid.empty()) {
      set_phase(plan, *volume, document, "Available", now);
      return plan;
    }
    const ObjectRef claim = cache.get(kinds().persistent_volume_claim, facts->claim_ns, facts->claim_name);
    if (!claim || claim->uid() != facts->claim_uid) {
      reclaim(plan, *volume, document, now);
      return plan;
    }
    const auto claim_document_parsed = claim->parsed();
    const Value& claim_document = *claim_document_parsed;
    const std::string_view taken = get_string(claim_document, {"spec", "volumeName"});
    if (taken == name) {
      set_phase(plan, *volume, document, "Bound", now);
    } else if (!taken.empty()) {
      // The claim went elsewhere. What was made for it goes; what the binder reserved is free again.
      if (json::find(document, {"metadata", "annotations", kProvisionedBy}) != nullptr &&
          get_string(document, {"spec", "persistentVolumeReclaimPolicy"}) == "Delete")
        reclaim(plan, *volume, document, now);
      else
        unbind(plan, *volume, document);
    }
    return plan;
  }

  static void set_phase(Plan& plan, const client::Object& volume, const Value& document, std::string_view phase, TimePoint now,
                        std::string_view message = {}) {
    json::Object status = json::get_object(document, {"status"});
    if (get_string(document, {"status", "phase"}) != phase) status["lastPhaseTransitionTime"] = format_rfc3339(now);
    status["phase"] = phase;
    if (message.empty())
      status.erase("message");
    else
      status["message"] = message;
    if (auto write = patch_status(kinds().persistent_volume, volume, document, status)) plan.writes.push_back(std::move(*write));
  }

  /// The claim is gone. A volume of another provisioner is that provisioner's to delete; one that nobody made can be deleted by nobody
  /// here.
  static void reclaim(Plan& plan, const client::Object& volume, const Value& document, TimePoint now) {
    const std::string_view maker = get_string(document, {"metadata", "annotations", kProvisionedBy}),
                           policy = get_string(document, {"spec", "persistentVolumeReclaimPolicy"});
    // Only directories and NFS exports can be scrubbed.
    if (policy == "Recycle" && json::find(document, {"spec", "nfs"}) == nullptr && json::find(document, {"spec", "hostPath"}) == nullptr) {
      if (get_string(document, {"status", "phase"}) != "Failed")
        plan.events.push_back(
            note_about(kinds().persistent_volume, volume, "Warning", "VolumeFailedRecycle", "No recycler plugin found for the volume!"));
      return set_phase(plan, volume, document, "Failed", now, "No recycler plugin found for the volume!");
    }
    if (policy != "Delete" || (!maker.empty() && maker != kLocalProvisioner)) return set_phase(plan, volume, document, "Released", now);
    if (maker == kLocalProvisioner) {
      if (!volume.is_deleting()) plan.writes.push_back(delete_object(kinds().persistent_volume, volume));
      set_phase(plan, volume, document, "Released", now);
      return;
    }
    // Kubernetes' own deleter of directories takes those below /tmp alone; here nobody deletes any.
    const std::string_view directory = get_string(document, {"spec", "hostPath", "path"});
    const std::string message =
        directory.empty() || (directory.starts_with("/tmp/") && directory.size() > 5)
            ? fmt::format("error getting deleter volume plugin for volume \"{}\": no deletable volume plugin matched", volume.name())
            : fmt::format("host_path deleter only supports /tmp/.+ but received provided {}", directory);
    if (get_string(document, {"status", "phase"}) != "Failed")
      plan.events.push_back(note_about(kinds().persistent_volume, volume, "Warning", "VolumeFailedDelete", message));
    set_phase(plan, volume, document, "Failed", now, message);
  }

  static void unbind(Plan& plan, const client::Object& volume, const Value& document) {
    json::Object patch;
    if (json::find(document, {"metadata", "annotations", kBoundByController}) != nullptr)
      patch = json::Object{{"metadata", json::Object{{"annotations", json::Object{{kBoundByController, nullptr}}}}},
                           {"spec", json::Object{{"claimRef", nullptr}}}};
    else
      patch = json::Object{{"spec", json::Object{{"claimRef", json::Object{{"uid", nullptr}}}}}};
    plan.writes.push_back(patch_object(kinds().persistent_volume, volume, std::move(patch)));
  }

  Plan claim_step(const std::string& key, const Cache& cache) const {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef claim = cache.get(kinds().persistent_volume_claim, ns, name);
    if (!claim) return plan;
    const auto parsed = claim->parsed();
    const Value& document = *parsed;
    const ClaimFacts facts = ClaimFacts::of(*claim, document);
    if (facts.bind_completed)
      bound_step(plan, *claim, facts, document, cache);
    else if (claim->is_deleting())
      return plan;
    else if (!facts.volume_name.empty())
      named_step(plan, *claim, facts, document, cache);
    else
      unbound_step(plan, *claim, facts, document, cache);
    return plan;
  }

  /// A claim that any volume may serve.
  void unbound_step(Plan& plan, const client::Object& claim, const ClaimFacts& facts, const Value& document, const Cache& cache) const {
    if (!facts.names_class) {
      if (const std::string chosen = default_class(cache); !chosen.empty()) {
        plan.writes.push_back(
            patch_object(kinds().persistent_volume_claim, claim, json::Object{{"spec", json::Object{{"storageClassName", chosen}}}}));
        return;
      }
    }
    const ObjectRef storage_class = cache.get(kinds().storage_class, "", facts.storage_class);
    const Value class_document = storage_class ? storage_class->document() : Value(json::Object());
    const bool wait = get_string(class_document, {"volumeBindingMode"}) == "WaitForFirstConsumer" && facts.selected_node.empty();
    if (const VolumeFacts* volume = volumes_.best_for(facts, document, wait)) {
      if (const ObjectRef object = cache.get(kinds().persistent_volume, "", volume->name)) bind(plan, claim, document, *object);
      return;
    }
    if (wait) {
      plan.events.push_back(
          about_claim(claim, "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding"));
    } else if (facts.storage_class.empty()) {
      plan.events.push_back(
          about_claim(claim, "Normal", "FailedBinding", "no persistent volumes available for this claim and no storage class is set"));
    } else if (!storage_class) {
      plan.events.push_back(about_claim(claim, "Warning", "ProvisioningFailed",
                                        fmt::format("storageclass.storage.k8s.io \"{}\" not found", facts.storage_class)));
    } else {
      provision(plan, claim, facts, document, class_document);
    }
    set_pending(plan, claim, document);
  }

  /// A claim whose author named the volume.
  void named_step(Plan& plan, const client::Object& claim, const ClaimFacts& facts, const Value& document, const Cache& cache) const {
    const ObjectRef volume = cache.get(kinds().persistent_volume, "", facts.volume_name);
    const VolumeFacts* wanted = volumes_.find(facts.volume_name);
    if (!volume || wanted == nullptr) return set_pending(plan, claim, document);
    if (wanted->has_claim() && !wanted->is_for(facts)) {
      if (!facts.bound_by_controller)
        plan.events.push_back(
            about_claim(claim, "Warning", "FailedBinding", fmt::format("volume \"{}\" already bound to a different claim.", wanted->name)));
      return set_pending(plan, claim, document);
    }
    if (!wanted->has_claim()) {
      if (const auto mismatch = volume_mismatch(*wanted, document)) {
        plan.events.push_back(about_claim(claim, "Warning", "VolumeMismatch",
                                          fmt::format("Cannot bind to requested volume \"{}\": {}", wanted->name, *mismatch)));
        return set_pending(plan, claim, document);
      }
    }
    bind(plan, claim, document, *volume);
  }

  /// A claim that was bound once: its data is there, or lost.
  void bound_step(Plan& plan, const client::Object& claim, const ClaimFacts& facts, const Value& document, const Cache& cache) const {
    const ObjectRef volume = facts.volume_name.empty() ? nullptr : cache.get(kinds().persistent_volume, "", facts.volume_name);
    const VolumeFacts* held = volumes_.find(facts.volume_name);
    if (!volume || held == nullptr) {
      lose(plan, claim, document, "ClaimLost",
           facts.volume_name.empty() ? "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
                                     : "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    } else if (held->is_for(facts) || !held->has_claim()) {
      bind(plan, claim, document, *volume);
    } else {
      lose(plan, claim, document, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
    }
  }

  static void lose(Plan& plan, const client::Object& claim, const Value& document, std::string_view reason, std::string message) {
    if (get_string(document, {"status", "phase"}) != "Lost")
      plan.events.push_back(about_claim(claim, "Warning", reason, std::move(message)));
    if (auto write = patch_status(kinds().persistent_volume_claim, claim, document, json::Object{{"phase", "Lost"}}))
      plan.writes.push_back(std::move(*write));
  }

  static void set_pending(Plan& plan, const client::Object& claim, const Value& document) {
    json::Object status = json::get_object(document, {"status"});
    status["phase"] = "Pending";
    if (auto write = patch_status(kinds().persistent_volume_claim, claim, document, status)) plan.writes.push_back(std::move(*write));
  }

  /// First the volume names the claim, then the claim the volume; the phases follow. Each step is skipped where it is done, so that a
  /// binding cut short anywhere is finished by the next step.
  static void bind(Plan& plan, const client::Object& claim, const Value& document, const client::Object& volume) {
    const auto volume_document_parsed = volume.parsed();
    const Value& volume_document = *volume_document_parsed;
    if (get_string(volume_document, {"spec", "claimRef", "uid"}) != claim.uid()) {
      json::Object patch{{"spec", json::Object{{"claimRef", json::Object{{"apiVersion", "v1"},
                                                                         {"kind", "PersistentVolumeClaim"},
                                                                         {"namespace", claim.ns()},
                                                                         {"name", claim.name()},
                                                                         {"uid", claim.uid()},
                                                                         {"resourceVersion", std::to_string(claim.revision())}}}}}};
      if (get_string(volume_document, {"spec", "claimRef", "name"}).empty())
        patch["metadata"] = json::Object{{"annotations", json::Object{{kBoundByController, "yes"}}}};
      plan.writes.push_back(patch_object(kinds().persistent_volume, volume, std::move(patch)));
    }
    const bool named = !get_string(document, {"spec", "volumeName"}).empty();
    if (!named || json::find(document, {"metadata", "annotations", kBindCompleted}) == nullptr) {
      json::Object annotations{{kBindCompleted, "yes"}};
      if (!named) annotations[kBoundByController] = "yes";
      json::Object patch{{"metadata", json::Object{{"annotations", std::move(annotations)}}}};
      if (!named) patch["spec"] = json::Object{{"volumeName", volume.name()}};
      Write write = patch_object(kinds().persistent_volume_claim, claim, std::move(patch));
      write.stage = 1;
      plan.writes.push_back(std::move(write));
      return;
    }
    json::Object status = json::get_object(document, {"status"});
    // What they change to later is told by whoever changes the volume: one that has grown has its size once its filesystem has it.
    if (get_string(document, {"status", "phase"}) != "Bound") {
      if (const auto attributes = get_string(volume_document, {"spec", "volumeAttributesClassName"}); !attributes.empty())
        status["currentVolumeAttributesClassName"] = attributes;
      status["capacity"] = json::get_object(volume_document, {"spec", "capacity"});
    }
    status["phase"] = "Bound";
    status["accessModes"] = get_array(volume_document, {"spec", "accessModes"});
    if (auto write = patch_status(kinds().persistent_volume_claim, claim, document, status)) plan.writes.push_back(std::move(*write));
    plan.enqueue.push_back(volume.name());
  }

  /// The default class; of several the newest, by name among equals; "" when there is none.
  static std::string default_class(const Cache& cache) {
    std::string chosen, created;
    cache.for_each(kinds().storage_class, [&](const ObjectRef& one) {
      const auto parsed = one->parsed();
      const Value& document = *parsed;
      if (get_string(document, {"metadata", "annotations", kIsDefaultClass}) != "true" &&
          get_string(document, {"metadata", "annotations", kIsDefaultClassBeta}) != "true")
        return;
      const std::string_view at = get_string(document, {"metadata", "creationTimestamp"});
      if (!chosen.empty() && at <= created) return;
      chosen = one->name();
      created = at;
    });
    return chosen;
  }

  static void provision(Plan& plan, const client::Object& claim, const ClaimFacts& facts, const Value& document,
                        const Value& storage_class) {
    const std::string provisioner(get_string(storage_class, {"provisioner"}));
    if (provisioner.starts_with("kubernetes.io/")) {
      plan.events.push_back(
          about_claim(claim, "Warning", "ProvisioningFailed", fmt::format("no volume plugin matched name: {}", provisioner)));
      return;
    }
    if (provisioner != kLocalProvisioner) {
      plan.events.push_back(about_claim(claim, "Normal", "ExternalProvisioning",
                                        fmt::format("Waiting for a volume to be created either by the external provisioner '{}' or "
                                                    "manually by the system administrator. If volume creation is delayed, "
                                                    "please verify that the provisioner is running and correctly registered.",
                                                    provisioner)));
    } else if (facts.selected_node.empty()) {
      plan.events.push_back(about_claim(
          claim, "Warning", "ProvisioningFailed",
          fmt::format(
              "storage class \"{}\" needs volumeBindingMode: WaitForFirstConsumer: a volume of {} lives on the node of its first consumer",
              facts.storage_class, provisioner)));
      return;
    } else {
      plan.writes.push_back(make_local_volume(claim, facts, document, storage_class));
    }
    json::Object annotations;
    for (const char* key : {"volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"})
      if (get_string(document, {"metadata", "annotations", key}) != provisioner) annotations[key] = provisioner;
    if (!annotations.empty())
      plan.writes.push_back(patch_object(kinds().persistent_volume_claim, claim,
                                         json::Object{{"metadata", json::Object{{"annotations", std::move(annotations)}}}}));
  }

  /// A directory on the node that the scheduler selected, reserved for the claim.
  static Write make_local_volume(const client::Object& claim, const ClaimFacts& facts, const Value& document, const Value& storage_class) {
    const std::string name = fmt::format("pvc-{}", claim.uid());
    const Value term = json::Object{
        {"matchExpressions",
         json::Array{json::Object{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", json::Array{facts.selected_node}}}}}};
    json::Object spec{{"capacity", json::Object{{"storage", get_string(document, {"spec", "resources", "requests", "storage"})}}},
                      {"accessModes", get_array(document, {"spec", "accessModes"})},
                      {"persistentVolumeReclaimPolicy", get_string(storage_class, {"reclaimPolicy"}, "Delete")},
                      {"storageClassName", facts.storage_class},
                      {"volumeMode", get_string(document, {"spec", "volumeMode"}, "Filesystem")},
                      {"hostPath", json::Object{{"path", "/var/lib/berth/volumes/" + name}, {"type", "DirectoryOrCreate"}}},
                      {"claimRef", json::Object{{"apiVersion", "v1"},
                                                {"kind", "PersistentVolumeClaim"},
                                                {"namespace", claim.ns()},
                                                {"name", claim.name()},
                                                {"uid", claim.uid()},
                                                {"resourceVersion", std::to_string(claim.revision())}}},
                      {"nodeAffinity", json::Object{{"required", json::Object{{"nodeSelectorTerms", json::Array{term}}}}}}};
    Write write = create_object(
        kinds().persistent_volume, "",
        json::Object{{"apiVersion", "v1"},
                     {"kind", "PersistentVolume"},
                     {"metadata", json::Object{{"name", name}, {"annotations", json::Object{{kProvisionedBy, kLocalProvisioner}}}}},
                     {"spec", std::move(spec)}});
    write.on_success = about_claim(claim, "Normal", "ProvisioningSucceeded", fmt::format("Successfully provisioned volume {}", name));
    return write;
  }

  VolumeIndex volumes_;
  std::map<std::string, std::string> waiting_;  ///< Keys of the claims whose binding is not complete, with their classes.
};

}  // namespace

ControllerPtr make_volume_binder() { return std::make_unique<VolumeBinder>(); }

}  // namespace berth::controllers
