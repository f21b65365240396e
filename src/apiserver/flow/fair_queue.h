// Queues of one priority level: every flow gets the same share of what is served, however much it asks for
// (apiserver/pkg/util/flowcontrol/fairqueuing: shuffle sharding, fair queuing by estimated work). Pure: no clock, no thread.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace berth::apiserver::flow {

struct Waiting {
  double work = 0;  ///< Estimated, in microseconds of a processor.
  int seats = 1;
  std::size_t bytes = 0;  ///< Held meanwhile.
  std::function<void()> item;
};

class FairQueue {
 public:
  FairQueue(int queues, int hand_size, int length_limit);
  /// Into the least loaded of the queues that the flow may use; false when that one is full, `past_limit` or not when there are none.
  bool push(std::uint64_t flow, Waiting waiting, bool past_limit = false);
  /// The next to be served. Among queues with something in them every one gets the same work.
  std::optional<Waiting> pop();
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  struct Entry {
    double start = 0;  ///< In virtual time: the work that each of the queues that had some has been served.
    Waiting waiting;
  };
  struct Queue {
    std::deque<Entry> entries;
    double finish = 0, work = 0;
  };
  /// A few queues of a flow: two flows share all of theirs hardly ever (k8s.io/apiserver: util/shufflesharding).
  [[nodiscard]] std::vector<std::size_t> hand_of(std::uint64_t flow) const;

  std::vector<Queue> queues_;
  std::size_t hand_size_, length_limit_, size_ = 0;
  double virtual_time_ = 0;
};

/// The number that deals a flow its hand.
std::uint64_t flow_hash(std::string_view schema, std::string_view flow);

}  // namespace berth::apiserver::flow
