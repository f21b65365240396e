#include "apiserver/auth/reviews.h"

namespace berth::apiserver::auth {
namespace {

std::vector<std::string> strings(const json::Value& root, json::Path path) {
  std::vector<std::string> out;
  for (const auto& entry : json::get_array(root, path)) {
    if (entry.is_string()) out.emplace_back(json::as_view(entry));
  }
  return out;
}

json::Array to_array(const std::vector<std::string>& list) {
  json::Array out;
  for (const auto& entry : list) out.emplace_back(entry);
  return out;
}

/// Rebuilds a selector from the review's parsed requirements, for authorizers that look at it.
std::string selector_text(const json::Value& attributes, std::string_view field) {
  if (auto raw = json::get_string(attributes, {field, "rawSelector"}); !raw.empty()) return std::string(raw);
  std::string text;
  for (const auto& requirement : json::get_array(attributes, {field, "requirements"})) {
    auto op = json::get_string(requirement, {"operator"});
    auto values = strings(requirement, {"values"});
    if ((op != "In" && op != "NotIn") || values.size() != 1) continue;
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ",", json::get_string(requirement, {"key"}), op == "In" ? "=" : "!=", values[0]);
  }
  return text;
}

Attributes attributes_of(const json::Value& spec) {
  Attributes out;
  const auto* resource = json::find(spec, "resourceAttributes");
  if (resource == nullptr) {
    out.is_resource = false;
    out.path = json::get_string(spec, {"nonResourceAttributes", "path"});
    out.verb = json::get_string(spec, {"nonResourceAttributes", "verb"});
    return out;
  }
  out.verb = json::get_string(*resource, {"verb"});
  out.group = json::get_string(*resource, {"group"});
  out.version = json::get_string(*resource, {"version"});
  out.resource = json::get_string(*resource, {"resource"});
  out.subresource = json::get_string(*resource, {"subresource"});
  out.ns = json::get_string(*resource, {"namespace"});
  out.name = json::get_string(*resource, {"name"});
  out.field_selector = selector_text(*resource, "fieldSelector");
  out.label_selector = selector_text(*resource, "labelSelector");
  return out;
}

/// The non-resource attributes as Go prints them.
std::string shown_path(const json::Value& spec) {
  return json::serialize(json::Object{{"Path", json::get_string(spec, {"nonResourceAttributes", "path"})},
                                      {"Verb", json::get_string(spec, {"nonResourceAttributes", "verb"})}});
}

/// authorization.k8s.io's validation of a spec (pkg/apis/authorization/validation).
model::FieldErrors validate(const json::Value& spec, bool needs_user) {
  using Type = model::FieldError::Type;
  model::FieldErrors errors;
  const bool resource = json::find(spec, "resourceAttributes") != nullptr, other = json::find(spec, "nonResourceAttributes") != nullptr;
  if (resource && other) {
    errors.push_back(
        {Type::kInvalid, "spec.nonResourceAttributes", shown_path(spec), "cannot be specified in combination with resourceAttributes"});
  }
  if (!resource && !other) {
    errors.push_back({Type::kInvalid, "spec.resourceAttributes", "null",
                      "exactly one of nonResourceAttributes or resourceAttributes must be specified"});
  }
  for (std::string_view selector : {"fieldSelector", "labelSelector"}) {
    const auto raw = json::get_string(spec, {"resourceAttributes", selector, "rawSelector"});
    if (!raw.empty() && !json::get_array(spec, {"resourceAttributes", selector, "requirements"}).empty())
      errors.push_back({Type::kInvalid, fmt::format("spec.resourceAttributes.{}.rawSelector", selector), json::serialize(json::Value(raw)),
                        "may not specified at the same time as requirements"});
  }
  if (needs_user && json::get_string(spec, {"user"}).empty() && json::get_array(spec, {"groups"}).empty()) {
    errors.push_back({Type::kInvalid, "spec.user", "\"\"", "at least one of user or group must be specified"});
  }
  return errors;
}

model::ApiStatus invalid_review(const model::FieldErrors& errors) {
  // The kind is left out there, as in Kubernetes' own answer.
  return model::invalid_object("authorization.k8s.io", "", "", errors);
}

const json::Value& spec_of(const json::Value& review) {
  static const json::Value empty = json::Object{};
  const auto* spec = json::find(review, "spec");
  return spec != nullptr ? *spec : empty;
}

json::Value answer(json::Value review, const Authorizer::Decision& decision) {
  json::Object status{{"allowed", decision.allowed}};
  if (!decision.reason.empty()) status["reason"] = decision.reason;
  json::set(review, {"status"}, std::move(status));
  return review;
}

UserInfo user_of(const json::Value& spec) {
  UserInfo user;
  user.name = json::get_string(spec, {"user"});
  user.uid = json::get_string(spec, {"uid"});
  user.groups = strings(spec, {"groups"});
  for (const auto& [key, values] : json::get_object(spec, {"extra"})) {
    auto& list = user.extra[std::string(key)];
    if (!values.is_array()) continue;
    for (const auto& value : values.get_array()) {
      if (value.is_string()) list.emplace_back(json::as_view(value));
    }
  }
  return user;
}

}  // namespace

std::string forbidden_reason(const UserInfo& user, const Attributes& attributes, std::string_view reason) {
  std::string text;
  if (!attributes.is_resource) {
    text = fmt::format("User \"{}\" cannot {} path \"{}\"", user.name, attributes.verb, attributes.path);
  } else {
    std::string resource = attributes.subresource.empty() ? attributes.resource : attributes.resource + "/" + attributes.subresource;
    std::string scope = attributes.ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", attributes.ns);
    text = fmt::format("User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}", user.name, attributes.verb, resource,
                       attributes.group, scope);
  }
  if (!reason.empty()) text += fmt::format(": {}", reason);
  return text;
}

model::ApiStatus forbidden_status(const UserInfo& user, const Attributes& attributes, std::string_view reason) {
  std::string why = forbidden_reason(user, attributes, reason);
  return attributes.is_resource ? model::forbidden(attributes.group, attributes.resource, attributes.name, why)
                                : model::forbidden("", "", "", why);
}

json::Object user_to_json(const UserInfo& user) {
  json::Object out{{"username", user.name}};
  if (!user.uid.empty()) out["uid"] = user.uid;
  if (!user.groups.empty()) out["groups"] = to_array(user.groups);
  if (!user.extra.empty()) {
    json::Object extra;
    for (const auto& [key, values] : user.extra) extra[key] = to_array(values);
    out["extra"] = std::move(extra);
  }
  return out;
}

std::optional<std::string> review_waits_for(Authenticator& authenticator, Authorizer& authorizer, const UserInfo& user,
                                            std::string_view plural, const json::Value& review) {
  if (plural == "tokenreviews")
    return authenticator.waits_for_token(std::string(json::get_string(review, {"spec", "token"})), strings(review, {"spec", "audiences"}));
  if (!plural.ends_with("subjectaccessreviews")) return std::nullopt;
  const json::Value& spec = spec_of(review);
  const auto decision = authorizer.decide_at_once(plural == "selfsubjectaccessreviews" ? user : user_of(spec), attributes_of(spec));
  return decision ? std::nullopt : std::optional(decision.error());
}

model::ApiResult<json::Value> review_subject_access(Authorizer& authorizer, json::Value review) {
  const json::Value& spec = spec_of(review);
  if (auto errors = validate(spec, true); !errors.empty()) return std::unexpected(invalid_review(errors));
  auto decision = authorizer.authorize(user_of(spec), attributes_of(spec));
  return answer(std::move(review), decision);
}

model::ApiResult<json::Value> review_local_subject_access(Authorizer& authorizer, json::Value review, const std::string& ns) {
  const json::Value& spec = spec_of(review);
  auto errors = validate(spec, true);
  if (json::find(spec, "resourceAttributes") != nullptr && json::get_string(spec, {"resourceAttributes", "namespace"}) != ns) {
    errors.push_back({model::FieldError::Type::kInvalid, "spec.resourceAttributes.namespace",
                      fmt::format("\"{}\"", json::get_string(spec, {"resourceAttributes", "namespace"})), "must match metadata.namespace"});
  }
  if (json::find(spec, "nonResourceAttributes") != nullptr)
    errors.push_back(
        {model::FieldError::Type::kInvalid, "spec.nonResourceAttributes", shown_path(spec), "disallowed on this kind of request"});
  if (!errors.empty()) return std::unexpected(invalid_review(errors));
  auto decision = authorizer.authorize(user_of(spec), attributes_of(spec));
  return answer(std::move(review), decision);
}

model::ApiResult<json::Value> review_self_subject_access(Authorizer& authorizer, const UserInfo& user, json::Value review) {
  const json::Value& spec = spec_of(review);
  if (auto errors = validate(spec, false); !errors.empty()) return std::unexpected(invalid_review(errors));
  auto decision = authorizer.authorize(user, attributes_of(spec));
  return answer(std::move(review), decision);
}

model::ApiResult<json::Value> review_self_subject_rules(Authorizer& authorizer, const UserInfo& user, json::Value review) {
  std::string ns(json::get_string(review, {"spec", "namespace"}));
  if (ns.empty()) return std::unexpected(model::bad_request("no namespace on request"));
  UserRules rules = authorizer.rules_for(user, ns);
  json::Array resource, non_resource;
  for (const auto& rule : rules.resource) {
    json::Object entry{{"verbs", to_array(rule.verbs)}, {"apiGroups", to_array(rule.groups)}, {"resources", to_array(rule.resources)}};
    if (!rule.resource_names.empty()) entry["resourceNames"] = to_array(rule.resource_names);
    resource.emplace_back(std::move(entry));
  }
  for (const auto& rule : rules.non_resource)
    non_resource.emplace_back(json::Object{{"verbs", to_array(rule.verbs)}, {"nonResourceURLs", to_array(rule.urls)}});
  json::Object status{
      {"resourceRules", std::move(resource)}, {"nonResourceRules", std::move(non_resource)}, {"incomplete", rules.incomplete}};
  if (!rules.evaluation_error.empty()) status["evaluationError"] = rules.evaluation_error;
  json::set(review, {"status"}, std::move(status));
  return review;
}

model::ApiResult<json::Value> review_self_subject(const UserInfo& user, json::Value review) {
  json::set(review, {"status"}, json::Object{{"userInfo", user_to_json(user)}});
  return review;
}

model::ApiResult<json::Value> review_token(Authenticator& authenticator, json::Value review) {
  std::string token(json::get_string(review, {"spec", "token"}));
  if (token.empty()) return std::unexpected(model::bad_request("token is required for TokenReview in authentication"));
  auto audiences = strings(review, {"spec", "audiences"});
  auto found = authenticator.authenticate_token(token, audiences);
  json::Object status;
  if (found) {
    status["authenticated"] = true;
    status["user"] = user_to_json(found->user);
    // Those of the question that the token is for: who asked must find himself among them.
    if (!found->audiences.empty()) status["audiences"] = to_array(found->audiences);
  } else {
    status["error"] = found.error().message;
    status["user"] = json::Object{};
  }
  json::set(review, {"status"}, std::move(status));
  return review;
}

}  // namespace berth::apiserver::auth
