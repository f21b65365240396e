// Which images a node deletes, and when (SPEC F6; kubelet pkg/kubelet/images/image_gc_manager.go).
//
//   used by a container, or pinned by the runtime, or the pause image:  never
//   unused for longer than the maximum age:                            at every collection
//   disk over the high threshold:                                      unused ones, least recently used first, until it is down to the low
//   one the eviction manager asks:                                         all unused ones seen for less than the minimum age: not by the
//   last two
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "node/eviction/summary.h"

namespace berth::node::eviction {

struct ImageGcPolicy {
  int high_threshold_percent = 85, low_threshold_percent = 80;
  Duration minimum_age = std::chrono::minutes(2);
  Duration maximum_age{};  ///< Zero: no image is too old.
  /// A high threshold of 100 switches the disk's part off.
  [[nodiscard]] bool is_disabled() const { return high_threshold_percent == 100 && maximum_age == Duration::zero(); }
};

/// As the runtime lists it.
struct Image {
  std::string id;
  std::uint64_t size_bytes = 0;
  bool is_pinned = false;
};

/// What a collection did. `error` and `event` have the kubelet's words.
struct ImageGcResult {
  std::uint64_t freed_bytes = 0;
  std::vector<std::string> removed;  ///< Ids, in order.
  std::string error;                 ///< Empty: all went well.
  struct Event {
    std::string reason, message;  ///< FreeDiskSpaceFailed, InvalidDiskCapacity; of type Warning, about the node.
  };
  std::optional<Event> event;
};

/// Remembers since when images are there and when they were last used. Pure; not thread-safe.
class ImageCollector {
 public:
  using Remove = std::function<Result<void>(const std::string& id)>;

  /// `started`: when the node's agent began; before a maximum age has passed since then, no image counts as too old.
  ImageCollector(ImageGcPolicy policy, TimePoint started) : policy_(policy), started_(started) {}

  /// Takes in what the runtime lists and which images containers use, dead ones included. Images of the first call may be of any age: they
  /// are old enough for everything.
  void observe(const std::vector<Image>& images, const std::set<std::string>& used, TimePoint now);
  /// Every five minutes, after observe at the same `now`. `fs`: the filesystem of the images.
  ImageGcResult collect(const FsUsage& fs, TimePoint now, const Remove& remove);
  /// For the eviction manager, after observe at the same `now`: deletes what can be deleted.
  ImageGcResult delete_unused(TimePoint now, const Remove& remove);
  [[nodiscard]] const ImageGcPolicy& policy() const { return policy_; }

 private:
  struct Record {
    std::uint64_t size_bytes = 0;
    bool is_pinned = false, is_used = false;
    std::optional<TimePoint> first_seen, last_used;  ///< Absent: before anybody looked.
  };
  [[nodiscard]] std::vector<std::string> in_order() const;
  std::vector<std::string> remove_old(std::vector<std::string> ids, TimePoint now, const Remove& remove, ImageGcResult& result);
  void free_space(const std::vector<std::string>& ids, std::uint64_t wanted, TimePoint now, const Remove& remove, ImageGcResult& result);

  ImageGcPolicy policy_;
  TimePoint started_;
  bool has_observed_ = false;
  std::map<std::string, Record> records_;
};

}  // namespace berth::node::eviction
