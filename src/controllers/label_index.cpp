#include "controllers/label_index.h"

namespace berth::controllers {

const model::Requirement* SelectorIndex::indexed_by(const model::Selector& selector) {
  for (const model::Requirement& requirement : selector.requirements())
    if (requirement.op == model::Requirement::Op::kIn) return &requirement;
  return nullptr;
}

std::string SelectorIndex::label(std::string_view key, std::string_view value) { return fmt::format("{}={}", key, value); }

void SelectorIndex::set(const std::string& ns, const std::string& name, model::Selector selector) {
  erase(ns, name);
  if (selector.is_nothing()) return;
  Namespace& in = by_ns_[ns];
  if (const model::Requirement* requirement = indexed_by(selector)) {
    for (const std::string& value : requirement->values) in.by_label[label(requirement->key, value)].insert(name);
  } else {
    in.others.insert(name);
  }
  in.selectors.emplace(name, std::move(selector));
}

void SelectorIndex::erase(const std::string& ns, const std::string& name) {
  const auto in = by_ns_.find(ns);
  if (in == by_ns_.end()) return;
  const auto known = in->second.selectors.find(name);
  if (known == in->second.selectors.end()) return;
  if (const model::Requirement* requirement = indexed_by(known->second)) {
    for (const std::string& value : requirement->values) {
      const auto bucket = in->second.by_label.find(label(requirement->key, value));
      bucket->second.erase(name);
      if (bucket->second.empty()) in->second.by_label.erase(bucket);
    }
  } else {
    in->second.others.erase(name);
  }
  in->second.selectors.erase(known);
  if (in->second.selectors.empty()) by_ns_.erase(in);
}

std::vector<std::string> SelectorIndex::matching(std::string_view ns, const model::Labels& labels) const {
  std::vector<std::string> out;
  const auto in = by_ns_.find(ns);
  if (in == by_ns_.end()) return out;
  const auto look = [&](const std::set<std::string>& names) {
    for (const std::string& name : names)
      if (in->second.selectors.at(name).matches(labels)) out.push_back(name);
  };
  look(in->second.others);
  for (const auto& [key, value] : labels.pairs())
    if (const auto bucket = in->second.by_label.find(label(key, value)); bucket != in->second.by_label.end()) look(bucket->second);
  std::sort(out.begin(), out.end());
  return out;
}

void PodLabelIndex::update(const KnownObject& pod, const model::Labels* before, const model::Labels* after) {
  const auto in = by_ns_.find(pod.object->ns());
  if (in == by_ns_.end()) return;
  for (auto& [key, by_value] : in->second) {
    const std::string* was = before != nullptr ? before->get(key) : nullptr;
    const std::string* is = after != nullptr ? after->get(key) : nullptr;
    if (was != nullptr && is != nullptr && *was == *is) continue;
    if (was != nullptr) {
      const auto bucket = by_value.find(*was);
      bucket->second.erase(&pod);
      if (bucket->second.empty()) by_value.erase(bucket);
    }
    if (is != nullptr) by_value[*is].insert(&pod);
  }
}

void PodLabelIndex::forget(std::string_view ns) {
  if (const auto in = by_ns_.find(ns); in != by_ns_.end()) by_ns_.erase(in);
}

const PodLabelIndex::ByValue& PodLabelIndex::indexed(std::string_view ns, const std::string& key, const ObjectSet& pods) {
  const auto [by_value, is_new] = by_ns_[std::string(ns)].try_emplace(key);
  if (is_new)
    for (const KnownObject* known : pods)
      if (const std::string* value = known->object->labels().get(key)) by_value->second[*value].insert(known);
  return by_value->second;
}

void PodLabelIndex::for_each(std::string_view ns, const ObjectSet& pods, const model::Selector& selector,
                             const std::function<void(const PodRef&)>& each) {
  if (selector.is_nothing() || pods.empty()) return;
  const auto walk = [&](const ObjectSet& candidates) {
    for (const PodRef& pod : pods_of(candidates))
      if (selector.matches(pod->labels())) each(pod);
  };
  const auto requirement = std::ranges::find(selector.requirements(), model::Requirement::Op::kIn, [](const auto& one) { return one.op; });
  if (requirement == selector.requirements().end()) return walk(pods);
  const ByValue& by_value = indexed(ns, requirement->key, pods);
  ObjectSet several;
  for (const std::string& value : requirement->values) {
    const auto bucket = by_value.find(value);
    if (bucket == by_value.end()) continue;
    if (requirement->values.size() == 1) return walk(bucket->second);
    several.insert(bucket->second.begin(), bucket->second.end());
  }
  walk(several);
}

}  // namespace berth::controllers
