#include "node/agent/api_lookups.h"

namespace berth::node::agent {

Result<Token> request_token(client::Client& client, const Clock& clock, const TokenRequest& request) {
  json::Object spec{
      {"expirationSeconds", request.expiration_seconds},
      {"boundObjectRef", json::Object{{"kind", "Pod"}, {"apiVersion", "v1"}, {"name", request.pod_name}, {"uid", request.pod_uid}}}};
  if (!request.audience.empty()) spec["audiences"] = json::Array{json::Value(request.audience)};
  client::Call call{
      .verb = "create", .gvr = {"", "v1", "serviceaccounts"}, .ns = request.ns, .name = request.service_account, .subresource = "token"};
  call.body =
      json::serialize(json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", std::move(spec)}});
  const auto answer = client.call_and_wait(std::move(call));
  if (!answer) return fail(answer.error().code == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable, answer.error().message);
  Token token{std::string(json::get_string(*answer, {"status", "token"})), clock.now() + std::chrono::seconds(request.expiration_seconds)};
  if (const auto expires = parse_rfc3339(json::get_string(*answer, {"status", "expirationTimestamp"}))) token.expires = *expires;
  return token;
}

std::vector<json::Value> services_for_variables(client::Client& client, const std::string& ns, bool with_namespace) {
  std::vector<json::Value> out;
  if (with_namespace)
    if (auto own = client.list_and_wait({"", "v1", "services"}, ns)) out = std::move(own->items);
  if (!with_namespace || ns != "default")
    if (auto api = client.get_and_wait({"", "v1", "services"}, "default", "kubernetes")) out.push_back(std::move(*api));
  return out;
}

}  // namespace berth::node::agent
