#include "apiserver/representation/tables.h"

#include "model/tables/tables.h"

namespace berth::apiserver {

TableAsk table_ask(const Request& request) { return {request.accept.meta_version, request.query.get("includeObject")}; }

void put_meta_version(json::Value& table, std::string_view meta_version) {
  table.get_object()["apiVersion"] = meta_version;
  for (auto& row : table.at("rows").get_array())
    if (auto* object = json::find(row, "object"); object != nullptr && json::get_string(*object, {"kind"}) == "PartialObjectMetadata")
      object->get_object()["apiVersion"] = meta_version;
}

json::Value make_table(const model::KindInfo& kind, std::span<const json::Value> items, json::Object metadata, const TableAsk& ask,
                       bool columns, TimePoint now) {
  const auto include = ask.object_policy == "None"     ? model::IncludeObject::kNone
                       : ask.object_policy == "Object" ? model::IncludeObject::kObject
                                                       : model::IncludeObject::kMetadata;
  auto table = model::make_table(kind, items, now, include, std::move(metadata), columns);
  if (ask.meta_version != "meta.k8s.io/v1") put_meta_version(table, ask.meta_version);
  return table;
}

}  // namespace berth::apiserver
