// Pods that a change leaves without a node come back in an order that nobody knows: what of an answer holds in every order, and what does
// not. Where priorities preempt each other the order decides who is left over.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "whatif/world.h"

namespace berth::whatif {

/// The order of the answer itself: the scheduler's queue, everybody at once. 1: the queue backwards; beyond: shuffled by the number.
inline constexpr int kQueueOrder = 0;
inline constexpr int kMostOrders = 50;

/// What became of a world's pods. Replicas of one controller stand for each other.
struct Fates {
  struct Left {
    std::int64_t pending = 0, lost = 0;
    friend bool operator==(const Left&, const Left&) = default;
  };
  std::map<std::string, Left> left;                                     ///< By "namespace/NAME" of the controller, or of the pod.
  std::map<std::pair<std::string, std::string>, std::int64_t> arrived;  ///< Moves, by that and the node.
  std::int64_t pending = 0;                                             ///< That had a node at the beginning, or are new.
  static Fates of(World& world);
};

/// Number of further orders that the question wants played (`orders`; 3 unless told); the error says what is wrong with it.
Result<int> orders_wanted(const json::Value& question);

/// `orders` of the answer: {"tried", "pendingLeast", "pendingMost", "undecided": [{"pods", "pendingLeast", "pendingMost", "lostLeast",
/// "lostMost"}], "places", "placesInAll"}. `answer`: what the answer's own order gives; `play` gives the fates of another one;
/// nullopt: the question has no answer in it (a pod that it names is gone by then).
json::Object compare_orders(const Fates& answer, int more, const std::function<std::optional<Fates>(int order)>& play);

}  // namespace berth::whatif
