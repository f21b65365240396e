#include "apiserver/auth/rbac_rules.h"

#include <algorithm>

#include "model/go_words.h"

namespace berth::apiserver::auth {
namespace {

/// Up to so many values are walked faster than found.
constexpr std::size_t kFewValues = 64;

bool has(const std::vector<std::string>& list, std::string_view text) { return std::find(list.begin(), list.end(), text) != list.end(); }
bool has_or_star(const std::vector<std::string>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return entry == "*" || entry == text; });
}

/// "*/SUB" stands for that subresource of everything.
bool resource_matches(std::string_view pattern, std::string_view resource, std::string_view subresource) {
  if (pattern == "*") return true;
  if (subresource.empty()) return pattern == resource;
  if (pattern.starts_with("*/")) return pattern.substr(2) == subresource;
  return pattern.size() == resource.size() + 1 + subresource.size() && pattern.starts_with(resource) && pattern[resource.size()] == '/' &&
         pattern.ends_with(subresource);
}

std::vector<std::string> strings(const json::Value& rule, std::string_view field) {
  std::vector<std::string> out;
  for (const auto& entry : json::get_array(rule, {field})) {
    if (entry.is_string()) out.emplace_back(json::as_view(entry));
  }
  return out;
}

}  // namespace

bool url_matches(std::string_view pattern, std::string_view url) {
  if (pattern == "*" || pattern == url) return true;
  if (!pattern.ends_with('*')) return false;
  while (pattern.ends_with('*')) pattern.remove_suffix(1);
  return url.starts_with(pattern);
}

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
    for (std::size_t i = 0; i < list.size(); ++i) out += (i == 0 ? "" : " ") + model::go_quote(list[i]);
    out += ']';
  };
  add("APIGroups", groups);
  add("Resources", resources);
  add("NonResourceURLs", urls);
  add("ResourceNames", names);
  add("Verbs", verbs);
  return "{" + out + "}";
}

RuleIndex::RuleIndex(std::vector<PolicyRule> rules) : rules_(std::move(rules)) {
  for (const PolicyRule& rule : rules_) size_ += rule.size();
  if (size_ <= kFewValues) return;
  fields_ = std::make_unique<Fields>();
  const auto add = [](Field& field, const std::vector<std::string>& values, std::uint32_t number) {
    for (const std::string& value : values)
      // What a rule says twice counts once.
      if (Numbers& numbers = field[value]; numbers.empty() || numbers.back() != number) numbers.push_back(number);
  };
  for (std::uint32_t number = 0; number < rules_.size(); ++number) {
    const PolicyRule& rule = rules_[number];
    if (!rule.urls.empty()) fields_->with_urls.push_back(number);
    if (rule.resources.empty()) continue;
    add(fields_->verbs, rule.verbs, number);
    add(fields_->groups, rule.groups, number);
    add(fields_->resources, rule.resources, number);
    add(fields_->names, rule.names, number);
    if (rule.names.empty()) fields_->nameless.push_back(number);
  }
}

std::size_t RuleIndex::Matching::size() const {
  std::size_t out = 0;
  for (const Numbers* list : lists) out += list == nullptr ? 0 : list->size();
  return out;
}

bool RuleIndex::Matching::contains(std::uint32_t rule) const {
  return std::ranges::any_of(lists, [&](const Numbers* list) { return list != nullptr && std::ranges::binary_search(*list, rule); });
}

std::array<RuleIndex::Matching, 4> RuleIndex::matching(const Attributes& attributes) const {
  const auto of = [](const Field& field, std::string_view value) -> const Numbers* {
    const auto found = field.find(value);
    return found == field.end() ? nullptr : &found->second;
  };
  const auto& [verbs, groups, resources, names, nameless, with_urls] = *fields_;
  std::array<Matching, 4> out;
  out[0].lists = {of(verbs, attributes.verb), of(verbs, "*"), nullptr};
  out[1].lists = {of(groups, attributes.group), of(groups, "*"), nullptr};
  const std::string& sub = attributes.subresource;
  out[2].lists = {sub.empty() ? of(resources, attributes.resource) : of(resources, attributes.resource + "/" + sub), of(resources, "*"),
                  sub.empty() ? nullptr : of(resources, "*/" + sub)};
  out[3].lists = {of(names, attributes.name), &nameless, nullptr};
  return out;
}

std::size_t RuleIndex::cost(const Attributes& attributes) const {
  if (fields_ == nullptr) return size_ / 8 + 1;
  // Of a path's patterns each is held against it.
  if (!attributes.is_resource) return fields_->with_urls.empty() ? 1 : size_;
  std::size_t fewest = rules_.size();
  for (const Matching& one : matching(attributes)) fewest = std::min(fewest, one.size());
  return fewest + 1;
}

bool RuleIndex::allows(const Attributes& attributes) const {
  const auto allows_it = [&](const PolicyRule& rule) { return rule.allows(attributes); };
  if (fields_ == nullptr) return std::ranges::any_of(rules_, allows_it);
  if (!attributes.is_resource)
    return std::ranges::any_of(fields_->with_urls, [&](std::uint32_t number) { return rules_[number].allows(attributes); });
  const auto fields = matching(attributes);
  const auto& first = *std::ranges::min_element(fields, {}, &Matching::size);
  const auto is_in_all = [&](std::uint32_t number) {
    return std::ranges::all_of(fields, [&](const Matching& field) { return &field == &first || field.contains(number); });
  };
  return std::ranges::any_of(first.lists, [&](const Numbers* list) { return list != nullptr && std::ranges::any_of(*list, is_in_all); });
}

}  // namespace berth::apiserver::auth
