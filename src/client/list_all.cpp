#include "client/list_all.h"

#include <array>

#include "base/json_scan.h"
#include "client/response.h"

namespace berth::client {

namespace {

/// The next page is under way while one is read.
ApiResult<void> for_each_item(Client& client, const Gvr& gvr, const std::function<void(std::string_view)>& visit) {
  static const json::PathScanner scanner({"metadata.continue", "items"});
  const auto page = [&](const std::string& token) {
    // Pages of client-go's size: answers of many megabytes cost fresh memory each time.
    return PendingAnswer(
        client, {.verb = "list", .gvr = gvr, .query = token.empty() ? "limit=500" : "limit=500&continue=" + net::percent_encode(token)});
  };
  std::optional<PendingAnswer> next = page("");
  while (next) {
    const net::HttpResponse response = next->wait();
    next.reset();
    std::array<std::string_view, 2> raw;
    const bool is_json = scanner.scan(response.body, raw);
    const std::string token(is_json ? json::unquote(raw[0]) : std::string());
    const bool is_expired = response.status == 410 && !token.empty();
    if (!is_expired && (response.status < 200 || response.status > 299)) return std::unexpected(status_of(response));
    if (!is_json) return std::unexpected(transport_error("the server's answer is no list"));
    if (!token.empty()) next = page(token);
    const auto visit_object = [&](std::string_view item) {
      if (item.starts_with('{')) visit(item);
    };
    if (!raw[1].empty() && raw[1] != "null" && !json::for_each_element(raw[1], visit_object))
      return std::unexpected(transport_error("the server's answer is no list"));
  }
  return {};
}

std::unexpected<model::ApiStatus> not_known() {
  return std::unexpected(model::ApiStatus{.code = 404, .message = "the resource is not known"});
}

}  // namespace

ApiResult<void> list_all(Client& client, std::string_view group, std::string_view plural, const std::function<void(json::Value)>& visit) {
  const auto* kind = model::find_resource(group, plural);
  return kind == nullptr ? not_known() : list_all(client, kind->gvr(), kind->kind, visit);
}

ApiResult<void> list_all(Client& client, const Gvr& gvr, std::string_view kind, const std::function<void(json::Value)>& visit) {
  std::string unreadable;
  auto listed = for_each_item(client, gvr, [&](std::string_view text) {
    auto item = json::parse(text);
    if (!item) return void(unreadable = item.error().message);
    item->get_object()["kind"] = kind;
    visit(std::move(*item));
  });
  if (listed && !unreadable.empty()) return std::unexpected(transport_error("the server's list cannot be read: " + unreadable));
  return listed;
}

ApiResult<void> list_all_texts(Client& client, std::string_view group, std::string_view plural,
                               const std::function<void(std::string_view)>& visit) {
  const auto* kind = model::find_resource(group, plural);
  return kind == nullptr ? not_known() : for_each_item(client, kind->gvr(), visit);
}

}  // namespace berth::client
