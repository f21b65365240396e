// Requests, limits and resource claims of containers and pods (validateResourceRequirements, validatePodResources).
#include <fmt/format.h>

#include "model/pods/pod_resources.h"
#include "model/quantity.h"
#include "model/validation/pod_parts.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_object;
using json::get_string;

bool is_huge_page(std::string_view name) { return name.starts_with("hugepages-"); }
bool is_native(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}
bool is_extended(std::string_view name) {
  return !is_native(name) && !name.starts_with("requests.") && check_qualified_name(fmt::format("requests.{}", name)).empty();
}
/// What a node never gives out twice.
bool is_exact(std::string_view name) { return !is_native(name) || is_huge_page(name); }

void container_resource_name(std::string_view name, const Path& at, Errors& errors) {
  if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(at, name, why);
  const bool is_plain = name.find('/') == std::string_view::npos;
  const bool is_standard = name == "cpu" || name == "memory" || name == "ephemeral-storage" || is_huge_page(name);
  if (is_plain && check_qualified_name(name).empty() && !is_standard_resource(name))
    errors.invalid(at, name, "must be a standard resource type or fully qualified");
  if (is_plain && !is_standard)
    errors.invalid(at, name, "must be a standard resource for containers");
  else if (!is_plain && !is_native(name) && !is_extended(name))
    errors.invalid(at, name, "doesn't follow extended resource name standard");
}

void pod_resource_name(std::string_view name, const Path& at, Errors& errors) {
  const std::string why = check_qualified_name(name);
  if (!why.empty()) return errors.invalid(at, name, why);
  if (name.find('/') == std::string_view::npos && !is_standard_resource(name))
    return errors.invalid(at, name, "must be a standard resource type or fully qualified");
  if (name != "cpu" && name != "memory" && !is_huge_page(name)) errors.not_supported(at, name, {"cpu", "hugepages-", "memory"});
}

bool is_page_multiple(std::string_view name, const Quantity& amount) {
  const auto page = Quantity::parse(name.substr(std::string_view("hugepages-").size()));
  if (!page || page->sign() <= 0 || page->milli_value() % 1000 != 0) return false;
  return amount.value() % page->value() == 0;
}

/// One list; true when it names cpu or memory.
bool list_amounts(const Value& holder, std::string_view list, bool is_pod_level, const Path& at, Errors& errors) {
  bool has_compute = false;
  for (const auto& [raw_key, value] : get_object(holder, {list})) {
    const std::string_view name(raw_key.data(), raw_key.size());
    const Path one = Path::map_key(at, name);
    is_pod_level ? pod_resource_name(name, one, errors) : container_resource_name(name, one, errors);
    has_compute = has_compute || name == "cpu" || name == "memory";
    const auto amount = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    if (!amount) continue;
    if (amount->sign() < 0) errors.invalid(one, value, kNegative);
    if ((is_extended(name) || name == "pods") && amount->milli_value() % 1000 != 0) errors.invalid(one, value, "must be an integer");
    if (is_huge_page(name) && !is_page_multiple(name, *amount))
      errors.invalid(one, value, fmt::format("{} is not positive integer multiple of {}", json::as_view(value), name));
  }
  return has_compute;
}

void claim_names(const Value& holder, const std::set<std::string_view>& known, const Path& at, Errors& errors) {
  std::string choice_text;  // Made once, as it may be long.
  const auto choice = [&]() -> const std::string& {
    if (choice_text.empty())
      choice_text = known.empty() ? "must be one of the names in pod.spec.resourceClaims which is empty"
                                  : fmt::format("must be one of the names in pod.spec.resourceClaims: {}", fmt::join(known, ", "));
    return choice_text;
  };
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const Value& claim : get_array(holder, {"claims"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(claim, {"name"}), request = get_string(claim, {"request"});
    if (name.empty()) {
      errors.required(one);
    } else if (seen.contains(std::string(name))) {
      errors.duplicate(one, Value(name));
    } else {
      if (const std::string why = request.empty() ? std::string() : check_dns1123_label(request); !why.empty())
        errors.invalid(one / "request", request, why);
      const std::string key = request.empty() ? std::string(name) : fmt::format("{}/{}", name, request);
      const std::string prefix = fmt::format("{}/", name);
      if (seen.contains(key))
        errors.duplicate(one, Value(key));
      else if (request.empty())
        for (auto other = seen.lower_bound(prefix); other != seen.end() && other->starts_with(prefix); ++other)
          errors.duplicate(one, Value(name));
      seen.insert(key);
    }
    if (!name.empty() && !known.contains(name)) errors.not_found(one, Value(name), choice());
  }
}

}  // namespace

bool is_extended_resource(std::string_view name) { return is_extended(name); }

void resource_name(std::string_view name, bool of_container, const Path& at, Errors& errors) {
  if (of_container) return container_resource_name(name, at, errors);
  if (const std::string why = check_qualified_name(name); !why.empty())
    errors.invalid(at, name, why);
  else if (name.find('/') == std::string_view::npos && !is_standard_resource(name))
    errors.invalid(at, name, "must be a standard resource type or fully qualified");
}

bool is_quota_resource(std::string_view name) {
  static constexpr std::string_view kNames[] = {"cpu",
                                                "memory",
                                                "ephemeral-storage",
                                                "requests.cpu",
                                                "requests.memory",
                                                "requests.ephemeral-storage",
                                                "limits.cpu",
                                                "limits.memory",
                                                "limits.ephemeral-storage",
                                                "pods",
                                                "resourcequotas",
                                                "services",
                                                "replicationcontrollers",
                                                "secrets",
                                                "configmaps",
                                                "persistentvolumeclaims",
                                                "requests.storage",
                                                "services.nodeports",
                                                "services.loadbalancers"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) || is_huge_page(name) ||
         name.starts_with("requests.hugepages-");
}

bool is_standard_resource(std::string_view name) {
  return is_quota_resource(name) || name == "storage" || name.starts_with("attachable-volumes-");
}

void resource_requirements(const Value& holder, const std::set<std::string_view>& claims, bool is_pod_level, const Path& at,
                           Errors& errors) {
  const Path limits_at = at / "limits", requests_at = at / "requests";
  bool has_compute = list_amounts(holder, "limits", is_pod_level, limits_at, errors);
  has_compute = list_amounts(holder, "requests", is_pod_level, requests_at, errors) || has_compute;
  const json::Object &limits = get_object(holder, {"limits"}), &requests = get_object(holder, {"requests"});
  bool has_huge_pages = false;
  for (const auto& [key, value] : limits) has_huge_pages = has_huge_pages || is_huge_page({key.data(), key.size()});
  for (const auto& [raw_key, value] : requests) {
    const std::string_view name(raw_key.data(), raw_key.size());
    has_huge_pages = has_huge_pages || is_huge_page(name);
    const auto request = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    const Value* stated = limits.if_contains(name);
    const std::string_view limit_text = stated != nullptr && stated->is_string() ? json::as_view(*stated) : std::string_view();
    const auto limit = limit_text.empty() ? std::nullopt : Quantity::parse(limit_text);
    if (!request) continue;
    if (limit && is_exact(name) && *request != *limit)
      errors.invalid(requests_at, value, fmt::format("must be equal to {} limit of {}", name, limit_text));
    else if (limit && *request > *limit)
      errors.invalid(requests_at, value, fmt::format("must be less than or equal to {} limit of {}", name, limit_text));
    else if (!limit && is_exact(name))
      errors.required(limits_at, "Limit must be set for non overcommitable resources");
  }
  if (has_huge_pages && !has_compute) errors.forbidden(at, "HugePages require cpu or memory");
  claim_names(holder, claims, at / "claims", errors);
}

void pod_level_resources(const PodContext& context, const Path& spec_at, Errors& errors) {
  const Value* own = json::find(context.spec, "resources");
  if (own == nullptr) return;
  const Path at = spec_at / "resources";
  if (get_string(context.spec, {"os", "name"}) == "windows") return errors.forbidden(at, "may not be set for a windows pod");
  if (json::find(*own, "claims") != nullptr) errors.forbidden(at / "claims", "claims may not be set for Resources at pod-level");
  resource_requirements(*own, context.claims, true, at, errors);
  json::Object containers;
  for (const char* list : {"containers", "initContainers"}) containers[list] = get_array(context.spec, {list});
  const Value all = json::Object{{"spec", std::move(containers)}};
  const auto at_least = [&](std::string_view list, bool huge_pages_only) {
    const auto total = pod_total(all, list);
    const auto mine = amounts_of(json::find(*own, list));
    const Path list_at = at / list;
    for (const auto& [name, sum] : total) {
      const auto amount = mine.find(name);
      if (amount == mine.end() || (huge_pages_only && !is_huge_page(name)) || sum <= amount->second) continue;
      errors.invalid(Path::map_key(list_at, name), amount->second.to_string(),
                     fmt::format("must be greater than or equal to aggregate container {} of {}", list, sum.to_string()));
    }
  };
  at_least("requests", false);
  at_least("limits", true);
  const auto limits = amounts_of(json::find(*own, "limits"));
  const Path containers_at = at / "containers";
  std::size_t i = 0;
  for (const Value& container : get_array(context.spec, {"containers"})) {
    const Path one = containers_at[i++];
    for (const auto& [name, amount] : amounts_of(json::find(container, {"resources", "limits"}))) {
      const auto limit = limits.find(name);
      if (limit == limits.end() || amount <= limit->second) continue;
      const Path key = Path::map_key(one, name);
      errors.invalid(key / "limits", amount.to_string(),
                     fmt::format("must be less than or equal to pod limits of {}", limit->second.to_string()));
    }
  }
}

void resource_claims(const Value& spec, bool is_mirror, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "resourceClaims";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& claim : get_array(spec, {"resourceClaims"})) {
    const Path one = at[i++];
    if (is_mirror) {
      errors.forbidden(Path("[]"), "static pods do not support resource claims");
      continue;
    }
    const std::string_view name = get_string(claim, {"name"});
    if (name.empty()) {
      errors.required(one / "name");
    } else if (!names.insert(name).second) {
      errors.duplicate(one / "name", Value(name));
    } else if (const std::string why = check_dns1123_label(name); !why.empty()) {
      errors.invalid(one / "name", name, why);
    }
    const Value *direct = json::find(claim, "resourceClaimName"), *by_template = json::find(claim, "resourceClaimTemplateName");
    const auto shown = [&] {
      return Value(json::Object{{"Name", name},
                                {"ResourceClaimName", direct == nullptr ? Value(nullptr) : *direct},
                                {"ResourceClaimTemplateName", by_template == nullptr ? Value(nullptr) : *by_template}});
    };
    if (direct != nullptr && by_template != nullptr)
      errors.invalid(one, shown(), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
    if (direct == nullptr && by_template == nullptr)
      errors.invalid(one, shown(), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    for (const char* key : {"resourceClaimName", "resourceClaimTemplateName"})
      if (json::find(claim, key) != nullptr)
        if (const std::string why = check_dns1123_subdomain(get_string(claim, {key})); !why.empty())
          errors.invalid(one / key, get_string(claim, {key}), why);
  }
}

}  // namespace berth::model::validation
