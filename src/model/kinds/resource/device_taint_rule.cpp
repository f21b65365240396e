// DeviceTaintRules: taints that an administrator puts on devices, whatever their driver says (KEP-5055;
// pkg/registry/resource/devicetaintrule).
#include "model/devices.h"
#include "model/kinds/record.h"
#include "model/validation/resource_parts.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

constexpr std::size_t kMaxConditions = 8;

void check_status(const Value&, const Value& rule, Errors& errors) {
  const Path status("status");
  const Path at = status / "conditions";
  const json::Array& list = get_array(rule, {"status", "conditions"});
  validation::conditions(list, at, errors);
  if (list.size() > kMaxConditions) errors.too_many(at, list.size(), kMaxConditions);
}

/// Driver, pool and device; "*" for what is not said.
std::string selected_cell(const Value& rule) {
  if (json::find(rule, {"spec", "deviceSelector"}) == nullptr) return "<none>";
  std::string out;
  for (const char* key : {"driver", "pool", "device"}) {
    const std::string_view name = get_string(rule, {"spec", "deviceSelector", key});
    out += fmt::format("{}{}", out.empty() ? "" : "/", name.empty() ? "*" : name);
  }
  return out;
}

Array cells(const Value& rule, TimePoint now) {
  const std::string_view value = get_string(rule, {"spec", "taint", "value"});
  const std::string taint = fmt::format("{}{}{}:{}", get_string(rule, {"spec", "taint", "key"}), value.empty() ? "" : "=", value,
                                        get_string(rule, {"spec", "taint", "effect"}));
  std::string_view state;
  for (const Value& one : get_array(rule, {"status", "conditions"}))
    if (get_string(one, {"type"}) == "EvictionInProgress") state = get_string(one, {"reason"});
  return {name_of(rule), Value(taint), Value(selected_cell(rule)), Value(state), age_of(rule, now)};
}

}  // namespace

KindInfo device_taint_rule() {
  return Record("resource.k8s.io", "v1beta2", "DeviceTaintRule", "devicetaintrules")
      .cluster()
      .subs({"status"})
      .generation()
      .gated_by(Feature::kDRADeviceTaintRules)
      .does(
          {.form = kDefault,
           .strategy = kDefault,
           .rules = Rules{.create = [](const Value& doc, Errors& errors) { validation::devices::device_taint_rule(nullptr, doc, errors); },
                          .update = in_turn([](const Value& old, const Value& doc, Errors& errors) {
                            validation::devices::device_taint_rule(&old, doc, errors);
                          }),
                          .status = check_status,
                          .status_reads_rest = reads_status_alone},
           .printer = Printer{{{"Name"}, {"Taint"}, {"Devices"}, {"Eviction"}, {"Age"}}, cells},
           .selected = kDefault,
           .scale = kDefault,
           .life = Life{.is_answered_when_deleted = true},
           .counted = kDefault});
}

}  // namespace berth::model::kinds
