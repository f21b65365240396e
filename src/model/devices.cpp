#include "model/devices.h"

#include <fmt/format.h>

#include <set>

namespace berth::model::devices {
namespace {

using json::Array;
using json::Object;
using json::Value;

Array* list(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->value().if_array();
}

Object* child(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->value().if_object();
}

/// Pointers and lists that Go writes even when there is nothing in them.
void put_nothing(Object& object, std::string_view key) {
  if (!object.contains(key)) object[key] = nullptr;
}

/// An exact request, or an alternative: one device, unless it says otherwise.
void default_request(Object& request) {
  if (Array* tolerations = list(request, "tolerations"))
    for (Value& one : *tolerations)
      if (Object* toleration = one.if_object()) {
        const Value* op = toleration->if_contains("operator");
        if (op == nullptr || *op == "") (*toleration)["operator"] = "Equal";
      }
  const Value* mode = request.if_contains("allocationMode");
  if (mode == nullptr || !mode->is_string() || mode->get_string().empty()) request["allocationMode"] = "ExactCount";
  if (request["allocationMode"] != "ExactCount") return;
  const Value* count = request.if_contains("count");
  if (count == nullptr || count->is_null() || *count == 0) request["count"] = 1;
}

void default_spec(Object& spec) {
  Value& held = spec["devices"];
  if (held.is_null()) held.emplace_object();
  Object* devices = held.if_object();
  if (devices == nullptr) return;
  put_nothing(*devices, "requests");
  Array* requests = list(*devices, "requests");
  if (requests == nullptr) return;
  for (Value& one : *requests) {
    Object* request = one.if_object();
    if (request == nullptr) continue;
    if (Object* exactly = child(*request, "exactly")) default_request(*exactly);
    if (Array* first = list(*request, "firstAvailable"))
      for (Value& sub : *first)
        if (Object* alternative = sub.if_object()) default_request(*alternative);
  }
}

std::string device_key(const Value& device) {
  return fmt::format("{}/{}/{}/{}", json::get_string(device, {"driver"}), json::get_string(device, {"pool"}),
                     json::get_string(device, {"device"}), json::get_string(device, {"shareID"}));
}

template <typename F>
void each_device(Value& slice, F&& apply) {
  Value* found = json::find(slice, {"spec", "devices"});
  if (found == nullptr || !found->is_array()) return;
  for (Value& one : found->get_array())
    if (Object* device = one.if_object()) apply(*device);
}

}  // namespace

void default_claim(Object& claim) {
  if (Object* spec = child(claim, "spec")) default_spec(*spec);
  Object* status = child(claim, "status");
  if (Array* devices = status == nullptr ? nullptr : list(*status, "devices"))
    for (Value& one : *devices)
      if (Object* device = one.if_object()) put_nothing(*device, "conditions");
}

void default_claim_template(Object& claim_template) {
  Object* outer = child(claim_template, "spec");
  if (outer == nullptr) return;
  for (const char* key : {"metadata", "spec"})
    if (Value& held = (*outer)[key]; held.is_null()) held.emplace_object();
  if (Object* spec = child(*outer, "spec")) default_spec(*spec);
}

void default_slice(Object& slice) {
  Object* spec = child(slice, "spec");
  if (spec == nullptr) return;
  Value& pool = (*spec)["pool"];
  if (pool.is_null()) pool.emplace_object();
  if (Object* fields = pool.if_object()) {
    for (const char* key : {"generation", "resourceSliceCount"})
      if (!fields->contains(key)) (*fields)[key] = 0;
  }
}

void drop_disabled_fields(Value& doc) {
  each_device(doc, [](Object& device) {
    device.erase("nodeAllocatableResourceMappings");
    Object* attributes = child(device, "attributes");
    if (attributes == nullptr) return;
    for (auto& member : *attributes)
      if (Object* attribute = member.value().if_object())
        for (const char* key : {"bools", "ints", "strings", "versions"}) attribute->erase(key);
  });
}

void drop_deallocated_statuses(const Value& old, Value& claim) {
  Value* statuses = json::find(claim, {"status", "devices"});
  if (statuses == nullptr || !statuses->is_array()) return;
  std::set<std::string> gone;
  for (const Value& one : json::get_array(old, {"status", "allocation", "devices", "results"})) gone.insert(device_key(one));
  for (const Value& one : json::get_array(claim, {"status", "allocation", "devices", "results"})) gone.erase(device_key(one));
  if (gone.empty()) return;
  Array kept;
  for (const Value& one : statuses->get_array())
    if (!gone.contains(device_key(one))) kept.push_back(one);
  if (kept.empty())
    json::erase(claim, {"status", "devices"});
  else
    *statuses = std::move(kept);
}

void stamp_taints(Value& slice, std::string_view now) {
  each_device(slice, [&](Object& device) {
    Array* taints = list(device, "taints");
    if (taints == nullptr) return;
    for (Value& one : *taints)
      if (Object* taint = one.if_object(); taint != nullptr && !taint->contains("timeAdded")) (*taint)["timeAdded"] = now;
  });
}

void stamp_rule(const Value* old, Value& rule, std::string_view now) {
  Value* found = json::find(rule, {"spec", "taint"});
  Object* taint = found == nullptr ? nullptr : found->if_object();
  if (taint == nullptr) return;
  const auto text = [](const Value& of, const char* key) { return json::get_string(of, {"spec", "taint", key}); };
  const bool begins_anew =
      old != nullptr && text(*old, "effect") != text(rule, "effect") && text(*old, "timeAdded") == text(rule, "timeAdded");
  if (begins_anew || !taint->contains("timeAdded")) (*taint)["timeAdded"] = now;
}

}  // namespace berth::model::devices
