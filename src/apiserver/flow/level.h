// A priority level at work. Within src/apiserver/flow only.
#pragma once
#include <array>
#include <string>
#include <unordered_map>

#include "apiserver/flow/allocation.h"
#include "apiserver/flow/fair_queue.h"
#include "base/metrics.h"

namespace berth::apiserver::flow {

/// Of the requests of one schema at one level.
struct FlowMetrics {
  metrics::Counter *dispatched = nullptr, *queue_full = nullptr, *time_out = nullptr, *limit = nullptr, *memory = nullptr,
                   *no_room = nullptr;
  metrics::Gauge *executing = nullptr, *executing_seats = nullptr, *waiting = nullptr, *waiting_seats = nullptr;
  metrics::Histogram *served_wait = nullptr, *refused_wait = nullptr, *execution = nullptr, *length = nullptr, *width = nullptr;
};

/// What its name, being exempt and being vital are never changes; the rest is guarded by the Controller's mutex.
struct Level {
  Level(std::string given_name, bool exempt, bool vital) : name(std::move(given_name)), is_exempt(exempt), is_vital(vital) {}

  const std::string name;
  const bool is_exempt, is_vital;

  // As configured.
  int shares = 0, lendable_percent = 0;
  int borrowing_limit_percent = -1;  ///< -1: none.
  bool queues = false;               ///< Otherwise what finds no seat is refused.
  int hand_size = 0;
  bool is_going = false;  ///< Its object is gone; it ends when nothing is left in it.

  // Seats.
  int nominal = 0, lower = 0, upper = 0;
  int limit = 0;  ///< At present.
  int seats = 0, executing = 0;
  std::unordered_map<std::uint64_t, int> held;  ///< Seats by who has them, of those who are told apart.
  DemandMeter demand;

  // Turns.
  FairQueue queue{1, 1, 0};
  double weight = 1, finish = 0;  ///< Of the workers' time; in virtual time, as a queue's.

  // Refusals.
  std::array<std::uint16_t, 256> refused{};  ///< By flow, in the present second.
  std::int64_t second = 0;
  RetryAfter retry_after;
  std::uint64_t dispatched_count = 0, rejected_count = 0, late_count = 0;

  metrics::Gauge *nominal_gauge = nullptr, *lower_gauge = nullptr, *upper_gauge = nullptr, *limit_gauge = nullptr, *highest_gauge = nullptr,
                 *average_gauge = nullptr, *deviation_gauge = nullptr, *smoothed_gauge = nullptr, *target_gauge = nullptr;

  /// A request that is wider than the level has it alone.
  [[nodiscard]] bool has_room(int more) const { return is_exempt || seats == 0 || seats + more <= limit; }
  /// The same for one of many: whoever has some already leaves as many free as he has then, so that what hangs for him (a webhook, a node)
  /// never takes the last seat from another. `sharer` 0: nobody in particular.
  [[nodiscard]] bool may_have(std::uint64_t sharer, int more) const {
    if (!has_room(more)) return false;
    const auto own = sharer == 0 || !queues ? held.end() : held.find(sharer);
    return own == held.end() || own->second + more <= limit - seats;
  }
  void occupy(double now, std::uint64_t sharer, int more, int requests) {
    seats += more;
    executing += requests;
    if (sharer != 0 && !is_exempt)
      if (auto& own = held[sharer]; (own += more) <= 0) held.erase(sharer);
    note_demand(now);
  }
  void note_demand(double now) { demand.set(now, seats + queue.seats()); }
};

}  // namespace berth::apiserver::flow
