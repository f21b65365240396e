// Volumes to nodes (pkg/controller/volume/attachdetach), for CSI volumes: a VolumeAttachment for each volume that pods of a node use, which
// the driver's attacher carries out.
//
//   a pod with the volume is bound to the node --> VolumeAttachment --(attacher: status.attached)--> node.status.volumesAttached
//   its last pod there is over, and the node has unmounted it (volumesInUse) --> out of volumesAttached --> VolumeAttachment deleted
//
// A node that is not ready and does not unmount is waited for six minutes, then it is given up; one that is out of service, not at all.
#include "controllers/common.h"
#include "controllers/pod_volumes.h"
#include "controllers/services.h"
#include "security/digest.h"

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_bool;
using json::get_string;
using json::Value;

constexpr std::chrono::minutes kUnmountPatience{6};  // maxWaitForUnmountDuration
constexpr std::string_view kManaged = "volumes.kubernetes.io/controller-managed-attach-detach";
constexpr std::string_view kOutOfService = "node.kubernetes.io/out-of-service";
constexpr std::size_t kNameLength = 68;  // "csi-" and 64 digits.

/// A volume that a node is to have.
struct WantedVolume {
  std::string volume, driver, handle;  ///< The PersistentVolume.
  bool is_shareable = false;           ///< Several nodes may have it.
  std::vector<PodRef> pods;
  [[nodiscard]] std::string unique_name() const { return fmt::format("kubernetes.io/csi/{}^{}", driver, handle); }
};

std::string attachment_name(const WantedVolume& wanted, const std::string& node) {
  return "csi-" + security::sha256_hex(wanted.handle + wanted.driver + node);
}

/// What others called otherwise is theirs.
bool is_made_here(const Object& attachment) { return attachment.name().size() == kNameLength && attachment.name().starts_with("csi-"); }

bool is_shareable(const Value& volume) {
  const auto& modes = get_array(volume, {"spec", "accessModes"});
  return modes.empty() || std::ranges::any_of(modes, [](const Value& mode) {
           return mode.is_string() && (json::as_view(mode) == "ReadWriteMany" || json::as_view(mode) == "ReadOnlyMany");
         });
}

bool is_node_ready(const Value& node) { return condition_status(node, "Ready") == "True"; }

bool is_out_of_service(const Value& node) {
  return std::ranges::any_of(get_array(node, {"spec", "taints"}),
                             [](const Value& taint) { return get_string(taint, {"key"}) == kOutOfService; });
}

bool lists_volume(const json::Array& list, std::string_view volume) {
  return std::ranges::any_of(list, [&](const Value& one) { return one.is_string() && json::as_view(one) == volume; });
}

/// Keys are names of nodes.
class AttachDetach final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "persistentvolume-attach-detach-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "attachdetach-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().volume_attachment,       kinds().csi_driver, kinds().persistent_volume,
            kinds().persistent_volume_claim, kinds().node,       kinds().pod};
  }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) return pod_changed(event, sink);
    if (event.kind == kinds().volume_attachment) return attachment_changed(event, sink);
    if (event.kind == kinds().node) {
      // One that never had a volume has nothing to do with this.
      if (users_.contains(event.object().name()) || attachments_.contains(event.object().name())) sink.add(event.object().name());
      return;
    }
    if (event.kind == kinds().persistent_volume_claim) return wake_users(event.object().key(), sink);
    if (event.kind == kinds().persistent_volume) {
      const auto volume = event.object().parsed();
      return wake_users(get_string(*volume, {"spec", "claimRef", "namespace"}), get_string(*volume, {"spec", "claimRef", "name"}), sink);
    }
    (void)cache;
    for (const auto& [node, claims] : users_) sink.add(node);
  }

  Plan reconcile(const std::string& name, TimePoint now, const Cache& cache) override {
    Plan plan;
    const ObjectRef node = cache.get(kinds().node, "", name);
    const auto parsed = node ? node->parsed() : nullptr;
    const bool is_managed = parsed && get_string(*parsed, {"metadata", "annotations", kManaged}) == "true";
    std::map<std::string, WantedVolume> wanted;  // By the attachment's name.
    if (is_managed)
      for (WantedVolume& one : wanted_by(name, cache)) wanted.emplace(attachment_name(one, name), std::move(one));
    // Whoever waits again is told again.
    for (auto waiting = wait_for_.begin(); waiting != wait_for_.end();) {
      const bool is_wanted = std::ranges::any_of(wanted, [&](const auto& one) { return one.second.volume == waiting->first; });
      if (!is_wanted) waiting->second.erase(name);
      waiting = waiting->second.empty() ? wait_for_.erase(waiting) : std::next(waiting);
    }
    std::map<std::string, json::Object> attached;  // By unique name: what the node is told of.
    for (const std::string& known : known_attachments(name)) {
      const ObjectRef attachment = cache.get(kinds().volume_attachment, "", known);
      if (!attachment || attachment->is_deleting()) continue;
      if (const auto found = wanted.find(known); found != wanted.end())
        look_at(plan, *attachment, found->second, attached);
      else if (is_made_here(*attachment))
        give_up(plan, *attachment, parsed.get(), cache, now, attached);
    }
    for (const auto& [key, one] : wanted)
      if (!cache.get(kinds().volume_attachment, "", key)) attach(plan, key, one, name, cache);
    if (is_managed) tell_node(plan, *node, *parsed, attached);
    return plan;
  }

 private:
  using Names = std::set<std::string>;

  void pod_changed(const Event& event, KeySink& sink) {
    const auto each = [&](const PodRef& pod, auto&& change) {
      if (!pod || pod->node.empty()) return;
      for (const std::string& claim : claims_of_volumes(pod)) {
        change(pod->node, claim);
        sink.add(pod->node);
      }
    };
    // Whether it was and is over decides; which pods there are is the cache's.
    if (event.pod_before && event.pod_after && event.pod_before->uid() == event.pod_after->uid() &&
        event.pod_before->node == event.pod_after->node && event.pod_before->is_finished() == event.pod_after->is_finished())
      return;
    each(event.pod_before, [&](const std::string& node, const std::string& claim) {
      const auto claims = users_.find(node);
      if (claims == users_.end()) return;
      claims->second[claim].erase(event.object().key());
      if (claims->second[claim].empty()) claims->second.erase(claim);
      if (claims->second.empty()) users_.erase(claims);
      nodes_of_[claim].erase(node);
      if (const auto left = users_.find(node); left != users_.end() && left->second.contains(claim)) nodes_of_[claim].insert(node);
      if (nodes_of_[claim].empty()) nodes_of_.erase(claim);
    });
    each(event.pod_after, [&](const std::string& node, const std::string& claim) {
      users_[node][claim].insert(event.object().key());
      nodes_of_[claim].insert(node);
    });
  }

  void attachment_changed(const Event& event, KeySink& sink) {
    const auto document = event.object().parsed();
    const std::string node(get_string(*document, {"spec", "nodeName"})),
        volume(get_string(*document, {"spec", "source", "persistentVolumeName"}));
    const std::string& name = event.object().name();
    if (event.after) {
      attachments_[node].insert(name);
      holders_[volume][node] = name;
    } else {
      attachments_[node].erase(name);
      if (attachments_[node].empty()) attachments_.erase(node);
      holders_[volume].erase(node);
      if (holders_[volume].empty()) holders_.erase(volume);
      waits_since_.erase(name);
      said_.erase(name);
      // Another node may have waited for it.
      for (const std::string& other : wait_for_[volume]) sink.add(other);
      wait_for_.erase(volume);
    }
    sink.add(node);
  }

  void wake_users(std::string_view ns, std::string_view claim, KeySink& sink) const { wake_users(fmt::format("{}/{}", ns, claim), sink); }
  void wake_users(const std::string& claim, KeySink& sink) const {
    if (const auto nodes = nodes_of_.find(claim); nodes != nodes_of_.end())
      for (const std::string& node : nodes->second) sink.add(node);
  }

  Names known_attachments(const std::string& node) const {
    const auto found = attachments_.find(node);
    return found == attachments_.end() ? Names{} : found->second;
  }

  /// The volumes of a node's pods that need an attacher.
  std::vector<WantedVolume> wanted_by(const std::string& node, const Cache& cache) const {
    std::vector<WantedVolume> out;
    const auto claims = users_.find(node);
    if (claims == users_.end()) return out;
    for (const auto& [key, pods] : claims->second) {
      const auto [ns, name] = split_key(key);
      const ObjectRef claim = cache.get(kinds().persistent_volume_claim, ns, name);
      const ObjectRef volume =
          !claim ? nullptr : cache.get(kinds().persistent_volume, "", get_string(*claim->parsed(), {"spec", "volumeName"}));
      if (!volume) continue;
      const auto document = volume->parsed();
      if (get_string(*document, {"spec", "claimRef", "uid"}) != claim->uid()) continue;
      WantedVolume one{volume->name(),
                       std::string(get_string(*document, {"spec", "csi", "driver"})),
                       std::string(get_string(*document, {"spec", "csi", "volumeHandle"})),
                       is_shareable(*document),
                       {}};
      if (one.driver.empty() || !needs_attacher(one.driver, cache)) continue;
      for (const std::string& pod_key : pods) {
        const auto [pod_ns, pod_name] = split_key(pod_key);
        if (PodRef pod = cache.pod(pod_ns, pod_name); pod && pod->node == node && !pod->is_finished()) one.pods.push_back(std::move(pod));
      }
      if (!one.pods.empty()) out.push_back(std::move(one));
    }
    return out;
  }

  static bool needs_attacher(const std::string& driver, const Cache& cache) {
    const ObjectRef object = cache.get(kinds().csi_driver, "", driver);
    return !object || get_bool(*object->parsed(), {"spec", "attachRequired"}, true);
  }

  static void tell_pods(Plan& plan, const WantedVolume& wanted, std::string_view type, std::string_view reason,
                        const std::string& message) {
    for (const PodRef& pod : wanted.pods) plan.events.push_back(note_about(kinds().pod, *pod->object, type, reason, message));
  }

  void attach(Plan& plan, const std::string& key, const WantedVolume& wanted, const std::string& node, const Cache& cache) {
    if (const auto holders = holders_.find(wanted.volume); !wanted.is_shareable && holders != holders_.end())
      for (const auto& [other, attachment] : holders->second) {
        if (other == node || !cache.get(kinds().volume_attachment, "", attachment)) continue;
        if (wait_for_[wanted.volume].insert(node).second)
          tell_pods(plan, wanted, "Warning", "FailedAttachVolume",
                    fmt::format("Multi-Attach error for volume \"{}\" Volume is already exclusively attached to one node and can't be "
                                "attached to another",
                                wanted.volume));
        return;
      }
    plan.writes.push_back(
        create_object(kinds().volume_attachment, "",
                      json::Object{{"apiVersion", "storage.k8s.io/v1"},
                                   {"kind", "VolumeAttachment"},
                                   {"metadata", json::Object{{"name", key}}},
                                   {"spec", json::Object{{"attacher", wanted.driver},
                                                         {"nodeName", node},
                                                         {"source", json::Object{{"persistentVolumeName", wanted.volume}}}}}}));
  }

  /// One that is wanted: what came of it.
  void look_at(Plan& plan, const Object& attachment, const WantedVolume& wanted, std::map<std::string, json::Object>& attached) {
    waits_since_.erase(attachment.name());
    const auto document = attachment.parsed();
    const bool is_attached = get_bool(*document, {"status", "attached"});
    const std::string error(get_string(*document, {"status", "attachError", "message"}));
    const std::string state = is_attached ? "attached" : error;
    if (said_[attachment.name()] != state) {
      said_[attachment.name()] = state;
      if (is_attached)
        tell_pods(plan, wanted, "Normal", "SuccessfulAttachVolume",
                  fmt::format("AttachVolume.Attach succeeded for volume \"{}\"", wanted.volume));
      else if (!error.empty())
        tell_pods(plan, wanted, "Warning", "FailedAttachVolume",
                  fmt::format("AttachVolume.Attach failed for volume \"{}\" : {}", wanted.volume, error));
    }
    if (is_attached) put(attached, wanted.unique_name(), *document);
  }

  static void put(std::map<std::string, json::Object>& attached, const std::string& volume, const Value& attachment) {
    attached[volume] =
        json::Object{{"name", volume}, {"devicePath", get_string(attachment, {"status", "attachmentMetadata", "devicePath"})}};
  }

  /// One that no pod of the node wants: it goes when the node has unmounted it, or cannot be waited for.
  void give_up(Plan& plan, const Object& attachment, const Value* node, const Cache& cache, TimePoint now,
               std::map<std::string, json::Object>& attached) {
    const auto document = attachment.parsed();
    const ObjectRef volume = cache.get(kinds().persistent_volume, "", get_string(*document, {"spec", "source", "persistentVolumeName"}));
    const std::string name = !volume ? std::string()
                                     : fmt::format("kubernetes.io/csi/{}^{}", get_string(*document, {"spec", "attacher"}),
                                                   get_string(*volume->parsed(), {"spec", "csi", "volumeHandle"}));
    if (node != nullptr && lists_volume(get_array(*node, {"status", "volumesInUse"}), name) && !is_out_of_service(*node)) {
      const TimePoint since = waits_since_.try_emplace(attachment.name(), now).first->second;
      const bool is_given_up = !is_node_ready(*node) && now - since >= kUnmountPatience;
      if (!is_given_up) {
        if (get_bool(*document, {"status", "attached"})) put(attached, name, *document);
        if (!is_node_ready(*node)) plan.requeue_after = since + kUnmountPatience - now;
        return;
      }
    }
    Write write = delete_object(kinds().volume_attachment, attachment);
    write.stage = 1;  // The node is told before.
    plan.writes.push_back(std::move(write));
  }

  static void tell_node(Plan& plan, const Object& node, const Value& document, const std::map<std::string, json::Object>& attached) {
    json::Array list;
    for (const auto& [volume, entry] : attached) list.push_back(entry);
    if (json::equal(Value(list), Value(get_array(document, {"status", "volumesAttached"})))) return;
    json::Object status = json::get_object(document, {"status"});
    status["volumesAttached"] = std::move(list);
    if (auto write = patch_status(kinds().node, node, document, status)) plan.writes.push_back(std::move(*write));
  }

  std::map<std::string, std::map<std::string, Names>> users_;          ///< By node and claim: keys of its pods.
  std::map<std::string, Names> nodes_of_;                              ///< By claim.
  std::map<std::string, Names> attachments_;                           ///< By node.
  std::map<std::string, std::map<std::string, std::string>> holders_;  ///< By volume and node: the attachment.
  std::map<std::string, Names> wait_for_;                              ///< By volume: nodes that cannot have it yet, and said so.
  std::map<std::string, TimePoint> waits_since_;                       ///< By attachment: since when it is not unmounted.
  std::map<std::string, std::string> said_;                            ///< By attachment: what its pods were told.
};

}  // namespace

ControllerPtr make_attach_detach_controller() { return std::make_unique<AttachDetach>(); }

}  // namespace berth::controllers
