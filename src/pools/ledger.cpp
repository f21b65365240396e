#include "pools/ledger.h"

#include <algorithm>

namespace berth::pools {

double price_share(const Parts& part, const Parts& whole) {
  const auto of = [&](Part one) { return whole[one] > 0 ? static_cast<double>(part[one]) / static_cast<double>(whole[one]) : 0.0; };
  return whole[kGpuPart] > 0 ? of(kGpuPart) : (of(kCpuPart) + of(kMemoryPart)) / 2;
}

void Ledger::put(const std::string& node, Node now, TimePoint when) {
  Place& place = places_[node];
  if (place.is_there && place.node.pool == now.pool && place.node.price == now.price && place.node.allocatable == now.allocatable) return;
  count(place, -1, when);
  place.node = std::move(now);
  place.is_there = true;
  count(place, 1, when);
}

void Ledger::drop(const std::string& node, TimePoint when) {
  const auto found = places_.find(node);
  if (found == places_.end()) return;
  count(found->second, -1, when);
  found->second.is_there = false;
  if (found->second.loads.empty()) places_.erase(found);
}

void Ledger::load(const std::string& node, const std::string& workload, const Parts& requests, int sign, TimePoint when) {
  Place& place = places_[node];
  count(place, -1, when);
  Parts& sum = place.loads[workload];
  for (std::size_t i = 0; i < kParts; ++i) sum[i] += sign * requests[i];
  if (sum == Parts{}) place.loads.erase(workload);
  count(place, 1, when);
  if (!place.is_there && place.loads.empty()) places_.erase(node);
}

void Ledger::count(const Place& place, int sign, TimePoint when) {
  if (!place.is_there || place.node.price <= 0) return;
  turn(pools_, place.node.pool, sign * place.node.price, when);
  double used = 0;
  for (const auto& [workload, amounts] : place.loads) used += price_share(amounts, place.node.allocatable);
  for (const auto& [workload, amounts] : place.loads)
    turn(workloads_, workload, sign * place.node.price * price_share(amounts, place.node.allocatable) / std::max(1.0, used), when);
  turn(workloads_, std::string(kIdle), sign * place.node.price * std::max(0.0, 1 - used), when);
}

void Ledger::turn(Meters& meters, const std::string& name, double by, TimePoint when) const {
  Meter& meter = meters.try_emplace(name, Meter{0, 0, start_}).first->second;
  if (when > meter.since) {
    meter.cost += meter.rate * static_cast<double>((when - meter.since).count()) / 3.6e9;
    meter.since = when;
  }
  meter.rate += by;
}

std::map<std::string, double> Ledger::read(const Meters& meters, TimePoint now) const {
  std::map<std::string, double> out;
  for (const auto& [name, meter] : meters) {
    const double cost = meter.cost + (now > meter.since ? meter.rate * static_cast<double>((now - meter.since).count()) / 3.6e9 : 0);
    if (cost > 1e-9) out[name] = cost;
  }
  return out;
}

std::map<std::string, double> Ledger::by_pool(TimePoint now) const { return read(pools_, now); }
std::map<std::string, double> Ledger::by_workload(TimePoint now) const { return read(workloads_, now); }

}  // namespace berth::pools
