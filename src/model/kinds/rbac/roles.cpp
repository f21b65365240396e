// Roles and their bindings, in both reaches.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_binding(Object& doc) {
  if (Object* ref = child(doc, "roleRef")) put_string(*ref, "apiGroup", "rbac.authorization.k8s.io");
  each(doc, "subjects", [](Object& subject) {
    const std::string_view kind = string_at(subject, "kind");
    if (kind == "User" || kind == "Group") put_string(subject, "apiGroup", "rbac.authorization.k8s.io");
  });
}

void role_binding_update(const Value& old, const Value& doc, Errors& errors) {
  const Value *before = json::find(old, "roleRef"), *after = json::find(doc, "roleRef");
  if (before != nullptr && after != nullptr && !json::equal(*before, *after))
    errors.invalid(Path("roleRef"), internal_form("rbac.v1.RoleRef", after), "cannot change roleRef");
}

Array binding_cells(const Value& o, TimePoint now) {
  std::vector<std::string> users, groups, accounts;
  for (const Value& subject : get_array(o, {"subjects"})) {
    const std::string_view kind = get_string(subject, {"kind"});
    const std::string name(get_string(subject, {"name"}));
    if (kind == "User")
      users.push_back(name);
    else if (kind == "Group")
      groups.push_back(name);
    else
      accounts.push_back(std::string(get_string(subject, {"namespace"})) + "/" + name);
  }
  return {name_of(o),         fmt::format("{}/{}", get_string(o, {"roleRef", "kind"}), get_string(o, {"roleRef", "name"})),
          age_of(o, now),     join(users, ", "),
          join(groups, ", "), join(accounts, ", ")};
}

template <bool kCluster>
void check_roles(const Value& doc, Errors& errors) {
  validation::roles(doc, kCluster, errors);
}

template <bool kCluster>
void check_binding(const Value& doc, Errors& errors) {
  validation::role_binding(doc, kCluster, errors);
}

template <bool kCluster>
std::shared_ptr<const KindHooks> role_hooks() {
  static const auto hooks = share({.form = kDefault,
                                   .strategy = kDefault,
                                   .rules = Rules{.name = validation::check_path_segment,
                                                  .metadata_looks = kLooksAtBothAgain,
                                                  .create = check_roles<kCluster>,
                                                  .update = in_turn(check_roles<kCluster>)},
                                   .printer = created_at_printer(),
                                   .selected = kDefault,
                                   .scale = kDefault,
                                   .life = Life{.is_created_by_update = true},
                                   .counted = kDefault});
  return hooks;
}

template <bool kCluster>
std::shared_ptr<const KindHooks> binding_hooks() {
  static const auto hooks =
      share({.form = Form{.defaults = default_binding},
             .strategy = kDefault,
             .rules = Rules{.name = validation::check_path_segment,
                            .metadata_looks = kLooksAtBothAgain,
                            .create = check_binding<kCluster>,
                            .update = in_turn(check_binding<kCluster>, role_binding_update)},
             .printer = Printer{{{"Name"}, {"Role"}, {"Age"}, {"Users", 1}, {"Groups", 1}, {"ServiceAccounts", 1}}, binding_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_created_by_update = true},
             .counted = kDefault});
  return hooks;
}

/// The four kinds in one version.
std::vector<KindInfo> four(const std::string& version) {
  const auto record = [&](const char* kind, const char* plural) {
    Record out("rbac.authorization.k8s.io", version, kind, plural);
    out.stored_as("rbac.authorization.k8s.io", "v1");
    return out;
  };
  return {record("ClusterRoleBinding", "clusterrolebindings").cluster().does(binding_hooks<true>()),
          record("ClusterRole", "clusterroles").cluster().does(role_hooks<true>()),
          record("RoleBinding", "rolebindings").does(binding_hooks<false>()), record("Role", "roles").does(role_hooks<false>())};
}

}  // namespace

std::vector<KindInfo> rbac_group() {
  std::vector<KindInfo> out = four("v1");
  for (KindInfo& kind : four("v1beta1")) out.push_back(std::move(kind));
  return out;
}

}  // namespace berth::model::kinds
