// Views of the kinds of resource.k8s.io that the allocation of devices reads. Documents that are only handed on (configuration,
// tolerations, node selectors of results) stay JSON.
#pragma once
#include <map>
#include <memory>

#include "model/views/common.h"

namespace berth::model {

/// One value of a device. kNone matches nothing.
struct DeviceAttribute {
  enum class Kind : std::uint8_t { kNone, kBool, kInt, kString, kVersion };
  Kind kind = Kind::kNone;
  std::int64_t number = 0;  ///< kInt; kBool as 0 or 1.
  std::string text;         ///< kString, kVersion.
  friend bool operator==(const DeviceAttribute&, const DeviceAttribute&) = default;
};

/// What one share of a capacity may be.
struct CapacityPolicy {
  std::optional<Quantity> fallback;  ///< default
  bool has_values = false;           ///< validValues was given.
  std::vector<Quantity> values;
  bool has_range = false;
  std::optional<Quantity> min, max, step;
};

struct DeviceCapacity {
  Quantity value;
  std::optional<CapacityPolicy> policy;
};

struct CounterConsumption {
  std::string counter_set;
  ResourceList counters;
};

struct DeviceView {
  std::string name;
  std::map<std::string, DeviceAttribute, std::less<>> attributes;
  std::map<std::string, DeviceCapacity, std::less<>> capacity;
  std::vector<Taint> taints;
  std::vector<CounterConsumption> consumes;
  std::optional<std::string> node_name;
  std::optional<NodeSelector> node_selector;
  json::Value node_selector_document;
  bool all_nodes = false, binds_to_node = false, allows_sharing = false;  ///< allowMultipleAllocations
  std::vector<std::string> binding_conditions, binding_failure_conditions;
};

struct CounterSet {
  std::string name;
  ResourceList counters;
};

struct ResourceSliceView {
  ObjectMeta meta;
  std::string driver, pool;
  std::int64_t generation = 0, slice_count = 0;
  std::optional<std::string> node_name;
  std::optional<NodeSelector> node_selector;
  json::Value node_selector_document;
  bool all_nodes = false, per_device = false;  ///< perDeviceNodeSelection
  std::vector<DeviceView> devices;
  std::vector<CounterSet> counter_sets;
  static ResourceSliceView parse(const json::Value& object);
};

struct DeviceClassView {
  ObjectMeta meta;
  std::vector<std::string> selectors;  ///< CEL
  bool has_unknown_selector = false;
  json::Array config;
  std::optional<std::string> extended_resource;
  static DeviceClassView parse(const json::Value& object);
};

/// One taint for all devices that it selects.
struct DeviceTaintRuleView {
  ObjectMeta meta;
  bool selects = false;                             ///< There is a selector; without one no device is meant.
  std::optional<std::string> driver, pool, device;  ///< Of which; none: of all.
  Taint taint;
  static DeviceTaintRuleView parse(const json::Value& object);
  [[nodiscard]] bool matches(std::string_view of_driver, std::string_view in_pool, std::string_view named) const {
    return selects && (!driver || *driver == of_driver) && (!pool || *pool == in_pool) && (!device || *device == named);
  }
};

/// An exact request, or one alternative of a request.
struct DeviceRequest {
  std::string name;  ///< Of the alternative itself.
  std::string class_name;
  std::vector<std::string> selectors;
  std::optional<std::size_t> unknown_selector;  ///< The first that is no CEL.
  bool is_all = false;
  std::string mode;  ///< allocationMode as given
  std::int64_t count = 0;
  bool admin_access = false;
  std::vector<Toleration> tolerations;
  json::Array tolerations_document;
  std::map<std::string, Quantity, std::less<>> capacity;
};

struct DeviceRequestGroup {
  std::string name;
  std::optional<DeviceRequest> exactly;
  std::vector<DeviceRequest> first_available;
};

struct DeviceConstraint {
  std::vector<std::string> requests;
  std::string match_attribute, distinct_attribute;  ///< At most one is not empty.
};

struct DeviceClaimConfig {
  std::vector<std::string> requests;
  json::Value opaque;
};

/// A device as an allocation has it.
struct AllocatedDevice {
  std::string request, driver, pool, device;
  std::optional<std::string> share_id;
  bool admin_access = false;
  std::vector<std::pair<std::string, Quantity>> consumed_capacity;
  std::vector<std::string> binding_conditions, binding_failure_conditions;
};

struct Allocation {
  std::vector<AllocatedDevice> devices;
  std::optional<NodeSelector> node_selector;
  std::string timestamp;  ///< allocationTimestamp
  json::Value document;   ///< status.allocation
  static Allocation parse(const json::Value& document);
};

struct ResourceClaimView {
  ObjectMeta meta;
  std::vector<DeviceRequestGroup> requests;
  std::vector<DeviceConstraint> constraints;
  std::vector<DeviceClaimConfig> config;
  std::shared_ptr<const Allocation> allocation;  ///< Null while there is none.
  std::vector<std::string> reserved_for;         ///< uids
  json::Array device_statuses;                   ///< status.devices
  std::vector<std::string> finalizers;
  static ResourceClaimView parse(const json::Value& object);
  [[nodiscard]] bool is_reserved_for(std::string_view uid) const;
};

}  // namespace berth::model
