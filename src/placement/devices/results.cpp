#include "placement/devices/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace berth::placement::devices {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// A version 4 UUID made of a text, the same for the same text.
std::string uuid_of(std::string_view text) {
  std::uint64_t high = 0xcbf29ce484222325ULL, low = 0x84222325cbf29ce4ULL;
  const auto mix = [](std::uint64_t value) {
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdULL;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53ULL;
    return value ^ value >> 33;
  };
  for (const char c : text) {
    high = (high ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    low = mix(low + static_cast<unsigned char>(c));
  }
  high = (mix(high) & ~0xf000ULL) | 0x4000ULL;
  low = (mix(low) & ~(3ULL << 62)) | 2ULL << 62;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffffffffffffULL);
}

Array strings(const std::vector<std::string>& list) { return Array(list.begin(), list.end()); }

Object result_of(const ChosenDevice& chosen, const std::string& share_id) {
  Object out{{"request", chosen.parent.empty() ? chosen.request->name : chosen.parent + "/" + chosen.request->name},
             {"driver", chosen.id.driver},
             {"pool", chosen.id.pool},
             {"device", chosen.id.device}};
  if (chosen.request->admin_access) out["adminAccess"] = true;
  if (!chosen.request->tolerations_document.empty()) out["tolerations"] = chosen.request->tolerations_document;
  if (!chosen.device->binding_conditions.empty()) out["bindingConditions"] = strings(chosen.device->binding_conditions);
  if (!chosen.device->binding_failure_conditions.empty())
    out["bindingFailureConditions"] = strings(chosen.device->binding_failure_conditions);
  if (chosen.is_shared) out["shareID"] = share_id;
  if (!chosen.consumed.empty()) {
    Object consumed;
    for (const auto& [name, amount] : chosen.consumed) consumed[name] = amount.to_string();
    out["consumedCapacity"] = std::move(consumed);
  }
  return out;
}

/// Each class's configuration once, with all requests of the class; then the claim's own.
Array config_of(const model::ResourceClaimView& claim, const std::vector<ChosenRequest>& requests) {
  Array out;
  std::map<std::string, std::pair<std::size_t, std::size_t>> of_class;
  for (const auto& request : requests) {
    if (request.device_class == nullptr) continue;
    const auto known = of_class.find(request.device_class->meta.name);
    if (known != of_class.end()) {
      for (std::size_t i = known->second.first; i < known->second.second; ++i)
        out[i].get_object()["requests"].get_array().emplace_back(request.text());
      continue;
    }
    const std::size_t start = out.size();
    for (const Value& entry : request.device_class->config) {
      Object one{{"source", "FromClass"}, {"requests", Array{Value(request.text())}}};
      if (const Value* opaque = json::find(entry, "opaque")) one["opaque"] = *opaque;
      out.emplace_back(std::move(one));
    }
    of_class.emplace(request.device_class->meta.name, std::pair(start, out.size()));
  }
  for (const auto& entry : claim.config) {
    Object one{{"source", "FromClaim"}};
    if (!entry.requests.empty()) one["requests"] = strings(entry.requests);
    if (!entry.opaque.is_null()) one["opaque"] = entry.opaque;
    if (entry.requests.empty()) {
      out.emplace_back(std::move(one));
      continue;
    }
    const auto names = [&](const std::string& name) { return std::ranges::find(entry.requests, name) != entry.requests.end(); };
    for (const auto& request : requests)
      if (names(request.name) || (!request.sub.empty() && names(request.text()))) out.emplace_back(one);
  }
  return out;
}

void add_requirements(const Value& term, std::string_view key, Object& to) {
  for (const Value& wanted : json::get_array(term, {key})) {
    Value& list = to[key];
    if (!list.is_array()) list.emplace_array();
    const auto values = [](const Value& requirement) {
      std::set<std::string_view> out;
      for (const Value& one : json::get_array(requirement, {"values"})) out.insert(one.is_string() ? json::as_view(one) : "");
      return out;
    };
    const bool is_known = std::ranges::any_of(list.get_array(), [&](const Value& one) {
      return json::get_string(one, {"key"}) == json::get_string(wanted, {"key"}) &&
             json::get_string(one, {"operator"}) == json::get_string(wanted, {"operator"}) && values(one) == values(wanted);
    });
    if (!is_known) list.get_array().push_back(wanted);
  }
}

/// Where the allocation can be used: on one node, where all selectors hold, or (null) everywhere.
Value node_selector_of(const std::vector<ChosenDevice>& devices, const std::string& node_name) {
  Object term;
  for (const auto& chosen : devices) {
    const bool per_device = chosen.slice->per_device;
    const auto& name = per_device ? chosen.device->node_name : chosen.slice->node_name;
    if (name || chosen.device->binds_to_node) {
      Object field{{"key", "metadata.name"}, {"operator", "In"}, {"values", Array{Value(node_name)}}};
      return Object{{"nodeSelectorTerms", Array{Object{{"matchFields", Array{std::move(field)}}}}}};
    }
    const Value& selector = per_device ? chosen.device->node_selector_document : chosen.slice->node_selector_document;
    for (const Value& one : json::get_array(selector, {"nodeSelectorTerms"})) {
      add_requirements(one, "matchFields", term);
      add_requirements(one, "matchExpressions", term);
      break;  // Validation lets no more than one through.
    }
  }
  if (term.empty()) return nullptr;
  return Object{{"nodeSelectorTerms", Array{std::move(term)}}};
}

}  // namespace

std::shared_ptr<const model::Allocation> make_allocation(const model::ResourceClaimView& claim, const std::vector<ChosenDevice>& devices,
                                                         const std::vector<ChosenRequest>& requests, const std::string& node_name) {
  Array results;
  for (std::size_t i = 0; i < devices.size(); ++i)
    results.emplace_back(result_of(devices[i], uuid_of(fmt::format("{}/{}/{}", claim.meta.uid, i, devices[i].id.text()))));
  Object content;
  if (!results.empty()) content["results"] = std::move(results);
  if (Array config = config_of(claim, requests); !config.empty()) content["config"] = std::move(config);
  Object out{{"devices", std::move(content)}};
  if (Value selector = node_selector_of(devices, node_name); !selector.is_null()) out["nodeSelector"] = std::move(selector);
  return std::make_shared<const model::Allocation>(model::Allocation::parse(Value(std::move(out))));
}

}  // namespace berth::placement::devices
