#include "apiserver/request/request_info.h"

#include "base/go/strings.h"
#include "base/split.h"
#include "net/http.h"

namespace berth::apiserver {

Query::Query(std::string_view raw) : parameters_(raw.empty() ? decltype(parameters_){} : net::parse_query(raw)) {}

std::string_view Query::get(std::string_view name) const {
  for (const auto& [key, value] : parameters_)
    if (key == name) return value;
  return {};
}

bool Query::has(std::string_view name) const {
  return std::any_of(parameters_.begin(), parameters_.end(), [&](const auto& p) { return p.first == name; });
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : parameters_)
    if (key == name) values.push_back(value);
  return values;
}

bool Query::flag(std::string_view name) const {
  for (const auto& [key, value] : parameters_) {
    if (key != name) continue;
    const std::string lower = go::to_lower(value);
    return lower != "false" && lower != "0";
  }
  return false;
}

namespace {

std::string verb_of(std::string_view method) {
  if (method == "POST") return "create";
  if (method == "GET" || method == "HEAD") return "get";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return {};  // No verb is allowed what no verb is known of.
}

/// The name that `metadata.name=x` in a field selector asks for, or empty.
std::string name_in_field_selector(std::string_view selector) {
  for (const auto term : words(selector, ','))
    for (std::string_view prefix : {"metadata.name==", "metadata.name="})
      if (term.starts_with(prefix)) return std::string(term.substr(prefix.size()));
  return {};
}

}  // namespace

RequestInfo parse_request_info(std::string_view method, std::string_view path, const Query& query) {
  RequestInfo info;
  info.path = std::string(path);
  info.verb = go::to_lower(method);
  auto parts = words(path, '/').list<std::string>();
  std::size_t i = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    info.version = parts[1];
    i = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    info.group = parts[1];
    info.version = parts[2];
    i = 3;
  } else {
    return info;
  }
  info.is_resource = true;
  info.verb = verb_of(method);
  if (parts[i] == "watch" && i + 1 < parts.size()) {
    info.verb = "watch";
    info.legacy_watch = true;
    ++i;
  }
  if (parts[i] == "namespaces" && i + 1 < parts.size()) {
    info.ns = parts[i + 1];
    // /namespaces/NAME/status and /finalize are the namespace's own subresources, not resources in it.
    if (i + 2 < parts.size() && parts[i + 2] != "status" && parts[i + 2] != "finalize") i += 2;
  }
  info.resource = parts[i++];
  if (i < parts.size()) info.name = parts[i++];
  if (i < parts.size()) info.subresource = parts[i++];
  for (; i < parts.size(); ++i) info.rest.push_back(std::move(parts[i]));

  if (info.name.empty() && info.verb == "get") info.verb = query.flag("watch") ? "watch" : "list";
  if (info.name.empty() && info.verb == "delete") info.verb = "deletecollection";
  if (info.name.empty() && (info.verb == "list" || info.verb == "watch")) {
    // RBAC with resourceNames has to see the one name a selector asks for; the handler still lists.
    info.name = name_in_field_selector(query.get("fieldSelector"));
  }
  return info;
}

}  // namespace berth::apiserver
