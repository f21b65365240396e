// Small pieces that several controllers share: documents compared and patched, owners, conditions, pods from templates, hashes.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controllers/controller.h"
#include "model/conditions.h"

namespace berth::controllers {

/// The JSON merge patch (RFC 7386) that turns `before` into `after`; an empty object when they are equal.
json::Object merge_diff(const json::Object& before, const json::Object& after);
/// A patch of .status from what the document has to `status`; nullopt when nothing changes. `locked`: fails with 409 when the object moved
/// on.
std::optional<Write> patch_status(Kind kind, const Object& object, const json::Value& document, const json::Object& status,
                                  bool locked = false);
/// A merge patch of the very object seen (by uid); `locked`: of the revision seen.
Write patch_object(Kind kind, const Object& object, json::Object patch, bool locked = true);
/// Deletes the very object seen (by uid).
Write delete_object(Kind kind, const Object& object);
Write create_object(Kind kind, std::string ns, json::Value body);
/// How many objects made of the owner's template one plan has room for: at least one, at most `burst`.
std::int64_t burst_of(const Object& owner, std::int64_t burst);

/// The pod says why it goes (condition DisruptionTarget), then it is deleted. Locked: who saved it meanwhile has the last word.
void plan_disruption(const Object& pod, std::string_view reason, std::string_view message, TimePoint now, Plan& plan);

json::Object owner_reference(Kind kind, const Object& owner, bool is_controller = true);
bool has_finalizer(const json::Value& document, std::string_view name);
/// A locked patch that removes (or adds) one finalizer.
Write remove_finalizer(Kind kind, const Object& object, const json::Value& document, std::string_view name);
Write add_finalizer(Kind kind, const Object& object, const json::Value& document, std::string_view name);

using model::Condition;
using model::condition_status;
using model::find_condition;
using model::remove_condition;
using model::set_condition;

/// A pod of a template: labels, annotations, finalizers and spec of the template, owned and controlled by `owner`.
json::Object pod_from_template(const json::Value& pod_template, Kind owner_kind, const Object& owner, const std::string& generate_name);

/// The pods that a controller object has after adoption and release (Kubernetes' ControllerRefManager), with the writes that make it so.
struct Claim {
  std::vector<PodRef> pods;  ///< In order of name.
  std::vector<Write> writes;
  std::int64_t terminating = 0;  ///< Of those that it has, wanted or not, how many are on their way out.
};
Claim claim_pods(Kind owner_kind, const Object& owner, const model::Selector& selector, const Cache& cache, bool (*wants)(const PodInfo&));
/// The same for other kinds (ReplicaSets of a Deployment, ControllerRevisions).
struct ObjectClaim {
  std::vector<ObjectRef> objects;
  std::vector<Write> writes;
};
ObjectClaim claim_objects(Kind owner_kind, const Object& owner, const model::Selector& selector, Kind kind, const Cache& cache);

/// Keys sorted, compact: equal documents give equal texts.
std::string canonical(const json::Value& value);

/// An int-or-percent of `total`; the fallback when missing or malformed.
std::int64_t scaled_value(const json::Value* value, std::int64_t total, bool round_up, std::int64_t fallback);
TimePoint read_time(const json::Value& document, json::Path path);
Duration seconds_at(const json::Value& document, json::Path path);
/// The earliest time after `now` at which one more pod becomes available by min_ready; nullopt when none waits.
std::optional<Duration> next_availability(const std::vector<PodRef>& pods, Duration min_ready, TimePoint now);

/// Enqueues the owner of a pod if it is of this kind, before and after; and for an orphan each object of the kind that selects it.
void enqueue_pod_owners(Kind owner_kind, const Event& event, const Cache& cache, KeySink& sink);
model::Selector label_selector_of(const json::Value& document);

/// How many of `count` are more than the limit lets stay; one below none is none.
[[nodiscard]] inline std::size_t surplus_over(std::size_t count, std::int64_t limit) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(limit, 0));
  return count > most ? count - most : 0;
}

/// Sorts pods so that those to delete first come first (Kubernetes' ActivePodsWithRanks). `related`: the pods that count for colocation.
void sort_for_deletion(std::vector<PodRef>& pods, const std::vector<PodRef>& related, TimePoint now);

}  // namespace berth::controllers
