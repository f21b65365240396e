// Pods leave devices with NoExecute taints (pkg/controller/devicetainteviction; KEP 5055): at once, or when the tolerations of the claim's
// request run out. Taints are those of ResourceSlices and of DeviceTaintRules, which tell in their status how far it is. A key is a pod's
// "NAMESPACE/NAME" or a rule's name.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "controllers/common.h"
#include "controllers/pod_claims.h"
#include "controllers/services.h"
#include "controllers/taints.h"
#include "model/views/device_views.h"

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_string;
using json::Value;

std::string pool_key(const Value& from, std::string_view pool) { return fmt::format("{}/{}", get_string(from, {"driver"}), pool); }

/// What a slice says of its devices' NoExecute taints.
struct SliceTaints {
  std::string pool;  ///< "driver/pool"
  std::int64_t generation = 0;
  std::string driver, pool_name;
  std::vector<std::string> devices;
  std::map<std::string, std::vector<Taint>, std::less<>> by_device;  ///< Those that have any.

  explicit SliceTaints(const Value& slice) {
    static const Value kNone;
    const Value* found = json::find(slice, {"spec"});
    const Value& spec = found == nullptr ? kNone : *found;
    pool = pool_key(spec, get_string(spec, {"pool", "name"}));
    generation = json::get_int(spec, {"pool", "generation"});
    driver = get_string(spec, {"driver"});
    pool_name = get_string(spec, {"pool", "name"});
    for (const Value& device : get_array(spec, {"devices"})) {
      devices.emplace_back(get_string(device, {"name"}));
      for (const Value& taint : get_array(device, {"taints"})) {
        if (get_string(taint, {"effect"}) != "NoExecute") continue;
        by_device[std::string(get_string(device, {"name"}))].push_back(
            {std::string(get_string(taint, {"key"})), std::string(get_string(taint, {"value"})), "NoExecute",
             parse_rfc3339(get_string(taint, {"timeAdded"})).value_or(TimePoint{})});
      }
    }
  }
  /// How many of its devices the rule means.
  [[nodiscard]] std::int64_t count(const model::DeviceTaintRuleView& rule) const {
    return std::ranges::count_if(devices, [&](const std::string& name) { return rule.matches(driver, pool_name, name); });
  }
};

/// What a DeviceTaintRule says.
struct Rule {
  std::string uid;
  model::DeviceTaintRuleView view;
  Taint taint;

  explicit Rule(const client::Object& object) : uid(object.uid()), view(model::DeviceTaintRuleView::parse(*object.parsed())) {
    const TimePoint added = parse_rfc3339(get_string(*object.parsed(), {"spec", "taint", "timeAdded"})).value_or(TimePoint{});
    taint = {view.taint.key, view.taint.value, "NoExecute", added};
  }
  [[nodiscard]] bool evicts() const { return view.taint.effect == "NoExecute"; }
  /// Of an allocated device.
  [[nodiscard]] bool matches(const Value& device) const {
    return view.matches(get_string(device, {"driver"}), get_string(device, {"pool"}), get_string(device, {"device"}));
  }
};

/// When a pod has to go, and which rules want that.
struct DueEviction {
  TimePoint when;
  std::set<std::string> rules;  ///< Names.
};
void add(std::optional<DueEviction>& to, const DueEviction& one) {
  if (!to) {
    to = one;
    return;
  }
  to->when = std::min(to->when, one.when);
  to->rules.insert(one.rules.begin(), one.rules.end());
}

const json::Array& devices_of(const Value& claim) { return get_array(claim, {"status", "allocation", "devices", "results"}); }

/// "1 pod", "2 pods"
std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return count == 1 ? fmt::format("1 {}", one) : fmt::format("{} {}", count, many);
}

class DeviceTaintEviction final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "device-taint-eviction-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().pod, kinds().resource_claim, kinds().resource_slice, kinds().device_taint_rule};
  }
  void on_event(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) override {
    if (event.kind == kinds().resource_slice) return on_slice(event, cache, sink);
    if (event.kind == kinds().device_taint_rule) return on_rule(event, cache, now, sink);
    if (event.kind == kinds().pod) {
      const PodRef& pod = event.pod_after ? event.pod_after : event.pod_before;
      if (pod && pod->has_resource_claims && (!pod->node.empty() || waiting_.contains(pod->object->key()))) sink.add(pod->object->key());
      return;
    }
    if (event.after) index(*event.after);
    add_users(event.object(), cache, sink);
    if (!event.after) forget(event.object().key());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<Value>& result, TimePoint now) override;

 private:
  /// The least time between two reports of one rule (ruleStatusPeriod).
  static constexpr Duration kReportPeriod = std::chrono::seconds(10);
  static constexpr const char* kDeletes = "delete";

  void on_slice(const Event& event, const Cache& cache, KeySink& sink);
  void on_rule(const Event& event, const Cache& cache, TimePoint now, KeySink& sink);
  void index(const client::Object& claim);
  void forget(const std::string& claim);
  static void add_users(const client::Object& claim, const Cache& cache, KeySink& sink);
  /// The claims of the pod that it may use, once it has a node.
  static std::vector<ObjectRef> claims_of(const PodInfo& pod, const Cache& cache);
  [[nodiscard]] std::optional<DueEviction> eviction_of(const PodInfo& pod, const Cache& cache) const;
  [[nodiscard]] std::optional<DueEviction> eviction_by(const Value& device) const;
  [[nodiscard]] std::vector<Taint> taints_of(const Value& device) const;
  Plan evict(const std::string& key, TimePoint now, const Cache& cache);
  /// Sees to it that the rule's status is looked at again, after a while: more may happen meanwhile.
  void report_soon(const std::string& rule, TimePoint now, Plan& plan);
  Plan report(const std::string& name, TimePoint now, const Cache& cache);
  void describe(const std::string& name, const Cache& cache, Condition& to) const;
  struct Users {
    std::int64_t pods = 0;
    std::string where;  ///< "2 different namespaces"
  };
  [[nodiscard]] static Users users_of(const Rule& rule, const Cache& cache);

  std::map<std::string, SliceTaints> slices_;                                        ///< By name.
  std::map<std::string, std::set<std::string>, std::less<>> slices_of_, claims_of_;  ///< By "driver/pool": names; "ns/name"s.
  std::map<std::string, std::set<std::string>> pools_of_;                            ///< By claim.
  std::set<std::string> waiting_;                                                    ///< Pods whose time will come.
  std::map<std::string, Rule> rules_;                                                ///< By name.
  std::map<std::string, TimePoint> report_at_;                                       ///< By rule: when its status is to be looked at.
  std::map<std::string, std::set<std::string>> evicted_by_;  ///< By pod that is being deleted: uids of the rules that wanted it.
  std::map<std::string, std::int64_t> evicted_;              ///< By uid of a rule: pods since this process began.
};

void DeviceTaintEviction::on_slice(const Event& event, const Cache& cache, KeySink& sink) {
  const std::string& name = event.object().name();
  std::set<std::string> pools;
  if (const auto before = slices_.find(name); before != slices_.end()) {
    pools.insert(before->second.pool);
    slices_of_[before->second.pool].erase(name);
    slices_.erase(before);
  }
  if (event.after) {
    SliceTaints now(*event.after->parsed());
    pools.insert(now.pool);
    slices_of_[now.pool].insert(name);
    slices_.emplace(name, std::move(now));
  }
  for (const std::string& pool : pools)
    for (const std::string& key : claims_of_[pool]) {
      const auto [ns, claim] = split_key(key);
      if (const auto known = cache.get(kinds().resource_claim, ns, claim)) add_users(*known, cache, sink);
    }
}

void DeviceTaintEviction::index(const client::Object& claim) {
  forget(claim.key());
  const auto parsed = claim.parsed();
  for (const Value& device : devices_of(*parsed)) {
    const std::string pool = pool_key(device, get_string(device, {"pool"}));
    claims_of_[pool].insert(claim.key());
    pools_of_[claim.key()].insert(pool);
  }
}

void DeviceTaintEviction::forget(const std::string& claim) {
  const auto known = pools_of_.find(claim);
  if (known == pools_of_.end()) return;
  for (const std::string& pool : known->second) claims_of_[pool].erase(claim);
  pools_of_.erase(known);
}

void DeviceTaintEviction::add_users(const client::Object& claim, const Cache& cache, KeySink& sink) {
  const auto parsed = claim.parsed();
  for (const Value& user : get_array(*parsed, {"status", "reservedFor"}))
    if (get_string(user, {"resource"}) == "pods" && get_string(user, {"apiGroup"}).empty())
      sink.add(fmt::format("{}/{}", claim.ns(), get_string(user, {"name"})));
    else if (get_string(user, {"resource"}) == "podgroups")
      for (const PodRef& pod : cache.pods_in(claim.ns()))
        if (pod->has_resource_claims && pod->scheduling_group == get_string(user, {"name"})) sink.add(pod->object->key());
}

void DeviceTaintEviction::on_rule(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) {
  const std::string& name = event.object().name();
  const bool is_same = event.before && event.after && event.before->uid() == event.after->uid();
  if (is_same && spec_text(*event.before) == spec_text(*event.after)) return;
  std::vector<Rule> concerned;
  if (const auto before = rules_.find(name); before != rules_.end()) {
    if (!is_same) evicted_.erase(before->second.uid);
    concerned.push_back(std::move(before->second));
    rules_.erase(before);
  }
  if (event.after) {
    concerned.push_back(rules_.emplace(name, Rule(*event.after)).first->second);
    // Told before the first pod goes.
    report_at_[name] = now;
    sink.add(name);
  } else {
    report_at_.erase(name);
  }
  std::erase_if(concerned, [](const Rule& rule) { return !rule.evicts(); });
  if (concerned.empty()) return;
  cache.for_each(kinds().resource_claim, [&](const ObjectRef& claim) {
    const auto parsed = claim->parsed();
    const auto is_meant = [&](const Value& device) {
      return std::ranges::any_of(concerned, [&](const Rule& rule) { return rule.matches(device); });
    };
    if (std::ranges::any_of(devices_of(*parsed), is_meant)) add_users(*claim, cache, sink);
  });
}

/// Of the device as the pool's newest slices have it.
std::vector<Taint> DeviceTaintEviction::taints_of(const Value& device) const {
  const auto names = slices_of_.find(pool_key(device, get_string(device, {"pool"})));
  if (names == slices_of_.end()) return {};
  std::int64_t newest = INT64_MIN;
  for (const std::string& name : names->second) newest = std::max(newest, slices_.at(name).generation);
  for (const std::string& name : names->second) {
    const SliceTaints& slice = slices_.at(name);
    const auto found = slice.by_device.find(get_string(device, {"device"}));
    if (slice.generation == newest && found != slice.by_device.end()) return found->second;
  }
  return {};
}

std::optional<DueEviction> DeviceTaintEviction::eviction_by(const Value& device) const {
  std::optional<DueEviction> out;
  for (const Taint& taint : taints_of(device))
    if (const auto more = patience(device, taint)) add(out, {taint.time_added + *more, {}});
  for (const auto& [name, rule] : rules_) {
    if (!rule.evicts() || !rule.matches(device)) continue;
    if (const auto more = patience(device, rule.taint)) add(out, {rule.taint.time_added + *more, {name}});
  }
  return out;
}

std::vector<ObjectRef> DeviceTaintEviction::claims_of(const PodInfo& pod, const Cache& cache) {
  std::vector<ObjectRef> out;
  if (pod.node.empty() || !pod.has_resource_claims) return out;
  const auto parsed = pod.object->parsed();
  for (const PodClaim& entry : pod_claims(*parsed)) {
    ObjectRef claim = entry.claim.empty() ? nullptr : cache.get(kinds().resource_claim, pod.ns(), entry.claim);
    if (!claim || !may_use(*claim->parsed(), pod)) continue;
    if (entry.claim_template.empty() || is_of_pod(*claim, pod)) out.push_back(std::move(claim));
  }
  return out;
}

std::optional<DueEviction> DeviceTaintEviction::eviction_of(const PodInfo& pod, const Cache& cache) const {
  std::optional<DueEviction> out;
  for (const ObjectRef& claim : claims_of(pod, cache)) {
    const auto parsed = claim->parsed();
    for (const Value& device : devices_of(*parsed))
      if (const auto one = eviction_by(device)) add(out, *one);
  }
  return out;
}

Plan DeviceTaintEviction::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  return key.find('/') == std::string::npos ? report(key, now, cache) : evict(key, now, cache);
}

Plan DeviceTaintEviction::evict(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const PodRef pod = cache.pod(ns, name);
  const auto eviction = pod && !pod->deleting ? eviction_of(*pod, cache) : std::nullopt;
  const auto note = [&](std::string_view text) {
    plan.events.push_back(note_about(kinds().pod, *pod->object, "Normal", "DeviceTaintManagerEviction", std::string(text)));
  };
  if (!eviction) {
    evicted_by_.erase(key);
    if (waiting_.erase(key) > 0 && pod && !pod->deleting) note("Cancelling deletion");
    return plan;
  }
  for (const std::string& rule : eviction->rules) report_soon(rule, now, plan);
  if (eviction->when > now) {
    waiting_.insert(key);
    plan.requeue_after = eviction->when - now;
    return plan;
  }
  waiting_.erase(key);
  note("Marking for deletion");
  plan_disruption(*pod->object, "DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint", now, plan);
  plan.writes.back().tag = kDeletes;
  for (const std::string& rule : eviction->rules) evicted_by_[key].insert(rules_.at(rule).uid);
  return plan;
}

void DeviceTaintEviction::on_result(const std::string& key, const Write& write, const ApiResult<Value>& result, TimePoint now) {
  if (write.kind == kinds().device_taint_rule && !result) report_at_.try_emplace(key, now);
  if (write.tag != kDeletes) return;
  const auto rules = evicted_by_.extract(key);
  if (!rules || !result) return;
  for (const std::string& uid : rules.mapped())
    if (std::ranges::any_of(rules_, [&](const auto& rule) { return rule.second.uid == uid; })) ++evicted_[uid];
}

void DeviceTaintEviction::report_soon(const std::string& rule, TimePoint now, Plan& plan) {
  if (report_at_.try_emplace(rule, now + kReportPeriod).second) plan.enqueue.push_back(rule);
}

/// The rule's condition EvictionInProgress, by what the cache shows now.
Plan DeviceTaintEviction::report(const std::string& name, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto due = report_at_.find(name);
  const ObjectRef object = cache.get(kinds().device_taint_rule, {}, name);
  if (due == report_at_.end() || !object) return plan;
  if (due->second > now) {
    plan.requeue_after = due->second - now;
    return plan;
  }
  const auto parsed = object->parsed();
  const std::int64_t generation = json::get_int(*parsed, {"metadata", "generation"});
  const Value* before = nullptr;
  for (const Value& one : get_array(*parsed, {"status", "conditions"}))
    if (get_string(one, {"type"}) == "EvictionInProgress") before = &one;
  if (before != nullptr && json::get_int(*before, {"observedGeneration"}) == generation) {
    const TimePoint next = read_time(*before, {"lastTransitionTime"}) + kReportPeriod;
    if (next > now) {
      due->second = next;
      plan.requeue_after = next - now;
      return plan;
    }
  }
  report_at_.erase(due);
  Condition condition{.type = "EvictionInProgress", .status = "False", .reason = {}, .message = {}};
  describe(name, cache, condition);
  if (condition.status == "True") {
    // Until nobody has to go any more: a deletion tells no rule of its end.
    report_at_[name] = now + kReportPeriod;
    plan.requeue_after = kReportPeriod;
  }
  const bool is_told = before != nullptr && json::get_int(*before, {"observedGeneration"}) == generation &&
                       get_string(*before, {"status"}) == condition.status && get_string(*before, {"reason"}) == condition.reason &&
                       get_string(*before, {"message"}) == condition.message;
  if (is_told) return plan;
  json::Array conditions = get_array(*parsed, {"status", "conditions"});
  remove_condition(conditions, condition.type);
  // Every change of it counts as a transition: by its time it is known when the next one may be told.
  conditions.push_back(json::Object{{"type", condition.type},
                                    {"status", condition.status},
                                    {"observedGeneration", generation},
                                    {"lastTransitionTime", format_rfc3339(now)},
                                    {"reason", condition.reason},
                                    {"message", condition.message}});
  if (auto write = patch_status(kinds().device_taint_rule, *object, *parsed, {{"conditions", std::move(conditions)}}, true))
    plan.writes.push_back(std::move(*write));
  return plan;
}

/// Those that use a device of the rule and do not tolerate its taint for ever.
DeviceTaintEviction::Users DeviceTaintEviction::users_of(const Rule& rule, const Cache& cache) {
  Users out;
  std::set<std::string> namespaces;
  cache.for_each_pod([&](const PodRef& pod) {
    if (pod->deleting) return;
    const auto has_to_go = [&](const ObjectRef& claim) {
      const auto parsed = claim->parsed();
      return std::ranges::any_of(devices_of(*parsed),
                                 [&](const Value& device) { return rule.matches(device) && patience(device, rule.taint).has_value(); });
    };
    if (!std::ranges::any_of(claims_of(*pod, cache), has_to_go)) return;
    ++out.pods;
    namespaces.insert(pod->ns());
  });
  out.where = counted(static_cast<std::int64_t>(namespaces.size()), "namespace", "different namespaces");
  return out;
}

void DeviceTaintEviction::describe(const std::string& name, const Cache& cache, Condition& to) const {
  const Rule& rule = rules_.at(name);
  const auto known = evicted_.find(rule.uid);
  const std::int64_t gone = known == evicted_.end() ? 0 : known->second;
  if (rule.evicts()) {
    const Users users = users_of(rule, cache);
    to.status = users.pods > 0 ? "True" : "False";
    to.reason = users.pods > 0 ? "PodsPendingEviction" : gone > 0 ? "Completed" : "NotStarted";
    if (users.pods > 0) to.message = fmt::format("{} to be evicted in {}.", counted(users.pods, "pod needs", "pods need"), users.where);
  } else if (rule.view.taint.effect == "None") {
    std::int64_t published = 0, allocated = 0;
    for (const auto& [pool, names] : slices_of_) {
      std::int64_t newest = INT64_MIN;
      for (const std::string& slice : names) newest = std::max(newest, slices_.at(slice).generation);
      for (const std::string& slice : names)
        if (slices_.at(slice).generation == newest) published += slices_.at(slice).count(rule.view);
    }
    cache.for_each(kinds().resource_claim, [&](const ObjectRef& claim) {
      const auto parsed = claim->parsed();
      allocated += std::ranges::count_if(devices_of(*parsed), [&](const Value& device) { return rule.matches(device); });
    });
    to.reason = "NoEffect";
    const Users users = users_of(rule, cache);
    to.message = fmt::format(
        "{} selected. {} selected. {} would be evicted in {} if the effect was NoExecute. This information will not be updated again. "
        "Recreate the DeviceTaintRule to trigger an update.",
        counted(published, "published device", "published devices"), counted(allocated, "allocated device", "allocated devices"),
        counted(users.pods, "pod", "pods"), users.where);
  } else {
    to.reason = "OtherEffect";
    to.message = "Eviction only happens for the NoExecute effect.";
  }
  if (gone > 0)
    to.message += fmt::format("{}{} evicted since starting the controller.", to.message.empty() ? "" : " ", counted(gone, "pod", "pods"));
}

}  // namespace

ControllerPtr make_device_taint_eviction_controller() { return std::make_unique<DeviceTaintEviction>(); }

}  // namespace berth::controllers
