#include "placement/groups/pod_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/validation/validation.h"

namespace berth::placement {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The annotation's keys as levels. The first mistake is kept: half of an order would be another order.
void add_levels(const json::Value& object, std::string_view annotation, bool is_required, PodGroup& out) {
  const json::Value* said = json::find(object, {"metadata", "annotations", annotation});
  if (said == nullptr) return;
  std::string_view rest = json::as_view(*said);
  while (out.mistake.empty()) {
    const std::size_t end = rest.find(',');
    const std::string_view key = trimmed(rest.substr(0, end));
    const std::string wrong = key.empty() ? "a key is empty" : model::validation::check_qualified_name(key);
    if (!wrong.empty())
      out.mistake = fmt::format("metadata.annotations[{}]: \"{}\": {}; give keys of node labels with commas between them, widest first",
                                annotation, json::as_view(*said), wrong);
    else if (std::ranges::find(out.levels, key, &TopologyLevel::key) != out.levels.end())
      out.mistake = fmt::format("metadata.annotations[{}]: the key {} is named twice", annotation, key);
    else
      out.levels.push_back({std::string(key), is_required});
    if (end == std::string_view::npos) return;
    rest.remove_prefix(end + 1);
  }
}

/// The field's key is one of the required ones, wherever the annotation puts it.
void read_levels(const json::Value& object, PodGroup& out) {
  add_levels(object, kRequiredTopology, true, out);
  const bool is_named = std::ranges::find(out.levels, out.topology_key, &TopologyLevel::key) != out.levels.end();
  if (!out.topology_key.empty() && !is_named) out.levels.push_back({out.topology_key, true});
  add_levels(object, kPreferredTopology, false, out);
}

}  // namespace

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
  out.created = json::get_string(object, {"metadata", "creationTimestamp"});
  read_levels(object, out);
  for (const json::Value& one : json::get_array(object, {"spec", "resourceClaims"}))
    out.claims.push_back({std::string(json::get_string(one, {"name"})), std::string(json::get_string(one, {"resourceClaimName"})),
                          std::string(json::get_string(one, {"resourceClaimTemplateName"}))});
  return out;
}

bool PodGroup::asks_the_same(const PodGroup& other) const {
  return uid == other.uid && is_gang == other.is_gang && min_count == other.min_count && topology_key == other.topology_key &&
         levels == other.levels && mistake == other.mistake && priority == other.priority;
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
