#include "controllers/zones.h"

#include <cmath>

namespace berth::controllers {

void Zones::refill(Zone& zone, TimePoint now) {
  if (zone.refilled != TimePoint{} && now > zone.refilled)
    zone.tokens = std::min(1.0, zone.tokens + zone.rate * std::chrono::duration<double>(now - zone.refilled).count());
  zone.refilled = now;
}

void Zones::set_rate(Zone& zone, const Counts& counts, TimePoint now) const {
  refill(zone, now);
  switch (zone.state) {
    case ZoneState::kPartialDisruption:
      zone.rate = counts.ready + counts.not_ready > options_.large_cluster_size_threshold ? options_.secondary_eviction_rate : 0;
      break;
    default:
      zone.rate = options_.eviction_rate;
  }
}

Zones::Transition Zones::update(const std::map<std::string, Counts>& counts, TimePoint now) {
  bool all_down = !counts.empty();
  for (const auto& [name, count] : counts) {
    Zone& zone = zones_[name];
    ZoneState state = ZoneState::kNormal;
    if (count.ready == 0 && count.not_ready > 0) {
      state = ZoneState::kFullDisruption;
    } else if (count.not_ready > 2 &&
               // In single precision, as Kubernetes: 55 of 100 are 55%.
               static_cast<float>(count.not_ready) / static_cast<float>(count.ready + count.not_ready) >=
                   static_cast<float>(options_.unhealthy_zone_threshold)) {
      state = ZoneState::kPartialDisruption;
    }
    all_down &= state == ZoneState::kFullDisruption;
    zone.state = state;
    set_rate(zone, count, now);
  }
  std::erase_if(zones_, [&](const auto& zone) { return !counts.contains(zone.first) && zone.second.queue.empty(); });
  const bool was_down = all_down_;
  all_down_ = all_down;
  if (all_down)
    for (auto& [name, zone] : zones_) zone.rate = 0;
  if (all_down && !was_down) {
    for (auto& [name, zone] : zones_) zone.queue.clear();
    queued_.clear();
    return Transition::kAllDown;
  }
  return was_down && !all_down ? Transition::kRecovered : Transition::kNone;
}

void Zones::add(const std::string& zone, const std::string& node) {
  const auto [it, is_new] = queued_.emplace(node, zone);
  if (!is_new) return;
  const auto [found, is_unseen] = zones_.try_emplace(zone);
  // A zone whose nodes all are excluded from the count has no health to go by.
  if (is_unseen && !all_down_) found->second.rate = options_.eviction_rate;
  found->second.queue.push_back(node);
}

void Zones::remove(const std::string& node) {
  const auto it = queued_.find(node);
  if (it == queued_.end()) return;
  std::erase(zones_[it->second].queue, node);
  queued_.erase(it);
}

void Zones::put_back(const std::string& node) {
  const auto it = queued_.find(node);
  if (it == queued_.end()) return;
  Zone& zone = zones_[it->second];
  zone.queue.push_front(node);
  zone.tokens += 1;
}

std::vector<std::string> Zones::take(TimePoint now) {
  std::vector<std::string> taken;
  for (auto& [name, zone] : zones_) {
    refill(zone, now);
    // The margin absorbs the rounding of ten seconds at a tenth a second.
    while (!zone.queue.empty() && zone.rate > 0 && zone.tokens >= 1 - 1e-6) {
      zone.tokens -= 1;
      taken.push_back(zone.queue.front());
      zone.queue.pop_front();
    }
  }
  return taken;
}

std::optional<Duration> Zones::next(TimePoint now) const {
  std::optional<Duration> next;
  for (const auto& [name, zone] : zones_) {
    if (zone.queue.empty() || zone.rate <= 0) continue;
    const double tokens = std::min(1.0, zone.tokens + zone.rate * std::chrono::duration<double>(now - zone.refilled).count());
    const double seconds = std::max(0.0, (1 - tokens) / zone.rate);
    const Duration wait = Duration(static_cast<std::int64_t>(std::ceil(seconds * 1e6)));
    if (!next || wait < *next) next = wait;
  }
  return next;
}

ZoneState Zones::state(const std::string& zone) const {
  const auto it = zones_.find(zone);
  return it == zones_.end() ? ZoneState::kInitial : it->second.state;
}

}  // namespace berth::controllers
