// Resource claims (pkg/controller/resourceclaim): makes the claims of pods' templates, says their names in the pods' status, takes pods
// that are done off the claims' users, gives back devices that nobody uses any more. What a PodGroup and its pods name alike is one claim
// for all of them (KEP-5729): made for the group, reserved for the group, and given back when the group is gone.
#include <fmt/format.h>

#include <set>

#include "controllers/common.h"
#include "controllers/pod_claims.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_string;
using json::Value;

constexpr std::string_view kResourceClaimFinalizer = "resource.kubernetes.io/delete-protection";
constexpr std::string_view kPodClaimAnnotation = "resource.kubernetes.io/pod-claim-name";
constexpr std::string_view kGroupClaimAnnotation = "resource.kubernetes.io/podgroup-claim-name";
constexpr std::size_t kMostGone = 100'000;
constexpr std::string_view kPodPrefix = "pod:", kClaimPrefix = "claim:", kGroupPrefix = "group:";

bool is_done(const PodInfo& pod) { return pod.is_finished() || (pod.deleting && pod.node.empty()); }

/// "POD-CLAIM-", shortened on both sides where a name could not hold it.
std::string generated_name(std::string_view pod, std::string_view claim) {
  constexpr std::size_t kMost = 57;
  std::string out = fmt::format("{}-{}-", pod, claim);
  if (out.size() <= kMost) return out;
  return fmt::format("{}-{}", pod.substr(0, pod.size() * kMost / out.size()), claim.substr(0, claim.size() * kMost / out.size()));
}

/// Whose template a claim is made of, and what is told about it.
struct Maker {
  Kind kind;
  const Object& object;
  std::string_view annotation;  ///< On the claim: the name of the entry that it is of.
  const char* what;             ///< As events name the entry.
};

/// Keys are "pod:NS/NAME", "group:NS/NAME" (PodGroups) and "claim:NS/NAME".
class ResourceClaims final : public Controller {
 public:
  explicit ResourceClaims(ResourceClaimOptions options) : options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "resourceclaim-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "resource_claim"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    std::vector<Kind> out{kinds().pod, kinds().resource_claim, kinds().resource_claim_template};
    if (options_.knows_groups) out.push_back(kinds().pod_group);
    return out;
  }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) return on_pod(event, sink);
    if (event.kind == kinds().pod_group) return on_group(event, cache, sink);
    const std::string key = event.object().key();
    if (event.kind == kinds().resource_claim_template) {
      if (!event.after) return;
      for (const std::string& group : users_of(groups_by_template_, key)) sink.add(std::string(kGroupPrefix) + group);
      for (const std::string& pod : users_of(by_template_, key)) sink.add(std::string(kPodPrefix) + pod);
      return;
    }
    if (event.after) sink.add(std::string(kClaimPrefix) + key);
    for (const std::string& pod : users_of(by_claim_, key)) sink.add(std::string(kPodPrefix) + pod);
    for (const OwnerReference& owner : owner_references(*event.object().parsed()))
      if (owner.is_controller && (owner.kind == "Pod" || owner.kind == "PodGroup"))
        sink.add(fmt::format("{}{}/{}", owner.kind == "Pod" ? kPodPrefix : kGroupPrefix, event.object().ns(), owner.name));
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    const auto [ns, name] = split_key(std::string_view(key).substr(key.find(':') + 1));
    if (key.starts_with(kPodPrefix)) return sync_pod(ns, name, cache);
    return key.starts_with(kGroupPrefix) ? sync_group(ns, name, cache) : sync_claim(ns, name, cache);
  }

  void on_result(const std::string&, const Write& write, const ApiResult<Value>& result, TimePoint) override {
    if (write.verb != Write::Verb::kGet) return;
    const bool is_gone = result ? get_string(*result, {"metadata", "uid"}) != write.tag : result.error().code == 404;
    if (is_gone) remember_gone(write.tag);
  }

 private:
  using Index = std::map<std::string, std::set<std::string>, std::less<>>;  ///< "ns/name" to pods, by "ns/name".

  static std::set<std::string> users_of(const Index& index, const std::string& key) {
    const auto found = index.find(key);
    return found == index.end() ? std::set<std::string>() : found->second;
  }

  void on_group(const Event& event, const Cache& cache, KeySink& sink) {
    const ObjectRef& group = event.after ? event.after : event.before;
    const std::string key = group->key();
    for (const PodClaim& entry : pod_claims(*group->parsed())) {
      if (!entry.claim_template.empty()) note(groups_by_template_, group->ns() + "/" + entry.claim_template, key, event.after != nullptr);
      // What it named may be free now.
      if (!event.after && !entry.claim.empty()) sink.add(fmt::format("{}{}/{}", kClaimPrefix, group->ns(), entry.claim));
    }
    if (event.after) {
      sink.add(std::string(kGroupPrefix) + key);
    } else {
      remember_gone(group->uid());
      for (const ObjectRef& claim : cache.controlled(kinds().resource_claim, group->uid()))
        sink.add(std::string(kClaimPrefix) + claim->key());
    }
    for (const std::string& pod : users_of(by_group_, key)) sink.add(std::string(kPodPrefix) + pod);
  }

  /// Of very many none is remembered: the server is asked instead.
  void remember_gone(const std::string& uid) {
    if (gone_.size() >= kMostGone) gone_.clear();
    gone_.insert(uid);
  }

  static void note(Index& index, const std::string& of, const std::string& user, bool is_one) {
    if (is_one)
      index[of].insert(user);
    else if (const auto found = index.find(of); found != index.end() && found->second.erase(user) != 0 && found->second.empty())
      index.erase(found);
  }

  void on_pod(const Event& event, KeySink& sink) {
    const PodRef& pod = event.pod_after ? event.pod_after : event.pod_before;
    if (!pod) return;
    const bool needs_none = !event.after || is_done(*pod);
    if (needs_none && !pod->extended_claim.empty()) sink.add(fmt::format("{}{}/{}", kClaimPrefix, pod->ns(), pod->extended_claim));
    if (!event.after && (pod->has_resource_claims || !pod->extended_claim.empty())) remember_gone(pod->uid());
    if (!pod->has_resource_claims) return;
    const std::string key = pod->object->key();
    if (!pod->scheduling_group.empty()) note(by_group_, pod->ns() + "/" + pod->scheduling_group, key, event.after != nullptr);
    for (const PodClaim& entry : pod_claims(*pod->object->parsed())) {
      for (auto [index, name] : {std::pair(&by_claim_, &entry.claim), std::pair(&by_template_, &entry.claim_template)}) {
        if (!name->empty()) note(*index, pod->ns() + "/" + *name, key, event.after != nullptr);
      }
      if (needs_none && !entry.claim.empty()) sink.add(fmt::format("{}{}/{}", kClaimPrefix, pod->ns(), entry.claim));
    }
    if (!needs_none) sink.add(std::string(kPodPrefix) + key);
  }

  Plan sync_pod(std::string_view ns, std::string_view name, const Cache& cache) {
    Plan plan;
    const PodRef pod = cache.pod(ns, name);
    if (!pod || pod->deleting || !pod->has_resource_claims || pod->is_finished()) return plan;
    const auto parsed = pod->object->parsed();
    const Value& document = *parsed;
    const ObjectRef group = group_of(*pod, cache);
    // Whether it shares the claims that it names is not known until its group is there; nor does it run before.
    if (!group && !pod->scheduling_group.empty() && options_.knows_groups && pod->node.empty()) return plan;
    json::Array statuses;
    const Maker maker{kinds().pod, *pod->object, kPodClaimAnnotation, "PodResourceClaim"};
    for (const PodClaim& entry : pod_claims(document)) {
      if (plan.is_full()) return plan;  // Many entries may name one large template.
      if (group && is_shared(*group->parsed(), entry)) {
        follow(*group, entry, cache, statuses);
      } else if (!make_or_fail(maker, entry, cache, plan, statuses)) {
        return plan;
      }
    }
    write_statuses(maker, std::move(statuses), plan);
    // Somebody else than the scheduler gave it a node.
    if (!pod->node.empty()) reserve(*pod, document, group, cache, plan);
    return plan;
  }

  Plan sync_group(std::string_view ns, std::string_view name, const Cache& cache) {
    Plan plan;
    const ObjectRef group = cache.get(kinds().pod_group, ns, name);
    if (!group || group->is_deleting()) return plan;
    const Maker maker{kinds().pod_group, *group, kGroupClaimAnnotation, "PodGroupResourceClaim"};
    json::Array statuses;
    for (const PodClaim& entry : pod_claims(*group->parsed()))
      if (plan.is_full() || !make_or_fail(maker, entry, cache, plan, statuses)) return plan;
    write_statuses(maker, std::move(statuses), plan);
    return plan;
  }

  /// The group of the pod, where groups share claims; null: none, or not there yet.
  [[nodiscard]] ObjectRef group_of(const PodInfo& pod, const Cache& cache) const {
    return !options_.knows_groups || pod.scheduling_group.empty() ? nullptr : cache.get(kinds().pod_group, pod.ns(), pod.scheduling_group);
  }

  /// The pod's status says the claim that was made for the group, once it is there.
  static void follow(const Object& group, const PodClaim& entry, const Cache& cache, json::Array& statuses) {
    if (entry.claim_template.empty() || entry.has_status) return;
    for (const ObjectRef& claim : cache.controlled(kinds().resource_claim, group.uid())) {
      if (get_string(*claim->parsed(), {"metadata", "annotations", kGroupClaimAnnotation}) != entry.name) continue;
      statuses.push_back(json::Object{{"name", entry.name}, {"resourceClaimName", claim->name()}});
      return;
    }
  }

  static void write_statuses(const Maker& maker, json::Array statuses, Plan& plan) {
    if (statuses.empty()) return;
    Write write;
    write.verb = Write::Verb::kPatch;
    write.kind = maker.kind;
    write.ns = maker.object.ns();
    write.name = maker.object.name();
    write.subresource = "status";
    write.patch_type = PatchType::kStrategicMerge;
    write.body = {{"metadata", {{"uid", maker.object.uid()}}}, {"status", {{"resourceClaimStatuses", std::move(statuses)}}}};
    plan.writes.push_back(std::move(write));
  }

  /// False: the plan says what is wrong.
  static bool make_or_fail(const Maker& maker, const PodClaim& entry, const Cache& cache, Plan& plan, json::Array& statuses) {
    const std::string why = make_claim(maker, entry, cache, plan, statuses);
    if (why.empty()) return true;
    const std::string text = fmt::format("{} {}: {}", maker.what, entry.name, why);
    plan.events.push_back(note_about(maker.kind, maker.object, "Warning", "FailedResourceClaimCreation", text));
    plan.error = fmt::format("{} {}, {}", maker.kind == kinds().pod ? "pod" : "pod group", maker.object.key(), text);
    return false;
  }

  /// The claim of an entry, if a template asks for one that is not there. Empty, or what is wrong.
  static std::string make_claim(const Maker& maker, const PodClaim& entry, const Cache& cache, Plan& plan, json::Array& statuses) {
    const Object& user = maker.object;
    if (entry.claim_template.empty() || (entry.has_status && entry.claim.empty())) return {};
    if (entry.has_status) {
      const ObjectRef known = cache.get(kinds().resource_claim, user.ns(), entry.claim);
      if (known && known->controller_uid() == user.uid()) return {};
    }
    for (const ObjectRef& claim : cache.controlled(kinds().resource_claim, user.uid())) {
      if (get_string(*claim->parsed(), {"metadata", "annotations", maker.annotation}) != entry.name) continue;
      statuses.push_back(json::Object{{"name", entry.name}, {"resourceClaimName", claim->name()}});
      return {};
    }
    const ObjectRef made_from = cache.get(kinds().resource_claim_template, user.ns(), entry.claim_template);
    if (!made_from)
      return fmt::format("resource claim template \"{}\": resourceclaimtemplate.resource.k8s.io \"{}\" not found", entry.claim_template,
                         entry.claim_template);
    const auto parsed = made_from->parsed();
    const Value& document = *parsed;
    json::Object annotations = json::get_object(document, {"spec", "metadata", "annotations"});
    annotations[maker.annotation] = entry.name;
    json::Object owner{{"apiVersion", maker.kind->api_version()},
                       {"kind", maker.kind->kind},
                       {"name", user.name()},
                       {"uid", user.uid()},
                       {"controller", true}};
    json::Object metadata{{"generateName", generated_name(user.name(), entry.name)},
                          {"annotations", std::move(annotations)},
                          {"ownerReferences", json::Array{std::move(owner)}}};
    if (const json::Object& labels = json::get_object(document, {"spec", "metadata", "labels"}); !labels.empty())
      metadata["labels"] = labels;
    Write write = create_object(kinds().resource_claim, user.ns(),
                                json::Object{{"apiVersion", "resource.k8s.io/v1"},
                                             {"kind", "ResourceClaim"},
                                             {"metadata", std::move(metadata)},
                                             {"spec", json::get_object(document, {"spec", "spec"})}});
    write.on_failure = note_about(maker.kind, user, "Warning", "FailedResourceClaimCreation",
                                  fmt::format("{} {}: create ResourceClaim : {{}}", maker.what, entry.name));
    plan.add(std::move(write), made_from->text_bytes());
    return {};
  }

  static void reserve(const PodInfo& pod, const Value& document, const ObjectRef& group, const Cache& cache, Plan& plan) {
    for (const PodClaim& entry : pod_claims(document)) {
      if (entry.claim.empty()) continue;
      const ObjectRef claim = cache.get(kinds().resource_claim, pod.ns(), entry.claim);
      if (!claim || (!entry.claim_template.empty() && !is_of_pod(*claim, pod))) return;
      const auto now_parsed = claim->parsed();
      const Value& now = *now_parsed;
      const bool is_of_group = group && is_shared(*group->parsed(), entry);
      const Object& user = is_of_group ? *group : *pod.object;
      if (json::find(now, {"status", "allocation"}) == nullptr || is_reserved_for(now, user.uid())) continue;
      json::Array users = get_array(now, {"status", "reservedFor"});
      json::Object one{{"resource", is_of_group ? "podgroups" : "pods"}, {"name", user.name()}, {"uid", user.uid()}};
      if (is_of_group) one["apiGroup"] = kinds().pod_group->group;
      users.push_back(std::move(one));
      Write write = patch_object(kinds().resource_claim, *claim, json::Object{{"status", {{"reservedFor", std::move(users)}}}});
      write.subresource = "status";
      plan.writes.push_back(std::move(write));
    }
  }

  Plan sync_claim(std::string_view ns, std::string_view name, const Cache& cache) {
    Plan plan;
    const ObjectRef claim = cache.get(kinds().resource_claim, ns, name);
    if (!claim) return plan;
    const auto parsed = claim->parsed();
    const Value& document = *parsed;
    const json::Array& users = get_array(document, {"status", "reservedFor"});
    json::Array remaining;
    for (const Value& user : users)
      if (is_still_used(user, ns, cache, plan)) remaining.push_back(user);
    if (!plan.writes.empty()) {
      plan.requeue_after = std::chrono::milliseconds(200);  // The server is asked about pods that the cache does not know.
      return plan;
    }
    const bool has_own = has_finalizer(document, kResourceClaimFinalizer),
               is_allocated = json::find(document, {"status", "allocation"}) != nullptr;
    const bool is_unused = remaining.empty(), gives_back = is_unused && has_own;
    const bool shrinks = remaining.size() < users.size();
    if (shrinks || (gives_back && claim->is_deleting())) {
      json::Object status;
      if (shrinks) status["reservedFor"] = is_unused ? Value(nullptr) : Value(std::move(remaining));
      if (gives_back && is_allocated) status["allocation"] = nullptr;
      if (!status.empty()) {
        Write write = patch_object(kinds().resource_claim, *claim, json::Object{{"status", std::move(status)}});
        write.subresource = "status";
        plan.writes.push_back(std::move(write));
      }
      if (gives_back) {
        json::Array left;
        for (const Value& one : get_array(document, {"metadata", "finalizers"}))
          if (!one.is_string() || json::as_view(one) != kResourceClaimFinalizer) left.push_back(one);
        Write write = patch_object(kinds().resource_claim, *claim, json::Object{{"metadata", {{"finalizers", std::move(left)}}}}, false);
        write.stage = 1;
        plan.writes.push_back(std::move(write));
      }
    }
    if (is_unused && !claim->is_deleting()) remove_of_done_pod(*claim, document, cache, plan);
    return plan;
  }

  /// A claim made for a pod goes with it, without waiting for the pod to be deleted.
  void remove_of_done_pod(const client::Object& claim, const Value& document, const Cache& cache, Plan& plan) {
    for (const OwnerReference& owner : owner_references(document)) {
      if (!owner.is_controller || owner.kind != "Pod" || owner.api_version != "v1") continue;
      const PodRef pod = cache.pod(claim.ns(), owner.name);
      if (!pod || (pod->uid() == owner.uid && !is_done(*pod))) return;
      Write write = delete_object(kinds().resource_claim, claim);
      write.stage = 2;
      plan.writes.push_back(std::move(write));
      return;
    }
  }

  /// Whether the user keeps the claim; a pod or group that is not known is asked for. A group keeps it as long as it is there.
  bool is_still_used(const Value& user, std::string_view ns, const Cache& cache, Plan& plan) {
    const std::string_view resource = get_string(user, {"resource"}), api_group = get_string(user, {"apiGroup"});
    const bool is_pod = resource == "pods" && api_group.empty();
    if (!is_pod && !(options_.knows_groups && resource == "podgroups" && api_group == kinds().pod_group->group)) return true;
    const std::string uid(get_string(user, {"uid"})), name(get_string(user, {"name"}));
    if (is_pod) {
      if (const PodRef pod = cache.pod(ns, name)) return pod->uid() == uid && !is_done(*pod);
    } else if (const ObjectRef group = cache.get(kinds().pod_group, ns, name)) {
      return group->uid() == uid;
    }
    if (gone_.contains(uid)) return false;
    Write write;
    write.verb = Write::Verb::kGet;
    write.kind = is_pod ? kinds().pod : kinds().pod_group;
    write.ns = ns;
    write.name = name;
    write.may_fail = true;
    write.tag = uid;
    plan.writes.push_back(std::move(write));
    return true;
  }

  const ResourceClaimOptions options_;
  Index by_claim_, by_template_, by_group_;
  Index groups_by_template_;    ///< PodGroups.
  std::set<std::string> gone_;  ///< uids of pods and groups that are known not to be there any more.
};

}  // namespace

ControllerPtr make_resource_claim_controller(ResourceClaimOptions options) { return std::make_unique<ResourceClaims>(options); }

}  // namespace berth::controllers
