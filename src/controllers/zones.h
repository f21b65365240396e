// How fast the nodes of a zone may be tainted NoExecute, by the zone's health (pkg/controller/nodelifecycle, SPEC D4). Pure.
//
//            < 55% or < 3 not ready                       0 ready
//   Normal <-------------------------> PartialDisruption ---------> FullDisruption
//   0.1/s                              > 50 nodes: 0.01/s,           0.1/s; when every zone is there:
//                                      else none                     nobody is tainted, taints are taken back
#pragma once
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controllers/cluster.h"

namespace berth::controllers {

enum class ZoneState { kInitial, kNormal, kPartialDisruption, kFullDisruption };

class Zones {
 public:
  explicit Zones(NodeLifecycleOptions options) : options_(options) {}

  struct Counts {
    int ready = 0, not_ready = 0;
  };
  enum class Transition { kNone, kAllDown, kRecovered };
  /// Takes the health of all zones (every zone that has nodes). kAllDown: all zones just became fully disrupted: take all taints back.
  /// kRecovered: they no longer are: every node's heartbeat counts as just seen.
  Transition update(const std::map<std::string, Counts>& zones, TimePoint now);

  /// Queues a node for tainting; once only.
  void add(const std::string& zone, const std::string& node);
  void remove(const std::string& node);
  /// Puts a node back whose taint could not be written; the next turn costs no token.
  void put_back(const std::string& node);
  /// The nodes whose turn it is at `now`.
  std::vector<std::string> take(TimePoint now);
  /// When to call take again; nullopt: not before something changes.
  [[nodiscard]] std::optional<Duration> next(TimePoint now) const;

  [[nodiscard]] ZoneState state(const std::string& zone) const;
  [[nodiscard]] bool all_down() const { return all_down_; }

 private:
  struct Zone {
    ZoneState state = ZoneState::kInitial;
    double rate = 0;    ///< Nodes a second.
    double tokens = 1;  ///< Burst 1.
    TimePoint refilled{};
    std::deque<std::string> queue;
  };
  void set_rate(Zone& zone, const Counts& counts, TimePoint now) const;
  static void refill(Zone& zone, TimePoint now);

  NodeLifecycleOptions options_;
  std::map<std::string, Zone> zones_;
  std::map<std::string, std::string> queued_;  ///< Node to zone.
  bool all_down_ = false;
};

}  // namespace berth::controllers
