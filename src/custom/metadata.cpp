#include "custom/metadata.h"

#include <fmt/format.h>

#include "model/go_words.h"
#include "model/internal_form.h"
#include "model/schema.h"
#include "model/unknown_fields.h"
#include "model/validation/validation.h"

namespace berth::custom {
namespace {

/// A kind whose metadata is like everybody's.
const model::KindInfo& plain_kind() {
  static const auto* kind = model::find_kind("", "v1", "ConfigMap");
  return *kind;
}

}  // namespace

std::string shown(const json::Value& value) {
  if (value.is_null()) return "null";
  if (value.is_string()) return model::go_quote(json::as_view(value));
  if (value.is_object() || value.is_array()) return model::escape_html(json::serialize(model::sorted_members(value)));
  return json::serialize(value);
}

std::optional<model::DecodeError> decode_metadata(json::Value& metadata, std::vector<std::string>* unknown) {
  json::Value wrapped = json::Object{{"metadata", std::move(metadata)}};
  model::DecodeReport report;
  auto decoded = model::decode(plain_kind(), wrapped, report, false);
  if (decoded && !report.unknown_fields.empty()) model::drop_unknown_fields(plain_kind(), wrapped, nullptr);
  if (auto* back = wrapped.get_object().if_contains("metadata")) metadata = std::move(*back);
  constexpr std::string_view kField = "metadata";
  if (!decoded) {
    // Read alone, not as a field.
    auto& error = decoded.error();
    if (error.path == kField) error.owner.clear();
    error.path.erase(0, std::min(error.path.size(), kField.size() + 1));
    return std::move(error);
  }
  if (unknown != nullptr)
    for (const auto& field : report.unknown_fields)
      if (field.starts_with("metadata.")) unknown->push_back(field.substr(kField.size() + 1));
  return std::nullopt;
}

model::FieldErrors check_embedded_metadata(const json::Value& metadata, const std::string& path) {
  using namespace model::validation;
  json::Value wrapped = json::Object{{"metadata", metadata.is_object() ? metadata : json::Value(json::Object())}};
  const std::string name(json::get_string(metadata, {"name"}));
  json::set(wrapped, {"metadata", "name"}, "fakename");
  auto kind = plain_kind();
  kind.namespaced = !json::get_string(metadata, {"namespace"}).empty();
  Errors errors;
  if (const auto why = check_path_segment(name); !why.empty()) {
    const Path at("metadata");
    errors.invalid(at / "name", name, why);
  }
  object_meta(kind, wrapped, errors);
  auto found = errors.take();
  constexpr std::size_t kPrefix = std::string_view("metadata").size();
  for (auto& error : found) error.field = path + error.field.substr(kPrefix);
  return found;
}

}  // namespace berth::custom
