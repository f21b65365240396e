#include "apiserver/flow/schemas.h"

namespace berth::apiserver::flow {
namespace {

using json::Value;

std::vector<std::string> strings(const Value& object, std::string_view key) {
  std::vector<std::string> out;
  for (const Value& one : json::get_array(object, {key})) out.emplace_back(json::as_view(one));
  return out;
}

int number(const Value& object, json::Path path, int otherwise = 0) {
  return static_cast<int>(std::clamp<std::int64_t>(json::get_int(object, path, otherwise), 0, INT32_MAX));
}

FlowSchema::Subject read_subject(const Value& subject) {
  using Kind = FlowSchema::Subject::Kind;
  const auto kind = json::get_string(subject, {"kind"});
  const auto text = [&](std::string_view member, std::string_view field) {
    return std::string(json::get_string(subject, {member, field}));
  };
  if (kind == "User") return {Kind::kUser, text("user", "name"), {}};
  if (kind == "Group") return {Kind::kGroup, text("group", "name"), {}};
  return {Kind::kServiceAccount, text("serviceAccount", "name"), text("serviceAccount", "namespace")};
}

bool names(const std::vector<std::string>& list, std::string_view wanted) {
  return std::ranges::any_of(list, [&](const auto& one) { return one == "*" || one == wanted; });
}

bool is_subject(const FlowSchema::Subject& subject, const UserInfo& user) {
  using Kind = FlowSchema::Subject::Kind;
  if (subject.kind == Kind::kUser) return subject.name == "*" || subject.name == user.name;
  if (subject.kind == Kind::kGroup) return subject.name == "*" || user.in_group(subject.name);
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  std::string_view rest = user.name;
  if (!rest.starts_with(kPrefix)) return false;
  rest.remove_prefix(kPrefix.size());
  const auto colon = rest.find(':');
  if (colon == std::string_view::npos || rest.substr(0, colon) != subject.ns) return false;
  return subject.name == "*" || rest.substr(colon + 1) == subject.name;
}

bool is_path(const std::vector<std::string>& urls, std::string_view path) {
  return std::ranges::any_of(urls, [&](std::string_view url) {
    if (url == "*" || url == path) return true;
    if (url.ends_with('*')) url.remove_suffix(1);
    // What stands below a path belongs to it.
    return path.starts_with(url) && (url.ends_with('/') || (path.size() > url.size() && path[url.size()] == '/'));
  });
}

bool is_resource(const FlowSchema::ResourceRule& rule, const Attributes& attributes) {
  if (!names(rule.verbs, attributes.verb) || !names(rule.groups, attributes.group)) return false;
  const bool is_named = attributes.subresource.empty() ? names(rule.resources, attributes.resource)
                                                       : names(rule.resources, attributes.resource + "/" + attributes.subresource);
  return is_named && (attributes.ns.empty() ? rule.is_cluster_scoped : names(rule.namespaces, attributes.ns));
}

}  // namespace

bool PriorityLevel::is_vital() const {
  static constexpr std::string_view kVital[] = {"system", "node-high", "leader-election", "workload-high"};
  return is_exempt || std::ranges::find(kVital, name) != std::end(kVital);
}

PriorityLevel read_level(const Value& document) {
  PriorityLevel out;
  out.name = json::get_string(document, {"metadata", "name"});
  out.uid = json::get_string(document, {"metadata", "uid"});
  out.is_exempt = json::get_string(document, {"spec", "type"}) == "Exempt";
  const std::string_view kind = out.is_exempt ? "exempt" : "limited";
  out.shares = number(document, {"spec", kind, "nominalConcurrencyShares"}, out.is_exempt ? 0 : 30);
  out.lendable_percent = std::min(number(document, {"spec", kind, "lendablePercent"}), 100);
  if (const Value* limit = json::find(document, {"spec", "limited", "borrowingLimitPercent"}); limit != nullptr && limit->is_number())
    out.borrowing_limit_percent = number(document, {"spec", "limited", "borrowingLimitPercent"});
  if (json::get_string(document, {"spec", "limited", "limitResponse", "type"}) != "Queue") return out;
  const Value& queuing = *json::find(document, {"spec", "limited", "limitResponse"});
  out.queues = std::max(1, number(queuing, {"queuing", "queues"}, 64));
  out.hand_size = std::clamp(number(queuing, {"queuing", "handSize"}, 8), 1, out.queues);
  out.queue_length_limit = std::max(1, number(queuing, {"queuing", "queueLengthLimit"}, 50));
  return out;
}

FlowSchema read_schema(const Value& document) {
  FlowSchema out;
  out.name = json::get_string(document, {"metadata", "name"});
  out.uid = json::get_string(document, {"metadata", "uid"});
  out.level = json::get_string(document, {"spec", "priorityLevelConfiguration", "name"});
  out.precedence = number(document, {"spec", "matchingPrecedence"}, 1000);
  const auto method = json::get_string(document, {"spec", "distinguisherMethod", "type"});
  if (method == "ByUser") out.distinguisher = FlowSchema::Distinguisher::kByUser;
  if (method == "ByNamespace") out.distinguisher = FlowSchema::Distinguisher::kByNamespace;
  for (const Value& rule : json::get_array(document, {"spec", "rules"})) {
    auto& read = out.rules.emplace_back();
    for (const Value& subject : json::get_array(rule, {"subjects"})) read.subjects.push_back(read_subject(subject));
    for (const Value& one : json::get_array(rule, {"resourceRules"}))
      read.resources.push_back({strings(one, "verbs"), strings(one, "apiGroups"), strings(one, "resources"), strings(one, "namespaces"),
                                json::get_bool(one, {"clusterScope"})});
    for (const Value& one : json::get_array(rule, {"nonResourceRules"}))
      read.paths.push_back({strings(one, "verbs"), strings(one, "nonResourceURLs")});
  }
  return out;
}

bool matches(const FlowSchema& schema, const UserInfo& user, const Attributes& attributes) {
  return std::ranges::any_of(schema.rules, [&](const FlowSchema::Rule& rule) {
    if (std::ranges::none_of(rule.subjects, [&](const auto& subject) { return is_subject(subject, user); })) return false;
    if (attributes.is_resource) return std::ranges::any_of(rule.resources, [&](const auto& one) { return is_resource(one, attributes); });
    return std::ranges::any_of(rule.paths,
                               [&](const auto& one) { return names(one.verbs, attributes.verb) && is_path(one.urls, attributes.path); });
  });
}

std::string flow_of(const FlowSchema& schema, const UserInfo& user, const Attributes& attributes) {
  switch (schema.distinguisher) {
    case FlowSchema::Distinguisher::kByUser:
      return user.name;
    case FlowSchema::Distinguisher::kByNamespace:
      return attributes.ns;
    case FlowSchema::Distinguisher::kNone:
      break;
  }
  return {};
}

}  // namespace berth::apiserver::flow
