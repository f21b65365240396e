// ProvisioningRequest: the words of its CustomResourceDefinition's schema (kubernetes/autoscaler,
// autoscaling.x-k8s.io_provisioningrequests).
#include <fmt/format.h>

#include "model/validation/validation.h"

namespace berth::model::validation {

using json::get_array;
using json::get_int;
using json::get_string;

namespace {

constexpr std::size_t kMostPodSets = 32, kMostParameters = 100, kLongestParameter = 255, kMostDetails = 64, kLongestDetail = 32768;

void body_rule(const Path& at, const Value& value, std::string_view rule, Errors& errors) {
  errors.invalid(at, value, fmt::format("{} in body {}", at.text(), rule));
}

void subdomain(const Value& object, std::string_view key, const Path& at, Errors& errors) {
  const Value* name = json::find(object, key);
  if (name == nullptr) return errors.required(at);
  const std::string_view text = text_of(*name);
  if (text.size() > 253) return errors.too_long(at, 253);
  if (!check_dns1123_subdomain(text).empty())
    body_rule(at, *name, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'", errors);
}

void pod_sets(const Value& doc, const Path& at, Errors& errors) {
  const Value* sets = json::find(doc, {"spec", "podSets"});
  if (sets == nullptr) return errors.required(at);
  const json::Array& list = get_array(doc, {"spec", "podSets"});
  if (list.empty()) return errors.invalid(at, Value(0), fmt::format("{} in body should have at least 1 items", at.text()));
  if (list.size() > kMostPodSets) errors.too_many(at, list.size(), kMostPodSets);
  for (std::size_t i = 0; i < std::min(list.size(), kMostPodSets); ++i) {
    const Path one = at[i];
    const Value* count = json::find(list[i], "count");
    if (count == nullptr)
      errors.required(one / "count");
    else if (get_int(list[i], {"count"}) < 1)
      body_rule(one / "count", *count, "should be greater than or equal to 1", errors);
    const Value* reference = json::find(list[i], "podTemplateRef");
    const Path reference_at = one / "podTemplateRef";
    if (reference == nullptr)
      errors.required(reference_at);
    else
      subdomain(*reference, "name", reference_at / "name", errors);
  }
}

void bounded_texts(const json::Object& map, const Path& at, std::size_t most, std::size_t longest, Errors& errors) {
  if (map.size() > most)
    errors.invalid(at, Value(map.size()), fmt::format("{} in body should have at most {} properties", at.text(), most));
  for (const auto& [key, value] : map)
    if (text_of(value).size() > longest) errors.too_long(at / std::string_view(key.data(), key.size()), longest);
}

}  // namespace

void provisioning_request(const Value& doc, Errors& errors) {
  const Path spec("spec"), status("status");
  pod_sets(doc, spec / "podSets", errors);
  if (const Value* body = json::find(doc, "spec")) subdomain(*body, "provisioningClassName", spec / "provisioningClassName", errors);
  bounded_texts(json::get_object(doc, {"spec", "parameters"}), spec / "parameters", kMostParameters, kLongestParameter, errors);
  bounded_texts(json::get_object(doc, {"status", "provisioningClassDetails"}), status / "provisioningClassDetails", kMostDetails,
                kLongestDetail, errors);
}

void provisioning_request_update(const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec");
  for (const auto& [key, type] :
       {std::pair("podSets", "array"), std::pair("provisioningClassName", "string"), std::pair("parameters", "object")}) {
    const Value *before = json::find(old, {"spec", key}), *after = json::find(doc, {"spec", key});
    // As CEL's transition rules are: what was not there before may come.
    if (before != nullptr && after != nullptr && !json::equal(*before, *after)) errors.invalid(spec / key, type, "Value is immutable");
  }
}

}  // namespace berth::model::validation
