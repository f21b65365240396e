// Pods leave devices with NoExecute taints (pkg/controller/devicetainteviction; KEP 5055): at once, or when the tolerations of the claim's
// request run out. A key is a pod. Taints are those of ResourceSlices; DeviceTaintRules are off by default in 1.36 and not served.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "controllers/common.h"
#include "controllers/pod_claims.h"
#include "controllers/services.h"
#include "controllers/taints.h"

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
  std::map<std::string, std::vector<Taint>, std::less<>> by_device;  ///< Those that have any.

  explicit SliceTaints(const Value& slice) {
    static const Value kNone;
    const Value* found = json::find(slice, {"spec"});
    const Value& spec = found == nullptr ? kNone : *found;
    pool = pool_key(spec, get_string(spec, {"pool", "name"}));
    generation = json::get_int(spec, {"pool", "generation"});
    for (const Value& device : get_array(spec, {"devices"}))
      for (const Value& taint : get_array(device, {"taints"})) {
        if (get_string(taint, {"effect"}) != "NoExecute") continue;
        by_device[std::string(get_string(device, {"name"}))].push_back(
            {std::string(get_string(taint, {"key"})), std::string(get_string(taint, {"value"})), "NoExecute",
             parse_rfc3339(get_string(taint, {"timeAdded"})).value_or(TimePoint{})});
      }
  }
};

/// How long the device is used in spite of the taint: nullopt for ever.
std::optional<std::chrono::seconds> patience(const Value& device, const Taint& taint) {
  std::optional<std::int64_t> least;
  for (const Value& one : get_array(device, {"tolerations"})) {
    if (get_string(one, {"effect"}) != "NoExecute") continue;
    const Toleration toleration{std::string(get_string(one, {"key"})),
                                std::string(get_string(one, {"operator"})),
                                std::string(get_string(one, {"value"})),
                                "NoExecute",
                                {}};
    if (!tolerates(toleration, taint)) continue;
    const Value* seconds = json::find(one, {"tolerationSeconds"});
    if (seconds == nullptr || !seconds->is_int64()) return std::nullopt;
    least = std::min(least.value_or(INT64_MAX), std::clamp<std::int64_t>(seconds->get_int64(), 0, 1'000'000'000));
  }
  return std::chrono::seconds(least.value_or(0));
}

class DeviceTaintEviction final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "device-taint-eviction-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().pod, kinds().resource_claim, kinds().resource_slice}; }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().resource_slice) return on_slice(event, cache, sink);
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

 private:
  void on_slice(const Event& event, const Cache& cache, KeySink& sink);
  void index(const client::Object& claim);
  void forget(const std::string& claim);
  static void add_users(const client::Object& claim, const Cache& cache, KeySink& sink);
  [[nodiscard]] std::optional<TimePoint> eviction_time(const PodInfo& pod, const Cache& cache) const;
  [[nodiscard]] std::optional<TimePoint> eviction_time(const Value& claim) const;
  [[nodiscard]] std::vector<Taint> taints_of(const Value& device) const;

  std::map<std::string, SliceTaints> slices_;                                        ///< By name.
  std::map<std::string, std::set<std::string>, std::less<>> slices_of_, claims_of_;  ///< By "driver/pool": names; "ns/name"s.
  std::map<std::string, std::set<std::string>> pools_of_;                            ///< By claim.
  std::set<std::string> waiting_;                                                    ///< Pods whose time will come.
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
  for (const Value& device : get_array(*claim.parsed(), {"status", "allocation", "devices", "results"})) {
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
  for (const Value& user : get_array(*claim.parsed(), {"status", "reservedFor"}))
    if (get_string(user, {"resource"}) == "pods" && get_string(user, {"apiGroup"}).empty())
      sink.add(fmt::format("{}/{}", claim.ns(), get_string(user, {"name"})));
    else if (get_string(user, {"resource"}) == "podgroups")
      for (const PodRef& pod : cache.pods_in(claim.ns()))
        if (pod->has_resource_claims && pod->scheduling_group == get_string(user, {"name"})) sink.add(pod->object->key());
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

std::optional<TimePoint> DeviceTaintEviction::eviction_time(const Value& claim) const {
  std::optional<TimePoint> out;
  for (const Value& device : get_array(claim, {"status", "allocation", "devices", "results"}))
    for (const Taint& taint : taints_of(device)) {
      const auto more = patience(device, taint);
      if (more && (!out || taint.time_added + *more < *out)) out = taint.time_added + *more;
    }
  return out;
}

std::optional<TimePoint> DeviceTaintEviction::eviction_time(const PodInfo& pod, const Cache& cache) const {
  std::optional<TimePoint> out;
  if (pod.node.empty()) return out;
  const auto parsed = pod.object->parsed();
  for (const PodClaim& entry : pod_claims(*parsed)) {
    const ObjectRef claim = entry.claim.empty() ? nullptr : cache.get(kinds().resource_claim, pod.ns(), entry.claim);
    if (!claim || !may_use(*claim->parsed(), pod)) continue;
    if (!entry.claim_template.empty() && !is_of_pod(*claim, pod)) continue;
    if (const auto when = eviction_time(*claim->parsed()); when && (!out || *when < *out)) out = when;
  }
  return out;
}

Plan DeviceTaintEviction::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const PodRef pod = cache.pod(ns, name);
  const auto when = pod && !pod->deleting ? eviction_time(*pod, cache) : std::nullopt;
  const auto note = [&](std::string_view text) {
    plan.events.push_back(note_about(kinds().pod, *pod->object, "Normal", "DeviceTaintManagerEviction", std::string(text)));
  };
  if (!when) {
    if (waiting_.erase(key) > 0 && pod && !pod->deleting) note("Cancelling deletion");
    return plan;
  }
  if (*when > now) {
    waiting_.insert(key);
    plan.requeue_after = *when - now;
    return plan;
  }
  waiting_.erase(key);
  note("Marking for deletion");
  plan_disruption(*pod->object, "DeletionByDeviceTaintManager", "Device Taint manager: deleting due to NoExecute taint", now, plan);
  return plan;
}

}  // namespace

ControllerPtr make_device_taint_eviction_controller() { return std::make_unique<DeviceTaintEviction>(); }

}  // namespace berth::controllers
