#include "node/eviction/kubelet_config.h"
#include "parity/eviction_kinds.h"

namespace berth::node::eviction {
namespace {

json::Value threshold_json(const Threshold& threshold) {
  return json::Object{{"signal", to_string(threshold.signal)},
                      {"operator", threshold.has_operator ? "LessThan" : ""},
                      {"value", threshold_value_json(threshold.value)},
                      {"gracePeriod", format_duration_ns(threshold.grace_period_ns)},
                      {"minReclaim", threshold.min_reclaim ? threshold_value_json(*threshold.min_reclaim) : json::Value(nullptr)}};
}

json::Array sorted_thresholds(const std::vector<Threshold>& thresholds) {
  std::map<std::string, std::vector<json::Value>> by_text;
  for (const Threshold& threshold : thresholds) {
    json::Value value = threshold_json(threshold);
    // The recorded lists are sorted by their text with sorted keys.
    const json::Object& o = value.get_object();
    const auto text = fmt::format("{}{}{}{}{}", json::serialize(o.at("gracePeriod")), json::serialize(o.at("minReclaim")),
                                  json::serialize(o.at("operator")), json::serialize(o.at("signal")), json::serialize(o.at("value")));
    by_text[text].push_back(std::move(value));
  }
  json::Array out;
  for (auto& [text, values] : by_text)
    for (json::Value& value : values) out.push_back(std::move(value));
  return out;
}

/// Sorts a recorded list of thresholds as sorted_thresholds does: the recording's own order is by a text of its own making.
json::Value resorted(const json::Value& list) {
  std::vector<std::pair<std::string, json::Value>> entries;
  for (const json::Value& value : list.as_array()) {
    const json::Object& o = value.as_object();
    entries.emplace_back(fmt::format("{}{}{}{}{}", json::serialize(o.at("gracePeriod")), json::serialize(o.at("minReclaim")),
                                     json::serialize(o.at("operator")), json::serialize(o.at("signal")), json::serialize(o.at("value"))),
                         value);
  }
  std::ranges::sort(entries, {}, [](const auto& e) { return e.first; });
  json::Array out;
  for (auto& [text, value] : entries) out.push_back(std::move(value));
  return out;
}

json::Value resorted_alternative(json::Value alternative) {
  if (json::Value* thresholds = json::find(alternative, "thresholds")) *thresholds = resorted(*thresholds);
  if (json::Value* layouts = json::find(alternative, "layouts"))
    for (auto& [name, layout] : layouts->as_object())
      if (json::Value* list = json::find(layout, "containerfs")) *list = resorted(*list);
  return alternative;
}

json::Value parsed_answer(const EvictionSettings& settings) {
  const auto thresholds = parse_thresholds(settings);
  if (!thresholds) return json::Object{{"error", thresholds.error()}};
  json::Object layouts;
  static constexpr std::array<std::pair<std::string_view, DiskLayout>, 4> kLayouts = {
      {{"single", {false, false}}, {"imagefs", {true, false}}, {"split", {true, true}}, {"containerfsOnly", {false, true}}}};
  for (const auto& [name, layout] : kLayouts) {
    std::vector<Threshold> updated = *thresholds, containerfs;
    const std::string warning = add_container_fs_thresholds(updated, layout, 0).warning;
    for (const Threshold& threshold : updated)
      if (threshold.signal == Signal::kContainerFsAvailable || threshold.signal == Signal::kContainerFsInodesFree)
        containerfs.push_back(threshold);
    layouts[name] = json::Object{{"containerfs", sorted_thresholds(containerfs)},
                                 {"warning", warning.empty() ? json::Value(nullptr) : json::Value(warning)}};
  }
  return json::Object{{"thresholds", sorted_thresholds(*thresholds)}, {"layouts", std::move(layouts)}};
}

std::string compare_parsed(const EvictionSettings& settings, const json::Value& expected) {
  const json::Value got = parsed_answer(settings);
  json::Array alternatives;
  for (const json::Value& alternative : expected.as_array()) alternatives.push_back(resorted_alternative(alternative));
  std::string difference = compare_alternatives(got, alternatives);
  if (!difference.empty()) return difference;
  // Every error that the kubelet may report is one that is found here, and the other way round.
  const std::vector<std::string> mine = all_parse_errors(settings);
  const std::set<std::string> errors(mine.begin(), mine.end());
  std::set<std::string> recorded;
  for (const json::Value& alternative : expected.as_array())
    if (const std::string_view error = json::get_string(alternative, {"error"}); !error.empty()) recorded.emplace(error);
  if (errors != recorded) return fmt::format("errors: expected [{}], got [{}]", fmt::join(recorded, "; "), fmt::join(errors, "; "));
  return {};
}

json::Value map_json(const std::optional<StatementMap>& map) {
  if (!map) return nullptr;
  json::Object out;
  for (const auto& [key, value] : *map) out[key] = value;
  return out;
}

std::string compare_configuration(const json::Value& input, const json::Value& expected) {
  const std::string text = input.is_string() ? std::string(json::as_view(input)) : json::serialize(input);
  const auto settings = load_config_text(text, "FILE");
  if (!settings) return compare_alternatives(json::Object{{"error", settings.error()}}, expected);
  json::Object effective;
  effective["evictionHard"] = map_json(settings->eviction_hard);
  effective["evictionSoft"] = map_json(settings->eviction_soft);
  effective["evictionSoftGracePeriod"] = map_json(settings->eviction_soft_grace_period);
  effective["evictionMinimumReclaim"] = map_json(settings->eviction_minimum_reclaim);
  effective["enforceNodeAllocatable"] = json::Array(settings->enforce_node_allocatable.begin(), settings->enforce_node_allocatable.end());
  effective["mergeDefaultEvictionSettings"] = settings->merge_default_eviction_settings;
  effective["evictionMaxPodGracePeriod"] = settings->eviction_max_pod_grace_period_seconds;
  effective["evictionPressureTransitionPeriod"] = format_duration_ns(settings->eviction_pressure_transition_period_ns);
  const json::Value* recorded = json::find(expected, "effective");
  const json::Value* parsed = json::find(expected, "parsed");
  if (!recorded || !parsed) return "expected " + json::serialize(expected) + ", got " + json::serialize(effective);
  if (std::string difference = compare_alternatives(effective, *recorded); !difference.empty()) return "effective: " + difference;
  return compare_parsed(settings->eviction(), *parsed);
}

}  // namespace

std::vector<std::string> replay_parsing(const json::Value& file) {
  std::vector<std::string> differences;
  const json::Array &cases = json::get_array(file, {"cases"}), &expect = json::get_array(file, {"expect"});
  if (cases.size() != expect.size()) return {"malformed file: cases and expect differ in length"};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string difference;
    if (const json::Value* flags = json::find(cases[i], "flags")) {
      EvictionSettings settings;
      settings.hard = read_statement_map(*flags, "evictionHard");
      settings.soft = read_statement_map(*flags, "evictionSoft");
      settings.soft_grace_period = read_statement_map(*flags, "evictionSoftGracePeriod");
      settings.minimum_reclaim = read_statement_map(*flags, "evictionMinimumReclaim");
      settings.enforce_node_allocatable.clear();
      for (const json::Value& key : json::get_array(*flags, {"enforceNodeAllocatable"}))
        settings.enforce_node_allocatable.emplace_back(json::as_view(key));
      difference = compare_parsed(settings, expect[i]);
    } else if (const json::Value* configuration = json::find(cases[i], "kubeletConfiguration")) {
      difference = compare_configuration(*configuration, expect[i]);
    } else {
      difference = "unknown case";
    }
    if (!difference.empty()) differences.push_back(fmt::format("case {}: {}", i, difference));
  }
  return differences;
}

}  // namespace berth::node::eviction
