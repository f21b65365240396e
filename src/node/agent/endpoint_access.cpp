#include "node/agent/endpoint_access.h"

#include "base/mutex.h"

namespace berth::node::agent {
namespace {

constexpr Duration kTokenMemory = std::chrono::minutes(2), kAllowedMemory = std::chrono::minutes(5),
                   kRefusedMemory = std::chrono::seconds(30);
constexpr std::size_t kMaxMemory = 4096;

json::Value review(const char* kind, const char* group, json::Object spec) {
  return json::Object{{"apiVersion", std::string(group) + "/v1"}, {"kind", kind}, {"spec", std::move(spec)}};
}

}  // namespace

EndpointAttributes endpoint_attributes(const std::string& method, const std::string& path) {
  EndpointAttributes out;
  out.verb = method == "POST" ? "create" : method == "PUT" ? "update" : method == "PATCH" ? "patch" : method == "DELETE" ? "delete" : "get";
  const auto below = [&](std::string_view root) { return path == root || path.starts_with(std::string(root) + "/"); };
  if (below("/pods") || below("/runningpods"))
    out.subresources.emplace_back("pods");
  else if (below("/healthz"))
    out.subresources.emplace_back("healthz");
  else if (below("/configz"))
    out.subresources.emplace_back("configz");
  if (below("/stats"))
    out.subresources.emplace_back("stats");
  else if (below("/metrics"))
    out.subresources.emplace_back("metrics");
  else if (below("/logs"))
    out.subresources.emplace_back("log");
  else if (below("/checkpoint"))
    out.subresources.emplace_back("checkpoint");
  else if (below("/statusz"))
    out.subresources.emplace_back("statusz");
  else if (below("/flagz"))
    out.subresources.emplace_back("configz");
  else
    out.subresources.emplace_back("proxy");
  return out;
}

EndpointAccess::Memory EndpointAccess::remembered(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = memory_.find(key);
  return found != memory_.end() && clock_.now() < found->second.until ? found->second : Memory{};
}

void EndpointAccess::remember(const std::string& key, Memory memory) {
  MutexLock lock(mutex_);
  if (memory_.size() >= kMaxMemory) memory_.clear();
  memory_[key] = std::move(memory);
}

std::optional<EndpointUser> EndpointAccess::authenticate(const net::HttpRequest& request) {
  if (request.peer) return EndpointUser{request.peer->common_name, {}, request.peer->organizations};
  std::string_view header = request.headers.get("Authorization");
  if (!header.starts_with("Bearer ")) return std::nullopt;
  const std::string token(header.substr(7)), key = "token/" + token;
  if (const Memory known = remembered(key); known.until != TimePoint{}) return known.user;
  client::Call call{.verb = "create", .gvr = {"authentication.k8s.io", "v1", "tokenreviews"}};
  call.body = json::serialize(review("TokenReview", "authentication.k8s.io", json::Object{{"token", token}}));
  const auto answer = client_.call_and_wait(std::move(call));
  if (!answer) return std::nullopt;
  Memory memory{clock_.now() + kTokenMemory, {}, false};
  if (json::get_bool(*answer, {"status", "authenticated"})) {
    memory.user = EndpointUser{std::string(json::get_string(*answer, {"status", "user", "username"})),
                               std::string(json::get_string(*answer, {"status", "user", "uid"})),
                               {}};
    for (const json::Value& group : json::get_array(*answer, {"status", "user", "groups"}))
      if (group.is_string()) memory.user->groups.emplace_back(json::as_view(group));
  }
  remember(key, memory);
  return memory.user;
}

std::optional<EndpointAccess::Refusal> EndpointAccess::check(const net::HttpRequest& request) {
  const auto user = authenticate(request);
  if (!user) return Refusal{401, "Unauthorized"};
  const EndpointAttributes attributes = endpoint_attributes(request.method, request.path);
  for (const std::string& subresource : attributes.subresources) {
    const auto allowed = is_allowed(*user, attributes.verb, subresource);
    if (!allowed)
      return Refusal{500, fmt::format("Authorization error (user={}, verb={}, resource=nodes, subresource={})", user->name, attributes.verb,
                                      subresource)};
    if (*allowed) return std::nullopt;
  }
  return Refusal{403, fmt::format("Forbidden (user={}, verb={}, resource=nodes, subresource(s)=[{}])\n", user->name, attributes.verb,
                                  fmt::join(attributes.subresources, " "))};
}

/// Nullopt: nobody could be asked.
std::optional<bool> EndpointAccess::is_allowed(const EndpointUser& user, const std::string& verb, const std::string& subresource) {
  const std::string key = fmt::format("access/{}/{}/{}/{}", user.name, fmt::join(user.groups, ","), verb, subresource);
  Memory memory = remembered(key);
  if (memory.until != TimePoint{}) return memory.is_allowed;
  json::Array groups;
  for (const std::string& group : user.groups) groups.push_back(json::Value(group));
  json::Object spec{
      {"user", user.name},
      {"groups", std::move(groups)},
      {"resourceAttributes",
       json::Object{{"verb", verb}, {"version", "v1"}, {"resource", "nodes"}, {"subresource", subresource}, {"name", node_name_}}}};
  if (!user.uid.empty()) spec["uid"] = user.uid;
  client::Call call{.verb = "create", .gvr = {"authorization.k8s.io", "v1", "subjectaccessreviews"}};
  call.body = json::serialize(review("SubjectAccessReview", "authorization.k8s.io", std::move(spec)));
  const auto answer = client_.call_and_wait(std::move(call));
  if (!answer) return std::nullopt;
  memory.is_allowed = json::get_bool(*answer, {"status", "allowed"});
  memory.until = clock_.now() + (memory.is_allowed ? kAllowedMemory : kRefusedMemory);
  remember(key, memory);
  return memory.is_allowed;
}

}  // namespace berth::node::agent
