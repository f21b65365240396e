#include "cli/verbs/strict.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/config_reader.h"
#include "model/schema.h"

namespace berth::cli {
namespace {

using model::TypeRef;

/// What may stand where the last part of the path stands.
std::vector<std::string_view> siblings_of(const model::KindInfo& kind, std::string_view path) {
  const model::TypeDef* type = model::type_of(kind);
  std::size_t at = 0;
  while (type != nullptr) {
    const std::size_t end = path.find('.', at);
    if (end == std::string_view::npos) {
      std::vector<std::string_view> out;
      for (const model::FieldDef& field : type->fields) out.push_back(field.name);
      return out;
    }
    const std::string_view part = path.substr(at, end - at);
    const model::FieldDef* field = type->field(part.substr(0, part.find('[')));
    if (field == nullptr) return {};
    const TypeRef* ref = &field->ref;
    while (ref->element != nullptr) ref = ref->element;
    type = ref->kind == TypeRef::Kind::kStruct ? ref->type : nullptr;
    at = end + 1;
  }
  return {};
}

}  // namespace

void ValidateFlag::add_to(CLI::App& app) {
  app.add_option("--validate", mode,
                 "strict (or true) refuses unknown and duplicate fields, warn tells of them, ignore (or false) does not look")
      ->capture_default_str()
      ->check(CLI::IsMember({"strict", "true", "warn", "ignore", "false"}));
}

std::string ValidateFlag::query() const {
  return std::string("fieldValidation=") + (mode == "warn" ? "Warn" : mode == "ignore" || mode == "false" ? "Ignore" : "Strict");
}

std::vector<std::string> places_of(const Manifest& manifest, std::string_view message) {
  std::vector<std::string> out;
  for (const std::string_view word : {"unknown", "duplicate"}) {
    const std::string lead = fmt::format("{} field \"", word);
    for (std::size_t at = message.find(lead); at != std::string_view::npos; at = message.find(lead, at + 1)) {
      const std::size_t begin = at + lead.size();
      const std::size_t end = message.find('"', begin);
      if (end == std::string_view::npos) break;
      const std::string path(message.substr(begin, end - begin));
      const int line = manifest.line_of(path);
      std::string text = line > 0 ? fmt::format("{}:{}: ", manifest.file, line) : manifest.file + ": ";
      text += fmt::format("{} field \"{}\"", word, path);
      if (word == "unknown" && manifest.kind != nullptr) {
        const std::size_t dot = path.rfind('.');
        const std::vector<std::string_view> known = siblings_of(*manifest.kind, path);
        text += config::suggestion(dot == std::string::npos ? path : path.substr(dot + 1), known);
      }
      out.push_back(std::move(text));
    }
  }
  return out;
}

int report_in_file(const Manifest& manifest, const model::ApiStatus& status, std::string_view doing) {
  model::ApiStatus told = status;
  if (status.code != 0) told.message = fmt::format("error when {} \"{}\": {}", doing, manifest.file, status.message);
  (void)report(told);
  for (const std::string& place : places_of(manifest, status.message)) std::fprintf(stderr, "  %s\n", place.c_str());
  return 1;
}

}  // namespace berth::cli
