// Reading all objects of a resource, page by page: for commands and for components that look at a whole cluster now and then.
#pragma once
#include <functional>
#include <string_view>

#include "client/client.h"

namespace berth::client {

/// Lists the resource over all namespaces, blocking, and hands over each object with its `kind` filled in. A resource of this build's
/// tables; others are not found. A list that takes longer than its server keeps the state of its beginning goes on with what is there then:
/// what came or went meanwhile may be missing or not, nothing is there twice. After an error objects may have been handed over.
ApiResult<void> list_all(Client& client, std::string_view group, std::string_view plural, const std::function<void(json::Value)>& visit);
/// The same of any resource, in this version.
ApiResult<void> list_all(Client& client, const Gvr& gvr, std::string_view kind, const std::function<void(json::Value)>& visit);
/// The same without documents: each item's text as it stands in the answer, mostly without `kind`, good during the call alone. For who
/// knows most of them from an earlier list, by uid and revision.
ApiResult<void> list_all_texts(Client& client, std::string_view group, std::string_view plural,
                               const std::function<void(std::string_view)>& visit);

}  // namespace berth::client
