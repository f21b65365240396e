// PodGroups and Workloads. Kubernetes 1.36: the tags in k8s.io/api/scheduling/v1alpha2/types.go, which its validation-gen makes into rules,
// and pkg/apis/scheduling/validation for the rest. Rules of tags tell what is wrong in another form than others: a value that may not
// change is not shown, and nothing else is said of a field that is missing or has too many entries.
#include <set>

#include "model/validation/pod_parts.h"
#include "model/validation/workload_parts.h"

namespace berth::model::validation {

using json::get_array;
using json::get_int;
using json::get_string;

namespace {

constexpr std::size_t kMostTemplates = 8, kMostClaims = 4, kMostTopologies = 1;
constexpr std::int64_t kHighestPriority = 1'000'000'000;

using Check = std::string (*)(std::string_view);

/// A required text; false when it is missing.
bool needed(const Value& holder, std::string_view key, Check check, const Path& at, Errors& errors) {
  const std::string_view text = get_string(holder, {key});
  if (text.empty()) {
    errors.required(at / key);
    return false;
  }
  if (const std::string why = check(text); !why.empty()) errors.invalid(at / key, text, why);
  return true;
}

/// A text that may be missing; as a pointer in Go it may be empty and is wrong then.
void possible(const Value& holder, std::string_view key, Check check, const Path& at, Errors& errors) {
  const Value* text = json::find(holder, key);
  if (text == nullptr || !text->is_string()) return;
  if (const std::string why = check(json::as_view(*text)); !why.empty()) errors.invalid(at / key, *text, why);
}

/// Exactly one of the fields is there.
void one_of(const Value* holder, const std::vector<std::string_view>& fields, const Path& at, Errors& errors) {
  std::string all, given;
  for (const std::string_view field : fields) {
    all += (all.empty() ? "`" : ", `") + std::string(field) + "`";
    const Value* value = holder == nullptr ? nullptr : json::find(*holder, field);
    if (value != nullptr && !value->is_null()) given += (given.empty() ? "" : ", ") + std::string(field);
  }
  if (given.empty())
    errors.invalid(at, "", "must specify one of: " + all);
  else if (given.find(',') != std::string::npos)
    errors.invalid(at, "{" + given + "}", "must specify exactly one of: " + all);
}

void unique_names(const json::Array& list, const Path& at, Errors& errors) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!seen.insert(get_string(list[i], {"name"})).second) errors.duplicate(at[i], list[i]);
}

void policy(const Value& holder, const Path& at, Errors& errors) {
  one_of(json::find(holder, "schedulingPolicy"), {"basic", "gang"}, at, errors);
  if (json::find(holder, {"schedulingPolicy", "gang"}) == nullptr) return;
  const Path gang = at / "gang";
  const std::int64_t count = get_int(holder, {"schedulingPolicy", "gang", "minCount"});
  if (count == 0)
    errors.required(gang / "minCount");
  else if (count < 1)
    errors.invalid(gang / "minCount", Value(count), "must be greater than or equal to 1");
}

void topology(const Value& holder, const Path& at, Errors& errors) {
  const json::Array& list = get_array(holder, {"schedulingConstraints", "topology"});
  const Path here = at / "topology";
  if (list.size() > kMostTopologies) return errors.too_many(here, list.size(), kMostTopologies);
  for (std::size_t i = 0; i < list.size(); ++i) needed(list[i], "key", check_qualified_name, here[i], errors);
}

void claims(const json::Array& list, const Path& at, Errors& errors) {
  if (list.size() > kMostClaims) return errors.too_many(at, list.size(), kMostClaims);
  unique_names(list, at, errors);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path one = at[i];
    one_of(&list[i], {"resourceClaimName", "resourceClaimTemplateName"}, one, errors);
    needed(list[i], "name", check_dns1123_label, one, errors);
    for (const char* key : {"resourceClaimName", "resourceClaimTemplateName"}) possible(list[i], key, check_dns1123_subdomain, one, errors);
  }
}

/// What PodGroups and their templates share.
void group(const Value& holder, const Path& at, Errors& errors) {
  policy(holder, at / "schedulingPolicy", errors);
  topology(holder, at / "schedulingConstraints", errors);
  claims(get_array(holder, {"resourceClaims"}), at / "resourceClaims", errors);
  if (const Value* mode = json::find(holder, "disruptionMode"); mode != nullptr && *mode != "Pod" && *mode != "PodGroup")
    errors.not_supported(at / "disruptionMode", text_of(*mode), {"Pod", "PodGroup"});
  if (const std::string_view name = get_string(holder, {"priorityClassName"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "priorityClassName", name, why);
  if (const Value* priority = json::find(holder, "priority"); priority != nullptr && get_int(holder, {"priority"}) > kHighestPriority)
    errors.invalid(at / "priority", *priority, "must be less than or equal to 1000000000");
}

}  // namespace

void pod_group_spec(const Value& spec, const Path& at, Errors& errors) {
  if (const Value* reference = json::find(spec, "podGroupTemplateRef"); reference != nullptr && !reference->is_null()) {
    const Path from = at / "podGroupTemplateRef";
    one_of(reference, {"workload"}, from, errors);
    if (const Value* workload = json::find(*reference, "workload"); workload != nullptr && workload->is_object()) {
      needed(*workload, "workloadName", check_dns1123_subdomain, from / "workload", errors);
      needed(*workload, "podGroupTemplateName", check_dns1123_label, from / "workload", errors);
    }
  }
  group(spec, at, errors);
}

void pod_group_templates(const json::Array& list, const Path& at, Errors& errors) {
  if (list.empty()) return errors.required(at);
  if (list.size() > kMostTemplates) return errors.too_many(at, list.size(), kMostTemplates);
  unique_names(list, at, errors);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path one = at[i];
    needed(list[i], "name", check_dns1123_label, one, errors);
    group(list[i], one, errors);
  }
}

void controller_reference(const Value& reference, const Path& at, Errors& errors) {
  if (const std::string_view name = get_string(reference, {"apiGroup"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "apiGroup", name, why);
  needed(reference, "kind", check_path_segment, at, errors);
  needed(reference, "name", check_path_segment, at, errors);
}

void group_claim_statuses(const Value& pod_group, const Path& at, Errors& errors) {
  const json::Array& list = get_array(pod_group, {"status", "resourceClaimStatuses"});
  if (list.size() > kMostClaims) return errors.too_many(at, list.size(), kMostClaims);
  unique_names(list, at, errors);
  for (std::size_t i = 0; i < list.size(); ++i) possible(list[i], "resourceClaimName", check_dns1123_subdomain, at[i], errors);
}

void unchanged(const Value& old, const Value& doc, json::Path where, const Path& at, Errors& errors) {
  const Value *before = json::find(old, where), *after = json::find(doc, where);
  const bool had = before != nullptr && !before->is_null(), has = after != nullptr && !after->is_null();
  if (had != has || (had && !json::equal(*before, *after))) errors.invalid(at, Value(nullptr), kImmutable);
}

void scheduling_group(const Value& spec, const Path& spec_at, Errors& errors) {
  const Value* group = json::find(spec, "schedulingGroup");
  if (group == nullptr || group->is_null()) return;
  const Path at = spec_at / "schedulingGroup";
  one_of(group, {"podGroupName"}, at, errors);
  possible(*group, "podGroupName", check_dns1123_subdomain, at, errors);
}

}  // namespace berth::model::validation
