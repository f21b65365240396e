// What a request will cost, told from what is known before it runs: its body, its form, and how many objects it reads.
#pragma once
#include "apiserver/cache/object_cache.h"
#include "apiserver/request/context.h"

namespace berth::apiserver {

struct WorkEstimate {
  double cost_us = 0;  ///< Processor time, to a factor of two or three.
  /// As flow control counts them: a list as wide as what it holds in memory, a watch as the list that it begins with
  /// (flowcontrol/request: width.go); 0: a session, which lasts as long as its client (longRunningRequestCheck).
  int seats = 1;
};
/// `most_seats`: that one request of its level may have.
WorkEstimate estimate_work(const Request& request, const ObjectCache& cache, int most_seats);

/// Whether an answer with this object takes more than copying its bytes: no work for the writer's thread.
bool is_costly_answer(const Request& request, std::size_t object_bytes);

}  // namespace berth::apiserver
