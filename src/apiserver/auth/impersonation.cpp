#include "apiserver/auth/impersonation.h"

#include <strings.h>

#include <ranges>

#include "apiserver/auth/reviews.h"
#include "base/go/strings.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::string_view kExtraPrefix = "impersonate-extra-";
constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";

struct Asked {
  std::string user, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

Asked read_headers(const net::Headers& headers) {
  Asked asked;
  for (const auto& [name, value] : headers.fields()) {
    if (name.size() < 12 || ::strncasecmp(name.c_str(), "impersonate-", 12) != 0) continue;
    std::string key = go::to_lower(name);
    if (key == "impersonate-user" && asked.user.empty()) asked.user = value;
    if (key == "impersonate-uid" && asked.uid.empty()) asked.uid = value;
    if (key == "impersonate-group") asked.groups.push_back(value);
    if (key.starts_with(kExtraPrefix)) {
      std::string extra = key.substr(kExtraPrefix.size());
      asked.extra[net::percent_decode(extra).value_or(extra)].push_back(value);
    }
  }
  return asked;
}

/// "system:serviceaccount:NS:NAME" as {NS, NAME}.
std::optional<std::pair<std::string, std::string>> service_account(std::string_view user) {
  if (!user.starts_with(kServiceAccountPrefix)) return std::nullopt;
  user.remove_prefix(kServiceAccountPrefix.size());
  auto colon = user.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == user.size() || user.find(':', colon + 1) != std::string_view::npos)
    return std::nullopt;
  return std::pair(std::string(user.substr(0, colon)), std::string(user.substr(colon + 1)));
}

Attributes permission(std::string group, std::string version, std::string resource, std::string name) {
  Attributes attributes;
  attributes.verb = "impersonate";
  attributes.group = std::move(group);
  attributes.version = std::move(version);
  attributes.resource = std::move(resource);
  attributes.name = std::move(name);
  return attributes;
}

std::vector<Attributes> permissions_for(const Asked& asked) {
  std::vector<Attributes> wanted;
  if (auto account = service_account(asked.user)) {
    wanted.push_back(permission("", "v1", "serviceaccounts", account->second));
    wanted.back().ns = account->first;
  } else {
    wanted.push_back(permission("", "v1", "users", asked.user));
  }
  for (const auto& group : asked.groups) wanted.push_back(permission("", "v1", "groups", group));
  for (const auto& [key, values] : asked.extra) {
    for (const auto& value : values) {
      wanted.push_back(permission("authentication.k8s.io", "v1", "userextras", value));
      wanted.back().subresource = key;
    }
  }
  if (!asked.uid.empty()) wanted.push_back(permission("authentication.k8s.io", "v1", "uids", asked.uid));
  return wanted;
}

/// A user.DefaultInfo in Go's %#v.
std::string as_go_prints(const Asked& asked) {
  const auto quoted = [](const auto& texts) {
    std::string out;
    for (const auto& text : texts) out += (out.empty() ? "" : ", ") + json::serialize(json::Value(text));
    return out;
  };
  const std::string groups = asked.groups.empty() ? "[]string(nil)" : "[]string{" + quoted(asked.groups) + "}";
  std::string extra;
  for (const auto& [key, values] : asked.extra)
    extra += fmt::format("{}{}:[]string{{{}}}", extra.empty() ? "" : ", ", json::serialize(json::Value(key)), quoted(values));
  return fmt::format("&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{}, Extra:map[string][]string{}}}",
                     json::serialize(json::Value(asked.uid)), groups, extra.empty() ? "(nil)" : "{" + extra + "}");
}

}  // namespace

bool is_impersonating(const net::Headers& headers) {
  return std::any_of(headers.fields().begin(), headers.fields().end(),
                     [](const auto& field) { return ::strncasecmp(field.first.c_str(), "impersonate-", 12) == 0; });
}

std::optional<std::string> impersonation_waits_for(const net::HttpRequest& request, const UserInfo& user, Authorizer& authorizer) {
  constexpr std::size_t kFew = 16;
  const auto wanted = permissions_for(read_headers(request.headers));
  for (const Attributes& attributes : wanted | std::views::take(kFew)) {
    const auto decision = authorizer.decide_at_once(user, attributes);
    if (!decision) return decision.error();
    if (!decision->allowed) return std::nullopt;  // The rest is not asked.
  }
  return wanted.size() > kFew ? std::optional("the impersonations of " + user.name) : std::nullopt;
}

model::ApiResult<UserInfo> apply_impersonation(const net::HttpRequest& request, const UserInfo& user, Authorizer& authorizer) {
  if (!is_impersonating(request.headers)) return user;
  Asked asked = read_headers(request.headers);
  if (asked.user.empty()) {
    if (asked.groups.empty() && asked.extra.empty() && asked.uid.empty()) return user;
    return std::unexpected(model::bad_request(fmt::format("requested {} without impersonating a user name", as_go_prints(asked))));
  }
  for (const Attributes& attributes : permissions_for(asked)) {
    auto decision = authorizer.authorize(user, attributes);
    if (!decision.allowed) return std::unexpected(forbidden_status(user, attributes, decision.reason));
  }
  UserInfo other{asked.user, asked.uid, asked.groups, asked.extra};
  if (auto account = service_account(asked.user); account && other.groups.empty()) {
    other.groups = {"system:serviceaccounts", "system:serviceaccounts:" + account->first};
  }
  const char* standing = other.name == "system:anonymous" ? "system:unauthenticated" : "system:authenticated";
  if (!other.in_group("system:authenticated") && !other.in_group("system:unauthenticated")) other.groups.emplace_back(standing);
  return other;
}

}  // namespace berth::apiserver::auth
