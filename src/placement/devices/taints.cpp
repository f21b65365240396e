#include "placement/devices/taints.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/devices/matcher.h"
#include "placement/devices/pools.h"

namespace berth::placement::devices {
namespace {

using model::DeviceRequest;
using model::DeviceView;
using model::ResourceSliceView;

/// Exact requests and alternatives.
std::vector<const DeviceRequest*> requests_of(std::span<const std::shared_ptr<const model::ResourceClaimView>> claims) {
  std::vector<const DeviceRequest*> out;
  for (const auto& claim : claims) {
    if (claim->allocation != nullptr) continue;
    for (const auto& group : claim->requests) {
      if (group.exactly) out.push_back(&*group.exactly);
      for (const auto& sub : group.first_available) out.push_back(&sub);
    }
  }
  return out;
}

bool is_meant(const DeviceRequest& request, const ResourceSliceView& slice, const DeviceView& device, const Cluster& cluster,
              Matcher& matcher) {
  const auto device_class = cluster.device_classes().find(request.class_name);
  if (device_class == cluster.device_classes().end()) return false;
  const auto matches = [&](const std::string& one) { return matcher.matches(one, slice.driver, device).value_or(false); };
  return std::ranges::all_of(device_class->second->selectors, matches) && std::ranges::all_of(request.selectors, matches);
}

}  // namespace

bool is_tolerated(const model::Taint& taint, const DeviceRequest& request) {
  if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return true;
  return std::ranges::any_of(request.tolerations, [&](const model::Toleration& one) {
    if (!one.effect.empty() && one.effect != taint.effect) return false;
    if (!one.key.empty() && one.key != taint.key) return false;
    return one.op == "Exists" || ((one.op.empty() || one.op == "Equal") && one.value == taint.value);
  });
}

std::vector<std::string> taints_in_the_way(const model::NodeView& node,
                                           std::span<const std::shared_ptr<const model::ResourceClaimView>> claims,
                                           const Cluster& cluster) {
  const auto requests = requests_of(claims);
  std::map<std::pair<std::string, std::string>, std::set<const DeviceView*>> found;  // By taint and origin.
  Matcher matcher;
  const auto look = [&](const ResourceSliceView& slice, const DeviceView& device, const model::Taint& taint, const std::string& origin) {
    for (const DeviceRequest* request : requests)
      if (!is_tolerated(taint, *request) && is_meant(*request, slice, device, cluster, matcher))
        found[{fmt::format("{}{}{}:{}", taint.key, taint.value.empty() ? "" : "=", taint.value, taint.effect), origin}].insert(&device);
  };
  for (const auto& [name, slice] : cluster.resource_slices()) {
    if (!slice->per_device && !reaches(node, slice->node_name, slice->all_nodes, slice->node_selector)) continue;
    for (const DeviceView& device : slice->devices) {
      if (slice->per_device && !reaches(node, device.node_name, device.all_nodes, device.node_selector)) continue;
      for (const model::Taint& taint : device.taints) look(*slice, device, taint, "its driver");
      for (const auto& [rule_name, rule] : cluster.device_taint_rules())
        if (rule->matches(slice->driver, slice->pool, device.name)) look(*slice, device, rule->taint, "DeviceTaintRule " + rule_name);
    }
  }
  std::vector<std::string> out;
  for (const auto& [what, devices] : found)
    out.push_back(
        fmt::format("a toleration for {} on {} device{} ({})", what.first, devices.size(), devices.size() == 1 ? "" : "s", what.second));
  return out;
}

}  // namespace berth::placement::devices
