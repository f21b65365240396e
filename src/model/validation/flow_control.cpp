// PriorityLevelConfiguration and FlowSchema (pkg/apis/flowcontrol/validation).
#include "model/flow_control.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "model/internal_form.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

const std::vector<std::string_view> kFlowVerbs = {"create", "delete", "deletecollection", "get",  "list",
                                                  "patch",  "proxy",  "update",           "watch"};
constexpr std::int64_t kMaxPrecedence = 10'000, kMaxQueues = 10'000'000;
constexpr int kMaxHashBits = 60;

bool names_all(const json::Array& list) {
  return std::ranges::any_of(list, [](const Value& one) { return text_of(one) == "*"; });
}

void flow_verbs(const Value& rule, const Path& at, Errors& errors) {
  const Path verbs = at / "verbs";
  const json::Array& list = json::get_array(rule, {"verbs"});
  if (list.empty()) return errors.required(verbs, "verbs must contain at least one value");
  if (names_all(list)) {
    if (list.size() > 1) errors.invalid(verbs, Value(list), "if '*' is present, must not specify other verbs");
    return;
  }
  const auto is_verb = [](const Value& one) { return std::ranges::find(kFlowVerbs, text_of(one)) != kFlowVerbs.end(); };
  if (!std::ranges::all_of(list, is_verb)) errors.not_supported_value(verbs, Value(list), kFlowVerbs);
}

/// A list of names, or the wildcard alone.
void names_or_all(const Value& rule, std::string_view key, std::string_view none, std::string_view others, const Path& at, Errors& errors) {
  const Path one = at / key;
  const json::Array& list = json::get_array(rule, {key});
  if (list.empty())
    errors.required(one, none);
  else if (list.size() > 1 && names_all(list))
    errors.invalid(one, Value(list), fmt::format("if '*' is present, must not specify other {}", others));
}

void resource_rule(const Value& rule, const Path& at, Errors& errors) {
  flow_verbs(rule, at, errors);
  names_or_all(rule, "apiGroups", "resource rules must supply at least one api group", "api groups", at, errors);
  names_or_all(rule, "resources", "resource rules must supply at least one resource", "resources", at, errors);
  const Path namespaces = at / "namespaces";
  const json::Array& list = json::get_array(rule, {"namespaces"});
  if (list.empty() && !json::get_bool(rule, {"clusterScope"}))
    return errors.required(namespaces, "resource rules that are not cluster scoped must supply at least one namespace");
  if (names_all(list)) {
    if (list.size() > 1) errors.invalid(namespaces, Value(list), "if '*' is present, must not specify other namespaces");
    return;
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const std::string why = check_dns1123_label(text_of(list[i])); !why.empty())
      errors.invalid(namespaces[i], list[i], "each member of this list must be '*' or a DNS-1123 label; " + why);
}

std::string_view wrong_path(std::string_view path) {
  if (path.empty()) return "must not be empty";
  if (path == "/") return {};
  if (!path.starts_with('/')) return "must start with slash";
  if (path.find(' ') != std::string_view::npos) return "must not contain white-space";
  if (path.find("//") != std::string_view::npos) return "must not contain double slash";
  const auto wildcards = std::ranges::count(path, '*');
  return wildcards > 1 || (wildcards == 1 && !path.ends_with("/*")) ? "wildcard can only do suffix matching" : "";
}

void path_rule(const Value& rule, const Path& at, Errors& errors) {
  flow_verbs(rule, at, errors);
  const Path urls = at / "nonResourceURLs";
  const json::Array& list = json::get_array(rule, {"nonResourceURLs"});
  if (list.empty()) return errors.required(urls, "nonResourceURLs must contain at least one value");
  if (names_all(list)) {
    if (list.size() > 1) errors.invalid(urls, Value(list), "if '*' is present, must not specify other non-resource URLs");
    return;
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const std::string_view why = wrong_path(text_of(list[i])); !why.empty()) errors.invalid(urls[i], list[i], why);
}

void service_account_subject(const Value& account, const Path& at, Errors& errors) {
  const std::string_view name = json::get_string(account, {"name"}), ns = json::get_string(account, {"namespace"});
  if (name.empty())
    errors.required(at / "name");
  else if (name != "*")
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "name", name, why);
  if (ns.empty())
    errors.required(at / "namespace", "must specify namespace for service account");
  else if (const std::string why = check_dns1123_label(ns); !why.empty())
    errors.invalid(at / "namespace", ns, why);
}

void flow_subject(const Value& subject, const Path& at, Errors& errors) {
  struct Union {
    std::string_view kind, member;
  };
  static constexpr Union kUnions[] = {{"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};
  const std::string_view kind = json::get_string(subject, {"kind"});
  const auto* mine = std::ranges::find(kUnions, kind, &Union::kind);
  if (mine == std::end(kUnions)) return errors.not_supported(at / "kind", kind, {"Group", "ServiceAccount", "User"});
  const Path place = at / mine->member;
  const Value* given = json::find(subject, {mine->member});
  if (given == nullptr || !given->is_object())
    errors.required(place, fmt::format("{} is required when subject kind is '{}'", mine->member, kind));
  else if (kind == "ServiceAccount")
    service_account_subject(*given, place, errors);
  else if (json::get_string(*given, {"name"}).empty())
    errors.required(place / "name");
  for (const Union& other : kUnions)
    if (other.kind != kind && json::find(subject, {other.member}) != nullptr)
      errors.forbidden(at / other.member, fmt::format("{} is forbidden when subject kind is not '{}'", other.member, other.kind));
}

void flow_rule(const Value& rule, const Path& at, Errors& errors) {
  const auto each = [&](std::string_view key, void (*check)(const Value&, const Path&, Errors&)) {
    const Path list_at = at / key;
    const json::Array& list = json::get_array(rule, {key});
    for (std::size_t i = 0; i < list.size(); ++i) check(list[i], list_at[i], errors);
    return !list.empty();
  };
  if (!each("subjects", flow_subject)) errors.required(at / "subjects", "subjects must contain at least one value");
  if (json::get_array(rule, {"resourceRules"}).empty() && json::get_array(rule, {"nonResourceRules"}).empty())
    errors.required(at, "at least one of resourceRules and nonResourceRules has to be non-empty");
  each("resourceRules", resource_rule);
  each("nonResourceRules", path_rule);
}

void flow_conditions(const Value& doc, Errors& errors) {
  const Path status("status");
  const Path at = status / "conditions";
  std::set<std::string_view> seen;
  const json::Array& list = json::get_array(doc, {"status", "conditions"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path one = at[i];
    const std::string_view type = json::get_string(list[i], {"type"});
    if (!seen.insert(type).second) errors.duplicate(one / "type", Value(type));
    if (type.empty()) errors.required(one / "type");
  }
}

/// Mandatory objects are as they are; of the exempt level, how much others may borrow is the administrator's matter.
void mandatory_spec(std::string_view kind, const Value& doc, Errors& errors) {
  const std::string_view name = json::get_string(doc, {"metadata", "name"});
  const auto* fixed = flow_control::bootstrap_object(kind, name);
  const Value* spec = json::find(doc, {"spec"});
  if (fixed == nullptr || !fixed->is_mandatory || spec == nullptr || !spec->is_object()) return;
  Value want = *json::find(fixed->document, {"spec"}), have = *spec;
  const bool is_exempt_level = kind == "PriorityLevelConfiguration" && name == "exempt";
  if (is_exempt_level) {
    want.get_object().erase("exempt");
    have.get_object().erase("exempt");
  }
  if (json::equal(want, have)) return;
  errors.invalid(Path("spec"), internal_form(fmt::format("flowcontrol.v1.{}Spec", kind), spec),
                 fmt::format("spec of '{}' {}must equal the fixed value", name, is_exempt_level ? "except the 'spec.exempt' field " : ""));
}

/// Bits that dealing a hand uses up (util/shufflesharding).
int entropy_bits(std::int64_t queues, std::int64_t hand_size) {
  double bits = 0;
  for (std::int64_t i = 0; i < hand_size && bits <= 1000; ++i) bits += std::log2(static_cast<double>(queues - i));
  return static_cast<int>(std::ceil(bits));
}

void queuing(const Value& config, const Path& at, Errors& errors) {
  const std::int64_t queues = json::get_int(config, {"queues"}), hand = json::get_int(config, {"handSize"}),
                     length = json::get_int(config, {"queueLengthLimit"});
  if (length <= 0) errors.invalid(at / "queueLengthLimit", Value(length), "must be positive");
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

void limit_response(const Value& limited, const Path& limited_at, Errors& errors) {
  const Path at = limited_at / "limitResponse";
  const std::string_view type = json::get_string(limited, {"limitResponse", "type"});
  const Value* config = json::find(limited, {"limitResponse", "queuing"});
  if (type == "Reject") {
    if (config != nullptr) errors.forbidden(at / "queuing", "must be nil if limited.limitResponse.type is not Limited");
  } else if (type != "Queue") {
    errors.not_supported(at / "type", type, {"Queue", "Reject"});
  } else if (config == nullptr) {
    errors.required(at / "queuing", "must not be empty if limited.limitResponse.type is Limited");
  } else {
    queuing(*config, at / "queuing", errors);
  }
}

void concurrency_shares(const Value& config, const Path& at, Errors& errors) {
  const Value* given = json::find(config, {"nominalConcurrencyShares"});
  if (given != nullptr && json::get_int(config, {"nominalConcurrencyShares"}) < 0)
    errors.invalid(at / "nominalConcurrencyShares", *given, "must be a non-negative integer");
}

void lendable(const Value& config, const Path& at, Errors& errors) {
  const std::int64_t percent = json::get_int(config, {"lendablePercent"});
  if (percent < 0 || percent > 100) errors.invalid(at / "lendablePercent", Value(percent), "must be between 0 and 100, inclusive");
}

void level_spec(const Value& doc, Errors& errors) {
  const Path spec("spec");
  const std::string_view type = json::get_string(doc, {"spec", "type"});
  const bool is_named_exempt = json::get_string(doc, {"metadata", "name"}) == "exempt";
  if (is_named_exempt != (type == "Exempt")) errors.invalid(spec / "type", type, "must be 'Exempt' if and only if `name` is 'exempt'");
  const Value *exempt = json::find(doc, {"spec", "exempt"}), *limited = json::find(doc, {"spec", "limited"});
  if (type == "Exempt") {
    const Path at = spec / "exempt";
    if (exempt != nullptr) {
      concurrency_shares(*exempt, at, errors);
      lendable(*exempt, at, errors);
    }
    if (limited != nullptr) errors.forbidden(spec / "limited", "must be nil if the type is not Limited");
    return;
  }
  if (type != "Limited") return errors.not_supported(spec / "type", type, {"Exempt", "Limited"});
  if (exempt != nullptr) errors.forbidden(spec / "exempt", "must be nil if the type is Limited");
  const Path at = spec / "limited";
  if (limited == nullptr) return errors.required(at, "must not be empty when type is Limited");
  concurrency_shares(*limited, at, errors);
  limit_response(*limited, at, errors);
  lendable(*limited, at, errors);
  if (const std::int64_t percent = json::get_int(*limited, {"borrowingLimitPercent"}); percent < 0)
    errors.invalid(at / "borrowingLimitPercent", Value(percent), "if specified, must be a non-negative integer");
}

}  // namespace

void priority_level(const Value& doc, Errors& errors) {
  level_spec(doc, errors);
  mandatory_spec("PriorityLevelConfiguration", doc, errors);
  flow_conditions(doc, errors);
}

void flow_schema(const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path precedence_at = spec / "matchingPrecedence";
  const std::int64_t precedence = json::get_int(doc, {"spec", "matchingPrecedence"});
  if (precedence <= 0) errors.invalid(precedence_at, Value(precedence), "must be a positive value");
  if (precedence > kMaxPrecedence)
    errors.invalid(precedence_at, Value(precedence), fmt::format("must not be greater than {}", kMaxPrecedence));
  if (precedence == 1 && json::get_string(doc, {"metadata", "name"}) != "exempt")
    errors.invalid(precedence_at, Value(precedence), "only the schema named 'exempt' may have matchingPrecedence 1");
  if (const Value* method = json::find(doc, {"spec", "distinguisherMethod"}); method != nullptr && method->is_object()) {
    const std::string_view type = json::get_string(*method, {"type"});
    const Path at = spec / "distinguisherMethod";
    if (type != "ByUser" && type != "ByNamespace")
      errors.not_supported_value(at / "type", internal_form("flowcontrol.v1.FlowDistinguisherMethod", method), {"ByNamespace", "ByUser"});
  }
  const Path level = spec / "priorityLevelConfiguration";
  const std::string_view level_name = json::get_string(doc, {"spec", "priorityLevelConfiguration", "name"});
  if (level_name.empty())
    errors.required(level / "name", "must reference a priority level");
  else if (const std::string why = check_dns1123_subdomain(level_name); !why.empty())
    errors.invalid(level / "name", level_name, why);
  const Path rules = spec / "rules";
  const json::Array& list = json::get_array(doc, {"spec", "rules"});
  for (std::size_t i = 0; i < list.size(); ++i) flow_rule(list[i], rules[i], errors);
  mandatory_spec("FlowSchema", doc, errors);
  flow_conditions(doc, errors);
}

void flow_control_status(const Value& doc, Errors& errors) { flow_conditions(doc, errors); }

}  // namespace berth::model::validation
