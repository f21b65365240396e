#include "client/list_all.h"

#include "client/informer.h"
#include "client/response.h"
#include "client/watch_decoder.h"

namespace berth::client {

ApiResult<void> list_all(Client& client, std::string_view group, std::string_view plural, const std::function<void(json::Value)>& visit) {
  const auto* kind = model::find_resource(group, plural);
  if (kind == nullptr) return std::unexpected(model::ApiStatus{.code = 404, .message = "the resource is not known"});
  ListOptions options;
  options.limit = 5000;
  do {
    auto page = client.list_and_wait(kind->gvr(), "", options);
    if (!page) return std::unexpected(page.error());
    for (auto& item : page->items) {
      if (!item.is_object()) continue;
      item.get_object()["kind"] = kind->kind;
      visit(std::move(item));
    }
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());
  return {};
}

ApiResult<void> list_all_objects(Client& client, std::string_view group, std::string_view plural,
                                 const std::function<void(const ObjectRef&)>& visit) {
  const auto* kind = model::find_resource(group, plural);
  if (kind == nullptr) return std::unexpected(model::ApiStatus{.code = 404, .message = "the resource is not known"});
  std::string token;
  do {
    Call call{.verb = "list", .gvr = kind->gvr(), .query = "limit=5000"};
    if (!token.empty()) call.query += "&continue=" + net::percent_encode(token);
    const net::HttpResponse response = send_and_wait(client, call);
    if (response.status < 200 || response.status > 299) return std::unexpected(status_of(response));
    const auto page = decode_list(response.body);
    if (!page) return std::unexpected(transport_error("the server's answer is not JSON: " + page.error().message));
    for (const ObjectRef& object : page->objects) visit(object);
    token = page->continue_token;
  } while (!token.empty());
  return {};
}

}  // namespace berth::client
