// Queues of one priority level: every flow gets the same share of what is served, however much it asks for
// (apiserver/pkg/util/flowcontrol/fairqueuing: shuffle sharding, fair queuing by estimated work). Pure: no clock, no thread.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace berth::apiserver::flow {

struct Work;

struct Waiting {
  double work = 0;  ///< Estimated, in microseconds of a processor.
  int seats = 1;
  std::size_t bytes = 0;  ///< Held meanwhile.
  std::function<void()> item;
  std::chrono::steady_clock::time_point since{}, deadline = std::chrono::steady_clock::time_point::max();
  std::shared_ptr<Work> request;  ///< Null where the rest of something waits that has begun.
  std::uint64_t sharer = 0;       ///< Whose seats it will take (Level::may_have).
};

/// A queue exists while something is in it, so that ten million of them cost nothing.
class FairQueue {
 public:
  FairQueue(int queues, int hand_size, int length_limit) { configure(queues, hand_size, length_limit); }
  /// What waits already keeps its place.
  void configure(int queues, int hand_size, int length_limit);
  /// Into the least loaded of the queues that the flow may use; false when that one is full, `past_limit` or not when there are none.
  bool push(std::uint64_t flow, Waiting waiting, bool past_limit = false);
  /// The next to be served. Among queues with something in them every one gets the same work.
  std::optional<Waiting> pop() {
    return pop([](const Waiting&) { return true; });
  }
  /// The next of those that `may` be served; what may not keeps its turn.
  std::optional<Waiting> pop(const std::function<bool(const Waiting&)>& may);
  /// Whether pop would find one.
  [[nodiscard]] bool has_next(const std::function<bool(const Waiting&)>& may) const { return next(may) != fronts_.end(); }
  /// Takes out whose deadline is not after `now`, wherever it stands.
  std::vector<Waiting> take_expired(std::chrono::steady_clock::time_point now);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] int seats() const { return seats_; }  ///< Of all that wait.
  [[nodiscard]] int queues() const { return static_cast<int>(queue_count_); }

  struct Entry {
    double start = 0;  ///< In virtual time: the work that each of the queues that had some has been served.
    Waiting waiting;
  };
  struct Queue {
    std::deque<Entry> entries;
    double work = 0;
    int seats = 0;
    /// No deadline is before it.
    std::chrono::steady_clock::time_point earliest = std::chrono::steady_clock::time_point::max();
  };
  /// Those with something in them, by number.
  [[nodiscard]] const std::map<std::size_t, Queue>& active() const { return queues_; }

 private:
  /// A few queues of a flow: two flows share all of theirs hardly ever (k8s.io/apiserver: util/shufflesharding).
  [[nodiscard]] std::vector<std::size_t> hand_of(std::uint64_t flow) const;
  Waiting take_front(std::map<std::size_t, Queue>::iterator queue);
  void take_expired(Queue& queue, std::chrono::steady_clock::time_point now, std::vector<Waiting>& out);
  /// It has left the queue.
  void let_go(Queue& queue, const Waiting& waiting);
  using Fronts = std::set<std::pair<double, std::size_t>>;
  [[nodiscard]] Fronts::const_iterator next(const std::function<bool(const Waiting&)>& may) const;

  std::size_t queue_count_ = 0, hand_size_ = 0, length_limit_ = 0, size_ = 0;
  int seats_ = 0;
  std::map<std::size_t, Queue> queues_;
  Fronts fronts_;                         ///< (start of the first, queue).
  std::map<std::size_t, double> finish_;  ///< Of queues whose past work reaches beyond the present virtual time.
  double virtual_time_ = 0;
};

/// The number that deals a flow its hand.
std::uint64_t flow_hash(std::string_view schema, std::string_view flow);

}  // namespace berth::apiserver::flow
