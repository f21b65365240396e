#include "whatif/budgets.h"

#include <algorithm>

#include "controllers/common.h"

namespace berth::whatif {
namespace {

std::string index_key(std::string_view ns, std::string_view key, std::string_view value) {
  std::string out(ns);
  out += '\0';
  out += key;
  out += '\0';
  out += value;
  return out;
}

bool is_percentage(const json::Value* value) { return value != nullptr && value->is_string(); }

}  // namespace

bool Budget::selects(const model::PodView& pod) const {
  return !is_gone && !selects_nothing && pod.meta.ns == ns && selector.matches(pod.meta.labels);
}

std::int64_t desired_healthy(const json::Value& budget, std::int64_t scale, std::int64_t pods) {
  const json::Value* maximum = json::find(budget, {"spec", "maxUnavailable"});
  const json::Value* minimum = json::find(budget, {"spec", "minAvailable"});
  if (maximum != nullptr) return std::max<std::int64_t>(0, scale - controllers::scaled_value(maximum, scale, true, 0));
  if (minimum == nullptr) return 0;
  return controllers::scaled_value(minimum, is_percentage(minimum) ? scale : pods, true, 0);
}

void Budgets::index(Id id) {
  const Budget& budget = all_[id];
  if (budget.selects_nothing) return;
  for (const model::Requirement& one : budget.selector.requirements())
    if (one.op == model::Requirement::Op::kIn && one.values.size() == 1) {
      by_label_[index_key(budget.ns, one.key, one.values[0])].push_back(id);
      return;
    }
  by_label_[index_key(budget.ns, "", "")].push_back(id);
}

Budgets::Id Budgets::put(const json::Value& document) {
  const std::string ns(json::get_string(document, {"metadata", "namespace"})), name(json::get_string(document, {"metadata", "name"}));
  const std::string key = ns + "/" + name;
  ++generation_;
  const auto [known, is_new] = by_key_.try_emplace(key, static_cast<Id>(all_.size()));
  const Id id = known->second;
  if (is_new)
    all_.emplace_back();
  else
    for (auto& [label, ids] : by_label_) std::erase(ids, id);
  Budget& out = all_[id];
  out.ns = ns;
  out.name = name;
  out.document = document;
  out.is_gone = false;
  auto selector = model::Selector::from_label_selector(json::find(document, {"spec", "selector"}));
  out.selects_nothing =
      !selector || selector->is_nothing() || (selector->is_everything() && json::get_string(document, {"apiVersion"}) == "policy/v1beta1");
  out.selector = selector ? std::move(*selector) : model::Selector::nothing();
  out.always_allows_unhealthy = json::get_string(document, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow";
  index(id);
  return id;
}

const Budget* Budgets::find(std::string_view key) const {
  const auto known = by_key_.find(key);
  return known == by_key_.end() || all_[known->second].is_gone ? nullptr : &all_[known->second];
}

bool Budgets::erase(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || all_[found->second].is_gone) return false;
  all_[found->second].is_gone = true;
  ++generation_;
  return true;
}

std::vector<Budgets::Id> Budgets::of(const model::PodView& pod) const {
  std::vector<Id> out;
  if (all_.empty()) return out;
  const auto look = [&](std::string_view key, std::string_view value) {
    const auto found = by_label_.find(index_key(pod.meta.ns, key, value));
    if (found == by_label_.end()) return;
    for (const Id id : found->second)
      if (all_[id].selects(pod)) out.push_back(id);
  };
  look("", "");
  for (const auto& [key, value] : pod.meta.labels.pairs()) look(key, value);
  std::ranges::sort(out, {}, [&](Id id) { return std::string_view(all_[id].name); });
  return out;
}

std::vector<std::string> Budgets::names() const {
  std::vector<std::string> out;
  for (const Budget& one : all_)
    if (!one.is_gone) out.push_back(one.key());
  return out;
}

bool Budgets::count(Id id, int by) {
  Budget& budget = all_[id];
  const std::int64_t before = budget.allowed();
  budget.healthy += by;
  budget.lowest = std::min(budget.lowest, budget.healthy);
  budget.is_touched = true;
  return budget.allowed() != before;
}

void Budgets::start() {
  for (Budget& one : all_) {
    one.first_healthy = one.healthy;
    one.first_desired = one.desired;
    one.lowest = one.healthy;
    one.is_touched = false;
    one.is_broken = false;
    one.blocks.clear();
  }
}

}  // namespace berth::whatif
