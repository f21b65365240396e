#include "whatif/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace berth::whatif {
namespace {

std::string whose(const Record* record, const std::string& pod) {
  if (record == nullptr || record->owner() == nullptr) return pod;
  return std::string(record->view().ns()) + "/" + record->owner()->name;
}

struct Range {
  std::int64_t least = INT64_MAX, most = 0;
  void add(std::int64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] bool is_open() const { return least != most; }
};

}  // namespace

Fates Fates::of(World& world) {
  Fates out;
  for (const std::string& pod : world.all_waiting()) {
    const Record* record = world.find(pod);
    ++out.left[whose(record, pod)].pending;
    out.pending += !record->was_waiting;
  }
  for (const Departure& one : world.departures)
    if (one.outcome == "lost") ++out.left[whose(world.find(one.pod), one.pod)].lost;
  for (const Move& one : world.moves) ++out.arrived[{whose(world.find(one.pod), one.pod), one.to}];
  return out;
}

Result<int> orders_wanted(const json::Value& question) {
  const json::Value* wanted = json::find(question, "orders");
  if (wanted == nullptr) return 3;
  const std::int64_t count = json::get_int(question, {"orders"}, -1);
  if (wanted->is_double() || count < 0 || count > kMostOrders)
    return invalid(fmt::format("orders: a whole number from 0 to {} is wanted, not {}", kMostOrders, json::serialize(*wanted)));
  return static_cast<int>(count);
}

json::Object compare_orders(const Fates& answer, int more, const std::function<std::optional<Fates>(int order)>& play) {
  std::vector<Fates> all{answer};
  for (int order = 1; order <= more; ++order)
    if (auto fates = play(order)) all.push_back(std::move(*fates));
  std::map<std::string, std::pair<Range, Range>> left;  // Pending and lost.
  for (const Fates& one : all)
    for (const auto& [pods, count] : one.left) left.try_emplace(pods);
  Range pending;
  for (const Fates& one : all) {
    pending.add(one.pending);
    for (auto& [pods, ranges] : left) {
      const auto found = one.left.find(pods);
      ranges.first.add(found == one.left.end() ? 0 : found->second.pending);
      ranges.second.add(found == one.left.end() ? 0 : found->second.lost);
    }
  }
  json::Array undecided;
  for (const auto& [pods, ranges] : left)
    if (ranges.first.is_open() || ranges.second.is_open())
      undecided.push_back(json::Object{{"pods", pods},
                                       {"pendingLeast", ranges.first.least},
                                       {"pendingMost", ranges.first.most},
                                       {"lostLeast", ranges.second.least},
                                       {"lostMost", ranges.second.most}});
  std::int64_t places = 0, in_all = 0;
  for (const auto& [place, count] : answer.arrived) {
    std::int64_t least = count;
    for (const Fates& one : all) {
      const auto found = one.arrived.find(place);
      least = std::min(least, found == one.arrived.end() ? 0 : found->second);
    }
    places += count;
    in_all += least;
  }
  return json::Object{{"tried", static_cast<std::int64_t>(all.size())},
                      {"pendingLeast", pending.least},
                      {"pendingMost", pending.most},
                      {"undecided", std::move(undecided)},
                      {"places", places},
                      {"placesInAll", in_all}};
}

}  // namespace berth::whatif
