#include "apiserver/auth/rbac_rules.h"

#include <algorithm>

namespace berth::apiserver::auth {
namespace {

bool has(const std::vector<std::string>& list, std::string_view text) { return std::find(list.begin(), list.end(), text) != list.end(); }
bool has_or_star(const std::vector<std::string>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return entry == "*" || entry == text; });
}

bool url_matches(std::string_view pattern, std::string_view url) {
  if (pattern == "*" || pattern == url) return true;
  if (!pattern.ends_with('*')) return false;
  while (pattern.ends_with('*')) pattern.remove_suffix(1);
  return url.starts_with(pattern);
}

/// "*/SUB" stands for that subresource of everything.
bool resource_matches(std::string_view pattern, std::string_view resource, std::string_view subresource) {
  if (pattern == "*") return true;
  if (subresource.empty()) return pattern == resource;
  if (pattern.starts_with("*/")) return pattern.substr(2) == subresource;
  return pattern.size() == resource.size() + 1 + subresource.size() && pattern.starts_with(resource) && pattern[resource.size()] == '/' &&
         pattern.ends_with(subresource);
}

bool covers_resource(const std::vector<std::string>& held, std::string_view wanted) {
  auto slash = wanted.find('/');
  auto subresource = slash == std::string_view::npos ? std::string_view() : wanted.substr(slash + 1);
  return std::any_of(held.begin(), held.end(), [&](const auto& pattern) {
    return pattern == wanted || resource_matches(pattern, wanted.substr(0, slash), subresource);
  });
}

/// Does one held rule cover this verb on this group and resource, for this name (null: any name)?
bool covers(const PolicyRule& held, std::string_view verb, std::string_view group, std::string_view resource, const std::string* name) {
  return has_or_star(held.verbs, verb) && has_or_star(held.groups, group) && covers_resource(held.resources, resource) &&
         (held.names.empty() || (name != nullptr && has(held.names, *name)));
}

std::vector<std::string> strings(const json::Value& rule, std::string_view field) {
  std::vector<std::string> out;
  for (const auto& entry : json::get_array(rule, {field})) {
    if (entry.is_string()) out.emplace_back(json::as_view(entry));
  }
  return out;
}

}  // namespace

PolicyRule PolicyRule::from_json(const json::Value& rule) {
  return {strings(rule, "verbs"), strings(rule, "apiGroups"), strings(rule, "resources"), strings(rule, "resourceNames"),
          strings(rule, "nonResourceURLs")};
}

std::vector<PolicyRule> PolicyRule::list_from_json(const json::Value* rules) {
  std::vector<PolicyRule> out;
  if (rules == nullptr || !rules->is_array()) return out;
  for (const auto& rule : rules->get_array()) out.push_back(from_json(rule));
  return out;
}

bool PolicyRule::allows(const Attributes& attributes) const {
  if (!has_or_star(verbs, attributes.verb)) return false;
  if (!attributes.is_resource)
    return std::any_of(urls.begin(), urls.end(), [&](const auto& pattern) { return url_matches(pattern, attributes.path); });
  return has_or_star(groups, attributes.group) && (names.empty() || has(names, attributes.name)) &&
         std::any_of(resources.begin(), resources.end(),
                     [&](const auto& pattern) { return resource_matches(pattern, attributes.resource, attributes.subresource); });
}

std::string PolicyRule::to_string() const {
  std::string out;
  const auto add = [&](std::string_view field, const std::vector<std::string>& list) {
    if (list.empty()) return;
    if (!out.empty()) out += ", ";
    out += fmt::format("{}:[", field);
    for (std::size_t i = 0; i < list.size(); ++i) out += fmt::format("{}\"{}\"", i == 0 ? "" : " ", list[i]);
    out += ']';
  };
  add("APIGroups", groups);
  add("Resources", resources);
  add("NonResourceURLs", urls);
  add("ResourceNames", names);
  add("Verbs", verbs);
  return "{" + out + "}";
}

std::vector<PolicyRule> uncovered(const std::vector<PolicyRule>& held, const std::vector<PolicyRule>& wanted) {
  std::vector<PolicyRule> missing;
  const auto any_covers = [&](const auto& test) { return std::any_of(held.begin(), held.end(), test); };
  for (const PolicyRule& rule : wanted) {
    for (const auto& url : rule.urls) {
      PolicyRule rest{.urls = {url}};
      for (const auto& verb : rule.verbs) {
        bool covered = any_covers([&](const PolicyRule& h) {
          return has_or_star(h.verbs, verb) &&
                 std::any_of(h.urls.begin(), h.urls.end(), [&](const auto& pattern) { return url_matches(pattern, url); });
        });
        if (!covered) rest.verbs.push_back(verb);
      }
      if (!rest.verbs.empty()) missing.push_back(std::move(rest));
    }
    for (const auto& group : rule.groups) {
      for (const auto& resource : rule.resources) {
        // With names, each is a permission of its own; without, the permission is for all names.
        for (std::size_t n = 0; n < std::max<std::size_t>(rule.names.size(), 1); ++n) {
          const std::string* name = rule.names.empty() ? nullptr : &rule.names[n];
          PolicyRule rest{.groups = {group}, .resources = {resource}};
          if (name != nullptr) rest.names = {*name};
          for (const auto& verb : rule.verbs) {
            if (!any_covers([&](const PolicyRule& h) { return covers(h, verb, group, resource, name); })) rest.verbs.push_back(verb);
          }
          if (!rest.verbs.empty()) missing.push_back(std::move(rest));
        }
      }
    }
  }
  return missing;
}

}  // namespace berth::apiserver::auth
