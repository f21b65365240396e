#include "client/list_all.h"

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

}  // namespace berth::client
