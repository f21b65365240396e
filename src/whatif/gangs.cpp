// Gangs in a world that changes: all of one or none, as the scheduler decides.
#include <fmt/format.h>

#include <algorithm>

#include "placement/engine.h"
#include "placement/groups/group_placement.h"
#include "whatif/world.h"

namespace berth::whatif {
namespace {

placement::PodGroupPtr find_group(const Tables& tables, std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return nullptr;
  const json::Value* document = tables.find("PodGroup", key.substr(0, slash), key.substr(slash + 1));
  // Others have a kind of that name too.
  if (document == nullptr || !json::get_string(*document, {"apiVersion"}).starts_with("scheduling.k8s.io/")) return nullptr;
  return std::make_shared<const placement::PodGroup>(placement::PodGroup::parse(*document));
}

}  // namespace

std::map<std::string, GangCount> count_gangs(const Tables& tables) {
  std::map<std::string, GangCount> out;
  if (!tables.kinds.contains("PodGroup")) return out;
  for (const auto& [key, record] : tables.pods) {
    if (record.group().empty()) continue;
    GangCount& count = out[record.group()];
    ++(record.node.empty() ? count.waiting : count.running);
  }
  for (auto at = out.begin(); at != out.end();) {
    const placement::PodGroupPtr group = find_group(tables, at->first);
    if (group == nullptr || !group->is_gang) {
      at = out.erase(at);
    } else {
      at->second.needed = group->min_count;
      ++at;
    }
  }
  return out;
}

placement::PodGroupPtr World::group_of(const Record& record) const {
  if (record.group().empty()) return nullptr;
  placement::PodGroupPtr group = find_group(tables_, record.group());
  return group != nullptr && (group->is_gang || !group->all_levels().empty()) ? group : nullptr;
}

bool World::attempt_group(const placement::PodGroup& group) {
  const std::string key = group.key();
  if (const auto failed = failed_groups_.find(key); failed != failed_groups_.end() && failed->second == epoch_) return false;
  std::vector<std::string> pods;
  std::vector<placement::PodInfoPtr> members;
  for (const std::string& pod : waiting())
    if (const Record& record = tables_.pods.at(pod); record.group() == key) {
      pods.push_back(pod);
      members.push_back(record.info);
    }
  std::vector<placement::NodeIndex> standing;
  for (const auto& [pod, record] : tables_.pods)
    if (record.group() == key && !record.node.empty())
      if (const auto* node = cluster().find_node(record.node)) standing.push_back(node->index);
  std::ranges::sort(standing);
  const std::size_t stand = standing.size();
  const placement::GroupDecision decision =
      placement::place_group(trial_, {.group = &group, .members = members, .standing = std::move(standing)});
  const bool is_placed = decision.outcome == placement::GroupDecision::Outcome::kScheduled;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const placement::MemberDecision* mine = i < decision.members.size() ? &decision.members[i] : nullptr;
    if (is_placed && mine != nullptr && mine->has_place()) {
      arrive(pods[i], mine->decision.node);
      continue;
    }
    save(pods[i]);
    std::string why = mine != nullptr && mine->decision.diagnosis != nullptr
                          ? placement::fit_error_message(*mine->decision.diagnosis, cluster().era(), {})
                          : decision.message;
    tables_.pods.at(pods[i]).message =
        is_placed
            ? why
            : fmt::format("gang {} waits as a whole: it needs {} pods at once, {} stand, and of the {} that wait {} would have a place: {}",
                          key, group.min_count, stand, pods.size(), placement::count_placed(decision), why);
  }
  const bool has_moved = is_placed && placement::count_placed(decision) > 0;
  if (!has_moved) failed_groups_[key] = epoch_;
  return has_moved;
}

}  // namespace berth::whatif
