// What befalls machines that are there: notices that they will be taken away, nodes that are not healthy, nodes that are smaller than was
// said.
#include <fmt/format.h>

#include <algorithm>

#include "pools/keeper.h"

namespace berth::pools {
namespace {

constexpr Duration kNotice = std::chrono::minutes(2);             ///< As clouds give it to spot machines.
constexpr Duration kRepairToleration = std::chrono::minutes(30);  ///< Of a node that is not ready; Karpenter's AWS provider's.
constexpr std::int64_t kMostUnhealthyPercent = 20;                ///< Karpenter's (pkg/controllers/node/health), rounded up.
/// An unhealthy node's pods wait so long for what comes instead of it.
constexpr Duration kRepairPatience = std::chrono::minutes(3);

/// Between a half and one and a half, the same for the same name.
double factor_of(std::string_view name) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return 0.5 + static_cast<double>((hash >> 16) % 1000) / 1000;
}

struct RepairPolicy {
  std::string type, status;
  Duration toleration{};
};
std::vector<RepairPolicy> repair_policies(const json::Value* node_class) {
  std::vector<RepairPolicy> out;
  const json::Value* given = node_class == nullptr ? nullptr : json::find(*node_class, {"spec", "repairPolicies"});
  if (given == nullptr) return {{"Ready", "False", kRepairToleration}, {"Ready", "Unknown", kRepairToleration}};
  for (const json::Value& one : json::get_array(*node_class, {"spec", "repairPolicies"}))
    out.push_back({std::string(json::get_string(one, {"conditionType"})), std::string(json::get_string(one, {"conditionStatus"})),
                   parse_go_duration(json::get_string(one, {"tolerationDuration"}, "30m")).value_or(kRepairToleration)});
  return out;
}

}  // namespace

std::optional<TimePoint> Keeper::deadline_of(const NodeClaim& claim) const {
  std::optional<TimePoint> out;
  if (claim.deleted && claim.termination_grace_period) out = *claim.deleted + *claim.termination_grace_period;
  if (const std::string* told = claim.annotation(kTerminationTimestamp))
    if (const auto at = parse_rfc3339(*told); at && (!out || *at < *out)) out = at;
  return out;
}

void Keeper::remember_unavailable(const NodeClaim& claim) {
  const auto label = [&](std::string_view key) {
    const std::string* value = claim.labels.get(key);
    return value == nullptr ? std::string() : *value;
  };
  unavailable_[{label(kInstanceTypeLabel), label(kZoneLabel), label(kCapacityTypeLabel)}] = now_ + options_.unavailable_for;
}

/// Nullopt: nobody takes it away.
std::optional<Duration> Keeper::notice_of(const NodeClaim& claim, const json::Value& node) const {
  std::string_view told = json::get_string(node, {"metadata", "annotations", kInterruption});
  if (const std::string* own = claim.annotation(kInterruption); told.empty() && own != nullptr) told = *own;
  if (!told.empty()) return parse_go_duration(told).value_or(kNotice);
  const json::Value* node_class = class_of(claim.node_class);
  const std::string* manner = claim.labels.get(kCapacityTypeLabel);
  if (node_class == nullptr || manner == nullptr || *manner != "spot") return std::nullopt;
  const auto lasts = parse_go_duration(json::get_string(*node_class, {"spec", "spotLasts"}));
  const auto since = claim.since("Registered");
  if (!lasts || !since || !claim.is("Registered")) return std::nullopt;
  const auto own = std::chrono::duration_cast<Duration>(*lasts * factor_of(claim.name));
  return *since + own <= now_ ? std::optional(kNotice) : std::nullopt;
}

/// A notice that is taken back leaves the claim as it was, unless it goes already.
void Keeper::follow_interruption(const NodeClaim& claim, const json::Value& node, ClaimStatus& status) {
  const std::optional<Duration> notice = notice_of(claim, node);
  if (!notice) {
    if (claim.is("Interrupted")) status.set("Interrupted", "False", "NoticeTakenBack", "", now_);
    return;
  }
  if (claim.is("Interrupted")) return;
  const std::string* manner = claim.labels.get(kCapacityTypeLabel);
  const bool is_spot = manner != nullptr && *manner == "spot";
  const std::string_view reason = is_spot ? "SpotInterrupted" : "InstanceTerminating";
  const std::string message = fmt::format("its machine will be taken away in {}", format_go_duration(*notice));
  status.set("Interrupted", "True", reason, message, now_);
  tell("NodeClaim", claim.name, claim.uid, true, reason, message);
  tell("Node", claim.node_name, claim.node_name, true, reason, message);
  // What is taken away here is not to be had here.
  if (is_spot) remember_unavailable(claim);
}

bool Keeper::take_machine(const NodeClaim& claim, const std::string& name, const json::Value& node) {
  if (claim.node_class.is_of_machines()) return false;  // Who takes it away does it himself.
  const auto since = claim.since("Interrupted");
  const auto notice = notice_of(claim, node);
  if (!claim.is("Interrupted") || !since || !notice || now_ < *since + *notice) return false;
  tell("NodeClaim", claim.name, claim.uid, true, "InstanceTerminated", "its machine was taken away");
  if (json::find(node, {"metadata", "deletionTimestamp"}) == nullptr)
    out_.writes.push_back(
        {Write::Kind::kDelete, kNodes, "", name, {}, std::string(json::get_string(node, {"metadata", "uid"})), std::nullopt});
  else
    release_node(name, node);
  return true;
}

/// Empty: nothing. `repaired_at`: when it is replaced for that.
std::string Keeper::wrong_with(const NodeClaim& claim, const json::Value& node, std::optional<TimePoint>* repaired_at) const {
  for (const RepairPolicy& policy : repair_policies(class_of(claim.node_class)))
    for (const json::Value& one : json::get_array(node, {"status", "conditions"})) {
      if (json::get_string(one, {"type"}) != policy.type || json::get_string(one, {"status"}) != policy.status) continue;
      const auto since = parse_rfc3339(json::get_string(one, {"lastTransitionTime"}));
      if (repaired_at != nullptr && since) *repaired_at = *since + policy.toleration;
      return fmt::format("its condition {} is {}; after {} it is replaced", policy.type, policy.status,
                         format_go_duration(policy.toleration));
    }
  return "";
}

/// A pool of which many nodes are unhealthy has another problem than its nodes.
bool Keeper::is_repair_allowed(const NodeClaim& claim) {
  std::int64_t all = 0, unhealthy = 0;
  for (const auto& [name, other] : cache_.claims()) {
    const json::Value* node = other.node_name.empty() ? nullptr : cache_.node(other.node_name);
    if (other.pool != claim.pool || node == nullptr) continue;
    ++all;
    unhealthy += wrong_with(other, *node, nullptr).empty() ? 0 : 1;
  }
  return unhealthy <= (all * kMostUnhealthyPercent + 99) / 100;
}

void Keeper::follow_health(const NodeClaim& claim, const json::Value& node, ClaimStatus& status) {
  if (!claim.is("Initialized")) return;  // Who starts may take his time.
  std::optional<TimePoint> repaired_at;
  const std::string wrong = wrong_with(claim, node, &repaired_at);
  if (wrong.empty()) {
    if (!claim.condition("Unhealthy").empty()) status.set("Unhealthy", "False", "Healthy", "", now_);
    return;
  }
  const bool is_due = repaired_at && *repaired_at <= now_, is_allowed = !is_due || is_repair_allowed(claim);
  const std::string_view reason = !is_due ? "Tolerated" : is_allowed ? "Repair" : "NodeRepairBlocked";
  const std::string message = is_allowed ? wrong
                                         : fmt::format("more than {}% of the nodes of NodePool {} are unhealthy: none is replaced",
                                                       kMostUnhealthyPercent, claim.pool);
  if (!is_allowed) tell("NodeClaim", claim.name, claim.uid, true, reason, message);
  if (is_due && is_allowed) tell("NodeClaim", claim.name, claim.uid, true, "Unhealthy", wrong);
  status.set("Unhealthy", is_due && is_allowed ? "True" : "Unknown", reason, message, now_);
}

std::optional<Keeper::Forced> Keeper::forced(const NodeClaim& claim) const {
  if (claim.deleted) return std::nullopt;
  const json::Value* node = claim.node_name.empty() ? nullptr : cache_.node(claim.node_name);
  if (node == nullptr) return std::nullopt;
  const auto since_notice = claim.since("Interrupted");
  if (const auto notice = notice_of(claim, *node); claim.is("Interrupted") && since_notice && notice)
    // A quarter of the time is the pods' to end.
    return Forced{Reason::kInterrupted, *since_notice + *notice * 3 / 4, *since_notice + *notice};
  if (const auto since = claim.since("Unhealthy"); claim.is("Unhealthy") && since)
    return Forced{Reason::kUnhealthy, *since + kRepairPatience, *since + kRepairPatience};
  return std::nullopt;
}

bool Keeper::is_being_replaced(const std::string& claim) const {
  return std::ranges::any_of(replacements_, [&](const Replacement& one) { return one.no_later && one.claims.contains(claim); });
}

bool Keeper::some_are_forced() const {
  return std::ranges::any_of(cache_.claims(), [&](const auto& one) { return !is_being_replaced(one.first) && forced(one.second); });
}

/// All that go for one reason go together: what comes instead of them is bought for all of their pods.
void Keeper::replace_forced(PoolsView& view) {
  for (const Reason reason : {Reason::kInterrupted, Reason::kUnhealthy}) {
    std::vector<std::size_t> nodes;
    std::optional<TimePoint> no_later;
    for (std::size_t i = 0; i < view.owned.size(); ++i) {
      const auto claim = cache_.claims().find(view.owned[i].claim);
      if (claim == cache_.claims().end() || is_being_replaced(claim->first)) continue;
      const auto why = forced(claim->second);
      if (!why || why->reason != reason) continue;
      nodes.push_back(i);
      no_later = no_later ? std::min(*no_later, why->no_later) : why->no_later;
      // Who does not want to go is given his grace before the machine is gone.
      out_.writes.push_back(
          {Write::Kind::kPatch, kNodeClaims, "", claim->first,
           json::Object{{"metadata", json::Object{{"annotations", json::Object{{kTerminationTimestamp, format_rfc3339(why->deadline)}}}}}},
           "", std::nullopt});
    }
    if (nodes.empty()) continue;
    // One that others move their pods to meanwhile is none of theirs any more.
    begin(plan_replacement({view.input(), view.owned}, nodes, reason), view, no_later);
    for (const std::size_t i : nodes) view.owned[i].is_leaving = true;
  }
}

/// A provider that says more than its nodes offer is believed less from then on.
void Keeper::follow_size(const NodeClaim& claim, const json::Value& node) {
  const std::string* type_name = claim.labels.get(kInstanceTypeLabel);
  const auto type = type_name == nullptr ? catalogue_.types.end() : std::ranges::find(catalogue_.types, *type_name, &InstanceType::name);
  if (type == catalogue_.types.end()) return;
  for (auto& [resource, amount] : type->allocatable) {
    const auto offered = model::Quantity::parse(json::get_string(node, {"status", "allocatable", resource}));
    if (!offered || !(*offered < amount)) continue;
    tell("NodeClaim", claim.name, claim.uid, true, "SmallerThanSaid",
         fmt::format("its node offers {} {}, and {} was to offer {}: nodes of this type are counted so from now on", offered->to_string(),
                     resource, type->name, amount.to_string()));
    amount = *offered;
    offered_[type->name] = type->allocatable;
    satisfiable_.clear();
    settled_.clear();
  }
}

}  // namespace berth::pools
