// Resource claims (pkg/controller/resourceclaim): makes the claims of pods' templates, says their names in the pods' status, takes pods
// that are done off the claims' users, gives back devices that nobody uses any more.
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
constexpr std::string_view kPodPrefix = "pod:", kClaimPrefix = "claim:";

bool is_done(const PodInfo& pod) { return pod.is_finished() || (pod.deleting && pod.node.empty()); }

/// "POD-CLAIM-", shortened on both sides where a name could not hold it.
std::string generated_name(std::string_view pod, std::string_view claim) {
  constexpr std::size_t kMost = 57;
  std::string out = fmt::format("{}-{}-", pod, claim);
  if (out.size() <= kMost) return out;
  return fmt::format("{}-{}", pod.substr(0, pod.size() * kMost / out.size()), claim.substr(0, claim.size() * kMost / out.size()));
}

/// Keys are "pod:NS/NAME" and "claim:NS/NAME".
class ResourceClaims final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "resourceclaim-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "resource_claim"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().pod, kinds().resource_claim, kinds().resource_claim_template};
  }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().pod) return on_pod(event, sink);
    const std::string key = event.object().key();
    if (event.kind == kinds().resource_claim_template) {
      if (!event.after) return;
      for (const std::string& pod : users_of(by_template_, key)) sink.add(std::string(kPodPrefix) + pod);
      return;
    }
    if (event.after) sink.add(std::string(kClaimPrefix) + key);
    for (const std::string& pod : users_of(by_claim_, key)) sink.add(std::string(kPodPrefix) + pod);
    for (const OwnerReference& owner : owner_references(*event.object().parsed()))
      if (owner.is_controller && owner.kind == "Pod") sink.add(fmt::format("{}{}/{}", kPodPrefix, event.object().ns(), owner.name));
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    const bool is_pod = key.starts_with(kPodPrefix);
    const auto [ns, name] = split_key(std::string_view(key).substr(is_pod ? kPodPrefix.size() : kClaimPrefix.size()));
    return is_pod ? sync_pod(ns, name, cache) : sync_claim(ns, name, cache);
  }

  void on_result(const std::string&, const Write& write, const ApiResult<Value>& result, TimePoint) override {
    if (write.verb != Write::Verb::kGet) return;
    const bool is_gone = result ? get_string(*result, {"metadata", "uid"}) != write.tag : result.error().code == 404;
    if (is_gone) gone_.insert(write.tag);
  }

 private:
  using Index = std::map<std::string, std::set<std::string>, std::less<>>;  ///< "ns/name" to pods, by "ns/name".

  static std::set<std::string> users_of(const Index& index, const std::string& key) {
    const auto found = index.find(key);
    return found == index.end() ? std::set<std::string>() : found->second;
  }

  void on_pod(const Event& event, KeySink& sink) {
    const PodRef& pod = event.pod_after ? event.pod_after : event.pod_before;
    if (!pod) return;
    const bool needs_none = !event.after || is_done(*pod);
    if (needs_none && !pod->extended_claim.empty()) sink.add(fmt::format("{}{}/{}", kClaimPrefix, pod->ns(), pod->extended_claim));
    if (!event.after && (pod->has_resource_claims || !pod->extended_claim.empty())) gone_.insert(pod->uid());
    if (!pod->has_resource_claims) return;
    const std::string key = pod->object->key();
    for (const PodClaim& entry : pod_claims(*pod->object->parsed())) {
      for (auto [index, name] : {std::pair(&by_claim_, &entry.claim), std::pair(&by_template_, &entry.claim_template)}) {
        if (name->empty()) continue;
        const std::string user_of = pod->ns() + "/" + *name;
        if (event.after)
          (*index)[user_of].insert(key);
        else if (const auto found = index->find(user_of); found != index->end() && found->second.erase(key) != 0 && found->second.empty())
          index->erase(found);
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
    json::Array statuses;
    for (const PodClaim& entry : pod_claims(document)) {
      if (plan.is_full()) return plan;  // Many entries may name one large template.
      if (const std::string why = make_claim(*pod, entry, cache, plan, statuses); !why.empty()) {
        const std::string text = fmt::format("PodResourceClaim {}: {}", entry.name, why);
        plan.events.push_back(note_about(kinds().pod, *pod->object, "Warning", "FailedResourceClaimCreation", text));
        plan.error = fmt::format("pod {}/{}, {}", ns, name, text);
        return plan;
      }
    }
    if (!statuses.empty()) {
      Write write;
      write.verb = Write::Verb::kPatch;
      write.kind = kinds().pod;
      write.ns = ns;
      write.name = name;
      write.subresource = "status";
      write.patch_type = PatchType::kStrategicMerge;
      write.body = {{"metadata", {{"uid", pod->uid()}}}, {"status", {{"resourceClaimStatuses", std::move(statuses)}}}};
      plan.writes.push_back(std::move(write));
    }
    // Somebody else than the scheduler gave it a node.
    if (!pod->node.empty()) reserve(*pod, document, cache, plan);
    return plan;
  }

  /// The claim of an entry, if a template asks for one that is not there. Empty, or what is wrong.
  std::string make_claim(const PodInfo& pod, const PodClaim& entry, const Cache& cache, Plan& plan, json::Array& statuses) {
    if (entry.claim_template.empty() || (entry.has_status && entry.claim.empty())) return {};
    if (entry.has_status) {
      const ObjectRef known = cache.get(kinds().resource_claim, pod.ns(), entry.claim);
      if (known && is_of_pod(*known, pod)) return {};
    }
    for (const ObjectRef& claim : cache.controlled(kinds().resource_claim, pod.uid())) {
      if (get_string(*claim->parsed(), {"metadata", "annotations", kPodClaimAnnotation}) != entry.name) continue;
      statuses.push_back(json::Object{{"name", entry.name}, {"resourceClaimName", claim->name()}});
      return {};
    }
    const ObjectRef made_from = cache.get(kinds().resource_claim_template, pod.ns(), entry.claim_template);
    if (!made_from)
      return fmt::format("resource claim template \"{}\": resourceclaimtemplate.resource.k8s.io \"{}\" not found", entry.claim_template,
                         entry.claim_template);
    const auto parsed = made_from->parsed();
    const Value& document = *parsed;
    json::Object annotations = json::get_object(document, {"spec", "metadata", "annotations"});
    annotations[kPodClaimAnnotation] = entry.name;
    json::Object owner{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod.name()}, {"uid", pod.uid()}, {"controller", true}};
    json::Object metadata{{"generateName", generated_name(pod.name(), entry.name)},
                          {"annotations", std::move(annotations)},
                          {"ownerReferences", json::Array{std::move(owner)}}};
    if (const json::Object& labels = json::get_object(document, {"spec", "metadata", "labels"}); !labels.empty())
      metadata["labels"] = labels;
    Write write = create_object(kinds().resource_claim, pod.ns(),
                                json::Object{{"apiVersion", "resource.k8s.io/v1"},
                                             {"kind", "ResourceClaim"},
                                             {"metadata", std::move(metadata)},
                                             {"spec", json::get_object(document, {"spec", "spec"})}});
    write.on_failure = note_about(kinds().pod, *pod.object, "Warning", "FailedResourceClaimCreation",
                                  fmt::format("PodResourceClaim {}: create ResourceClaim : {{}}", entry.name));
    plan.add(std::move(write), made_from->bytes().size());
    return {};
  }

  void reserve(const PodInfo& pod, const Value& document, const Cache& cache, Plan& plan) {
    for (const PodClaim& entry : pod_claims(document)) {
      if (entry.claim.empty()) continue;
      const ObjectRef claim = cache.get(kinds().resource_claim, pod.ns(), entry.claim);
      if (!claim || (!entry.claim_template.empty() && !is_of_pod(*claim, pod))) return;
      const auto now_parsed = claim->parsed();
      const Value& now = *now_parsed;
      if (json::find(now, {"status", "allocation"}) == nullptr || is_reserved_for(now, pod.uid())) continue;
      json::Array users = get_array(now, {"status", "reservedFor"});
      users.push_back(json::Object{{"resource", "pods"}, {"name", pod.name()}, {"uid", pod.uid()}});
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

  /// Whether the user keeps the claim; a pod that is not known is asked for.
  bool is_still_used(const Value& user, std::string_view ns, const Cache& cache, Plan& plan) {
    if (get_string(user, {"resource"}) != "pods" || !get_string(user, {"apiGroup"}).empty()) return true;
    const std::string uid(get_string(user, {"uid"})), name(get_string(user, {"name"}));
    if (const PodRef pod = cache.pod(ns, name)) return pod->uid() == uid && !is_done(*pod);
    if (gone_.contains(uid)) return false;
    Write write;
    write.verb = Write::Verb::kGet;
    write.kind = kinds().pod;
    write.ns = ns;
    write.name = name;
    write.may_fail = true;
    write.tag = uid;
    plan.writes.push_back(std::move(write));
    return true;
  }

  Index by_claim_, by_template_;
  std::set<std::string> gone_;  ///< uids of pods that are known not to be there any more.
};

}  // namespace

ControllerPtr make_resource_claim_controller() { return std::make_unique<ResourceClaims>(); }

}  // namespace berth::controllers
