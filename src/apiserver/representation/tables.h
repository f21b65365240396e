// Objects as rows of a Table, with the columns of their kind.
#pragma once
#include <span>

#include "apiserver/request/context.h"
#include "base/json.h"

namespace berth::apiserver {

/// How somebody wants a Table.
struct TableAsk {
  std::string_view meta_version = "meta.k8s.io/v1";
  std::string_view object_policy = {};  ///< The includeObject parameter ("None", "Metadata", "Object"; empty: Metadata).
};
TableAsk table_ask(const Request& request);
/// Table of documents of `kind` with Kubernetes' columns. Without `columns` the definitions are left out (later events of a watch).
json::Value make_table(const model::KindInfo& kind, std::span<const json::Value> items, json::Object metadata, const TableAsk& ask,
                       bool columns, TimePoint now);
/// A Table, and what its rows carry, in another version of meta.k8s.io.
void put_meta_version(json::Value& table, std::string_view meta_version);

}  // namespace berth::apiserver
