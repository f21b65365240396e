#include "apiserver/audit/policy.h"

#include <algorithm>
#include <array>

#include "base/config_reader.h"

namespace berth::apiserver::audit {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"None", "Metadata", "Request", "RequestResponse"};
constexpr std::array<std::string_view, 4> kStages = {"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"};

bool has(const std::vector<std::string>& list, std::string_view wanted) { return std::ranges::find(list, wanted) != list.end(); }

bool matches_resource(const Rule& rule, const Attributes& asked) {
  if (!asked.is_resource) return false;
  if (!rule.namespaces.empty() && !has(rule.namespaces, asked.ns)) return false;
  if (rule.resources.empty()) return true;
  const std::string combined = asked.subresource.empty() ? asked.resource : asked.resource + "/" + asked.subresource;
  for (const GroupResources& one : rule.resources) {
    if (one.group != asked.group) continue;
    if (one.resources.empty()) return true;
    if (!one.names.empty() && !has(one.names, asked.name)) continue;
    for (const std::string_view resource : one.resources) {
      if (resource == "*" || resource == combined) return true;
      if (!asked.subresource.empty() && resource.starts_with("*/") && resource.substr(2) == asked.subresource) return true;
      if (resource.ends_with("/*") && resource.substr(0, resource.size() - 2) == asked.resource) return true;
    }
  }
  return false;
}

bool matches_url(const std::vector<std::string>& urls, std::string_view path) {
  return std::ranges::any_of(urls, [&](std::string_view url) {
    return url == "*" || url == path || (url.ends_with('*') && path.starts_with(url.substr(0, url.size() - 1)));
  });
}

bool matches(const Rule& rule, const UserInfo& user, const Attributes& asked) {
  if (!rule.users.empty() && !has(rule.users, user.name)) return false;
  if (!rule.groups.empty() && std::ranges::none_of(rule.groups, [&](const auto& group) { return user.in_group(group); })) return false;
  if (!rule.verbs.empty() && !has(rule.verbs, asked.verb)) return false;
  if (!rule.namespaces.empty() || !rule.resources.empty()) return matches_resource(rule, asked);
  if (!rule.urls.empty()) return !asked.is_resource && matches_url(rule.urls, asked.path);
  return true;
}

std::vector<Stage> read_stages(const config::Reader& from) {
  std::vector<Stage> out;
  for (const config::Reader& item : from.field("omitStages").items()) {
    const std::string_view word = item.value() != nullptr && item.value()->is_string() ? json::as_view(*item.value()) : "";
    const auto found = std::ranges::find(kStages, word);
    if (found == kStages.end())
      item.problem(fmt::format("\"{}\" is no stage; those are {}{}", word, fmt::join(kStages, ", "), config::suggestion(word, kStages)));
    else
      out.push_back(static_cast<Stage>(found - kStages.begin()));
  }
  return out;
}

void check_url(const config::Reader& from, std::size_t index, std::string_view url) {
  const std::string at = fmt::format("nonResourceURLs[{}]", index);
  if (url == "*") return;
  if (!url.starts_with('/')) from.problem(at, fmt::format("\"{}\" must begin with a '/', or be '*'", url));
  if (const auto star = url.find('*'); star != std::string_view::npos && star + 1 != url.size())
    from.problem(at, fmt::format("\"{}\": '*' stands at the end alone", url));
}

GroupResources read_group(const config::Reader& from) {
  from.only({"group", "resources", "resourceNames"});
  GroupResources out{from.string("group"), from.strings("resources"), from.strings("resourceNames")};
  if (!out.names.empty() && out.resources.empty())
    from.problem("resourceNames", "needs at least one entry in resources: names alone say nothing");
  if (out.group.find('/') != std::string::npos)
    from.problem("group", fmt::format("\"{}\" is a group and a version; give the group alone (\"{}\")", out.group,
                                      out.group.substr(0, out.group.find('/'))));
  return out;
}

Rule read_rule(const config::Reader& from, bool omits_managed_fields) {
  Rule out;
  if (!from.expect_object()) return out;
  from.only({"level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs", "omitStages", "omitManagedFields"});
  const std::string level = from.string("level");
  if (const auto found = std::ranges::find(kLevels, level); found != kLevels.end())
    out.level = static_cast<Level>(found - kLevels.begin());
  else
    from.problem("level", level.empty() ? fmt::format("missing; one of {}", fmt::join(kLevels, ", "))
                                        : fmt::format("\"{}\" is no level; those are {}{}", level, fmt::join(kLevels, ", "),
                                                      config::suggestion(level, kLevels)));
  out.users = from.strings("users");
  out.groups = from.strings("userGroups");
  out.verbs = from.strings("verbs");
  out.namespaces = from.strings("namespaces");
  out.urls = from.strings("nonResourceURLs");
  for (std::size_t i = 0; i < out.urls.size(); ++i) check_url(from, i, out.urls[i]);
  for (const config::Reader& item : from.field("resources").items()) out.resources.push_back(read_group(item));
  if (!out.urls.empty() && (!out.resources.empty() || !out.namespaces.empty()))
    from.problem("nonResourceURLs", "a rule is about resources and namespaces, or about other URLs, not both: make two of it");
  out.omit_stages = read_stages(from);
  out.omit_managed_fields = from.boolean("omitManagedFields", omits_managed_fields);
  return out;
}

}  // namespace

std::string_view to_string(Level level) { return kLevels[static_cast<std::size_t>(level)]; }
std::string_view to_string(Stage stage) { return kStages[static_cast<std::size_t>(stage)]; }

bool Decision::omits(Stage stage) const { return std::ranges::find(omit_stages, stage) != omit_stages.end(); }

Decision Policy::decide(const UserInfo& user, const Attributes& attributes) const {
  for (const Rule& rule : rules) {
    if (!matches(rule, user, attributes)) continue;
    Decision out{rule.level, rule.omit_stages, rule.omit_managed_fields};
    out.omit_stages.insert(out.omit_stages.end(), omit_stages.begin(), omit_stages.end());
    return out;
  }
  return {};
}

Result<Policy> parse_policy(std::string_view text, const std::string& file) {
  Policy policy;
  const auto read = config::read_text(text, {.file = file}, [&](const config::Reader& root) {
    policy = {};
    if (!root.expect_object()) return;
    static constexpr std::array<std::string_view, 1> kKinds = {"Policy"}, kVersions = {"audit.k8s.io/v1"};
    root.only({"apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"});
    root.field("metadata").skip();
    root.expect_kind(kKinds, kVersions);
    for (const char* field : {"apiVersion", "kind"})
      if (!root.has(field)) root.problem(field, "missing; the file begins with apiVersion: audit.k8s.io/v1 and kind: Policy");
    policy.omit_stages = read_stages(root);
    const bool omits_managed_fields = root.boolean("omitManagedFields", false);
    const auto rules = root.field("rules").items();
    if (rules.empty()) root.problem("rules", "there are none, so nothing would be written; leave --audit-policy-file away for that");
    for (const config::Reader& rule : rules) policy.rules.push_back(read_rule(rule, omits_managed_fields));
  });
  if (!read) return std::unexpected(read.error());
  return policy;
}

}  // namespace berth::apiserver::audit
