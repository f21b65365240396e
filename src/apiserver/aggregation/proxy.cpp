// Requests that another API server answers (kube-aggregator/pkg/apiserver/handler_proxy.go).
#include "apiserver/aggregation/aggregator.h"
#include "net/onward.h"

namespace berth::apiserver::aggregation {
namespace {

/// "/apis/GROUP/VERSION" and "/openapi/v3/apis/GROUP/VERSION": what belongs to a group version without being a resource.
std::optional<std::pair<std::string, std::string>> group_version_of(std::string_view path) {
  constexpr std::string_view kApis = "/apis/", kOpenApi = "/openapi/v3/apis/";
  if (path.starts_with(kOpenApi))
    path.remove_prefix(kOpenApi.size());
  else if (path.starts_with(kApis))
    path.remove_prefix(kApis.size());
  else
    return std::nullopt;
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.find('/');
  if (slash == std::string_view::npos || path.find('/', slash + 1) != std::string_view::npos) return std::nullopt;
  return std::pair(std::string(path.substr(0, slash)), std::string(path.substr(slash + 1)));
}

bool is_identity_header(std::string_view name) {
  constexpr std::string_view kPrefix = "X-Remote-";
  return net::equal_ignoring_case(name.substr(0, kPrefix.size()), kPrefix);
}

}  // namespace

void set_user_headers(net::HttpRequest& request, const UserInfo& user) {
  net::Headers headers;
  for (const auto& [name, value] : request.headers.fields())
    if (!is_identity_header(name)) headers.add(name, value);
  headers.add("X-Remote-User", user.name);
  if (!user.uid.empty()) headers.add("X-Remote-Uid", user.uid);
  for (const auto& group : user.groups) headers.add("X-Remote-Group", group);
  for (const auto& [key, values] : user.extra)
    for (const auto& value : values) headers.add("X-Remote-Extra-" + net::percent_encode(key), value);
  request.headers = std::move(headers);
}

bool Aggregator::serve(const RequestPtr& request) {
  if (!registrations_->has_remote()) return false;
  const auto asked = request->info.is_resource ? std::optional(std::pair(request->info.group, request->info.version))
                                               : group_version_of(request->http.path);
  if (!asked) return false;
  const auto registration = registrations_->remote(asked->first, asked->second);
  if (!registration) return false;
  const auto located = registration->is_available() ? locate(*registration) : std::unexpected(Condition{});
  if (!located) {
    respond_.text(*request, 503, "text/plain; charset=utf-8", "service unavailable\n");
    return true;
  }
  auto onward = net::onward_request(request->http, net::Onward::kWorkload);
  set_user_headers(onward, request->user);
  if (!request->http.remote_address.empty()) {
    const auto before = onward.headers.get("X-Forwarded-For");
    const auto address = request->http.remote_address.substr(0, request->http.remote_address.rfind(':'));
    onward.headers.set("X-Forwarded-For", before.empty() ? address : fmt::format("{}, {}", before, address));
  }
  onward.path = request->http.path;
  onward.query = request->http.query;
  relays_.send_on(request, located->far, std::move(onward));
  return true;
}

}  // namespace berth::apiserver::aggregation
