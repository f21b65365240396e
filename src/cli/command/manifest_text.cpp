#include "cli/command/manifest_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/config_reader.h"
#include "base/config_repair.h"
#include "cli/command/session.h"
#include "model/schema.h"

namespace berth::cli {
namespace {

using config::Look;
using model::TypeRef;

/// Values that are of another type than their field, by path.
class Misfits {
 public:
  void look_at(const json::Value& value, const TypeRef& ref, const std::string& path) {
    if (value.is_null() || ref.either != TypeRef::Either::kNothing) return;
    switch (ref.kind) {
      case TypeRef::Kind::kInt32:
      case TypeRef::Kind::kInt64:
      case TypeRef::Kind::kDouble:
        return want(value.is_number(), path);
      case TypeRef::Kind::kBool:
        return want(value.is_bool(), path);
      case TypeRef::Kind::kString:
      case TypeRef::Kind::kTime:
      case TypeRef::Kind::kMicroTime:
      case TypeRef::Kind::kBytes:
        return want(value.is_string(), path);
      case TypeRef::Kind::kQuantity:
        return want(value.is_number() || (value.is_string() && !has_blank(value)), path);
      case TypeRef::Kind::kStruct:
        want(value.is_object(), path);
        if (value.is_object() && ref.type != nullptr) look_into(value.get_object(), *ref.type, path);
        return;
      case TypeRef::Kind::kList:
        want(value.is_array(), path);
        if (const auto* list = value.if_array(); list != nullptr && ref.element != nullptr)
          for (std::size_t i = 0; i < list->size(); ++i) look_at((*list)[i], *ref.element, fmt::format("{}[{}]", path, i));
        return;
      case TypeRef::Kind::kMap:
        want(value.is_object(), path);
        if (const auto* map = value.if_object(); map != nullptr && ref.element != nullptr)
          for (const auto& [key, entry] : *map) look_at(entry, *ref.element, fmt::format("{}.{}", path, std::string_view(key)));
        return;
      case TypeRef::Kind::kAny:
      case TypeRef::Kind::kIntOrString:
        return;
    }
  }
  void look_into(const json::Object& object, const model::TypeDef& type, const std::string& path) {
    for (const auto& [key, value] : object) {
      const std::string_view name(key);
      const std::string here = path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
      // Nobody checks a scheduler's name, but none has a blank in it: the pod would wait for ever.
      if (name == "schedulerName" && value.is_string() && has_blank(value)) paths.push_back(here);
      if (const model::FieldDef* field = type.field(name)) look_at(value, field->ref, here);
    }
  }

  std::vector<std::string> paths;

 private:
  void want(bool fits, const std::string& path) {
    if (!fits) paths.push_back(path);
  }
  static bool has_blank(const json::Value& text) { return json::as_view(text).contains(' '); }
};

/// Where an object's values cannot be what its kind has there.
std::vector<std::string> misfits_of(const model::KindInfo& kind, const json::Value& object) {
  Misfits misfits;
  if (const model::TypeDef* type = model::type_of(kind)) misfits.look_into(object.get_object(), *type, "");
  if (!misfits.paths.empty()) return misfits.paths;
  json::Value copy = object;
  model::DecodeReport report;
  if (!model::decode(kind, copy, report)) return misfits.paths;  // The server says why.
  model::apply_defaults(kind, copy);
  model::prepare_for_create(kind, copy);
  using Type = model::FieldError::Type;
  for (const model::FieldError& error : model::validate_create(kind, copy))
    if ((error.type == Type::kInvalid || error.type == Type::kNotSupported) && error.value.starts_with('"') && error.value.contains(' '))
      misfits.paths.push_back(error.field);  // A word with something behind it; of the rest the server tells.
  return misfits.paths;
}

/// What the kinds of a text's objects say of it. Objects of kinds that nobody knows are no text of the documents'.
Look look_at_objects(const std::vector<json::Value>& documents, const std::string& text) {
  Look out{.is_parsed = true};
  for (std::size_t number = 0; number < documents.size(); ++number) {
    const json::Value& document = documents[number];
    const json::Array alone = {document};
    const bool is_list = json::get_string(document, {"kind"}).ends_with("List") && json::find(document, {"items"}) != nullptr;
    const json::Array& objects = is_list ? json::get_array(document, {"items"}) : alone;
    const auto line_of = config::line_finder(text, number);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const auto kind = objects[i].is_object() ? kind_of(objects[i]) : std::unexpected(Error{});
      out.problems += kind ? 0 : 1;
      if (!kind) continue;
      for (const std::string& path : misfits_of(**kind, objects[i])) {
        ++out.problems;
        out.lines.insert(line_of(is_list ? fmt::format("items[{}].{}", i, path) : path));
      }
    }
  }
  return out;
}

}  // namespace

Result<ManifestText> read_manifest_text(std::string_view text) {
  auto given = json::parse_yaml_stream(text);
  Look look;
  if (given) {
    const auto lacks_kind = [](const json::Value& one) { return json::get_string(one, {"kind"}).empty(); };
    const bool is_cut = given->size() > 1 && std::ranges::any_of(*given, lacks_kind);  // `...` ends a document.
    if (!is_cut && !config::may_have_callouts(text)) return ManifestText{std::move(*given), std::string(text), {}};
    look = look_at_objects(*given, std::string(text));
    look.is_parsed = !is_cut;
    if (look.is_taken()) return ManifestText{std::move(*given), std::string(text), {}};
  }
  ManifestText taken;
  const auto read = [&](const std::string& mended) {
    auto documents = json::parse_yaml_stream(mended);
    if (!documents) return Look{};
    Look found = look_at_objects(*documents, mended);
    taken.documents = std::move(*documents);
    return found;
  };
  config::Mended mended = config::as_documents_mean(text, config::TextKind::kManifest, look, read);
  if (mended.look.is_taken()) {
    taken.text = std::move(mended.text);
    taken.changes = std::move(mended.changes);
    return taken;
  }
  if (!given) return std::unexpected(given.error());
  return ManifestText{std::move(*given), std::string(text), {}};
}

}  // namespace berth::cli
