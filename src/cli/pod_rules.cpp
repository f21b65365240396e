#include "cli/pod_rules.h"

#include "base/base64.h"
#include <algorithm>

namespace berth::cli {
namespace {

Result<std::vector<std::string>> read_strings(const json::Value& rule, std::string_view rule_name, const char* field) {
  std::vector<std::string> out;
  const json::Value* value = json::find(rule, {"match", field});
  if (value == nullptr) return out;
  if (!value->is_array()) return fail(ErrorCode::kInvalid, fmt::format("{}: match.{} must be a list of strings", rule_name, field));
  for (const json::Value& item : value->get_array()) {
    if (!item.is_string()) return fail(ErrorCode::kInvalid, fmt::format("{}: match.{} must be a list of strings", rule_name, field));
    out.emplace_back(json::as_view(item));
  }
  return out;
}

Result<std::map<std::string, std::string>> read_map(const json::Value* value, std::string_view rule_name, const char* field) {
  std::map<std::string, std::string> out;
  if (value == nullptr) return out;
  if (!value->is_object()) return fail(ErrorCode::kInvalid, fmt::format("{}: {} must be a map of strings", rule_name, field));
  for (const auto& entry : value->get_object()) {
    if (!entry.value().is_string())
      return fail(ErrorCode::kInvalid, fmt::format("{}: {}.{} must be a string", rule_name, field, std::string_view(entry.key())));
    out[std::string(entry.key())] = json::as_view(entry.value());
  }
  return out;
}

Result<void> only_known(const json::Value& object, std::string_view where, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return fail(ErrorCode::kInvalid, fmt::format("{}: must be a map", where));
  for (const auto& field : object.get_object())
    if (std::ranges::find(known, std::string_view(field.key())) == known.end())
      return fail(ErrorCode::kInvalid, fmt::format("{}: unknown field \"{}\"", where, std::string_view(field.key())));
  return {};
}

Result<PodRule> read_rule(const json::Value& document, std::size_t index) {
  PodRule rule;
  rule.name = json::get_string(document, {"name"}, fmt::format("rules[{}]", index));
  if (auto ok = only_known(document, rule.name, {"name", "match", "tolerations", "nodeLabels"}); !ok) return std::unexpected(ok.error());
  const json::Value* match = json::find(document, {"match"});
  if (match == nullptr || !match->is_object() || match->get_object().empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: match: at least one condition is needed", rule.name));
  if (auto ok = only_known(*match, rule.name + ": match", {"groups", "users", "namespaces", "labels", "annotations", "resources"}); !ok)
    return std::unexpected(ok.error());
  for (auto [field, out] : {std::pair("groups", &rule.groups), std::pair("users", &rule.users), std::pair("namespaces", &rule.namespaces),
                            std::pair("resources", &rule.resources)}) {
    auto strings = read_strings(document, rule.name, field);
    if (!strings) return std::unexpected(strings.error());
    *out = std::move(*strings);
  }
  for (auto [value, field, out] : {std::tuple(json::find(document, {"match", "labels"}), "match.labels", &rule.labels),
                                   std::tuple(json::find(document, {"match", "annotations"}), "match.annotations", &rule.annotations),
                                   std::tuple(json::find(document, {"nodeLabels"}), "nodeLabels", &rule.node_labels)}) {
    auto map = read_map(value, rule.name, field);
    if (!map) return std::unexpected(map.error());
    *out = std::move(*map);
  }
  if (const json::Value* tolerations = json::find(document, {"tolerations"})) {
    if (!tolerations->is_array()) return fail(ErrorCode::kInvalid, fmt::format("{}: tolerations must be a list", rule.name));
    for (const json::Value& toleration : tolerations->get_array())
      if (auto ok = only_known(toleration, rule.name + ": tolerations", {"key", "operator", "value", "effect", "tolerationSeconds"}); !ok)
        return std::unexpected(ok.error());
    rule.tolerations = tolerations->get_array();
  }
  if (rule.tolerations.empty() && rule.node_labels.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: neither tolerations nor nodeLabels", rule.name));
  return rule;
}

bool is_one_of(const std::vector<std::string>& wanted, std::string_view value) { return std::ranges::find(wanted, value) != wanted.end(); }

bool has_all(const json::Value& pod, const char* field, const std::map<std::string, std::string>& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    return json::get_string(pod, {"metadata", field, entry.first}) == entry.second;
  });
}

bool asks_for(const json::Value& pod, const std::vector<std::string>& resources) {
  for (const char* list : {"containers", "initContainers"})
    for (const json::Value& container : json::get_array(pod, {"spec", list}))
      for (const char* amounts : {"requests", "limits"})
        for (const auto& [name, amount] : json::get_object(container, {"resources", amounts}))
          if (is_one_of(resources, name)) return true;
  return false;
}

bool matches(const PodRule& rule, const json::Value& request, const json::Value& pod) {
  if (!rule.users.empty() && !is_one_of(rule.users, json::get_string(request, {"userInfo", "username"}))) return false;
  if (!rule.namespaces.empty() && !is_one_of(rule.namespaces, json::get_string(request, {"namespace"}))) return false;
  if (!rule.groups.empty()) {
    const json::Array& groups = json::get_array(request, {"userInfo", "groups"});
    if (std::ranges::none_of(groups,
                             [&](const json::Value& group) { return group.is_string() && is_one_of(rule.groups, json::as_view(group)); }))
      return false;
  }
  if (!has_all(pod, "labels", rule.labels) || !has_all(pod, "annotations", rule.annotations)) return false;
  return rule.resources.empty() || asks_for(pod, rule.resources);
}

/// Adds the expressions to every term of the required node affinity (terms are ORed): the pod can go nowhere else.
void require_labels(json::Value& spec, const std::map<std::string, std::string>& labels) {
  json::Array terms =
      json::get_array(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms.empty()) terms.push_back(json::Object{});
  for (json::Value& term : terms) {
    json::Array expressions = json::get_array(term, {"matchExpressions"});
    for (const auto& [key, value] : labels) {
      const json::Value expression = json::Object{{"key", key}, {"operator", "In"}, {"values", json::Array{json::Value(value)}}};
      if (std::ranges::none_of(expressions, [&](const json::Value& other) { return json::equal(other, expression); }))
        expressions.push_back(expression);
    }
    json::set(term, {"matchExpressions"}, std::move(expressions));
  }
  json::set(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}, std::move(terms));
}

}  // namespace

Result<std::vector<PodRule>> parse_pod_rules(std::string_view text) {
  auto document = json::parse_yaml(text);
  if (!document) return std::unexpected(document.error());
  if (auto ok = only_known(*document, "the file", {"rules"}); !ok) return std::unexpected(ok.error());
  std::vector<PodRule> rules;
  for (const json::Value& item : json::get_array(*document, {"rules"})) {
    auto rule = read_rule(item, rules.size());
    if (!rule) return std::unexpected(rule.error());
    rules.push_back(std::move(*rule));
  }
  if (rules.empty()) return fail(ErrorCode::kInvalid, "rules: none");
  return rules;
}

Result<json::Value> review_pod(const std::vector<PodRule>& rules, const json::Value& review) {
  const json::Value* request = json::find(review, {"request"});
  if (request == nullptr || json::get_string(*request, {"uid"}).empty())
    return fail(ErrorCode::kInvalid, "not an AdmissionReview with a request");
  json::Object response{{"uid", json::get_string(*request, {"uid"})}, {"allowed", true}};
  const json::Value* pod = json::find(*request, {"object"});
  if (pod != nullptr && json::get_string(*request, {"resource", "resource"}) == "pods") {
    json::Value spec = json::Object(json::get_object(*pod, {"spec"}));
    for (const PodRule& rule : rules) {
      if (!matches(rule, *request, *pod)) continue;
      json::Array tolerations = json::get_array(spec, {"tolerations"});
      for (const json::Value& toleration : rule.tolerations)
        if (std::ranges::none_of(tolerations, [&](const json::Value& other) { return json::equal(other, toleration); }))
          tolerations.push_back(toleration);
      if (!tolerations.empty()) json::set(spec, {"tolerations"}, std::move(tolerations));
      if (!rule.node_labels.empty()) require_labels(spec, rule.node_labels);
    }
    json::Array patch;
    for (const char* field : {"tolerations", "affinity"}) {
      const json::Value *before = json::find(*pod, {"spec", field}), *after = json::find(spec, {field});
      if (after == nullptr || (before != nullptr && json::equal(*before, *after))) continue;
      patch.push_back(json::Object{{"op", "add"}, {"path", fmt::format("/spec/{}", field)}, {"value", *after}});
    }
    if (!patch.empty()) {
      response["patchType"] = "JSONPatch";
      response["patch"] = base64_encode(json::serialize(json::Value(std::move(patch))));
    }
  }
  return json::Value(json::Object{{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}});
}

}  // namespace berth::cli
