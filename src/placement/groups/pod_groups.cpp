#include "placement/groups/pod_groups.h"

namespace berth::placement {

PodGroup PodGroup::parse(const json::Value& object) {
  PodGroup out;
  out.ns = json::get_string(object, {"metadata", "namespace"});
  out.name = json::get_string(object, {"metadata", "name"});
  out.uid = json::get_string(object, {"metadata", "uid"});
  if (const json::Value* gang = json::find(object, {"spec", "schedulingPolicy", "gang"}); gang != nullptr && gang->is_object()) {
    out.is_gang = true;
    out.min_count = json::get_int(*gang, {"minCount"}, 1);
  }
  const json::Value* constraints = json::find(object, {"spec", "schedulingConstraints"});
  out.has_constraints = constraints != nullptr && constraints->is_object();
  if (out.has_constraints)
    for (const json::Value& one : json::get_array(*constraints, {"topology"}))
      if (out.topology_key.empty()) out.topology_key = json::get_string(one, {"key"});
  out.goes_as_one = json::get_string(object, {"spec", "disruptionMode"}) == "PodGroup";
  out.priority = json::get_int(object, {"spec", "priority"});
  return out;
}

void PodGroups::upsert(PodGroupPtr group) {
  std::string key = group->key();
  groups_[std::move(key)] = std::move(group);
}

void PodGroups::remove(std::string_view key) {
  if (const auto found = groups_.find(key); found != groups_.end()) groups_.erase(found);
}

PodGroupPtr PodGroups::find(std::string_view key) const {
  const auto found = groups_.find(key);
  return found != groups_.end() ? found->second : nullptr;
}

bool PodGroups::add_member(const std::string& group_key, const Member& member) {
  Members& members = members_[group_key];
  if (!members.arrivals.emplace(member.uid, next_arrival_).second) return false;
  members.by_arrival.emplace(next_arrival_++, member);
  group_of_[member.uid] = group_key;
  return true;
}

bool PodGroups::remove_member(const std::string& group_key, const std::string& uid) {
  const auto group = members_.find(group_key);
  if (group == members_.end()) return false;
  const auto found = group->second.arrivals.find(uid);
  if (found == group->second.arrivals.end()) return false;
  group->second.by_arrival.erase(found->second);
  group->second.arrivals.erase(found);
  group_of_.erase(uid);
  if (group->second.arrivals.empty()) members_.erase(group);
  return true;
}

std::vector<PodGroups::Member> PodGroups::members(const std::string& group_key) const {
  std::vector<Member> out;
  const auto group = members_.find(group_key);
  if (group == members_.end()) return out;
  out.reserve(group->second.by_arrival.size());
  for (const auto& [arrival, member] : group->second.by_arrival) out.push_back(member);
  return out;
}

const std::string& PodGroups::group_of(const std::string& uid) const {
  static const std::string kNone;
  const auto found = group_of_.find(uid);
  return found != group_of_.end() ? found->second : kNone;
}

std::size_t PodGroups::count(const std::string& group_key) const {
  const auto group = members_.find(group_key);
  return group != members_.end() ? group->second.arrivals.size() : 0;
}

}  // namespace berth::placement
