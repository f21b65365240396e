#include "model/views/device_views.h"

#include <algorithm>

#include "model/views/json_text.h"

namespace berth::model {
namespace {

std::optional<std::string> optional_string(const json::Value& value, std::string_view key) {
  const auto* found = json::find(value, key);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return std::string(json::as_view(*found));
}

std::optional<Quantity> quantity_of(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return Quantity::from_value(value->get_int64());
  if (!value->is_string()) return std::nullopt;
  return Quantity::parse(json::as_view(*value));
}

DeviceAttribute attribute_of(const json::Value& value) {
  DeviceAttribute out;
  if (const auto* text = json::find(value, "string"); text != nullptr && text->is_string()) {
    out.kind = DeviceAttribute::Kind::kString;
    out.text = json::as_view(*text);
  } else if (const auto* number = json::find(value, "int"); number != nullptr && number->is_int64()) {
    out.kind = DeviceAttribute::Kind::kInt;
    out.number = number->get_int64();
  } else if (const auto* flag = json::find(value, "bool"); flag != nullptr && flag->is_bool()) {
    out.kind = DeviceAttribute::Kind::kBool;
    out.number = flag->get_bool() ? 1 : 0;
  } else if (const auto* version = json::find(value, "version"); version != nullptr && version->is_string()) {
    out.kind = DeviceAttribute::Kind::kVersion;
    out.text = json::as_view(*version);
  }
  return out;
}

DeviceCapacity capacity_of(const json::Value& value) {
  DeviceCapacity out;
  out.value = quantity_of(json::find(value, "value")).value_or(Quantity());
  const auto* policy = json::find(value, "requestPolicy");
  if (policy == nullptr || !policy->is_object()) return out;
  CapacityPolicy& to = out.policy.emplace();
  to.fallback = quantity_of(json::find(*policy, "default"));
  to.has_values = json::find(*policy, "validValues") != nullptr;
  for (const auto& one : json::get_array(*policy, {"validValues"}))
    if (auto amount = quantity_of(&one)) to.values.push_back(*amount);
  if (const auto* range = json::find(*policy, "validRange")) {
    to.has_range = true;
    to.min = quantity_of(json::find(*range, "min"));
    to.max = quantity_of(json::find(*range, "max"));
    to.step = quantity_of(json::find(*range, "step"));
  }
  return out;
}

ResourceList counters_of(const json::Value& holder) {
  ResourceList out;
  for (const auto& [name, counter] : json::get_object(holder, {"counters"}))
    out.emplace_back(std::string(name), quantity_of(json::find(counter, "value")).value_or(Quantity()));
  std::ranges::sort(out, {}, [](const auto& pair) { return pair.first; });
  return out;
}

/// nodeName, nodeSelector and allNodes of a slice's spec or of a device.
template <typename T>
void read_placement(const json::Value& from, T& to) {
  to.node_name = optional_string(from, "nodeName");
  to.all_nodes = json::get_bool(from, {"allNodes"});
  if (const auto* selector = json::find(from, "nodeSelector")) {
    to.node_selector = NodeSelector::parse(*selector);
    to.node_selector_document = *selector;
  }
}

DeviceView device_of(const json::Value& value) {
  DeviceView out;
  out.name = string_at(value, {"name"});
  for (const auto& [name, attribute] : json::get_object(value, {"attributes"})) out.attributes.emplace(name, attribute_of(attribute));
  for (const auto& [name, capacity] : json::get_object(value, {"capacity"})) out.capacity.emplace(name, capacity_of(capacity));
  for (const auto& taint : json::get_array(value, {"taints"})) out.taints.push_back(parse_taint(taint));
  for (const auto& one : json::get_array(value, {"consumesCounters"}))
    out.consumes.push_back({string_at(one, {"counterSet"}), counters_of(one)});
  read_placement(value, out);
  out.binds_to_node = json::get_bool(value, {"bindsToNode"});
  out.allows_sharing = json::get_bool(value, {"allowMultipleAllocations"});
  out.binding_conditions = parse_strings(json::get_array(value, {"bindingConditions"}));
  out.binding_failure_conditions = parse_strings(json::get_array(value, {"bindingFailureConditions"}));
  return out;
}

/// The expressions in `holder.selectors`; what is no CEL is told apart.
std::optional<std::size_t> read_selectors(const json::Value& holder, std::vector<std::string>& out) {
  std::optional<std::size_t> unknown;
  const auto& list = json::get_array(holder, {"selectors"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (json::find(list[i], "cel") == nullptr && !unknown) unknown = i;
    out.push_back(string_at(list[i], {"cel", "expression"}));
  }
  return unknown;
}

DeviceRequest request_of(const json::Value& value, std::string name) {
  DeviceRequest out;
  out.name = std::move(name);
  out.class_name = string_at(value, {"deviceClassName"});
  out.unknown_selector = read_selectors(value, out.selectors);
  out.mode = string_at(value, {"allocationMode"});
  out.is_all = out.mode == "All";
  out.count = json::get_int(value, {"count"});
  out.admin_access = json::get_bool(value, {"adminAccess"});
  out.tolerations_document = json::get_array(value, {"tolerations"});
  out.tolerations = parse_tolerations(out.tolerations_document);
  for (const auto& [key, amount] : json::get_object(value, {"capacity", "requests"}))
    if (auto parsed = quantity_of(&amount)) out.capacity.emplace(key, *parsed);
  return out;
}

}  // namespace

ResourceSliceView ResourceSliceView::parse(const json::Value& object) {
  ResourceSliceView out;
  out.meta = ObjectMeta::parse(object);
  const auto* spec = json::find(object, "spec");
  if (spec == nullptr) return out;
  out.driver = string_at(*spec, {"driver"});
  out.pool = string_at(*spec, {"pool", "name"});
  out.generation = json::get_int(*spec, {"pool", "generation"});
  out.slice_count = json::get_int(*spec, {"pool", "resourceSliceCount"});
  read_placement(*spec, out);
  out.per_device = json::get_bool(*spec, {"perDeviceNodeSelection"});
  for (const auto& device : json::get_array(*spec, {"devices"})) out.devices.push_back(device_of(device));
  for (const auto& one : json::get_array(*spec, {"sharedCounters"}))
    out.counter_sets.push_back({string_at(one, {"name"}), counters_of(one)});
  return out;
}

DeviceClassView DeviceClassView::parse(const json::Value& object) {
  DeviceClassView out;
  out.meta = ObjectMeta::parse(object);
  const auto* spec = json::find(object, "spec");
  if (spec == nullptr) return out;
  out.has_unknown_selector = read_selectors(*spec, out.selectors).has_value();
  out.config = json::get_array(*spec, {"config"});
  out.extended_resource = optional_string(*spec, "extendedResourceName");
  return out;
}

DeviceTaintRuleView DeviceTaintRuleView::parse(const json::Value& object) {
  DeviceTaintRuleView out;
  out.meta = ObjectMeta::parse(object);
  if (const auto* selector = json::find(object, {"spec", "deviceSelector"}); selector != nullptr && selector->is_object()) {
    out.selects = true;
    out.driver = optional_string(*selector, "driver");
    out.pool = optional_string(*selector, "pool");
    out.device = optional_string(*selector, "device");
  }
  if (const auto* taint = json::find(object, {"spec", "taint"})) out.taint = parse_taint(*taint);
  return out;
}

Allocation Allocation::parse(const json::Value& document) {
  Allocation out;
  out.document = document;
  out.timestamp = string_at(document, {"allocationTimestamp"});
  if (const auto* selector = json::find(document, "nodeSelector")) out.node_selector = NodeSelector::parse(*selector);
  for (const auto& item : json::get_array(document, {"devices", "results"})) {
    AllocatedDevice& one = out.devices.emplace_back();
    one.request = string_at(item, {"request"});
    one.driver = string_at(item, {"driver"});
    one.pool = string_at(item, {"pool"});
    one.device = string_at(item, {"device"});
    one.share_id = optional_string(item, "shareID");
    one.admin_access = json::get_bool(item, {"adminAccess"});
    for (const auto& [name, amount] : json::get_object(item, {"consumedCapacity"}))
      one.consumed_capacity.emplace_back(std::string(name), quantity_of(&amount).value_or(Quantity()));
    one.binding_conditions = parse_strings(json::get_array(item, {"bindingConditions"}));
    one.binding_failure_conditions = parse_strings(json::get_array(item, {"bindingFailureConditions"}));
  }
  return out;
}

ResourceClaimView ResourceClaimView::parse(const json::Value& object) {
  ResourceClaimView out;
  out.meta = ObjectMeta::parse(object);
  out.finalizers = parse_strings(json::get_array(object, {"metadata", "finalizers"}));
  for (const auto& item : json::get_array(object, {"spec", "devices", "requests"})) {
    DeviceRequestGroup& group = out.requests.emplace_back();
    group.name = string_at(item, {"name"});
    if (const auto* exactly = json::find(item, "exactly")) group.exactly = request_of(*exactly, group.name);
    for (const auto& sub : json::get_array(item, {"firstAvailable"}))
      group.first_available.push_back(request_of(sub, string_at(sub, {"name"})));
  }
  for (const auto& item : json::get_array(object, {"spec", "devices", "constraints"}))
    out.constraints.push_back(
        {parse_strings(json::get_array(item, {"requests"})), string_at(item, {"matchAttribute"}), string_at(item, {"distinctAttribute"})});
  for (const auto& item : json::get_array(object, {"spec", "devices", "config"})) {
    const auto* opaque = json::find(item, "opaque");
    out.config.push_back({parse_strings(json::get_array(item, {"requests"})), opaque == nullptr ? json::Value() : *opaque});
  }
  if (const auto* allocation = json::find(object, {"status", "allocation"}); allocation != nullptr && allocation->is_object())
    out.allocation = std::make_shared<const Allocation>(Allocation::parse(*allocation));
  for (const auto& item : json::get_array(object, {"status", "reservedFor"})) out.reserved_for.push_back(string_at(item, {"uid"}));
  out.device_statuses = json::get_array(object, {"status", "devices"});
  return out;
}

bool ResourceClaimView::is_reserved_for(std::string_view uid) const { return std::ranges::find(reserved_for, uid) != reserved_for.end(); }

}  // namespace berth::model
