// ResourceQuotas and LimitRanges.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_limit_range(Object& doc) {
  Object* spec = child(doc, "spec");
  if (spec == nullptr) return;
  each(*spec, "limits", [](Object& item) {
    if (string_at(item, "type") != "Container") return;
    // Each default falls back on the next stricter bound.
    const auto fill = [&](std::string_view to, std::string_view from) {
      Object* source = child(item, from);
      if (source == nullptr) return;
      const Object copy = *source;
      Object& target = make_child(item, to);
      for (const auto& [name, quantity] : copy) put(target, name, quantity);
    };
    fill("default", "max");
    fill("defaultRequest", "default");
    fill("defaultRequest", "min");
  });
}

Array resource_quota_cells(const Value& o, TimePoint now) {
  std::vector<std::string> requests, limits;
  std::vector<std::string> names;
  for (const auto& [key, value] : get_object(o, {"status", "hard"})) names.emplace_back(key);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string text =
        fmt::format("{}: {}/{}", name, get_string(o, {"status", "used", name}, "0"), get_string(o, {"status", "hard", name}));
    (name.starts_with("limits.") ? limits : requests).push_back(text);
  }
  return {name_of(o), join(requests, ", "), join(limits, ", "), age_of(o, now)};
}

}  // namespace

KindInfo limit_range() {
  return Record("", "v1", "LimitRange", "limitranges")
      .shorts({"limits"})
      .does({.form = Form{.defaults = default_limit_range},
             .strategy = kDefault,
             .rules =
                 Rules{.metadata_looks = kLooksAtAllAgain, .create = validation::limit_range, .update = in_turn(validation::limit_range)},
             .printer = created_at_printer(),
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_created_by_update = true, .may_be_nameless = true},
             .counted = kDefault});
}

KindInfo resource_quota() {
  const auto status = [](const Value&, const Value& doc, Errors& errors) {
    const Path at("status");
    for (const char* amounts : {"hard", "used"}) validation::quota_amounts(doc, {"status", amounts}, at / amounts, errors);
  };
  return Record("", "v1", "ResourceQuota", "resourcequotas")
      .shorts({"quota"})
      .subs({"status"})
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.create = validation::quota, .update = in_turn(validation::quota, validation::quota_update), .status = status},
             .printer = Printer{{{"Name"}, {"Request"}, {"Limit"}, {"Age"}}, resource_quota_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = Counted{.by_plural = true}});
}

}  // namespace berth::model::kinds
