// The cluster as the feed keeps it: of each object its identity and its row, a tenth of what the API sends.
#pragma once
#include "client/transport.h"
#include "dashboard/rows.h"

namespace berth::dashboard {

/// {"metadata":{name, namespace, uid, resourceVersion},"row":{…}} of an object of `kind`. What is no object stays as it is.
std::string slim_object(RowKind kind, std::string_view object);
/// The row in a slim object, as text.
std::string_view row_in(const std::string& slim);

/// Lists and watches of `kind` bring slim objects; everything else goes through as it is.
std::shared_ptr<client::Transport> with_slim_objects(std::shared_ptr<client::Transport> inner, RowKind kind);

}  // namespace berth::dashboard
