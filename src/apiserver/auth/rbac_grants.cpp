#include "apiserver/auth/rbac_grants.h"

#include <algorithm>

#include "base/shared_mutex.h"

namespace berth::apiserver::auth {

std::string role_key(std::string_view kind, std::string_view ns, std::string_view name) {
  return kind == "Role" ? fmt::format("{}/{}", ns, name) : fmt::format("/{}", name);
}

std::string RbacGrants::holder_key(char kind, std::string_view name, std::string_view ns) {
  std::string key;
  key.reserve(name.size() + ns.size() + 2);
  key += kind;
  key.append(name).append(1, '\n').append(ns);
  return key;
}

const std::shared_ptr<RbacGrants::Role>& RbacGrants::role(const std::string& key) {
  auto& slot = roles_[key];
  if (slot == nullptr) slot = std::make_shared<Role>(Role{key, nullptr, 0});
  return slot;
}

void RbacGrants::let_go(const std::shared_ptr<Role>& role) {
  if (role->rules == nullptr && role->bindings == 0) roles_.erase(role->key);
}

void RbacGrants::put_role(const StoredObject& object, bool cluster, bool deleted) {
  const std::string key = role_key(cluster ? "ClusterRole" : "Role", object.meta.ns, object.meta.name);
  const auto document = deleted ? Result<json::Value>(json::Value()) : json::parse(object.text().here());
  std::shared_ptr<const RuleIndex> rules;
  if (!deleted && document) rules = std::make_shared<const RuleIndex>(PolicyRule::list_from_json(json::find(*document, "rules")));
  const WriterLock lock(mutex_);
  const std::shared_ptr<Role> slot = role(key);
  slot->rules.swap(rules);
  let_go(slot);
}

void RbacGrants::remove_binding(const std::string& key) {
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  const Binding* binding = found->second.get();
  const std::shared_ptr<Role> role = binding->role;
  for (const std::string& holder : binding->holders) {
    auto& held = grants_[holder];
    const auto grant = std::ranges::find(held, role, &Grant::role);
    std::erase(grant->bindings, binding);
    if (grant->bindings.empty()) held.erase(grant);
    if (held.empty()) grants_.erase(holder);
    --role->bindings;
  }
  bindings_.erase(found);
  let_go(role);
}

void RbacGrants::put_binding(const StoredObject& object, bool cluster, bool deleted) {
  const auto document = deleted ? Result<json::Value>(json::Value()) : json::parse(object.text().here());
  const std::string key(object.key);
  auto binding = std::make_unique<Binding>();
  std::string role_name;
  if (!deleted && document) {
    const auto kind = json::get_string(*document, {"roleRef", "kind"});
    const auto name = json::get_string(*document, {"roleRef", "name"});
    role_name = role_key(kind, object.meta.ns, name);
    binding->shown = cluster ? fmt::format("ClusterRoleBinding \"{}\"", object.meta.name)
                             : fmt::format("RoleBinding \"{}/{}\"", object.meta.name, object.meta.ns);
    binding->shown += fmt::format(" of {} \"{}\"", kind, name);
    for (const auto& subject : json::get_array(*document, {"subjects"})) {
      const auto what = json::get_string(subject, {"kind"});
      const auto who = json::get_string(subject, {"name"});
      const std::string_view scope = cluster ? std::string_view() : object.meta.ns;
      if (what == "ServiceAccount") {
        auto ns = json::get_string(subject, {"namespace"});
        if (ns.empty()) ns = object.meta.ns;
        binding->holders.push_back(holder_key('s', fmt::format("{}{}:{}", kServiceAccountPrefix, ns, who), scope));
      } else if (what == "User" || what == "Group") {
        binding->holders.push_back(holder_key(what == "Group" ? 'g' : 'u', who, scope));
      }
    }
    // Who is named twice holds it once.
    std::ranges::sort(binding->holders);
    binding->holders.erase(std::ranges::unique(binding->holders).begin(), binding->holders.end());
    binding->holders.shrink_to_fit();
  }
  const WriterLock lock(mutex_);
  remove_binding(key);
  if (binding->holders.empty()) return;
  binding->role = role(role_name);
  for (const std::string& holder : binding->holders) {
    auto& held = grants_[holder];
    auto grant = std::ranges::find(held, binding->role, &Grant::role);
    if (grant == held.end()) grant = held.insert(held.end(), Grant{binding->role, {}});
    grant->bindings.push_back(binding.get());
    ++binding->role->bindings;
  }
  bindings_[key] = std::move(binding);
}

std::shared_ptr<const RuleIndex> RbacGrants::find_role(const std::string& key) const {
  const auto found = roles_.find(key);
  return found == roles_.end() ? nullptr : found->second->rules;
}

std::string RbacGrants::why(const Grant& grant, std::string_view holder) {
  std::string_view name = holder.substr(1, holder.rfind('\n') - 1);
  std::string shown = fmt::format("{} \"{}\"", holder[0] == 'g' ? "Group" : "User", name);
  if (holder[0] == 's') {
    name.remove_prefix(kServiceAccountPrefix.size());
    const auto colon = name.find(':');
    shown = fmt::format("ServiceAccount \"{}/{}\"", name.substr(colon + 1), name.substr(0, colon));
  }
  return fmt::format("RBAC: allowed by {} to {}", grant.bindings.front()->shown, shown);
}

std::size_t RbacGrants::size() const {
  const ReaderLock lock(mutex_);
  return roles_.size() + grants_.size() + bindings_.size();
}

}  // namespace berth::apiserver::auth
