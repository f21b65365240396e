#include "controllers/selector_words.h"

#include <fmt/format.h>

#include <map>

namespace berth::controllers {

std::string selector_in_go_words(const json::Value* selector) {
  if (selector == nullptr) return "nil";
  std::map<std::string, std::string> sorted;
  for (const auto& label : json::get_object(*selector, {"matchLabels"}))
    if (label.value().is_string()) sorted.emplace(label.key(), json::as_view(label.value()));
  std::string labels, expressions;
  for (const auto& [key, value] : sorted) labels += fmt::format("{}: {},", key, value);
  for (const json::Value& expression : json::get_array(*selector, {"matchExpressions"})) {
    std::string values;
    for (const json::Value& value : json::get_array(expression, {"values"}))
      if (value.is_string()) values += fmt::format("{}{}", values.empty() ? "" : " ", json::as_view(value));
    expressions += fmt::format("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},", json::get_string(expression, {"key"}),
                               json::get_string(expression, {"operator"}), values);
  }
  return fmt::format("&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}", labels,
                     expressions);
}

}  // namespace berth::controllers
