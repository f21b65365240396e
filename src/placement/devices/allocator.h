// Which devices a pod's claims get on a node: the first solution of an exhaustive search in a fixed order (dynamic-resource-allocation,
// structured/internal/incubating). Pure and deterministic; the same devices as kube-scheduler's allocator picks.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "model/views/device_views.h"
#include "model/views/node_view.h"
#include "placement/devices/capacity.h"
#include "placement/devices/device_id.h"
#include "placement/devices/matcher.h"

namespace berth::placement::devices {

/// What is given away already.
struct AllocatedState {
  std::set<DeviceId> devices;         ///< As a whole.
  std::set<DeviceId> shared;          ///< In shares.
  std::map<DeviceId, Shares> shares;  ///< Sums over all claims.
  void add(const model::Allocation& allocation);
  [[nodiscard]] bool is_allocated(const DeviceId& id) const { return devices.contains(id) || shared.contains(id) || shares.contains(id); }
};

/// The cluster's part of every question. All of it outlives the allocator and does not change meanwhile.
struct Inventory {
  std::vector<const model::ResourceSliceView*> slices;
  std::vector<const model::DeviceTaintRuleView*> taint_rules;
  std::function<const model::DeviceClassView*(std::string_view name)> find_class;
  AllocatedState allocated;
};

struct AllocationError {
  enum class Kind : std::uint8_t {
    kFatal,      ///< The input is wrong; other nodes will not do either.
    kThisNode,   ///< Of this node alone.
    kExhausted,  ///< The search was given up.
  };
  Kind kind = Kind::kFatal;
  std::string message;
};

/// The answer for one node: one allocation a claim, or nullopt when they cannot all be had.
using AllocationAnswer = Expected<std::optional<std::vector<std::shared_ptr<const model::Allocation>>>, AllocationError>;

class Allocator {
 public:
  /// Steps of the search on one node after which it is given up.
  static constexpr std::size_t kMaxSteps = 1'000'000;

  Allocator(Inventory inventory, Matcher& matcher);
  ~Allocator();
  /// Claims without an allocation, in the pod's order.
  [[nodiscard]] AllocationAnswer allocate(const model::NodeView& node, std::span<const model::ResourceClaimView* const> claims);

 private:
  struct Search;
  Inventory inventory_;
  Matcher& matcher_;
  std::map<std::string, std::vector<const model::ResourceSliceView*>, std::less<>> slices_of_node_;
  std::vector<const model::ResourceSliceView*> shared_slices_;
};

}  // namespace berth::placement::devices
