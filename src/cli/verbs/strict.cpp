#include "cli/verbs/strict.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/config_reader.h"
#include "base/split.h"
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

/// The element of a list that `[…]` of a server-side apply's path means: an index, `name="c"` of a list with keys, `="x"` of a set.
std::size_t element_of(const json::Array& list, std::string_view content) {
  if (!content.empty() && content.find_first_not_of("0123456789") == std::string_view::npos)
    return std::strtoul(std::string(content).c_str(), nullptr, 10);
  const auto has_keys = [&](const json::Value& element) {
    if (content.starts_with('=')) return json::serialize(element) == content.substr(1);
    for (const auto pair : words(content, ',')) {
      const std::size_t equals = pair.find('=');
      const json::Value* value = equals == std::string_view::npos ? nullptr : json::find(element, pair.substr(0, equals));
      // Keys that the element leaves out have a default.
      if (value != nullptr && json::serialize(*value) != pair.substr(equals + 1)) return false;
    }
    return true;
  };
  return static_cast<std::size_t>(std::ranges::find_if(list, has_keys) - list.begin());
}

/// `.spec.containers[name="c"].imagee` as the document has it: `spec.containers[0].imagee`.
std::string indexed_path(const json::Value& document, std::string_view path) {
  const json::Value* at = &document;
  std::string out;
  while (!path.empty()) {
    if (path.starts_with('[')) {
      const std::size_t close = std::min(path.find(']'), path.size());
      const std::size_t index = at != nullptr && at->is_array() ? element_of(at->get_array(), path.substr(1, close - 1)) : 0;
      out += fmt::format("[{}]", index);
      at = at != nullptr && at->is_array() && index < at->get_array().size() ? &at->get_array()[index] : nullptr;
      path.remove_prefix(std::min(path.size(), close + 1));
      continue;
    }
    if (path.starts_with('.')) path.remove_prefix(1);
    const std::string_view key = path.substr(0, path.find_first_of(".["));
    out += (out.empty() ? "" : ".") + std::string(key);
    at = at == nullptr ? nullptr : json::find(*at, key);
    path.remove_prefix(key.size());
  }
  return out;
}

/// "pods.yaml:7: unknown field \"spec.nodeSelectr\"; did you mean \"nodeSelector\"?"
std::string place_of(const Manifest& manifest, std::string_view word, const std::string& path) {
  const int line = manifest.line_of(path);
  std::string text = line > 0 ? fmt::format("{}:{}: ", manifest.file, line) : manifest.file + ": ";
  text += fmt::format("{} field \"{}\"", word, path);
  if (word == "unknown" && manifest.kind != nullptr) {
    const std::size_t dot = path.rfind('.');
    const std::vector<std::string_view> known = siblings_of(*manifest.kind, path);
    text += config::suggestion(dot == std::string::npos ? path : path.substr(dot + 1), known);
  }
  return text;
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
      out.push_back(place_of(manifest, word, std::string(message.substr(begin, end - begin))));
    }
  }
  // Server-side apply has words of its own.
  constexpr std::string_view kNotDeclared = ": field not declared in schema";
  for (std::size_t at = message.find(kNotDeclared); at != std::string_view::npos; at = message.find(kNotDeclared, at + 1)) {
    const std::size_t space = message.find_last_of(" \n", at - 1);
    const std::size_t begin = space == std::string_view::npos ? 0 : space + 1;
    out.push_back(place_of(manifest, "unknown", indexed_path(manifest.document, message.substr(begin, at - begin))));
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
