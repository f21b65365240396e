#include "parity/eviction.h"

#include "node/eviction/allocatable.h"
#include "node/eviction/manager.h"
#include "parity/eviction_kinds.h"

namespace berth::node::eviction {
namespace {

json::Value quantity_json(const Amount& quantity) {
  return json::Object{{"string", quantity.to_string()}, {"value", quantity.value()}, {"milli", quantity.milli_value()}};
}

json::Value resources_json(const ResourceList& list) {
  json::Object out;
  for (const auto& [name, quantity] : list) out[name] = quantity_json(quantity);
  return out;
}

json::Value reservation_answer(const json::Value& input) {
  Machine machine;
  machine.cores = json::get_int(input, {"machine", "numCores"});
  machine.memory_bytes = json::get_int(input, {"machine", "memoryCapacity"});
  machine.root_fs_bytes = json::get_int(input, {"machine", "rootFsCapacity"});
  machine.max_pid = json::get_int(input, {"machine", "maxPID"});
  for (const json::Value& huge : json::get_array(input, {"machine", "hugePages"}))
    machine.huge_pages.push_back({json::get_int(huge, {"pageSizeKB"}), json::get_int(huge, {"numPages"})});
  ReservationSettings settings;
  settings.kube_reserved = read_statement_map(input, "kubeReserved");
  settings.system_reserved = read_statement_map(input, "systemReserved");
  settings.eviction_hard = read_statement_map(input, "evictionHard");
  settings.ignore_eviction_threshold = json::get_bool(input, {"ignoreEvictionThreshold"});
  settings.local_storage_capacity_isolation = json::get_bool(input, {"localStorageCapacityIsolation"});
  settings.max_pods = json::get_int(input, {"maxPods"});
  settings.pods_per_core = json::get_int(input, {"podsPerCore"});
  const auto resources = compute_node_resources(machine, settings);
  if (!resources) return json::Object{{"error", resources.error()}};
  json::Object out;
  out["capacity"] = resources_json(resources->capacity);
  out["allocatable"] = resources_json(resources->allocatable);
  out["hardEvictionReservation"] = resources_json(resources->eviction_reservation);
  out["reservation"] = resources_json(resources->reservation);
  out["cgroup"] = resources_json(resources->cgroup);
  out["invalid"] = nullptr;
  if (!resources->invalid.empty()) out["invalid"] = json::Array(resources->invalid.begin(), resources->invalid.end());
  return out;
}

json::Value oom_answer(const json::Value& input) {
  const PodFacts facts = read_pod_facts(*json::find(input, "pod"));
  json::Object scores;
  for (const ContainerFacts& container : facts.containers)
    scores[container.name] = oom_score_adjust(facts, container, json::get_int(input, {"memoryCapacity"}, 1), OomScores::kKubernetes136);
  return json::Object{{"qosClass", to_string(facts.qos)},
                      {"critical", facts.is_critical},
                      {"nodeCritical", facts.is_node_critical},
                      {"oomScoreAdj", std::move(scores)}};
}

/// One answer per case against one expectation, or against a list of alternatives.
template <typename Answer>
std::vector<std::string> replay_cases(const json::Value& file, Answer answer) {
  std::vector<std::string> differences;
  const json::Array &cases = json::get_array(file, {"cases"}), &expect = json::get_array(file, {"expect"});
  if (cases.size() != expect.size()) return {"malformed file: cases and expect differ in length"};
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (std::string difference = compare_alternatives(answer(cases[i]), expect[i]); !difference.empty())
      differences.push_back(fmt::format("case {}: {}", i, difference));
  return differences;
}

}  // namespace

StatementMap read_statement_map(const json::Value& object, std::string_view key) {
  StatementMap map;
  for (const auto& [name, value] : json::get_object(object, {key}))
    if (value.is_string()) map.emplace(std::string(name), std::string(json::as_view(value)));
  return map;
}

json::Value threshold_value_json(const ThresholdValue& value) {
  if (value.quantity) return json::Object{{"quantity", value.text}};
  return json::Object{{"percentage", go::format_float(value.percentage)}};
}

std::string compare_alternatives(const json::Value& got, const json::Value& expected) {
  if (!expected.is_array()) return json::equal(got, expected) ? "" : describe_difference(got, expected);
  std::string nearest;
  for (const json::Value& alternative : expected.get_array()) {
    if (json::equal(got, alternative)) return {};
    std::string difference = describe_difference(got, alternative);
    if (nearest.empty() || difference.size() < nearest.size()) nearest = std::move(difference);
  }
  return nearest.empty() ? "no alternative is recorded" : nearest;
}

std::string describe_difference(const json::Value& got, const json::Value& expected) {
  if (got.is_object() && expected.is_object()) {
    std::string out;
    for (const auto& [key, value] : expected.get_object()) {
      const json::Value* mine = got.get_object().if_contains(key);
      if (!mine)
        out += fmt::format("{}: missing; ", std::string_view(key));
      else if (!json::equal(*mine, value))
        out += fmt::format("{}: expected {}, got {}; ", std::string_view(key), json::serialize(value), json::serialize(*mine));
    }
    for (const auto& [key, value] : got.get_object())
      if (!expected.get_object().contains(key))
        out += fmt::format("{}: not expected, got {}; ", std::string_view(key), json::serialize(value));
    return out;
  }
  return fmt::format("expected {}, got {}", json::serialize(expected), json::serialize(got));
}

json::Value observations_json(const Observations& observations) {
  json::Object out;
  for (std::size_t i = 0; i < kSignalCount; ++i)
    if (const auto& observed = observations[i]) {
      json::Object& entry = out[to_string(static_cast<Signal>(i))].emplace_object();
      entry = {{"available", observed->available.to_string()}, {"capacity", observed->capacity.to_string()}};
      if (observed->time) entry["time"] = format_rfc3339(*observed->time);
    }
  return out;
}

bool is_eviction_vector(const json::Value& file) {
  const std::string_view kind = json::get_string(file, {"kind"});
  return kind == "manager" || kind == "parsing" || kind == "oom" || kind == "allocatable";
}

std::vector<std::string> replay_eviction(const json::Value& file) {
  const std::string_view kind = json::get_string(file, {"kind"});
  if (kind == "oom") return replay_cases(file, oom_answer);
  if (kind == "allocatable") return replay_cases(file, reservation_answer);
  if (kind == "parsing") return replay_parsing(file);
  if (kind == "manager") return replay_manager(file);
  return {fmt::format("unknown kind \"{}\"", kind)};
}

}  // namespace berth::node::eviction
