#include "apiserver/etcd/older_definitions.h"

#include <array>

namespace berth::apiserver::etcd {
namespace {

json::Object* object_at(json::Object& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->value().is_object() ? &found->value().get_object() : nullptr;
}

/// JSONPath of v1beta1 is jsonPath in v1.
void rename_paths(json::Object& version) {
  const auto columns = version.find("additionalPrinterColumns");
  if (columns == version.end() || !columns->value().is_array()) return;
  for (json::Value& column : columns->value().get_array()) {
    if (!column.is_object()) continue;
    json::Object& fields = column.get_object();
    if (const auto path = fields.find("JSONPath"); path != fields.end()) {
      json::Value value = path->value();
      fields.erase(path);
      fields["jsonPath"] = std::move(value);
    }
  }
}

void convert_conversion(json::Object& conversion) {
  json::Object webhook;
  for (const auto& [old_name, name] :
       {std::pair("webhookClientConfig", "clientConfig"), {"conversionReviewVersions", "conversionReviewVersions"}})
    if (const auto found = conversion.find(old_name); found != conversion.end()) {
      webhook[name] = found->value();
      conversion.erase(found);
    }
  const auto strategy = conversion.find("strategy");
  if (strategy != conversion.end() && strategy->value() == json::Value("Webhook") && !webhook.empty())
    conversion["webhook"] = std::move(webhook);
}

}  // namespace

void definition_from_v1beta1(json::Value& document) {
  json::Object* spec = object_at(document.get_object(), "spec");
  if (spec == nullptr) return;
  json::Value& versions = (*spec)["versions"];
  if (!versions.is_array()) versions = json::Array{};
  if (versions.get_array().empty() && spec->contains("version"))
    versions.get_array().push_back(json::Object{{"name", (*spec)["version"]}, {"served", true}, {"storage", true}});
  constexpr std::array kShared = {std::pair("validation", "schema"), std::pair("subresources", "subresources"),
                                  std::pair("additionalPrinterColumns", "additionalPrinterColumns"),
                                  std::pair("selectableFields", "selectableFields")};
  for (json::Value& version : versions.get_array()) {
    if (!version.is_object()) continue;
    for (const auto& [old_name, name] : kShared)
      if (const auto found = spec->find(old_name); found != spec->end() && !version.get_object().contains(name))
        version.get_object()[name] = found->value();
    rename_paths(version.get_object());
  }
  for (const auto& [old_name, name] : kShared) spec->erase(old_name);
  spec->erase("version");
  // What nobody said was true then, and is false now.
  if (const auto keeps = spec->find("preserveUnknownFields"); keeps == spec->end())
    (*spec)["preserveUnknownFields"] = true;
  else if (keeps->value() == json::Value(false))
    spec->erase(keeps);
  if (json::Object* conversion = object_at(*spec, "conversion"); conversion != nullptr) convert_conversion(*conversion);
}

}  // namespace berth::apiserver::etcd
