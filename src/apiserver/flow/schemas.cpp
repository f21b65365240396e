#include "apiserver/flow/schemas.h"

namespace berth::apiserver::flow {
namespace {

using By = FlowSchema::Distinguisher;
using Rule = FlowSchema::Rule;

/// The same in every server, so that what names them in headers and metrics can be compared.
std::string uid_of(std::string_view kind, std::string_view name) {
  const auto hash = [&](std::uint64_t seed) {
    for (const char c : std::string(kind) + "/" + std::string(name)) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return seed;
  };
  const auto a = hash(0xcbf29ce484222325), b = hash(0x9e3779b97f4a7c15);
  return fmt::format("{:08x}-{:04x}-5{:03x}-a{:03x}-{:012x}", a >> 32, a >> 16 & 0xffff, a & 0xfff, b >> 48 & 0xfff, b & 0xffffffffffff);
}

const std::vector<std::string> kAny{"*"};
const std::vector<std::string> kEverybody{"system:unauthenticated", "system:authenticated"};
const std::vector<Rule> kEverything{{kAny, kAny, kAny, {}}, {kAny, {}, {}, kAny}};
const std::vector<std::string> kLock{"get", "create", "update"};

std::size_t level_named(std::string_view name) {
  const auto& levels = default_levels();
  return static_cast<std::size_t>(std::ranges::find(levels, name, &PriorityLevel::name) - levels.begin());
}

FlowSchema schema(std::string name, int precedence, std::string_view level, By by, std::vector<std::string> users,
                  std::vector<std::string> groups, std::vector<Rule> rules) {
  auto uid = uid_of("FlowSchema", name);
  return {std::move(name), std::move(uid), precedence, level_named(level), by, std::move(users), std::move(groups), std::move(rules)};
}

bool has(const std::vector<std::string>& list, std::string_view wanted) {
  return std::ranges::any_of(list, [&](const auto& one) { return one == "*" || one == wanted; });
}

bool matches(const Rule& rule, const Attributes& attributes) {
  if (!has(rule.verbs, attributes.verb)) return false;
  if (!attributes.is_resource) {
    return std::ranges::any_of(rule.urls, [&](const std::string& url) {
      return url == "*" || url == attributes.path || (url.ends_with("/*") && attributes.path.starts_with(url.substr(0, url.size() - 1)));
    });
  }
  if (!has(rule.groups, attributes.group)) return false;
  if (attributes.subresource.empty()) return has(rule.resources, attributes.resource);
  return has(rule.resources, attributes.resource + "/" + attributes.subresource);
}

bool matches(const FlowSchema& schema, const UserInfo& user) {
  const auto is_user = [&](const std::string& name) {
    return name == user.name || (name.ends_with(":*") && user.name.starts_with(name.substr(0, name.size() - 1)));
  };
  return std::ranges::any_of(schema.users, is_user) ||
         std::ranges::any_of(schema.groups, [&](const auto& group) { return user.in_group(group); });
}

}  // namespace

const std::vector<PriorityLevel>& default_levels() {
  static const auto kLevels = [] {
    const auto level = [](std::string name, int shares, int queues, int hand, bool is_vital = true) {
      auto uid = uid_of("PriorityLevelConfiguration", name);
      return PriorityLevel{std::move(name), std::move(uid), false, shares, queues, hand, queues == 0 ? 0 : 50, is_vital};
    };
    PriorityLevel exempt{"exempt", uid_of("PriorityLevelConfiguration", "exempt"), true, 0, 0, 0, 0, true};
    return std::vector<PriorityLevel>{exempt,
                                      level("system", 30, 64, 6),
                                      level("node-high", 40, 64, 6),
                                      level("leader-election", 10, 16, 4),
                                      level("workload-high", 40, 128, 6),
                                      level("workload-low", 100, 128, 6, false),
                                      level("global-default", 20, 128, 6, false),
                                      level("catch-all", 5, 0, 0, false)};
  }();
  return kLevels;
}

const std::vector<FlowSchema>& default_schemas() {
  static const auto kSchemas = [] {
    const std::string kube_system = "system:serviceaccount:kube-system:*";
    const Rule leases{kLock, {"coordination.k8s.io"}, {"leases"}, {}};
    return std::vector<FlowSchema>{
        schema("exempt", 1, "exempt", By::kNone, {}, {"system:masters", "berth:cluster-admins"}, kEverything),
        schema("probes", 2, "exempt", By::kNone, {}, kEverybody, {{{"get"}, {}, {}, {"/healthz", "/readyz", "/livez"}}}),
        schema("system-leader-election", 100, "leader-election", By::kByUser, {"system:kube-controller-manager", "system:kube-scheduler"},
               {}, {leases}),
        schema("endpoint-controller", 150, "workload-high", By::kByUser, {"system:kube-controller-manager"}, {},
               {{kLock, {""}, {"endpoints"}, {}}}),
        schema("workload-leader-election", 200, "leader-election", By::kByUser, {kube_system}, {}, {leases}),
        schema("system-node-high", 400, "node-high", By::kByUser, {}, {"system:nodes"},
               {{kAny, {""}, {"nodes", "nodes/status"}, {}}, {kAny, {"coordination.k8s.io"}, {"leases"}, {}}}),
        schema("system-nodes", 500, "system", By::kByUser, {}, {"system:nodes"}, kEverything),
        schema("kube-controller-manager", 800, "workload-high", By::kByNamespace, {"system:kube-controller-manager"}, {}, kEverything),
        schema("kube-scheduler", 800, "workload-high", By::kByNamespace, {"system:kube-scheduler"}, {}, kEverything),
        schema("kube-system-service-accounts", 900, "workload-high", By::kByNamespace, {kube_system}, {}, kEverything),
        schema("service-accounts", 9000, "workload-low", By::kByUser, {}, {"system:serviceaccounts"}, kEverything),
        schema("global-default", 9900, "global-default", By::kByUser, {}, kEverybody, kEverything),
        schema("catch-all", 10000, "catch-all", By::kByUser, {}, kEverybody, kEverything)};
  }();
  return kSchemas;
}

Classified classify(const UserInfo& user, const Attributes& attributes) {
  const auto& schemas = default_schemas();
  const FlowSchema* found = &schemas.back();
  for (const auto& one : schemas) {
    if (!matches(one, user) || std::ranges::none_of(one.rules, [&](const Rule& rule) { return matches(rule, attributes); })) continue;
    found = &one;
    break;
  }
  Classified out{found, found->level, {}};
  if (found->distinguisher == By::kByUser) out.flow = user.name;
  if (found->distinguisher == By::kByNamespace) out.flow = attributes.ns;
  return out;
}

}  // namespace berth::apiserver::flow
