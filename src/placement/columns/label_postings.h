// Which of many selectors may match some labels, and which of many label sets some selectors: by one label that must be there.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model/selector.h"
#include "placement/sharded_map.h"

namespace berth::placement {

/// Ids by label; copies share what neither changes. Candidates are a superset of what matches: whoever asks still has to try. Lists are in
/// order of insertion; a hash may put two labels together.
class LabelPostings {
 public:
  using Ids = std::vector<std::uint32_t>;

  /// The requirement that a label set must satisfy with one of the values it names; null: nothing can be told from one label.
  static const model::Requirement* key_of(const model::Selector& selector) {
    for (const auto& requirement : selector.requirements())
      if (requirement.op == model::Requirement::Op::kIn) return &requirement;
    return nullptr;
  }

  /// `requirement` null: `id` is a candidate for whatever labels.
  void add_selector(std::uint32_t id, const model::Requirement* requirement) {
    if (requirement == nullptr) return any_.push_back(id);
    for (const auto& value : requirement->values) by_label_[hash(requirement->key, value)].push_back(id);
  }
  void add_labels(std::uint32_t id, const model::Labels& labels) {
    for (const auto& [key, value] : labels.pairs()) by_label_[hash(key, value)].push_back(id);
  }

  /// Ids of selectors from `first` on that may match the labels; an id may come more than once.
  template <typename Visit>
  void for_labels(const model::Labels& labels, std::uint32_t first, Visit&& visit) const {
    const auto go = [&](const Ids& ids) {
      for (auto at = std::ranges::lower_bound(ids, first); at != ids.end(); ++at) visit(*at);
    };
    go(any_);
    if (by_label_.empty()) return;
    for (const auto& [key, value] : labels.pairs())
      if (const Ids* ids = by_label_.find(hash(key, value))) go(*ids);
  }
  /// Ids of label sets that have one of the values; an id may come more than once.
  template <typename Visit>
  void for_requirement(const model::Requirement& requirement, Visit&& visit) const {
    for (const auto& value : requirement.values)
      if (const Ids* ids = by_label_.find(hash(requirement.key, value)))
        for (const auto id : *ids) visit(id);
  }

  void clear() {
    any_.clear();
    by_label_.clear();
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t out = any_.capacity() * 4;
    by_label_.for_each([&](std::uint64_t, const Ids& ids) { out += 48 + ids.capacity() * 4; });
    return out;
  }

 private:
  static std::uint64_t hash(const std::string& key, const std::string& value) {
    return std::hash<std::string>{}(key)*0x9e3779b97f4a7c15ULL ^ std::hash<std::string>{}(value);
  }
  Ids any_;
  ShardedMap<std::uint64_t, Ids, NumberHash> by_label_;
};

}  // namespace berth::placement
