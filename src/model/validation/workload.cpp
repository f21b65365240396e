// What the specs of workloads have in common: apps, batch, and ReplicationController.
#include <fmt/format.h>

#include "model/internal_form.h"
#include "model/selector.h"
#include "model/validation/workload_parts.h"

namespace berth::model::validation {

using json::get_array;
using json::get_object;
using json::get_string;

const Value& spec_of(const Value& doc) {
  static const Value kEmpty = json::Object();
  const Value* spec = json::find(doc, "spec");
  return spec == nullptr ? kEmpty : *spec;
}

bool selector_of_template(const Value& spec, const Path& at, std::string_view word, Errors& errors) {
  const Value* selector = json::find(spec, "selector");
  const Path selector_at = at / "selector";
  if (selector == nullptr) {
    if (word != "daemonset") errors.required(selector_at);
  } else {
    const std::size_t before = errors.size();
    label_selector(*selector, selector_at, errors);
    if (errors.size() != before) {
      if (word == "deployment") errors.invalid(selector_at, shown_selector(selector), "invalid label selector");
      if (word == "statefulset") errors.invalid(selector_at, shown_selector(selector), "");
      return false;
    }
    if (get_object(*selector, {"matchLabels"}).empty() && get_array(*selector, {"matchExpressions"}).empty())
      errors.invalid(selector_at, shown_selector(selector), "empty selector is invalid for " + std::string(word));
  }
  const Value* labels_value = json::find(spec, {"template", "metadata", "labels"});
  const auto compiled = Selector::from_label_selector(selector);
  if (compiled && !compiled->is_everything() && !compiled->matches(Labels::from_json(labels_value)))
    errors.invalid(at / "template" / "metadata" / "labels", shown_labels(labels_value), "`selector` does not match template `labels`");
  return true;
}

void selector_and_template(const Value& spec, const Path& at, std::string_view word, Errors& errors) {
  selector_of_template(spec, at, word, errors);
  pod_template(spec, at, errors);
}

void restart_always(const Value& spec, const Path& at, std::string_view kind, Errors& errors) {
  const std::string_view policy = get_string(spec, {"template", "spec", "restartPolicy"});
  if (!policy.empty() && policy != "Always") errors.not_supported(at / "template" / "spec" / "restartPolicy", policy, {"Always"});
  if (json::find(spec, {"template", "spec", "activeDeadlineSeconds"}) != nullptr)
    errors.forbidden(at / "template" / "spec" / "activeDeadlineSeconds", fmt::format("activeDeadlineSeconds in {} is not Supported", kind));
}

std::int64_t as_percent_or_zero(const Value* value) {
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  // What is no percentage counts for nothing.
  const std::string_view text = value->is_string() ? json::as_view(*value) : "";
  const auto digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits + 1 == text.size() && text.ends_with('%') ? std::atoll(value->get_string().c_str()) : 0;
}

void not_over_all(const Value& value, const Path& at, Errors& errors) {
  const std::string_view text = value.is_string() ? json::as_view(value) : "";
  if (text.ends_with('%') && as_percent_or_zero(&value) > 100) errors.invalid(at, value, "must not be greater than 100%");
}

Value shown_strategy(const Value& spec, std::string_view key, std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  Value rolling = nullptr;
  if (const Value* given = json::find(spec, {key, "rollingUpdate"})) {
    json::Object out;
    for (const auto& [name, go_name] : fields) {
      const Value* value = json::find(*given, name);
      out[go_name] = value != nullptr ? *value : name == "partition" ? Value(0) : Value(nullptr);
    }
    rolling = std::move(out);
  }
  return json::Object{{"Type", get_string(spec, {key, "type"})}, {"RollingUpdate", std::move(rolling)}};
}

void immutable_selector(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  immutable(old, doc, {"spec", "selector"}, at / "selector", errors, "meta.v1.LabelSelector");
}

}  // namespace berth::model::validation
