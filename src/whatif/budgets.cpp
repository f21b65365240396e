#include "whatif/budgets.h"

#include <algorithm>

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

}  // namespace

void Budgets::index(Id id) {
  const Budget& budget = all_[id];
  if (budget.view.selector.is_nothing()) return;
  for (const model::Requirement& one : budget.view.selector.requirements())
    if (one.op == model::Requirement::Op::kIn && one.values.size() == 1) {
      by_label_[index_key(budget.view.meta.ns, one.key, one.values[0])].push_back(id);
      return;
    }
  by_label_[index_key(budget.view.meta.ns, "", "")].push_back(id);
}

Budgets::Id Budgets::put(const json::Value& document) {
  auto view = model::PodDisruptionBudgetView::parse(document);
  const std::string key = view.meta.key();
  ++generation_;
  const auto [known, is_new] = by_key_.try_emplace(key, static_cast<Id>(all_.size()));
  const Id id = known->second;
  if (is_new)
    all_.emplace_back();
  else
    for (auto& [label, ids] : by_label_) std::erase(ids, id);
  Budget& out = all_[id];
  out.view = std::move(view);
  out.document = document;
  out.is_gone = false;
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
  std::ranges::sort(out, {}, [&](Id id) { return std::string_view(all_[id].view.meta.name); });
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
