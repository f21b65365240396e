#include "custom/definition.h"

#include <charconv>

namespace berth::custom {
namespace {

using json::Value;

std::vector<std::string> read_texts(const Value& document, json::Path path) {
  std::vector<std::string> out;
  for (const auto& one : json::get_array(document, path))
    if (one.is_string()) out.emplace_back(json::as_view(one));
  return out;
}

Version read_version(const Value& document) {
  Version out;
  out.name = json::get_string(document, {"name"});
  out.is_served = json::get_bool(document, {"served"});
  out.is_stored = json::get_bool(document, {"storage"});
  out.is_deprecated = json::get_bool(document, {"deprecated"});
  if (const auto* text = json::find(document, "deprecationWarning"); text != nullptr && text->is_string())
    out.deprecation_warning = json::as_view(*text);
  out.has_status = json::find(document, {"subresources", "status"}) != nullptr;
  if (const auto* scale = json::find(document, {"subresources", "scale"}))
    out.scale = ScalePaths{std::string(json::get_string(*scale, {"specReplicasPath"})),
                           std::string(json::get_string(*scale, {"statusReplicasPath"})),
                           std::string(json::get_string(*scale, {"labelSelectorPath"}))};
  for (const auto& column : json::get_array(document, {"additionalPrinterColumns"}))
    out.columns.push_back({std::string(json::get_string(column, {"name"})), std::string(json::get_string(column, {"type"})),
                           std::string(json::get_string(column, {"format"})), std::string(json::get_string(column, {"description"})),
                           std::string(json::get_string(column, {"jsonPath"})), json::get_int(column, {"priority"})});
  for (const auto& field : json::get_array(document, {"selectableFields"}))
    out.selectable.emplace_back(json::get_string(field, {"jsonPath"}));
  if (const auto* schema = json::find(document, {"schema", "openAPIV3Schema"})) {
    out.schema_document = *schema;
    out.schema = std::make_shared<const Schema>(read_schema(*schema));
  } else {
    out.schema = std::make_shared<const Schema>();
  }
  return out;
}

/// "v1beta2" as (2: v, 1: beta, 0: alpha; major; minor), nothing for names of no such form.
struct Rank {
  int stability = 0;
  std::int64_t major = 0, minor = 0;
};
std::optional<Rank> rank_of(std::string_view name) {
  if (!name.starts_with('v')) return std::nullopt;
  name.remove_prefix(1);
  Rank out{2, 0, 0};
  const auto number = [&](std::int64_t& into) {
    if (name.empty() || name.front() == '0') return false;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), into);
    if (error != std::errc()) return false;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    return true;
  };
  if (!number(out.major)) return std::nullopt;
  if (name.empty()) return out;
  for (const auto& [word, stability] : {std::pair<std::string_view, int>("beta", 1), std::pair<std::string_view, int>("alpha", 0)}) {
    if (!name.starts_with(word)) continue;
    name.remove_prefix(word.size());
    out.stability = stability;
    return number(out.minor) && name.empty() ? std::optional(out) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool is_version_before(std::string_view a, std::string_view b) {
  const auto x = rank_of(a), y = rank_of(b);
  if (x && y) return std::tie(x->stability, x->major, x->minor) > std::tie(y->stability, y->major, y->minor);
  if (x || y) return x.has_value();
  return a < b;
}

const Version* Definition::stored_version() const {
  const auto found = std::ranges::find_if(versions, &Version::is_stored);
  return found == versions.end() ? nullptr : &*found;
}

Names read_names(const Value& names) {
  return {std::string(json::get_string(names, {"plural"})),
          std::string(json::get_string(names, {"singular"})),
          std::string(json::get_string(names, {"kind"})),
          std::string(json::get_string(names, {"listKind"})),
          read_texts(names, {"shortNames"}),
          read_texts(names, {"categories"})};
}

std::shared_ptr<const Definition> read_definition(const Value& document) {
  auto out = std::make_shared<Definition>();
  out->name = json::get_string(document, {"metadata", "name"});
  out->generation = json::get_int(document, {"metadata", "generation"});
  out->group = json::get_string(document, {"spec", "group"});
  out->is_namespaced = json::get_string(document, {"spec", "scope"}) == "Namespaced";
  out->preserves_unknown = json::get_bool(document, {"spec", "preserveUnknownFields"});
  if (const auto* names = json::find(document, {"spec", "names"})) out->names = read_names(*names);
  if (const auto* names = json::find(document, {"status", "acceptedNames"})) out->accepted = read_names(*names);
  for (const auto& version : json::get_array(document, {"spec", "versions"})) out->versions.push_back(read_version(version));
  if (json::get_string(document, {"spec", "conversion", "strategy"}) == "Webhook") {
    Webhook webhook;
    if (const auto* config = json::find(document, {"spec", "conversion", "webhook", "clientConfig"})) webhook.client_config = *config;
    webhook.review_versions = read_texts(document, {"spec", "conversion", "webhook", "conversionReviewVersions"});
    out->conversion = std::move(webhook);
  }
  for (const auto& condition : json::get_array(document, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "Established") out->is_established = json::get_string(condition, {"status"}) == "True";
  return out;
}

}  // namespace berth::custom
