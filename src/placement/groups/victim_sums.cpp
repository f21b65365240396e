#include "placement/groups/victim_sums.h"

#include <algorithm>
#include <map>

namespace berth::placement {

bool comes_before(const Victim& a, const Victim& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.is_grouped != b.is_grouped) return a.is_grouped;
  if (a.is_grouped && a.count != b.count) return a.count > b.count;
  return a.start_time_ns < b.start_time_ns;
}

Victims::Victims(const Cluster& cluster, const PodGroup& preemptor, const PodGroups& groups) {
  struct Whole {
    std::size_t victim;
    std::vector<Row> rows;
  };
  std::map<std::string, Whole, std::less<>> wholes;
  const std::string own = preemptor.key();
  for (const NodeInfo* node : cluster.nodes())
    for (const PodInfoPtr& pod : node->pods) {
      const model::PodView& view = pod->view();
      static const std::string kNone;
      const std::string& key = groups.empty() ? kNone : groups.group_of(view.meta.uid);
      if (key.empty()) {
        if (view.priority >= preemptor.priority) continue;
        all.push_back({view.priority, pod->start_time_ns, static_cast<std::uint32_t>(rows.size()), 1, false});
        rows.push_back({pod.get(), node->index});
        continue;
      }
      if (key == own) continue;
      const PodGroupPtr group = groups.find(key);
      const bool as_one = group != nullptr && group->goes_as_one;
      if ((as_one ? group->priority : view.priority) >= preemptor.priority) continue;
      if (!as_one) {
        all.push_back({view.priority, pod->start_time_ns, static_cast<std::uint32_t>(rows.size()), 1, true});
        rows.push_back({pod.get(), node->index});
        continue;
      }
      const auto [known, is_new] = wholes.try_emplace(key, Whole{all.size(), {}});
      if (is_new) all.push_back({group->priority, INT64_MAX, 0, 0, true});
      Victim& victim = all[known->second.victim];
      victim.start_time_ns = std::min(victim.start_time_ns, pod->start_time_ns);
      known->second.rows.push_back({pod.get(), node->index});
    }
  for (const auto& [key, whole] : wholes) {
    all[whole.victim].first = static_cast<std::uint32_t>(rows.size());
    all[whole.victim].count = static_cast<std::uint32_t>(whole.rows.size());
    rows.insert(rows.end(), whole.rows.begin(), whole.rows.end());
  }
  if (!std::ranges::is_sorted(all, comes_before)) std::ranges::stable_sort(all, comes_before);
}

VictimSums::VictimSums(const Cluster& cluster, const GroupRoom& room, const Victims& victims, std::vector<std::int32_t> domain_of,
                       std::size_t domains, std::int64_t need)
    : rules_(room),
      victims_(victims),
      domain_of_(std::move(domain_of)),
      need_(need),
      width_(room.width()),
      kinds_(room.kinds().size()),
      left_(cluster.slot_count() * width_, 0),
      amounts_(victims.rows.size() * width_),
      may_go_(cluster.slot_count() * kinds_, 0),
      room_(cluster.slot_count() * (kinds_ + 1), 0),
      room_of_kind_(domains * (kinds_ + 1), 0) {
  for (std::uint32_t slot = 0; slot < cluster.slot_count(); ++slot) {
    const NodeInfo* node = cluster.node(NodeIndex{slot});
    if (domain_of_[slot] < 0 || node == nullptr || node->node == nullptr) {
      domain_of_[slot] = -1;
      continue;
    }
    room.left_on(*node, &left_[slot * width_]);
    for (std::size_t kind = 0; kind < kinds_; ++kind) may_go_[slot * kinds_ + kind] = room.may_go(kind, *node) ? 1 : 0;
  }
  for (std::size_t row = 0; row < victims.rows.size(); ++row) {
    room.amounts_of(*victims.rows[row].pod, true, &amounts_[row * width_]);
    for (std::size_t i = 0; i < width_; ++i) left_[victims.rows[row].node.value * width_ + i] += amounts_[row * width_ + i];
  }
  for (std::uint32_t slot = 0; slot < cluster.slot_count(); ++slot)
    if (domain_of_[slot] >= 0) recount(slot);
}

VictimSums::Answer VictimSums::answer(std::size_t domain) const {
  const std::int64_t* room = &room_of_kind_[domain * (kinds_ + 1)];
  if (room[kinds_] >= need_) return Answer::kFits;
  std::int64_t most = 0;
  for (std::size_t kind = 0; kind < kinds_; ++kind) most += std::min(room[kind], std::ssize(rules_.kinds()[kind].members));
  return most < need_ ? Answer::kDoesNot : Answer::kOpen;
}

bool VictimSums::concerns(const Victim& victim, std::size_t domain) const {
  return std::ranges::any_of(victims_.rows_of(victim),
                             [&](const Victims::Row& row) { return domain_of_[row.node.value] == static_cast<std::int32_t>(domain); });
}

void VictimSums::change(const Victim& victim, std::int64_t sign) {
  for (std::uint32_t row = victim.first; row < victim.first + victim.count; ++row) {
    const std::uint32_t slot = victims_.rows[row].node.value;
    if (domain_of_[slot] < 0) continue;
    for (std::size_t i = 0; i < width_; ++i) left_[slot * width_ + i] += sign * amounts_[row * width_ + i];
    // Where there is no room for anybody, less of it changes nothing.
    const std::int64_t* room = &room_[slot * (kinds_ + 1)];
    if (sign > 0 || std::any_of(room, room + kinds_ + 1, [](std::int64_t one) { return one != 0; })) recount(slot);
  }
}

/// The node's room anew, and with it its domain's.
void VictimSums::recount(std::uint32_t slot) {
  std::int64_t* sums = &room_of_kind_[static_cast<std::size_t>(domain_of_[slot]) * (kinds_ + 1)];
  std::int64_t* room = &room_[slot * (kinds_ + 1)];
  const std::int64_t* left = &left_[slot * width_];
  const auto set = [&](std::size_t at, std::int64_t now) { sums[at] += now - std::exchange(room[at], now); };
  bool takes_any = true;
  for (std::size_t kind = 0; kind < kinds_; ++kind) {
    const bool may_go = may_go_[slot * kinds_ + kind] != 0;
    takes_any = takes_any && may_go;
    set(kind, may_go ? rules_.room(kind, left) : 0);
  }
  set(kinds_, !takes_any ? 0 : kinds_ == 1 ? room[0] : rules_.room_for_any(left));
}

}  // namespace berth::placement
