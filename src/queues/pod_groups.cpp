// Plain pods that name a queue, alone or in groups: gated until their Workload is admitted (Kueue: pkg/controller/jobs/pod). The members of
// a PodGroup of scheduling.k8s.io are a group, too.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "queues/core_impl.h"

namespace berth::queues {
namespace {

using json::Array;
using json::get_array;
using json::get_string;
using json::Object;
using json::Value;

constexpr std::size_t kMostRoles = 8;
constexpr std::string_view kPodGroupAnnotation = "berth.dev/pod-group";

ObjectKey pod_key(const Value& pod) {
  return {Kind::kPod, std::string(get_string(pod, {"metadata", "namespace"})), std::string(get_string(pod, {"metadata", "name"}))};
}
bool is_gated(const Value& pod) {
  return std::ranges::any_of(get_array(pod, {"spec", "schedulingGates"}),
                             [](const Value& gate) { return get_string(gate, {"name"}) == kAdmissionGate; });
}
std::string_view phase_of(const Value& pod) { return get_string(pod, {"status", "phase"}); }
bool is_over(const Value& pod) { return phase_of(pod) == "Succeeded" || phase_of(pod) == "Failed"; }
bool is_going(const Value& pod) { return json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr; }
/// It runs, will run, or has done its part.
bool counts(const Value& pod) {
  if (is_going(pod) && get_string(pod, {"spec", "nodeName"}).empty()) return false;
  return phase_of(pod) != "Failed";
}
bool holds_resources(const Value& pod) { return !is_gated(pod) && !is_over(pod); }

std::optional<std::int64_t> count_in(const std::string& text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || out < 1) return std::nullopt;
  return out;
}

/// Pods that ask for quota together.
struct Gang {
  std::string ns, name;  ///< Of the group, for people.
  std::string workload;  ///< The Workload's name.
  std::int64_t total = 1;
  bool is_group = false;
  bool deletes_excess = false;
  std::string pod_group;  ///< The PodGroup, where it is one.
};

class GangTurn {
 public:
  GangTurn(CoreState& impl, Gang gang, std::vector<const Value*> pods) : impl_(impl), gang_(std::move(gang)), pods_(std::move(pods)) {
    for (const Value* pod : pods_)
      if (counts(*pod)) live_.push_back(pod);
  }

  void run() {
    const WorkloadKey name{gang_.ns, gang_.workload};
    const auto found = impl_.workloads.find(name);
    const bool exists = found != impl_.workloads.end();
    if (!impl_.may_write(object_of(name))) return;
    if (pods_.empty()) {
      if (exists && !found->second.workload.is("Finished")) impl_.remove(object_of(name), {});
      return;
    }
    if (exists && found->second.workload.owner_kind != "Pod")
      return complain(
          fmt::format("Workload {} is there already, and belongs to somebody else: take another name for the group", text_of(name)));
    if (!exists) {
      if (is_finished() || !is_complete()) return;
      return create(name);
    }
    hold(name, found->second);
    with(name, found->second.workload);
  }

 private:
  void complain(const std::string& message) { impl_.complain(pod_key(*pods_.front()), "ErrWorkloadCompose", message); }

  [[nodiscard]] std::int64_t succeeded() const {
    return std::ranges::count_if(pods_, [](const Value* pod) { return phase_of(*pod) == "Succeeded"; });
  }
  [[nodiscard]] bool is_finished() const {
    if (!gang_.is_group) return is_over(*pods_.front());
    const bool may_not_retry =
        std::ranges::any_of(pods_, [](const Value* pod) { return annotation_of(*pod, kRetriableAnnotation) == "false"; });
    const bool all_over = std::ranges::all_of(pods_, [](const Value* pod) { return is_over(*pod); });
    return succeeded() >= gang_.total || (all_over && may_not_retry);
  }

  /// All are there, and say the same.
  bool is_complete() {
    const auto count = static_cast<std::int64_t>(live_.size());
    if (count < gang_.total) {
      complain(fmt::format("'{}' group has fewer runnable pods than expected", gang_.name));
      return false;
    }
    const Value& first = *live_.front();
    for (const Value* pod : live_) {
      const std::string mine = label_of(first, kQueueLabel), other = label_of(*pod, kQueueLabel);
      const auto name = [](const Value& one) { return std::string(get_string(one, {"metadata", "name"})); };
      if (mine != other) {
        complain(fmt::format("pods '{}' and '{}' has different queue names: {}!={}", name(first), name(*pod), mine, other));
        return false;
      }
      const std::string counted = annotation_of(first, kGroupCountAnnotation), other_count = annotation_of(*pod, kGroupCountAnnotation);
      if (gang_.deletes_excess && counted != other_count) {
        complain(fmt::format("pods '{}' and '{}' has different '{}' values: {}!={}", name(first), name(*pod), kGroupCountAnnotation,
                             counted, other_count));
        return false;
      }
    }
    if (roles().size() > kMostRoles) {
      complain("pod group can't include more than 8 roles");
      return false;
    }
    return true;
  }

  /// Those that came last are too many.
  void delete_excess() {
    if (!gang_.deletes_excess || static_cast<std::int64_t>(live_.size()) <= gang_.total) return;
    std::vector<const Value*> ordered = live_;
    std::ranges::stable_sort(ordered, [](const Value* a, const Value* b) {
      if (is_gated(*a) != is_gated(*b)) return is_gated(*b);
      return get_string(*a, {"metadata", "creationTimestamp"}) < get_string(*b, {"metadata", "creationTimestamp"});
    });
    for (std::size_t i = static_cast<std::size_t>(gang_.total); i < ordered.size(); ++i)
      if (!is_going(*ordered[i])) {
        const ObjectKey key = pod_key(*ordered[i]);
        impl_.remove(key, {impl_.note(key, "Normal", "ExcessPodDeleted", "Excess pod deleted")});
      }
    live_.assign(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(gang_.total));
  }

  [[nodiscard]] std::map<std::string, std::vector<const Value*>> roles() const {
    std::map<std::string, std::vector<const Value*>> out;
    for (const Value* pod : live_) out[role_of(*pod)].push_back(pod);
    return out;
  }

  [[nodiscard]] Array owner_references() const {
    Array out;
    for (const Value* pod : live_)
      out.push_back(Object{{"apiVersion", "v1"},
                           {"kind", "Pod"},
                           {"name", get_string(*pod, {"metadata", "name"})},
                           {"uid", get_string(*pod, {"metadata", "uid"})}});
    return out;
  }

  void create(const WorkloadKey& name) {
    delete_excess();
    const Value& first = *live_.front();
    const auto priority = impl_.priority_of(pod_key(first), first, *json::find(first, "spec"));
    if (!priority) return;
    Array pod_sets;
    for (const auto& [role, members] : roles()) {
      Object spec = json::get_object(*members.front(), {"spec"});
      spec.erase("nodeName");
      pod_sets.push_back(Object{{"name", gang_.is_group ? role : "main"},
                                {"count", static_cast<std::int64_t>(members.size())},
                                {"template", Object{{"metadata", Object{}}, {"spec", std::move(spec)}}}});
    }
    Object meta{{"name", name.second}, {"namespace", name.first}, {"ownerReferences", owner_references()}};
    Object annotations;
    if (gang_.is_group) annotations[kGroupWorkloadAnnotation] = "true";
    if (!gang_.pod_group.empty()) annotations[kPodGroupAnnotation] = gang_.pod_group;
    if (!annotations.empty()) meta["annotations"] = std::move(annotations);
    if (!gang_.is_group) meta["labels"] = Object{{kJobUidLabel, get_string(first, {"metadata", "uid"})}};
    Object spec{{"queueName", label_of(first, kQueueLabel)},
                {"active", true},
                {"priority", priority->value},
                {"priorityClassSource", priority->source},
                {"podSets", std::move(pod_sets)}};
    if (!priority->name.empty()) spec["priorityClassName"] = priority->name;
    impl_.create(object_of(name),
                 Object{{"apiVersion", kApiVersion}, {"kind", "Workload"}, {"metadata", std::move(meta)}, {"spec", std::move(spec)}},
                 {impl_.note(pod_key(first), "Normal", "CreatedWorkload", "Created Workload: " + text_of(name))});
  }

  /// A group that lost pods does not ask for quota until others have come for them.
  void hold(const WorkloadKey&, WorkloadState& state) {
    const bool lacks = static_cast<std::int64_t>(live_.size()) < gang_.total && !state.workload.has_reservation();
    if (lacks == state.is_held) return;
    state.is_held = lacks;
    if (lacks) complain(fmt::format("'{}' group has fewer runnable pods than expected", gang_.name));
    impl_.requeue(state, true);
  }

  void with(const WorkloadKey& name, const Workload& workload) {
    if (workload.is("Finished") || workload.is_deleting) return;
    if (is_finished()) {
      impl_.finish(name, gang_.is_group || phase_of(*pods_.front()) == "Succeeded", "",
                   gang_.is_group ? fmt::format("Pods succeeded: {}/{}.", succeeded(), gang_.total)
                                  : std::string(get_string(*pods_.front(), {"status", "message"})),
                   pod_key(*pods_.front()));
      return;
    }
    delete_excess();
    if (own_all(name)) return;
    const Condition* evicted = workload.condition("Evicted");
    if (evicted != nullptr && evicted->is_true) {
      const bool is_busy = stop(evicted->message);
      if (!is_busy && workload.has_reservation()) impl_.clear_admission(name);
      return;
    }
    if (!workload.is("Admitted")) {
      stop("Not admitted by cluster queue");
      return;
    }
    start(workload);
    if (impl_.settings.pods_ready_timeout) tell_readiness(name);
  }

  /// Whoever replaced a pod that is gone keeps the Workload alive.
  bool own_all(const WorkloadKey& name) {
    Value changed = *impl_.document(object_of(name));
    Array owners = get_array(changed, {"metadata", "ownerReferences"});
    const std::size_t before = owners.size();
    for (const Value& wanted : owner_references())
      if (std::ranges::none_of(owners, [&](const Value& one) { return get_string(one, {"uid"}) == get_string(wanted, {"uid"}); }))
        owners.push_back(wanted);
    if (owners.size() == before) return false;
    json::set(changed, {"metadata", "ownerReferences"}, std::move(owners));
    impl_.update(object_of(name), std::move(changed), false,
                 {impl_.note(object_of(name), "Normal", "OwnerReferencesAdded",
                             fmt::format("Added {} owner reference(s)", owners.size() - before))});
    return true;
  }

  /// True: some of them are there still.
  bool stop(const std::string& message) {
    bool out = false;
    for (const Value* pod : pods_) {
      if (!holds_resources(*pod)) continue;
      out = true;
      const ObjectKey key = pod_key(*pod);
      if (!is_going(*pod)) impl_.remove(key, {impl_.note(key, "Normal", "Stopped", message)});
    }
    return out;
  }

  void start(const Workload& workload) {
    for (const Value* pod : live_) {
      const ObjectKey key = pod_key(*pod);
      if (!is_gated(*pod) || is_going(*pod) || !impl_.may_write(key)) continue;
      const std::string role = gang_.is_group ? role_of(*pod) : "main";
      const auto assignment = std::ranges::find(workload.assignments, role, &PodSetAdmission::name);
      if (assignment == workload.assignments.end()) {
        impl_.complain(key, "ErrWorkloadCompose",
                       fmt::format("no pod set of Workload {}/{} is like this pod: it stays gated", workload.ns, workload.name));
        continue;
      }
      Value changed = *pod;
      Value& spec = *json::find(changed, "spec");
      if (const std::string conflict = place(spec, placement_of(*assignment, impl_.flavors)); !conflict.empty()) {
        impl_.complain(key, "ErrWorkloadCompose", "conflict for nodeSelector: " + conflict);
        continue;
      }
      Array gates = get_array(spec, {"schedulingGates"});
      drop_if(gates, [](const Value& gate) { return get_string(gate, {"name"}) == kAdmissionGate; });
      if (gates.empty())
        json::erase(spec, {"schedulingGates"});
      else
        json::set(spec, {"schedulingGates"}, std::move(gates));
      json::set(changed, {"metadata", "labels", kPodSetLabel}, Value(role));
      if (gang_.is_group) json::set(changed, {"metadata", "annotations", kRoleAnnotation}, Value(role));
      json::set(changed, {"metadata", "annotations", kWorkloadAnnotation}, Value(workload.name));
      impl_.update(key, std::move(changed), false,
                   {impl_.note(key, "Normal", "Started", fmt::format("Admitted by clusterQueue {}", *workload.admitted_by))});
    }
  }

  void tell_readiness(const WorkloadKey& name) {
    const auto is_ready = [](const Value* pod) {
      return phase_of(*pod) == "Succeeded" || std::ranges::any_of(get_array(*pod, {"status", "conditions"}), [](const Value& one) {
               return get_string(one, {"type"}) == "Ready" && get_string(one, {"status"}) == "True";
             });
    };
    Value changed = *impl_.document(object_of(name));
    const bool all = std::ranges::count_if(live_, is_ready) >= gang_.total;
    if (all ? set_condition(changed, "PodsReady", true, "Started", "All pods reached readiness and the workload is running", impl_.now)
            : set_condition(changed, "PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded", impl_.now))
      impl_.update(object_of(name), std::move(changed), true);
  }

  CoreState& impl_;
  const Gang gang_;
  std::vector<const Value*> pods_, live_;
};

Gang single(const Value& pod) {
  const ObjectKey key = pod_key(pod);
  return {.ns = key.ns, .name = key.name, .workload = workload_name("Pod", "", key.name, get_string(pod, {"metadata", "uid"}))};
}

/// The gang's own: who was started with it, and of the others the oldest, as many as are wanted. The rest come later, each by itself.
std::pair<std::vector<const Value*>, std::vector<const Value*>> split(const std::vector<const Value*>& pods, const Gang& gang) {
  std::vector<const Value*> own, others, late;
  for (const Value* pod : pods) {
    const std::string started_by = annotation_of(*pod, kWorkloadAnnotation);
    (started_by == gang.workload ? own : started_by.empty() ? others : late).push_back(pod);
  }
  std::ranges::stable_sort(others, {}, [](const Value* pod) { return get_string(*pod, {"metadata", "creationTimestamp"}); });
  std::int64_t live = std::ranges::count_if(own, [](const Value* pod) { return counts(*pod); });
  for (const Value* pod : others) {
    if (!counts(*pod)) continue;
    (live < gang.total ? own : late).push_back(pod);
    ++live;
  }
  return {own, late};
}

}  // namespace

GroupKey CoreState::group_of(const Value& pod) const {
  const ObjectKey key = pod_key(pod);
  if (std::string name = label_of(pod, kGroupNameLabel); !name.empty()) return {key.ns, std::move(name), GroupType::kLabel};
  if (const auto name = get_string(pod, {"spec", "schedulingGroup", "podGroupName"}); !name.empty())
    return {key.ns, std::string(name), GroupType::kPodGroup};
  return {key.ns, key.name, GroupType::kSingle};
}

std::vector<const Value*> CoreState::pods_of(const GroupKey& group) const {
  std::vector<const Value*> out;
  const auto found = groups.find(group);
  if (found == groups.end()) return out;
  for (const std::string& name : found->second)
    if (const Value* pod = document({Kind::kPod, group.ns, name});
        pod != nullptr && label_of(*pod, kManagedLabel) == "true" && !label_of(*pod, kQueueLabel).empty())
      out.push_back(pod);
  return out;
}

void CoreState::reconcile_group(const GroupKey& group) {
  // Copies: a turn changes what is known of them.
  std::vector<Value> copies;
  for (const Value* pod : pods_of(group)) copies.push_back(*pod);
  std::vector<const Value*> pods;
  for (const Value& pod : copies) pods.push_back(&pod);
  if (copies.empty()) groups.erase(group);
  if (group.type == GroupType::kSingle) {
    // The Workload of a pod that is gone goes with it: it is owned by it alone.
    if (!pods.empty()) GangTurn(*this, single(*pods.front()), pods).run();
    return;
  }
  Gang gang{.ns = group.ns, .name = group.name, .workload = group.name, .is_group = true, .deletes_excess = true};
  if (group.type == GroupType::kLabel) {
    if (!pods.empty()) {
      const auto total = count_in(annotation_of(*pods.front(), kGroupCountAnnotation));
      if (!total)
        return complain(pod_key(*pods.front()), "ErrWorkloadCompose",
                        fmt::format("annotation {} must say how many pods the group has", kGroupCountAnnotation));
      gang.total = *total;
    }
    GangTurn(*this, std::move(gang), std::move(pods)).run();
    return;
  }
  gang.workload = workload_name("PodGroup", "scheduling.k8s.io", group.name, "");
  gang.pod_group = group.name;
  gang.deletes_excess = false;
  const Value* found = document({Kind::kPodGroup, group.ns, group.name});
  if (found == nullptr && !pods.empty())
    return complain(pod_key(*pods.front()), "ErrWorkloadCompose", fmt::format("PodGroup {} doesn't exist", group.name));
  gang.total = found == nullptr ? 1 : json::get_int(*found, {"spec", "schedulingPolicy", "gang", "minCount"});
  // With the policy basic each is on its own.
  const auto [own, late] = split(pods, gang);
  if (gang.total > 0) GangTurn(*this, gang, own).run();
  for (const Value* pod : late) GangTurn(*this, single(*pod), {pod}).run();
}

}  // namespace berth::queues
