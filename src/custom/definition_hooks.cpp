// What definitions have without being told, and what their status keeps (apiextensions/v1/defaults.go; registry/customresourcedefinition/
// strategy.go).
#include "base/go/strings.h"
#include "custom/check_definition.h"
#include "custom/column_texts.h"
#include "custom/definition.h"
#include "model/tables/tables.h"
#include "model/validation/validation.h"

namespace berth::custom {
namespace {

using json::Value;

void put_text(json::Object& object, std::string_view key, std::string text) {
  auto& slot = object[key];
  if (!slot.is_string() || slot.get_string().empty()) slot = std::move(text);
}

void set_definition_defaults(json::Object& doc) {
  auto* spec = doc.if_contains("spec");
  if (spec == nullptr || !spec->is_object()) return;
  if (auto* names = spec->get_object().if_contains("names"); names != nullptr && names->is_object()) {
    const std::string kind(json::get_string(*names, {"kind"}));
    if (!kind.empty()) {
      put_text(names->get_object(), "singular", go::to_lower(kind));
      put_text(names->get_object(), "listKind", kind + "List");
    }
  }
  auto& conversion = spec->get_object()["conversion"];
  if (!conversion.is_object()) conversion = json::Object{{"strategy", "None"}};
  if (auto* service = json::find(conversion, {"webhook", "clientConfig", "service"}); service != nullptr && service->is_object())
    if (!service->get_object().contains("port")) service->get_object()["port"] = 443;
}

std::optional<std::string> stored_version_of(const Value& doc) {
  for (const auto& version : json::get_array(doc, {"spec", "versions"}))
    if (json::get_bool(version, {"storage"})) return std::string(json::get_string(version, {"name"}));
  return std::nullopt;
}

/// The storage version is one of those that objects may be stored in.
void keep_stored_version(Value& doc) {
  const auto name = stored_version_of(doc);
  if (!name) return;
  auto& status = json::ensure_object(doc, {"status"});
  auto& list = status["storedVersions"];
  if (!list.is_array()) list = json::Array();
  const auto& versions = list.get_array();
  if (std::ranges::none_of(versions, [&](const Value& one) { return one.is_string() && json::as_view(one) == *name; }))
    list.get_array().emplace_back(*name);
}

void prepare_definition(Value& doc) {
  doc.get_object()["status"] = json::Object{
      {"conditions", nullptr}, {"acceptedNames", json::Object{{"plural", ""}, {"kind", ""}}}, {"storedVersions", json::Array()}};
  keep_stored_version(doc);
  json::set(doc, {"metadata", "generation"}, 1);
}

model::Printer definition_printer() {
  model::Printer printer;
  printer.columns = {{"Name", 0, "string", "name", std::string(kNameText)}, {"Created At", 0, "date", "", std::string(kCreationText)}};
  printer.cells = [](const Value& object, TimePoint) {
    return json::Array{Value(json::get_string(object, {"metadata", "name"})),
                       Value(json::get_string(object, {"metadata", "creationTimestamp"}))};
  };
  return printer;
}

/// Formats that nothing checks, in the order in which they stand.
std::vector<std::string> unknown_formats(const Value& doc) {
  std::vector<std::string> out;
  for (const auto& version : json::get_array(doc, {"spec", "versions"}))
    if (const auto* schema = json::find(version, {"schema", "openAPIV3Schema"}))
      any_node(read_schema(*schema), [&](const Schema& node) {
        if (const auto format = unknown_format(node); !format.empty() && std::ranges::find(out, format) == out.end())
          out.emplace_back(format);
        return false;
      });
  return out;
}

}  // namespace

model::KindHooks definition_hooks() {
  auto hooks = model::KindHooks::all_default();
  model::Form form;
  form.keeps_empty = true;
  form.defaults = set_definition_defaults;
  hooks.form = form;
  model::Strategy strategy;
  strategy.prepare_create = prepare_definition;
  strategy.prepare_update = [](const Value&, Value& doc, std::string_view) { keep_stored_version(doc); };
  // Nobody can say that nothing is stored in any version.
  strategy.prepare_status = [](const Value&, Value& doc, std::string_view) {
    if (json::get_array(doc, {"status", "storedVersions"}).empty()) keep_stored_version(doc);
  };
  strategy.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"};
  hooks.strategy = strategy;
  model::Rules rules;
  rules.has_foreign_finalizers = true;
  const auto report = [](model::FieldErrors found, model::validation::Errors& errors) {
    for (auto& error : found) errors.add(std::move(error));
  };
  rules.create = [report](const Value& doc, model::validation::Errors& errors) { report(check_definition(nullptr, doc), errors); };
  rules.update = [report](const Value& old, const Value& doc, std::string_view, model::validation::Errors& errors) {
    report(check_definition(&old, doc), errors);
  };
  rules.warnings = [](const Value* old, const Value& doc, std::vector<std::string>& sentences) {
    const auto before = old == nullptr ? std::vector<std::string>() : unknown_formats(*old);
    for (const auto& format : unknown_formats(doc))
      if (std::ranges::find(before, format) == before.end()) sentences.push_back(fmt::format("unrecognized format \"{}\"", format));
  };
  hooks.rules = rules;
  hooks.printer = definition_printer();
  hooks.life = model::Life{.update_needs_revision = true};
  return hooks;
}

}  // namespace berth::custom
