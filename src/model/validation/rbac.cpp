// Roles and bindings (pkg/apis/rbac/validation).
#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

void roles(const Value& doc, bool cluster, Errors& errors) {
  const Path at("rules");
  std::size_t i = 0;
  for (const Value& rule : get_array(doc, {"rules"})) {
    const Path one = at[i++];
    if (get_array(rule, {"verbs"}).empty()) errors.required(one / "verbs", "verbs must contain at least one value");
    if (const json::Array& urls = get_array(rule, {"nonResourceURLs"}); !urls.empty()) {
      if (!cluster) errors.invalid(one / "nonResourceURLs", Value(urls), "namespaced rules cannot apply to non-resource URLs");
      if (!get_array(rule, {"apiGroups"}).empty() || !get_array(rule, {"resources"}).empty() || !get_array(rule, {"resourceNames"}).empty())
        errors.invalid(one / "nonResourceURLs", Value(urls), "rules cannot apply to both regular resources and non-resource URLs");
      continue;
    }
    if (get_array(rule, {"apiGroups"}).empty()) errors.required(one / "apiGroups", "resource rules must supply at least one api group");
    if (get_array(rule, {"resources"}).empty()) errors.required(one / "resources", "resource rules must supply at least one resource");
  }
  const Value* aggregation = json::find(doc, "aggregationRule");
  if (aggregation == nullptr) return;
  const Path aggregation_at("aggregationRule");
  const Path selectors = aggregation_at / "clusterRoleSelectors";
  const json::Array& list = get_array(*aggregation, {"clusterRoleSelectors"});
  if (list.empty()) errors.required(selectors, "at least one clusterRoleSelector required if aggregationRule is non-nil");
  for (std::size_t k = 0; k < list.size(); ++k) {
    const std::size_t before = errors.size();
    label_selector(list[k], selectors[k], errors);
    if (errors.size() != before) errors.invalid(selectors[k], Value(nullptr), "invalid label selector.");
  }
}

void role_binding(const Value& doc, bool cluster, Errors& errors) {
  const Path ref("roleRef");
  const std::string_view kind = get_string(doc, {"roleRef", "kind"});
  if (get_string(doc, {"roleRef", "apiGroup"}) != "rbac.authorization.k8s.io")
    errors.not_supported(ref / "apiGroup", get_string(doc, {"roleRef", "apiGroup"}), {"rbac.authorization.k8s.io"});
  if (kind != "ClusterRole" && (cluster || kind != "Role"))
    errors.not_supported(ref / "kind", kind, cluster ? Strings{"ClusterRole"} : Strings{"Role", "ClusterRole"});
  if (const std::string_view name = get_string(doc, {"roleRef", "name"}); name.empty())
    errors.required(ref / "name");
  else if (const std::string why = check_path_segment(name); !why.empty())
    errors.invalid(ref / "name", name, why);
  const Path at("subjects");
  std::size_t i = 0;
  for (const Value& subject : get_array(doc, {"subjects"})) {
    const Path one = at[i++];
    const std::string_view subject_kind = get_string(subject, {"kind"});
    if (get_string(subject, {"name"}).empty()) errors.required(one / "name");
    const std::string_view group = get_string(subject, {"apiGroup"}), subject_name = get_string(subject, {"name"});
    if (subject_kind == "ServiceAccount") {
      if (!subject_name.empty())
        if (const std::string why = check_dns1123_subdomain(subject_name); !why.empty()) errors.invalid(one / "name", subject_name, why);
      if (!group.empty()) errors.not_supported(one / "apiGroup", group, {""});
      if (get_string(subject, {"namespace"}).empty() && cluster) errors.required(one / "namespace");
    } else if (subject_kind == "User" || subject_kind == "Group") {
      if (group != "rbac.authorization.k8s.io") errors.not_supported(one / "apiGroup", group, {"rbac.authorization.k8s.io"});
    } else {
      errors.not_supported(one / "kind", subject_kind, {"ServiceAccount", "User", "Group"});
    }
  }
}

}  // namespace berth::model::validation
