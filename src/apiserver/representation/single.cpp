// One object, one document.
#include "apiserver/representation/representation.h"
#include "apiserver/representation/tables.h"
#include "apiserver/request/request_body.h"
#include "base/json_indented.h"
#include "model/protobuf/protobuf.h"

namespace berth::apiserver {

std::string_view content_type_of(Format format) {
  return format == Format::kProtobuf ? "application/vnd.kubernetes.protobuf"
         : format == Format::kYaml   ? "application/yaml"
                                     : "application/json";
}

json::Value partial_metadata(const json::Value& document, std::string_view meta_version) {
  json::Object out{{"kind", "PartialObjectMetadata"}, {"apiVersion", meta_version}};
  if (const auto* metadata = json::find(document, "metadata")) out["metadata"] = *metadata;
  return out;
}

bool Representation::is_pretty() const {
  if (request_.accept.pretty || request_.query.flag("pretty")) return true;
  if (request_.query.has("pretty")) return false;
  const auto agent = request_.http.headers.get("User-Agent");
  return agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0");
}

bool Representation::is_stored_text(const StoredObject& object) const { return is_plain_json() && is_shown_as_stored(request_, object); }

Body Representation::of(const StoredObject& object) const {
  const bool as_stored = request_.kind != nullptr && is_shown_as_stored(request_, object);
  if (!as_stored || !is_protobuf()) return of(read_document(request_, object));
  const bool is_whole = request_.accept.form == ObjectForm::kFull;
  auto text = is_whole ? model::encode_protobuf(*model::type_of(*request_.kind), request_.kind->api_version(), request_.kind->kind,
                                                object.text().here())
                       : model::encode_protobuf(model::partial_metadata_type(), request_.accept.meta_version, "PartialObjectMetadata",
                                                object.text().here());
  if (!text) return of(decode_object(object));
  return {std::move(*text), content_type_of(Format::kProtobuf)};
}

Body Representation::of(const json::Value& document) const {
  if (is_table()) {
    json::Object metadata;
    if (const auto version = json::get_string(document, {"metadata", "resourceVersion"}); !version.empty())
      metadata["resourceVersion"] = version;
    return as_is(make_table(*request_.kind, {&document, 1}, std::move(metadata), table_ask(request_), true, clock_.now()));
  }
  const bool is_partial = request_.accept.form == ObjectForm::kPartialMetadata;
  return as_is(is_partial ? partial_metadata(document, request_.accept.meta_version) : document);
}

Body Representation::as_is(const json::Value& document) const { return as_is(document, request_.accept.format); }

Body Representation::as_is(const json::Value& document, Format format) const {
  if (format == Format::kProtobuf)
    if (auto text = model::encode_protobuf(document)) return {std::move(*text), content_type_of(format)};
  if (format == Format::kYaml) return {json::to_yaml(by_name(document)), content_type_of(format)};
  // As Kubernetes' serializers write it: one line that ends, or indented text that does not.
  return {is_pretty() ? json::serialize_indented(document, 2) : json::serialize(document) + "\n", content_type_of(Format::kJson)};
}

}  // namespace berth::apiserver
