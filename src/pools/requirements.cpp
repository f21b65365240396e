#include "pools/requirements.h"

#include <algorithm>
#include <charconv>

namespace berth::pools {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

}  // namespace

void ValueSet::narrow(std::string_view op, const std::vector<std::string>& values) {
  if (op == "In") {
    std::set<std::string> given(values.begin(), values.end());
    if (named_) std::erase_if(given, [&](const std::string& value) { return !named_->contains(value); });
    named_ = std::move(given);
    may_be_absent_ = false;
  } else if (op == "NotIn") {
    excluded_.insert(values.begin(), values.end());
  } else if (op == "Exists") {
    may_be_absent_ = false;
  } else if (op == "DoesNotExist") {
    must_be_absent_ = true;
  } else if (const auto bound = values.empty() ? std::nullopt : number(values.front()); bound) {
    may_be_absent_ = false;
    if (op == "Gt" || op == "Gte") above_ = std::max(above_.value_or(INT64_MIN), op == "Gt" ? *bound : *bound - 1);
    if (op == "Lt" || op == "Lte") below_ = std::min(below_.value_or(INT64_MAX), op == "Lt" ? *bound : *bound + 1);
  }
}

bool ValueSet::admits(const std::string* value) const {
  if (value == nullptr) return may_be_absent_;
  if (must_be_absent_ || excluded_.contains(*value) || (named_ && !named_->contains(*value))) return false;
  if (!above_ && !below_) return true;
  const auto amount = number(*value);
  return amount && (!above_ || *amount > *above_) && (!below_ || *amount < *below_);
}

Requirements parse_requirements(const json::Array& entries) {
  Requirements out;
  for (const json::Value& entry : entries) {
    const std::string_view key = json::get_string(entry, {"key"});
    if (key.empty()) continue;
    std::vector<std::string> values;
    for (const json::Value& value : json::get_array(entry, {"values"}))
      if (value.is_string()) values.emplace_back(json::as_view(value));
    ValueSet& set = out[std::string(key)];
    set.narrow(json::get_string(entry, {"operator"}), values);
    set.min_values = std::max(set.min_values, json::get_int(entry, {"minValues"}));
  }
  return out;
}

bool admit(const Requirements& requirements, const model::Labels& labels, const std::set<std::string, std::less<>>& unknown) {
  return std::ranges::all_of(requirements, [&](const auto& one) {
    const std::string* value = labels.get(one.first);
    return (value == nullptr && unknown.contains(one.first)) || one.second.admits(value);
  });
}

}  // namespace berth::pools
