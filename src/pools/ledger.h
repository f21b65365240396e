// What nodes cost, by pool and by workload, added up over time: a node's price is its pods', by their share of it, and what nobody asks for
// is idle. Pure: told of changes and of the time.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace berth::pools {

/// Of a node or of pods: cpu in thousandths of cores, memory in bytes, GPUs in thousandths.
enum Part : std::size_t { kCpuPart, kMemoryPart, kGpuPart, kParts };
using Parts = std::array<std::int64_t, kParts>;
/// What of a node's price is that of so much of it: of a node with GPUs, which are what it is bought for, the share of these; else the mean
/// of the shares of cpu and memory.
double price_share(const Parts& part, const Parts& whole);

class Ledger {
 public:
  /// Whose what nobody asks for is.
  static constexpr std::string_view kIdle = "(idle)";

  /// What is there before costs nothing until then.
  explicit Ledger(TimePoint start) : start_(start) {}

  struct Node {
    std::string pool;  ///< Or what stands for one.
    double price = 0;  ///< Of an hour.
    Parts allocatable{};
  };
  /// The node is there, or is another now.
  void put(const std::string& node, Node now, TimePoint when);
  void drop(const std::string& node, TimePoint when);
  /// `sign` pods of the workload with these requests are on the node, which may come later.
  void load(const std::string& node, const std::string& workload, const Parts& requests, int sign, TimePoint when);

  /// Up to `now`, since the start.
  [[nodiscard]] std::map<std::string, double> by_pool(TimePoint now) const;
  [[nodiscard]] std::map<std::string, double> by_workload(TimePoint now) const;

 private:
  struct Meter {
    double rate = 0, cost = 0;  ///< rate: of an hour.
    TimePoint since{};
  };
  struct Place {
    Node node;
    bool is_there = false;
    std::map<std::string, Parts> loads;
  };
  using Meters = std::map<std::string, Meter>;
  void turn(Meters& meters, const std::string& name, double by, TimePoint when) const;
  [[nodiscard]] std::map<std::string, double> read(const Meters& meters, TimePoint now) const;
  /// What the node adds to the meters, times `sign`.
  void count(const Place& place, int sign, TimePoint when);

  TimePoint start_;
  std::unordered_map<std::string, Place> places_;
  Meters pools_, workloads_;
};

}  // namespace berth::pools
