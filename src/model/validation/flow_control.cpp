// FlowSchemas and PriorityLevelConfigurations (pkg/apis/flowcontrol/validation).
#include <fmt/format.h>

#include <cmath>

#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_string;

constexpr std::int64_t kMaxPrecedence = 10000, kMaxQueues = 10'000'000;
constexpr int kMaxHashBits = 60;

bool has_wildcard(const json::Array& list) { return std::ranges::find(list, Value("*")) != list.end(); }

/// A list that says something, or a wildcard alone.
void lone_wildcard(const json::Array& list, std::string_view missing, std::string_view others, const Path& at, Errors& errors) {
  if (list.empty())
    errors.required(at, missing);
  else if (list.size() > 1 && has_wildcard(list))
    errors.invalid(at, Value(list), fmt::format("if '*' is present, must not specify other {}", others));
}

void verbs(const Value& rule, const Path& rule_at, Errors& errors) {
  static const std::vector<std::string_view> kVerbs = {"create", "delete", "deletecollection", "get",  "list",
                                                       "patch",  "proxy",  "update",           "watch"};
  const Path at = rule_at / "verbs";
  const json::Array& list = get_array(rule, {"verbs"});
  lone_wildcard(list, "verbs must contain at least one value", "verbs", at, errors);
  if (has_wildcard(list)) return;
  if (std::ranges::any_of(list, [](const Value& verb) { return std::ranges::find(kVerbs, json::as_view(verb)) == kVerbs.end(); }))
    errors.not_supported_value(at, Value(list), kVerbs);
}

std::string_view url_problem(std::string_view url) {
  if (url.empty()) return "must not be empty";
  if (url == "/") return {};
  if (!url.starts_with('/')) return "must start with slash";
  if (url.find(' ') != std::string_view::npos) return "must not contain white-space";
  if (url.find("//") != std::string_view::npos) return "must not contain double slash";
  const auto stars = std::ranges::count(url, '*');
  return stars > 1 || (stars == 1 && !url.ends_with("/*")) ? "wildcard can only do suffix matching" : std::string_view();
}

void url_rule(const Value& rule, const Path& at, Errors& errors) {
  verbs(rule, at, errors);
  const Path urls_at = at / "nonResourceURLs";
  const json::Array& urls = get_array(rule, {"nonResourceURLs"});
  lone_wildcard(urls, "nonResourceURLs must contain at least one value", "non-resource URLs", urls_at, errors);
  if (has_wildcard(urls)) return;
  for (std::size_t i = 0; i < urls.size(); ++i)
    if (const std::string_view why = url_problem(json::as_view(urls[i])); !why.empty()) errors.invalid(urls_at[i], urls[i], why);
}

void resource_rule(const Value& rule, const Path& at, Errors& errors) {
  verbs(rule, at, errors);
  lone_wildcard(get_array(rule, {"apiGroups"}), "resource rules must supply at least one api group", "api groups", at / "apiGroups",
                errors);
  lone_wildcard(get_array(rule, {"resources"}), "resource rules must supply at least one resource", "resources", at / "resources", errors);
  const Path spaces_at = at / "namespaces";
  const json::Array& spaces = get_array(rule, {"namespaces"});
  if (spaces.empty() && get_bool(rule, {"clusterScope"})) return;
  lone_wildcard(spaces, "resource rules that are not cluster scoped must supply at least one namespace", "namespaces", spaces_at, errors);
  if (has_wildcard(spaces)) return;
  for (std::size_t i = 0; i < spaces.size(); ++i)
    if (const std::string why = check_dns1123_label(json::as_view(spaces[i])); !why.empty())
      errors.invalid(spaces_at[i], spaces[i], "each member of this list must be '*' or a DNS-1123 label; " + why);
}

void subject(const Value& value, const Path& at, Errors& errors) {
  static constexpr std::pair<std::string_view, std::string_view> kFields[] = {
      {"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};
  const std::string_view kind = get_string(value, {"kind"});
  if (std::ranges::none_of(kFields, [&](const auto& one) { return one.first == kind; }))
    return errors.not_supported(at / "kind", kind, {"Group", "ServiceAccount", "User"});
  for (const auto& [its_kind, field] : kFields) {
    const Value* given = json::find(value, field);
    const Path here = at / field;
    if (its_kind != kind) {
      if (given != nullptr) errors.forbidden(here, fmt::format("{} is forbidden when subject kind is not '{}'", field, its_kind));
      continue;
    }
    if (given == nullptr) {
      errors.required(here, fmt::format("{} is required when subject kind is '{}'", field, its_kind));
      continue;
    }
    const std::string_view name = get_string(*given, {"name"}), ns = get_string(*given, {"namespace"});
    const bool is_account = its_kind == "ServiceAccount";
    if (name.empty())
      errors.required(here / "name");
    else if (is_account && name != "*")
      if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(here / "name", name, why);
    if (is_account && ns.empty()) errors.required(here / "namespace", "must specify namespace for service account");
    if (is_account && !ns.empty())
      if (const std::string why = check_dns1123_label(ns); !why.empty()) errors.invalid(here / "namespace", ns, why);
  }
}

/// Bits of a hash that deal one hand out of a deck (shufflesharding.RequiredEntropyBits).
int entropy_bits(std::int64_t deck, std::int64_t hand) {
  return static_cast<int>(std::ceil(std::log2(static_cast<double>(deck)) * static_cast<double>(hand)));
}

void queuing(const Value& value, const Path& at, Errors& errors) {
  const auto number = [&](const char* key) { return get_int(value, {key}); };
  const std::int64_t queues = number("queues"), hand = number("handSize");
  if (number("queueLengthLimit") <= 0) errors.invalid(at / "queueLengthLimit", Value(number("queueLengthLimit")), "must be positive");
  if (queues <= 0)
    errors.invalid(at / "queues", Value(queues), "must be positive");
  else if (queues > kMaxQueues)
    errors.invalid(at / "queues", Value(queues), fmt::format("must not be greater than {}", kMaxQueues));
  if (hand <= 0)
    errors.invalid(at / "handSize", Value(hand), "must be positive");
  else if (hand > queues)
    errors.invalid(at / "handSize", Value(hand), fmt::format("should not be greater than queues ({})", queues));
  else if (entropy_bits(queues, hand) > kMaxHashBits)
    errors.invalid(
        at / "handSize", Value(hand),
        fmt::format("required entropy bits of deckSize {} and handSize {} should not be greater than {}", queues, hand, kMaxHashBits));
}

void shares(const Value& value, const Path& at, Errors& errors) {
  if (get_int(value, {"nominalConcurrencyShares"}) < 0)
    errors.invalid(at / "nominalConcurrencyShares", Value(get_int(value, {"nominalConcurrencyShares"})), "must be a non-negative integer");
}

void lendable(const Value& value, const Path& at, Errors& errors) {
  if (const std::int64_t percent = get_int(value, {"lendablePercent"}); percent < 0 || percent > 100)
    errors.invalid(at / "lendablePercent", Value(percent), "must be between 0 and 100, inclusive");
}

void limited(const Value& value, const Path& at, Errors& errors) {
  shares(value, at, errors);
  const Path response = at / "limitResponse";
  const std::string_view type = get_string(value, {"limitResponse", "type"});
  const Value* queues = json::find(value, {"limitResponse", "queuing"});
  if (type == "Reject") {
    if (queues != nullptr) errors.forbidden(response / "queuing", "must be nil if limited.limitResponse.type is not Limited");
  } else if (type == "Queue") {
    if (queues == nullptr)
      errors.required(response / "queuing", "must not be empty if limited.limitResponse.type is Limited");
    else
      queuing(*queues, response / "queuing", errors);
  } else {
    errors.not_supported(response / "type", type, {"Queue", "Reject"});
  }
  lendable(value, at, errors);
  if (get_int(value, {"borrowingLimitPercent"}) < 0)
    errors.invalid(at / "borrowingLimitPercent", Value(get_int(value, {"borrowingLimitPercent"})),
                   "if specified, must be a non-negative integer");
}

}  // namespace

void flow_schema(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path precedence_at = at / "matchingPrecedence", level = at / "priorityLevelConfiguration", method_at = at / "distinguisherMethod";
  const std::int64_t precedence = get_int(doc, {"spec", "matchingPrecedence"});
  if (precedence <= 0) errors.invalid(precedence_at, Value(precedence), "must be a positive value");
  if (precedence > kMaxPrecedence)
    errors.invalid(precedence_at, Value(precedence), fmt::format("must not be greater than {}", kMaxPrecedence));
  if (precedence == 1 && get_string(doc, {"metadata", "name"}) != "exempt")
    errors.invalid(precedence_at, Value(precedence), "only the schema named 'exempt' may have matchingPrecedence 1");
  if (json::find(doc, {"spec", "distinguisherMethod"}) != nullptr) {
    const std::string_view type = get_string(doc, {"spec", "distinguisherMethod", "type"});
    if (type != "ByNamespace" && type != "ByUser")
      errors.not_supported_value(method_at / "type", json::Object{{"Type", type}}, {"ByNamespace", "ByUser"});
  }
  const std::string_view name = get_string(doc, {"spec", "priorityLevelConfiguration", "name"});
  if (name.empty())
    errors.required(level / "name", "must reference a priority level");
  else if (const std::string why = check_dns1123_subdomain(name); !why.empty())
    errors.invalid(level / "name", name, why);
  const Path rules_at = at / "rules";
  std::size_t i = 0;
  for (const Value& rule : get_array(doc, {"spec", "rules"})) {
    const Path one = rules_at[i++];
    const Path subjects_at = one / "subjects", resources_at = one / "resourceRules", urls_at = one / "nonResourceRules";
    const json::Array &subjects = get_array(rule, {"subjects"}), &resources = get_array(rule, {"resourceRules"}),
                      &urls = get_array(rule, {"nonResourceRules"});
    if (subjects.empty()) errors.required(subjects_at, "subjects must contain at least one value");
    for (std::size_t k = 0; k < subjects.size(); ++k) subject(subjects[k], subjects_at[k], errors);
    if (resources.empty() && urls.empty()) errors.required(one, "at least one of resourceRules and nonResourceRules has to be non-empty");
    for (std::size_t k = 0; k < resources.size(); ++k) resource_rule(resources[k], resources_at[k], errors);
    for (std::size_t k = 0; k < urls.size(); ++k) url_rule(urls[k], urls_at[k], errors);
  }
}

void priority_level(const Value& doc, Errors& errors) {
  const Path at("spec");
  const std::string_view type = get_string(doc, {"spec", "type"});
  const Value *exempt = json::find(doc, {"spec", "exempt"}), *limits = json::find(doc, {"spec", "limited"});
  if ((get_string(doc, {"metadata", "name"}) == "exempt") != (type == "Exempt"))
    errors.invalid(at / "type", type, "must be 'Exempt' if and only if `name` is 'exempt'");
  if (type == "Exempt") {
    if (limits != nullptr) errors.forbidden(at / "limited", "must be nil if the type is not Limited");
    if (exempt != nullptr) {
      shares(*exempt, at / "exempt", errors);
      lendable(*exempt, at / "exempt", errors);
    }
  } else if (type == "Limited") {
    if (exempt != nullptr) errors.forbidden(at / "exempt", "must be nil if the type is Limited");
    if (limits == nullptr)
      errors.required(at / "limited", "must not be empty when type is Limited");
    else
      limited(*limits, at / "limited", errors);
  } else {
    errors.not_supported(at / "type", type, {"Exempt", "Limited"});
  }
}

}  // namespace berth::model::validation
