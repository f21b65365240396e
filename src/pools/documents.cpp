#include "pools/documents.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/config_reader.h"
#include "custom/definition.h"
#include "custom/objects.h"
#include "model/schema.h"
#include "pools/crds.h"

namespace berth::pools {
namespace {

using Kinds = std::vector<std::shared_ptr<const custom::CustomKind>>;

const Kinds& kinds_of_pools() {
  static const Kinds all = [] {
    Kinds out;
    for (json::Value definition : definitions()) {
      json::set(definition, {"status", "acceptedNames"}, *json::find(definition, {"spec", "names"}));  // Nobody else wants them here.
      for (auto& kind : custom::make_kinds(custom::read_definition(definition), false)) out.push_back(std::move(kind));
    }
    return out;
  }();
  return all;
}

/// What may stand beside the last part of a path ("spec.template.spec.requirments").
std::vector<std::string_view> siblings_of(const custom::Schema& root, std::string_view path) {
  const custom::Schema* at = &root;
  for (std::size_t end = path.find('.'); end != std::string_view::npos && at != nullptr; end = path.find('.')) {
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end + 1);
    at = at->member(part.substr(0, part.find('[')));
    if (at != nullptr && part.ends_with(']')) at = at->items.get();
  }
  std::vector<std::string_view> out;
  if (at != nullptr)
    for (const auto& [name, property] : at->properties) out.push_back(name);
  return out;
}

std::string meant(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& one : kinds_of_pools()) names.push_back(one->info.kind);
  return config::suggestion(name, names);
}

}  // namespace

std::vector<Finding> complete(json::Value& document) {
  const std::string_view name = json::get_string(document, {"kind"}), version = json::get_string(document, {"apiVersion"});
  const auto found = std::ranges::find_if(kinds_of_pools(), [&](const auto& one) { return one->info.kind == name; });
  if (found == kinds_of_pools().end()) return {{"kind", fmt::format("\"{}\" is no kind of node pools{}", name, meant(name)), true}};
  const custom::CustomKind& kind = **found;
  if (version != kind.info.api_version()) return {{"apiVersion", fmt::format("\"{}\": write {}", version, kind.info.api_version())}};
  std::vector<Finding> out;
  const custom::Schema& schema = *kind.version->schema;
  std::vector<std::string> unknown;
  custom::prune(document, schema, true, &unknown);
  for (const std::string& path : unknown)
    out.push_back(
        {path, "unknown field" + config::suggestion(std::string_view(path).substr(path.rfind('.') + 1), siblings_of(schema, path)), true});
  custom::drop_nulls(document, schema);
  custom::set_defaults(document, schema);
  for (const model::FieldError& error : model::validate_create(kind.info, document)) {
    if (error.field == "<nil>") continue;  // That rules were not checked, as the rest is wrong.
    const std::string text = error.render();
    const std::string lead = error.field + ": ";
    out.push_back({error.field, text.starts_with(lead) ? text.substr(lead.size()) : text});
  }
  return out;
}

}  // namespace berth::pools
