#include "apiserver/auth/rbac.h"

#include <ranges>

#include "apiserver/auth/node_authorizer.h"
#include "apiserver/auth/rbac_grants.h"
#include "apiserver/auth/rule_coverage.h"
#include "apiserver/cache/follow.h"
#include "base/json.h"
#include "base/shared_mutex.h"
#include "model/go_words.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kMasters = "system:masters";
/// Steps that a decision may take on an I/O thread: some tens of microseconds.
constexpr std::size_t kAtOnce = 2000;
/// What a grant costs to come by, beside its rules.
constexpr std::size_t kGrantSteps = 4;
/// Of the rules that one answer shows.
constexpr std::size_t kMostShownBytes = std::size_t{1} << 20;

/// Whether an update leaves all as it is but what the garbage collector changes (pkg/registry/rbac: IsOnlyMutatingGCFields).
bool only_the_collectors_fields_differ(json::Value before, json::Value after) {
  for (json::Value* object : {&before, &after}) {
    json::erase(*object, {"apiVersion"});
    json::erase(*object, {"kind"});
    for (std::string_view field : {"ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation", "selfLink"})
      json::erase(*object, {"metadata", field});
  }
  return json::equal(before, after);
}

std::size_t bytes_of(const PolicyRule& rule) {
  std::size_t out = 64;
  for (const auto* list : {&rule.verbs, &rule.groups, &rule.resources, &rule.names, &rule.urls})
    for (const std::string& value : *list) out += value.size() + 4;
  return out;
}

class RbacAuthorizerImpl final : public RbacAuthorizer {
 public:
  explicit RbacAuthorizerImpl(ObjectCache& cache) : nodes_(cache) {
    struct Source {
      std::string_view plural;
      bool cluster, bindings;
    };
    for (const Source& source : {Source{"clusterroles", true, false},
                                 {"roles", false, false},
                                 {"clusterrolebindings", true, true},
                                 {"rolebindings", false, true}}) {
      const auto put = source.bindings ? &RbacGrants::put_binding : &RbacGrants::put_role;
      watches_.push_back(
          follow(cache, make_prefix(kGroup, source.plural), [grants = grants_, put, cluster = source.cluster](const WatchEvent& event) {
            std::invoke(put, *grants, *event.object, cluster, event.type == WatchEventType::kDeleted);
          }));
    }
  }

  Expected<Decision, std::string> decide_at_once(const UserInfo& user, const Attributes& attributes) override {
    if (auto decision = decide(user, attributes, kAtOnce)) return std::move(*decision);
    return std::unexpected("the rules of " + user.name);
  }

  Decision authorize(const UserInfo& user, const Attributes& attributes) override {
    return decide(user, attributes, SIZE_MAX).value_or(Decision{});
  }

  UserRules rules_for(const UserInfo& user, const std::string& ns) override {
    UserRules rules;
    // Masters hold cluster-admin by its binding; what they may do without any role no resolver tells (as in Kubernetes).
    if (node_name_of(user)) {
      rules.incomplete = true;
      rules.evaluation_error = "node authorizer does not support user rule resolution";
    }
    std::size_t bytes = 0;
    for (const auto& role : roles_held(user, ns)) {
      for (const PolicyRule& rule : role->rules()) {
        bytes += bytes_of(rule);
        if (bytes > kMostShownBytes) {
          rules.incomplete = true;
          rules.evaluation_error += fmt::format("{}there are more rules than the {} KiB that are shown",
                                                rules.evaluation_error.empty() ? "" : ", ", kMostShownBytes / 1024);
          return rules;
        }
        if (!rule.urls.empty()) rules.non_resource.push_back({rule.verbs, rule.urls});
        if (!rule.resources.empty()) rules.resource.push_back({rule.verbs, rule.groups, rule.resources, rule.names});
      }
    }
    return rules;
  }

  std::optional<std::string> check_escalation(const UserInfo& user, const std::string& kind, const json::Value& object,
                                              const json::Value* old_object) override {
    if (user.in_group(kMasters)) return std::nullopt;
    if (old_object != nullptr && only_the_collectors_fields_differ(*old_object, object)) return std::nullopt;
    return kind == "Role" || kind == "ClusterRole" ? check_role(user, object, old_object) : check_binding(user, object);
  }

 private:
  /// nullopt: it takes more steps than that.
  std::optional<Decision> decide(const UserInfo& user, const Attributes& attributes, std::size_t most_steps) const {
    if (user.in_group(kMasters)) return Decision{true, ""};
    std::string reason;
    if (auto node = node_name_of(user)) {
      auto decision = nodes_.authorize(*node, attributes, most_steps == SIZE_MAX);
      if (!decision || decision->allowed) return decision;
      reason = std::move(decision->reason);
    }
    Decision decision{false, std::move(reason)};
    std::vector<std::string_view> missing;
    std::size_t steps = 0;
    const ReaderLock lock(grants_->mutex());
    grants_->for_each_grant(user, attributes.is_resource ? std::string_view(attributes.ns) : std::string_view(),
                            [&](const RbacGrants::Grant* grant, std::string_view holder) {
                              ++steps;
                              if (grant == nullptr) return steps <= most_steps;
                              const auto& rules = grant->role->rules;
                              if (rules == nullptr) missing.push_back(grant->role->key);
                              steps += kGrantSteps;
                              if (most_steps != SIZE_MAX && rules != nullptr) steps += rules->cost(attributes);
                              if (steps > most_steps) return false;
                              if (rules == nullptr || !rules->allows(attributes)) return true;
                              decision = {true, RbacGrants::why(*grant, holder)};
                              return false;
                            });
    if (steps > most_steps) return std::nullopt;
    if (!decision.allowed) add_missing(decision.reason, missing);
    return decision;
  }

  static void add_missing(std::string& reason, const std::vector<std::string_view>& missing) {
    constexpr std::size_t kMostTold = 100;
    if (missing.empty()) return;
    std::string text;
    for (std::string_view role : missing | std::views::take(kMostTold)) {
      auto slash = role.find('/');
      text += fmt::format("{}{}.rbac.authorization.k8s.io \"{}\" not found", text.empty() ? "" : ", ", slash == 0 ? "clusterrole" : "role",
                          role.substr(slash + 1));
    }
    if (missing.size() > kMostTold) text += fmt::format(", and {} more", missing.size() - kMostTold);
    reason += fmt::format("{}RBAC: {}", reason.empty() ? "" : ", ", missing.size() == 1 ? text : "[" + text + "]");
  }

  std::vector<std::shared_ptr<const RuleIndex>> roles_held(const UserInfo& user, const std::string& ns) const {
    std::vector<std::shared_ptr<const RuleIndex>> held;
    const ReaderLock lock(grants_->mutex());
    grants_->for_each_grant(user, ns, [&](const RbacGrants::Grant* grant, std::string_view) {
      if (grant != nullptr && grant->role->rules != nullptr) held.push_back(grant->role->rules);
      return true;
    });
    return held;
  }

  std::optional<std::string> refuse_uncovered(const UserInfo& user, const std::string& ns, const std::vector<PolicyRule>& wanted) const {
    const auto roles = roles_held(user, ns);
    std::vector<const RuleIndex*> held;
    for (const auto& role : roles) held.push_back(role.get());
    const Coverage coverage = coverage_of(held, wanted);
    if (coverage.is_whole) return std::nullopt;
    std::string text = fmt::format("user {} (groups=[", model::go_quote(user.name));
    for (std::size_t i = 0; i < user.groups.size(); ++i) text += (i == 0 ? "" : " ") + model::go_quote(user.groups[i]);
    text += "]) is attempting to grant RBAC permissions ";
    if (coverage.is_too_entangled)
      return text + "that overlap with those held in more ways than can be compared: split the role into smaller ones";
    text += "not currently held:";
    for (const std::string& line : coverage.missing) text += "\n" + line;
    if (coverage.has_more) text += "\n... and more";
    return text;
  }

  std::optional<std::string> check_role(const UserInfo& user, const json::Value& object, const json::Value* old_object) {
    const std::string ns(json::get_string(object, {"metadata", "namespace"}));
    if (auto refused = refuse_uncovered(user, ns, PolicyRule::list_from_json(json::find(object, "rules")))) return refused;
    const auto gathers = [](const json::Value& role) {
      return !json::get_array(role, {"aggregationRule", "clusterRoleSelectors"}).empty();
    };
    if (!gathers(object) && (old_object == nullptr || !gathers(*old_object))) return std::nullopt;
    // Whoever decides what is gathered can gather anything.
    const std::vector<PolicyRule> everything{{.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}}, {.verbs = {"*"}, .urls = {"*"}}};
    if (refuse_uncovered(user, ns, everything)) return "must have cluster-admin privileges to use the aggregationRule";
    return std::nullopt;
  }

  /// Also where subjects alone change: who is added is granted the role.
  std::optional<std::string> check_binding(const UserInfo& user, const json::Value& object) {
    const std::string ns(json::get_string(object, {"metadata", "namespace"}));
    const auto kind = json::get_string(object, {"roleRef", "kind"});
    const auto name = json::get_string(object, {"roleRef", "name"});
    std::shared_ptr<const RuleIndex> wanted;
    {
      const ReaderLock lock(grants_->mutex());
      wanted = grants_->find_role(role_key(kind, ns, name));
    }
    if (wanted == nullptr) return fmt::format("{}.{} \"{}\" not found", kind == "Role" ? "roles" : "clusterroles", kGroup, name);
    return refuse_uncovered(user, ns, wanted->rules());
  }

  std::shared_ptr<RbacGrants> grants_ = std::make_shared<RbacGrants>();
  NodeAuthorizer nodes_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

}  // namespace

std::shared_ptr<RbacAuthorizer> RbacAuthorizer::create(ObjectCache& cache) { return std::make_shared<RbacAuthorizerImpl>(cache); }

}  // namespace berth::apiserver::auth
