#include "queues/documents.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/hex.h"
#include "model/conditions.h"

namespace berth::queues {
namespace {

using json::Array;
using json::get_array;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

/// Equal documents give equal texts, whatever the order of their keys.
std::string sorted_text(const Value& value) { return json::to_yaml(value); }

Array container_shapes(const Value& pod, std::string_view list) {
  Array out;
  for (const Value& container : get_array(pod, {"spec", list})) {
    Object shape;
    shape["requests"] = get_object(container, {"resources", "requests"});
    shape["ports"] = get_array(container, {"ports"});
    out.push_back(std::move(shape));
  }
  return out;
}

}  // namespace

void drop_if(Array& items, const std::function<bool(const Value&)>& is_unwanted) {
  items.erase(std::remove_if(items.begin(), items.end(), is_unwanted), items.end());
}

bool set_condition(Value& document, std::string_view type, bool is_true, std::string_view reason, std::string_view message, TimePoint now) {
  constexpr std::size_t kLongest = 32 * 1024;
  return model::set_condition(document,
                              {std::string(type), is_true ? "True" : "False", std::string(reason), std::string(message.substr(0, kLongest)),
                               json::get_int(document, {"metadata", "generation"})},
                              now);
}

bool unset_reservation(Value& workload, std::string_view reason, std::string_view message, TimePoint now) {
  bool changed = set_condition(workload, "QuotaReserved", false, reason, message, now);
  changed = json::erase(workload, {"status", "admission"}) || changed;
  for (const Value& condition : get_array(workload, {"status", "conditions"})) {
    if (get_string(condition, {"type"}) != "Admitted" || get_string(condition, {"status"}) != "True") continue;
    const auto since = parse_rfc3339(get_string(condition, {"lastTransitionTime"}));
    const std::int64_t seconds = since ? std::chrono::duration_cast<std::chrono::seconds>(now - *since).count() : 0;
    const std::int64_t before = json::get_int(workload, {"status", "accumulatedPastExexcutionTimeSeconds"});
    json::set(workload, {"status", "accumulatedPastExexcutionTimeSeconds"}, Value(before + std::max<std::int64_t>(0, seconds)));
    return set_condition(workload, "Admitted", false, "NoReservation", "The workload has no reservation", now);
  }
  return changed;
}

void set_eviction(Value& workload, std::string_view reason, std::string_view message, TimePoint now) {
  set_condition(workload, "Evicted", true, reason, message, now);
}

Placement placement_of(const PodSetAdmission& assignment, const std::map<std::string, Flavor>& flavors) {
  Placement out;
  std::vector<std::string> seen;
  for (const auto& [resource, name] : assignment.flavors) {
    const auto flavor = flavors.find(name);
    if (flavor == flavors.end() || std::ranges::find(seen, name) != seen.end()) continue;
    seen.push_back(name);
    for (const auto& label : flavor->second.node_labels)
      if (std::ranges::find(out.node_labels, label.first, &std::pair<std::string, std::string>::first) == out.node_labels.end())
        out.node_labels.push_back(label);
    for (const Value& toleration : flavor->second.toleration_documents) out.tolerations.push_back(toleration);
  }
  return out;
}

std::string place(Value& spec, const Placement& placement) {
  for (const auto& [key, value] : placement.node_labels) {
    const std::string_view there = get_string(spec, {"nodeSelector", key}, value);
    if (there != value) return key;
  }
  if (!placement.node_labels.empty()) {
    Object& selector = json::ensure_object(spec, {"nodeSelector"});
    for (const auto& [key, value] : placement.node_labels) selector[key] = value;
  }
  Array tolerations = get_array(spec, {"tolerations"});
  const std::size_t before = tolerations.size();
  for (const Value& one : placement.tolerations)
    if (std::ranges::none_of(tolerations, [&](const Value& other) { return json::equal(one, other); })) tolerations.push_back(one);
  if (tolerations.size() != before) json::set(spec, {"tolerations"}, std::move(tolerations));
  return {};
}

std::string workload_name(std::string_view kind, std::string_view group, std::string_view name, std::string_view uid) {
  constexpr std::size_t kHashLength = 5, kLongestPrefix = 252 - kHashLength;
  const std::string hashed = fmt::format("{}\n{}\n{}\n{}", kind, group, name, uid);
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(hashed.data()), hashed.size(), digest);
  std::string prefix = fmt::format("{}-{}", kind, name);
  std::ranges::transform(prefix, prefix.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (prefix.size() > kLongestPrefix) prefix.resize(kLongestPrefix);
  return fmt::format("{}-{}", prefix, hex(digest).substr(0, kHashLength));
}

std::string role_of(const Value& pod) {
  if (std::string known = annotation_of(pod, kRoleAnnotation); !known.empty()) return known;
  Object shape;
  shape["initContainers"] = container_shapes(pod, "initContainers");
  shape["containers"] = container_shapes(pod, "containers");
  for (const char* field : {"nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints",
                            "overhead", "resourceClaims"})
    if (const Value* value = json::find(pod, {"spec", field})) shape[field] = *value;
  const std::string text = sorted_text(shape);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return hex(digest).substr(0, 8);
}

std::string label_of(const Value& document, std::string_view key) { return std::string(get_string(document, {"metadata", "labels", key})); }
std::string annotation_of(const Value& document, std::string_view key) {
  return std::string(get_string(document, {"metadata", "annotations", key}));
}

}  // namespace berth::queues
