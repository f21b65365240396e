// Which devices of plugins there are on a node, and which container has which (kubelet's pkg/kubelet/cm/devicemanager): the core, which
// talks to nobody.
//
//   a plugin's list --> what the node has (capacity: all, allocatable: the healthy)
//   a pod comes     --> enough free? its containers hold so many of them --> the plugin says what comes with them (DeviceGrant)
//   a pod is over   --> free again
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "node/numa/shared.h"
#include "placement/numa/holdings.h"

namespace berth::node::devices {

/// How long what a plugin that went had counts as there: it may come back (endpointStopGracePeriod).
inline constexpr std::chrono::minutes kPluginPatience{5};

/// What a container gets with its devices, as the plugins said (deviceplugin v1beta1, ContainerAllocateResponse).
struct DeviceGrant {
  std::map<std::string, std::string> environment, annotations;
  json::Array mounts, devices;  ///< As the plugin's messages have them: container_path, host_path, read_only or permissions.
  std::vector<std::string> cdi_devices;
};

/// Single-threaded; the shell's lock is around it.
class DeviceLedger {
 public:
  struct Device {
    bool is_healthy = true;
    std::set<std::int64_t> numa_nodes = {};  ///< Near which it is; empty: not told.
    bool is_listed = true;                   ///< False: its plugin lists it no more, or has not come back.
    friend bool operator==(const Device&, const Device&) = default;
  };
  using Devices = std::map<std::string, Device>;  ///< By id.
  using Amounts = std::map<std::string, std::int64_t>;

  /// The whole list of a plugin that is there. True: it is another than before.
  bool report(const std::string& resource, Devices devices);
  /// The plugin went: none of its devices can be had; after kPluginPatience the resource counts nothing.
  void lose(const std::string& resource, TimePoint now);
  [[nodiscard]] bool knows(std::string_view resource) const { return resources_.contains(resource); }

  struct Inventory {
    Amounts capacity, allocatable;  ///< Of a resource that is lost for good: 0.
  };
  [[nodiscard]] Inventory inventory(TimePoint now) const;

  /// On a machine of these NUMA nodes.
  [[nodiscard]] numa::HintsByResource hints(const numa::PodWishes& pod, const numa::Wish& container, numa::NodeSet machine) const;
  [[nodiscard]] numa::HintsByResource pod_hints(const numa::PodWishes& pod, numa::NodeSet machine) const;
  /// Gives a container the devices that its limits name: what init containers before it had, then those near the nodes, the lowest ids
  /// first. All of them or none. Resources that no plugin ever told of are nobody's business here.
  std::optional<Refusal> give(const numa::PodWishes& pod, const numa::Wish& container, const numa::Hint& near);
  void release(const std::string& uid) { pods_.erase(uid); }
  /// What pods that are not among these had is free again.
  void keep_only(const std::set<std::string>& uids);

  /// Of one container: resource and ids. Empty: it has none.
  using Held = std::map<std::string, std::set<std::string>>;
  [[nodiscard]] Held held(const std::string& uid, const std::string& container) const;
  using ByResource = std::map<std::string, Devices>;
  /// The same with what is known of each; also of those that are not listed.
  [[nodiscard]] ByResource held_devices(const std::string& uid, const std::string& container) const;
  [[nodiscard]] ByResource healthy_devices() const;
  /// Free and healthy ones, beside those that the container has; near the same NUMA nodes, where it was given them for that.
  [[nodiscard]] std::set<std::string> choice(const std::string& uid, const std::string& container, const std::string& resource) const;
  /// The container has these instead. False, and nothing changes: one of them is not its choice, or there are not as many.
  bool exchange(const std::string& uid, const std::string& container, const std::string& resource, const std::set<std::string>& ids);

  /// What a plugin said of a container's devices of one resource; kept, as a container that starts again gets the same.
  void note_grant(const std::string& uid, const std::string& container, const std::string& resource, json::Value answer);
  [[nodiscard]] const json::Value* granted(const std::string& uid, const std::string& container, const std::string& resource) const;
  /// All that was said of a container's devices, as one; on a conflict the first resource by name is right.
  [[nodiscard]] DeviceGrant grant(const std::string& uid, const std::string& container) const;

  /// Of devices that say near which NUMA nodes they are; one that is near several is told with each.
  void tell(numa::Offer& offer) const;

  /// Who has what, for the next process.
  [[nodiscard]] json::Value checkpoint() const;
  /// False: it is none of ours; nothing is taken over.
  bool restore(const json::Value& checkpoint);

 private:
  struct Resource {
    Devices devices;
    std::optional<TimePoint> lost_at;
  };
  struct Hold {
    std::set<std::string> ids;
    json::Value answer;  ///< Null: the plugin was not asked yet.
    std::optional<numa::NodeSet> near = std::nullopt;
  };
  using Container = std::map<std::string, Hold>;  ///< By resource.
  using Pod = std::map<std::string, Container>;   ///< By the container's name.
  [[nodiscard]] std::set<std::string> taken(std::string_view resource) const;
  [[nodiscard]] std::set<std::string> free(const std::string& resource) const;
  [[nodiscard]] std::set<std::string> lent(const std::string& uid, const std::string& resource) const;
  [[nodiscard]] numa::Hints possible(const std::string& uid, const std::string& resource, std::int64_t count, numa::NodeSet machine) const;
  [[nodiscard]] const Hold* hold(const std::string& uid, const std::string& container, const std::string& resource) const;

  std::map<std::string, Resource, std::less<>> resources_;
  std::map<std::string, Pod> pods_;  ///< By uid.
  std::string lender_;
  Held lent_;  ///< What ended init containers of the pod that was admitted last leave to those after them.
};

}  // namespace berth::node::devices
