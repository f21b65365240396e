// Claims whose nodes are machines of groups: their sizes follow the claims, and each claim has its machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pools/keeper.h"

namespace berth::pools {
namespace {

/// After a request that was refused.
constexpr Duration kPause = std::chrono::seconds(10);

/// On a claim whose machine was given back: what the group has from then on is not the claim's.
constexpr std::string_view kGivenBack = "berth.dev/machine-given-back";

const autoscaler::Instance* machine_of(const NodeClaim& claim, const MachineGroup& group) {
  const auto at = std::ranges::find(group.group.instances, claim.provider_id, provider_id_of);
  return at == group.group.instances.end() ? nullptr : &*at;
}

}  // namespace

/// What groups offer changes with each machine that comes.
void Keeper::refresh_catalogue() {
  std::erase_if(paused_, [&](const auto& one) { return one.second <= now_; });
  if (catalogue_version_ == cache_.version()) return;
  catalogue_version_ = cache_.version();
  balances_ = balances(cache_);
  if (balances_.empty() && cache_.machine_problems().empty() && catalogue_.types.size() == listed_.types.size()) return;
  std::set<std::string> before, after;
  for (const InstanceType& type : catalogue_.types) before.insert(type.name);
  catalogue_ = with_machines(listed_, cache_, &group_notes_);
  for (InstanceType& type : catalogue_.types) {
    after.insert(type.name);
    if (const auto known = offered_.find(type.name); known != offered_.end()) type.allocatable = known->second;
  }
  if (before != after) satisfiable_.clear(), settled_.clear();
}

std::string Keeper::why_no_types(const NodePool& pool) const {
  const bool some_are_there =
      std::ranges::any_of(catalogue_.types, [&](const InstanceType& type) { return type.node_class == pool.node_class.types_of(); });
  if (some_are_there || !pool.node_class.is_of_machines())
    return catalogue_.types.empty() ? "no instance types are known: none were named (--instance-types)"
                                    : "no instance type of the catalogue meets the requirements";
  if (!group_notes_.empty()) return fmt::format("{}", fmt::join(group_notes_, "; "));
  return fmt::format("no group of machines has the label {}={} in its template", autoscaler::kMachineClassLabel, pool.node_class.name);
}

void Keeper::keep_machines() {
  for (const auto& [id, balance] : balances_) {
    for (const auto& [claim, machine] : balance.taking) patch_status(kNodeClaims, claim->name, {{"providerID", provider_id_of(*machine)}});
    if (!balance.of->is_current) continue;
    const std::vector<const NodeClaim*> left = balance.left();
    const auto refused = not_grown_.find(id);
    if (refused != not_grown_.end()) {
      for (const NodeClaim* claim : left) {
        if (claim->deleted) continue;
        remember_unavailable(*claim);
        give_up(*claim, "InsufficientCapacity", fmt::format("{} does not grow: {}", id, refused->second));
      }
      not_grown_.erase(refused);
      continue;
    }
    // A size that is asked for now would still count a machine that goes now: one after the other.
    const bool has_one_going = std::ranges::any_of(out_.machines, [&](const MachineWrite& write) {
      return write.kind == MachineWrite::Kind::kRemove && write.group == balance.of->group.id &&
             write.is_external == balance.of->is_external;
    });
    if (paused_.contains(id) || has_one_going) continue;
    const autoscaler::NodeGroup& group = balance.of->group;
    const std::int64_t staying = std::ranges::count_if(left, [](const NodeClaim* claim) { return !claim->deleted; });
    const std::int64_t leaving = std::ssize(left) - staying;
    std::int64_t target = group.target;
    if (staying > balance.coming) target = std::min(group.max, group.target + staying - balance.coming);
    if (leaving > 0 && balance.coming > staying) target = group.target - std::min(leaving, balance.coming - staying);
    if (target == group.target) continue;
    out_.machines.push_back({target > group.target ? MachineWrite::Kind::kGrow : MachineWrite::Kind::kGiveUp, balance.of->is_external,
                             group.id, group.target, target, group.max, "", ""});
  }
}

bool Keeper::waits_for_machines() const {
  return std::ranges::any_of(cache_.claims(), [](const auto& one) {
    return one.second.node_class.is_of_machines() && (one.second.deleted || !one.second.is("Registered"));
  });
}

void Keeper::machine_write_failed(const MachineWrite& write, const std::string& error) {
  const std::string id = write.is_external ? "provider/" + write.group : write.group;
  paused_[id] = now_ + kPause;
  if (write.kind == MachineWrite::Kind::kGrow) not_grown_[id] = error;
}

bool Keeper::lost_machine(const NodeClaim& claim) {
  const std::string* id = claim.annotation(kGroupAnnotation);
  const auto at = id == nullptr || claim.provider_id.empty() || !claim.node_class.is_of_machines() ? balances_.end() : balances_.find(*id);
  if (at == balances_.end() || !at->second.of->is_current) return false;
  const autoscaler::Instance* machine = machine_of(claim, *at->second.of);
  if (machine == nullptr) {
    give_up(claim, "MachineGone", fmt::format("its machine {} is not there any more", claim.provider_id));
  } else if (machine->is_leaving) {
    give_up(claim, "MachineGoing", fmt::format("somebody has its machine {} deleted", claim.provider_id));
  } else if (!machine->failure.empty() && !claim.is("Registered")) {
    registration_[claim.pool] = false;
    remember_unavailable(claim);
    give_up(claim, "MachineFailed", machine->failure);
  } else {
    return false;
  }
  return true;
}

bool Keeper::end_machine(const NodeClaim& claim, const std::string& node) {
  const std::string* id = claim.annotation(kGroupAnnotation);
  if (id == nullptr) return true;  // It was not launched.
  const auto at = balances_.find(*id);
  if (at == balances_.end()) {
    // A set that was deleted takes its machines along. What a provider does not list may be there all the same.
    if (!id->starts_with("provider/")) return true;
    tell("NodeClaim", claim.name, claim.uid, true, "GroupUnknown",
         fmt::format("nobody says what became of {}: whether its machine is there is not known", *id));
    return false;
  }
  const GroupBalance& balance = at->second;
  if (!balance.of->is_current) return false;
  if (claim.provider_id.empty()) {
    // One that comes for it goes at once; what is only asked for is taken back (keep_machines).
    const std::vector<const NodeClaim*> left = balance.left();
    const auto staying = std::ranges::count_if(left, [](const NodeClaim* one) { return !one->deleted; });
    return std::ranges::find(left, &claim) != left.end() && balance.coming <= staying;
  }
  const autoscaler::Instance* machine = machine_of(claim, *balance.of);
  const bool is_given_back = claim.annotation(kGivenBack) != nullptr;
  if (machine == nullptr) {
    if (is_given_back || !node.empty()) return true;
    // Somebody deleted it: where the group makes another one instead, that one is the claim's, and goes as well.
    patch_status(kNodeClaims, claim.name, {{"providerID", nullptr}, {"nodeName", nullptr}});
    return false;
  }
  if (machine->is_leaving || paused_.contains(*id)) return false;
  out_.machines.push_back({MachineWrite::Kind::kRemove, balance.of->is_external, balance.of->group.id, 0, 0, 0, machine->id, node});
  if (!is_given_back)
    out_.writes.push_back({Write::Kind::kPatch, kNodeClaims, "", claim.name,
                           json::Object{{"metadata", json::Object{{"annotations", json::Object{{kGivenBack, format_rfc3339(now_)}}}}}}, "",
                           std::nullopt});
  return false;
}

}  // namespace berth::pools
