#include "client/list_all.h"

#include <array>

#include "base/json_scan.h"
#include "client/response.h"

namespace berth::client {

ApiResult<void> list_all(Client& client, std::string_view group, std::string_view plural, const std::function<void(json::Value)>& visit) {
  const auto* kind = model::find_resource(group, plural);
  if (kind == nullptr) return std::unexpected(model::ApiStatus{.code = 404, .message = "the resource is not known"});
  return list_all(client, kind->gvr(), kind->kind, visit);
}

ApiResult<void> list_all(Client& client, const Gvr& gvr, std::string_view kind, const std::function<void(json::Value)>& visit) {
  ListOptions options;
  options.limit = 5000;
  do {
    auto page = client.list_and_wait(gvr, "", options);
    if (!page) return std::unexpected(page.error());
    for (auto& item : page->items) {
      if (!item.is_object()) continue;
      item.get_object()["kind"] = kind;
      visit(std::move(item));
    }
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());
  return {};
}

ApiResult<void> list_all_texts(Client& client, std::string_view group, std::string_view plural,
                               const std::function<void(std::string_view)>& visit) {
  const auto* kind = model::find_resource(group, plural);
  if (kind == nullptr) return std::unexpected(model::ApiStatus{.code = 404, .message = "the resource is not known"});
  static const json::PathScanner scanner({"metadata.continue", "items"});
  const auto visit_object = [&](std::string_view item) {
    if (item.starts_with('{')) visit(item);
  };
  std::string token;
  do {
    // Pages of client-go's size: answers of many megabytes cost fresh memory each time.
    Call call{.verb = "list", .gvr = kind->gvr(), .query = "limit=500"};
    if (!token.empty()) call.query += "&continue=" + net::percent_encode(token);
    const net::HttpResponse response = send_and_wait(client, call);
    if (response.status < 200 || response.status > 299) return std::unexpected(status_of(response));
    std::array<std::string_view, 2> raw;
    const bool is_list =
        scanner.scan(response.body, raw) && (raw[1].empty() || raw[1] == "null" || json::for_each_element(raw[1], visit_object));
    if (!is_list) return std::unexpected(transport_error("the server's answer is no list"));
    token = json::unquote(raw[0]);
  } while (!token.empty());
  return {};
}

}  // namespace berth::client
