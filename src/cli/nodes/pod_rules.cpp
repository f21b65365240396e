#include "cli/nodes/pod_rules.h"

#include <algorithm>
#include <set>

#include "base/base64.h"
#include "base/config_reader.h"

namespace berth::cli {
namespace {

using config::Reader;

std::map<std::string, std::string> read_map(const Reader& at) {
  std::map<std::string, std::string> out;
  if (!at.is_present()) return out;
  for (const auto& [key, value] : at.members()) {
    if (value.is_present() && value.value()->is_string())
      out[key] = json::as_view(*value.value());
    else
      value.problem("must be a string");
  }
  return out;
}

json::Array read_tolerations(const Reader& list) {
  constexpr std::string_view kOperators[] = {"Exists", "Equal"}, kEffects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  json::Array out;
  for (const Reader& item : list.items()) {
    if (!item.expect_object()) continue;
    item.only({"key", "operator", "value", "effect", "tolerationSeconds"});
    for (const std::string_view field : {"key", "value"}) static_cast<void>(item.string(field));
    static_cast<void>(item.integer("tolerationSeconds", 0));
    const std::string op = item.one_of("operator", kOperators), effect = item.one_of("effect", kEffects);
    if (op == "Exists" && !item.string("value").empty()) item.problem("value", "must be empty when the operator is Exists");
    if (item.string("key").empty() && op != "Exists") item.problem("operator", "must be Exists when there is no key");
    if (item.has("tolerationSeconds") && effect != "NoExecute") item.problem("effect", "must be NoExecute when tolerationSeconds is set");
    out.push_back(*item.value());
  }
  return out;
}

PodRule read_rule(const Reader& at) {
  PodRule rule;
  if (!at.expect_object()) return rule;
  at.only({"name", "match", "tolerations", "nodeLabels"});
  rule.name = at.string("name", at.path());
  const Reader match = at.field("match");
  match.expect_object();
  match.only({"groups", "users", "namespaces", "labels", "annotations", "resources"});
  if (!match.is_object() || match.value()->get_object().empty()) at.problem("match", "at least one condition is needed");
  for (auto [field, out] : {std::pair("groups", &rule.groups), std::pair("users", &rule.users), std::pair("namespaces", &rule.namespaces),
                            std::pair("resources", &rule.resources)})
    *out = match.strings(field);
  rule.labels = read_map(match.field("labels"));
  rule.annotations = read_map(match.field("annotations"));
  rule.node_labels = read_map(at.field("nodeLabels"));
  rule.tolerations = read_tolerations(at.field("tolerations"));
  if (!at.has("tolerations") && rule.node_labels.empty()) at.problem("gives neither tolerations nor nodeLabels");
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

Result<std::vector<PodRule>> parse_pod_rules(std::string_view text, const std::string& file) {
  std::vector<PodRule> rules;
  const auto read = config::read_text(text, {.file = file}, [&](const Reader& root) {
    rules.clear();
    if (!root.expect_object()) return root.problem("must be a map with rules");
    root.only({"rules"});
    std::set<std::string> names;
    for (const Reader& item : root.field("rules").items()) {
      rules.push_back(read_rule(item));
      if (!names.insert(rules.back().name).second) item.problem("name", fmt::format("\"{}\" is there already", rules.back().name));
    }
    if (rules.empty()) root.problem("rules", "none");
  });
  if (!read) return std::unexpected(read.error());
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
