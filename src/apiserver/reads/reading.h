// What list and watch share: which objects, in which form.
#pragma once
#include <optional>

#include "apiserver/cache/object_cache.h"
#include "apiserver/request/context.h"

namespace berth::apiserver {

/// What path and selectors ask for.
struct Selection {
  WatchFilter filter;
  /// What is left to ask once a webhook has converted the objects: fields of the request's version. May be empty.
  std::function<bool(const StoredObject&)> of_converted;
};
/// 400 for selectors that are malformed or not supported, in Kubernetes' words.
model::ApiResult<Selection> read_selection(const Request& request);

/// A resourceVersion parameter: nullopt when absent; an error (500, as Kubernetes answers) when it is not a number.
model::ApiResult<std::optional<Revision>> read_revision(std::string_view text);

/// The limit parameter; 0: none. 400 when it is not a number.
model::ApiResult<std::size_t> read_limit(const Request& request);

/// What a page says of the objects after it.
struct Rest {
  std::string token;  ///< Empty: nothing is left.
  std::optional<std::int64_t> remaining;
};
Rest rest_after(const ListResult& page, const WatchFilter& filter);

/// What Kubernetes says about the combination of resourceVersion, resourceVersionMatch, continue and sendInitialEvents.
std::optional<model::ApiStatus> check_list_options(const Request& request, bool is_watch);

/// 504: the revision asked for has not been reached within the patience of a request.
model::ApiStatus too_large_revision(Revision wanted, Revision current);

}  // namespace berth::apiserver
