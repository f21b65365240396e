#include "scheduler/config/published.h"

#include <fmt/format.h>

#include "scheduler/config/arguments.h"
#include "scheduler/config/shown.h"

namespace berth::scheduler::config {
namespace {

constexpr std::string_view kEra120 = "1.20", kEra136 = "1.36";

/// Everybody who may read ConfigMaps reads it: no credentials, and nothing of how the scheduler reaches the server.
json::Value without_secrets(json::Value document) {
  json::erase(document, {"clientConnection"});
  if (json::Value* extenders = json::find(document, "extenders"); extenders != nullptr && extenders->is_array())
    for (json::Value& extender : extenders->get_array())
      for (const char* field : {"tlsConfig", "TLSConfig"}) json::erase(extender, {field});
  return document;
}

/// Files of the scheduler's machine: their content is what is published.
bool names_a_file(std::string_view argument) { return argument == "config" || argument == "policy-config-file"; }

Arguments arguments_of(const json::Value& config_map, const std::string& where) {
  Arguments out;
  const auto parsed = json::parse(json::get_string(config_map, {"data", "arguments.json"}));
  if (!parsed || !parsed->is_object()) return out;
  for (const auto& [name, value] : parsed->get_object())
    out[std::string(name.data(), name.size())] = {{std::string(json::as_view(value))}, fmt::format("{}: data.arguments.json", where)};
  return out;
}

}  // namespace

std::string published_name(std::string_view scheduler_name) { return fmt::format("berth-scheduler-{}", scheduler_name); }

json::Value publish(const Published& published) {
  const SchedulerConfig& config = published.config;
  json::Object data{{"schedulerName", published.scheduler_name},
                    {"compatibility", config.era == placement::Era::k120 ? kEra120 : kEra136},
                    {"hardDisruptionBudgets", published.budgets_are_hard ? "true" : "false"},
                    {"configz.json", json::serialize_pretty(without_secrets(shown(config)))}};
  if (config.document.is_object()) data["configuration.yaml"] = json::to_yaml(without_secrets(config.document));
  json::Object arguments;
  for (const auto& [name, value] : config.arguments)
    if (!names_a_file(name)) arguments[name] = value;
  if (!arguments.empty()) data["arguments.json"] = json::serialize(arguments);
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::Object{{"name", published_name(published.scheduler_name)},
                                                {"namespace", kPublishedNamespace},
                                                {"labels", json::Object{{kPublishedLabel, "true"}}}}},
                      {"data", std::move(data)}};
}

Result<Published> read_published(const json::Value& config_map) {
  const std::string where = fmt::format("ConfigMap {}/{}", json::get_string(config_map, {"metadata", "namespace"}, kPublishedNamespace),
                                        json::get_string(config_map, {"metadata", "name"}));
  Published out;
  out.scheduler_name = json::get_string(config_map, {"data", "schedulerName"});
  if (out.scheduler_name.empty()) return invalid(where + ": data.schedulerName is not there: no scheduler has published it");
  const auto era = json::get_string(config_map, {"data", "compatibility"}) == kEra120 ? placement::Era::k120 : placement::Era::k136;
  out.budgets_are_hard = json::get_string(config_map, {"data", "hardDisruptionBudgets"}) == "true";
  out.config = default_config(era);
  if (const auto text = json::get_string(config_map, {"data", "configuration.yaml"}); !text.empty()) {
    auto config = parse(text, {.file = where, .era = era});
    if (!config) return std::unexpected(config.error());
    out.config = std::move(*config);
  }
  if (auto applied = config::apply(arguments_of(config_map, where), out.config); !applied) return std::unexpected(applied.error());
  // A Policy and the defaults name no scheduler.
  if (out.config.source.is_null()) out.config.profiles.front().scheduler_name = out.scheduler_name;
  if (out.config.profile(out.scheduler_name) == nullptr)
    return invalid(fmt::format("{}: data.configuration.yaml has no profile of the name {}", where, out.scheduler_name));
  return out;
}

}  // namespace berth::scheduler::config
