// Who is where: counts of nodes and pods kept as their objects change, never by walking them.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/cache/object_cache.h"
#include "base/event_loop.h"
#include "base/json.h"

namespace berth::pools {
class Ledger;
}

namespace berth::simulator {

/// What is counted of resources: cpu in thousandths of cores, memory in bytes, GPUs in thousandths.
enum Resource : std::size_t { kCpu, kMemory, kGpu, kResources };
using Amounts = std::array<std::int64_t, kResources>;

/// The cluster at one moment.
struct Sample {
  Duration at{};
  std::int64_t nodes = 0, ready_nodes = 0, cordoned_nodes = 0;
  std::int64_t overcommitted_nodes = 0;  ///< With more requested than they have: never, if all is well.
  /// Pods by what they do: without a node; bound and not started; running; ended well; failed; on their way out (these count twice).
  std::int64_t pending = 0, starting = 0, running = 0, succeeded = 0, failed = 0, terminating = 0;
  std::int64_t created = 0, bound = 0, finished = 0;  ///< Since the start.
  std::map<std::string, std::int64_t> pending_by_reason, evictions;
  std::map<std::string, std::array<std::int64_t, 2>> workloads;  ///< Pods and running pods by app.
  /// Of pods that took the place of an evicted one: evicted again before anything changed from outside; placed on a node younger than they.
  std::int64_t moved_again = 0, moved_to_new_nodes = 0;
  double quiet_seconds = 0;  ///< Since the last eviction, node that came and node that went.
  Amounts requested{}, allocatable{}, used{};
  double price_per_hour = 0, cost = 0;
  std::map<std::string, double> cost_by_pool, cost_by_workload;  ///< Since the start; nodes without a pool by their instance type.
  double wait_p50 = 0, wait_p99 = 0, wait_max = 0;               ///< Seconds from creation to node, of pods bound since the last sample.
  [[nodiscard]] json::Value to_json() const;
};

/// Something worth a line in the story of a run.
struct Happening {
  Duration at{};
  std::string kind, text;  ///< "fault", "change", "node", "eviction", …
};

/// What has just become of a pod.
enum class PodStage : std::uint8_t { kBound, kRunning, kOver, kGone };

/// Sees the cache's own events: for the loop's thread alone.
class Census {
 public:
  /// Prices of an hour by instance type, and of pools' nodes by TYPE/ZONE/CAPACITY-TYPE.
  Census(const Clock& clock, TimePoint start, std::map<std::string, double> prices);
  ~Census();
  /// Watches a server's cache, from its present state on; null: it is gone.
  void attach(apiserver::ObjectCache* cache);
  /// Somebody who is no component has done something: what is moved after it may have a reason.
  void change_from_outside() { ++outside_; }
  /// The same, and room may be gone by it: a fault, a change of the scenario, a lost node's pods.
  void trouble_from_outside() {
    ++outside_;
    ++troubles_;
  }
  /// Counts up to now, and begins a new span for the waits.
  Sample sample();
  /// All waits from creation to node, in seconds, in the order of binding.
  [[nodiscard]] const std::vector<float>& waits() const { return waits_; }
  /// The pods and running pods of an app in a namespace.
  [[nodiscard]] std::int64_t running_of(const std::string& ns_and_app) const;
  std::function<void(Happening)> on_happening;
  /// A pod has ended; called while its change is published: only note it.
  std::function<void(std::string_view ns, std::string_view name)> on_pod_over;
  /// The same of each stage of a pod's life; `kGone` also of one that was not over. May be empty.
  std::function<void(PodStage stage, std::string_view ns, std::string_view name, const Amounts& requests)> on_pod_stage;
  /// More requested than there is, at this moment; names the first few. Empty: nowhere.
  [[nodiscard]] std::string overcommitted() const;

 private:
  struct Pod;
  struct Node;
  class Sink;
  void tell(PodStage stage, const apiserver::StoredObject& object, const Pod& pod) const;
  void see_pod(const apiserver::WatchEvent& event);
  void see_node(const apiserver::WatchEvent& event);
  void count(const Pod& pod, int sign);
  void take_place(Pod& pod, std::string_view owners);
  void note_eviction(const Pod& pod, std::string_view cause);
  void note_binding(const Pod& pod);
  /// False: it cannot be read.
  bool read_node(Node& node, const apiserver::StoredObject& object);
  void read_pod(Pod& pod, const apiserver::StoredObject& object, bool is_new);
  void read_conditions(Pod& pod, const apiserver::StoredObject& object, std::string_view raw);
  void pay();
  std::uint32_t intern(std::string_view text);
  std::shared_ptr<const Amounts> amounts_of(std::string_view containers, const apiserver::StoredObject& object);
  [[nodiscard]] double price_of(const model::Labels& labels) const;

  const Clock& clock_;
  TimePoint start_;
  std::map<std::string, double> prices_;
  std::vector<std::unique_ptr<apiserver::Watch>> watches_;
  std::unordered_map<std::string, std::unique_ptr<Pod>> pods_;
  std::unordered_map<std::string, std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, std::shared_ptr<const Amounts>> shapes_;  ///< By the containers' text.
  std::unordered_map<std::string, Amounts> offers_;                         ///< Of nodes, by the text of their allocatable.
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> text_numbers_;
  std::map<std::uint32_t, std::int64_t> pending_by_reason_;
  std::map<std::string, std::int64_t> evictions_;
  std::map<std::uint32_t, std::array<std::int64_t, 2>> apps_;
  Sample now_;
  std::unique_ptr<pools::Ledger> ledger_;
  TimePoint paid_until_;
  std::vector<float> waits_;
  std::size_t waits_before_ = 0;
  std::int64_t outside_ = 0, troubles_ = 0, arrivals_ = 0;  ///< Changes from outside so far.
  /// What there was of them when a pod was evicted.
  struct Homeless {
    std::int64_t troubles = 0, arrivals = 0;
  };
  TimePoint last_move_{};
  /// Evicted pods whose successors have not come, by their controller's uid.
  std::unordered_map<std::string, std::deque<Homeless>> homeless_;
  bool is_replacing_ = false;  ///< A server's whole state comes: nothing of it is news.
};

}  // namespace berth::simulator
