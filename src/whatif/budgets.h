// What disruption budgets allow while pods come and go in thought: counted by the disruption controller's rules, asked by the eviction
// API's (pkg/controller/disruption, pkg/registry/core/pod/storage/eviction.go). A value: copied with the world, no I/O.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "model/views/pod_view.h"
#include "model/views/workload_views.h"

namespace berth::whatif {

/// What changes when pods come and go.
struct BudgetCounts {
  std::int64_t healthy = 0;
  std::int64_t lowest = 0;  ///< The fewest healthy pods there were.
  bool is_touched = false;
};

struct Budget : BudgetCounts {
  model::PodDisruptionBudgetView view;  ///< Of the document; its status is that of the beginning.
  json::Value document;                 ///< As given.
  std::int64_t desired = 0;
  std::int64_t held = 0;  ///< What the status holds back for pods that are already on their way out.
  bool is_gone = false, is_broken = false;
  std::optional<std::int64_t> computed;                      ///< `desired` as counted here, where the status may say another.
  std::set<std::string> blocks;                              ///< Pods that it kept where they are.
  std::optional<std::int64_t> first_healthy, first_desired;  ///< At the question's beginning; nullopt: it came with the question.

  [[nodiscard]] std::string key() const { return view.meta.key(); }
  [[nodiscard]] std::int64_t allowed() const { return std::max<std::int64_t>(0, healthy - desired - held); }
  [[nodiscard]] bool selects(const model::PodView& pod) const { return !is_gone && view.covers(pod.ns(), pod.meta.labels); }
};

/// Invariant: a budget's number stays for good; one that is deleted is marked as gone.
class Budgets {
 public:
  using Id = std::uint32_t;

  /// A new one, or another form of one that is there: its counts are kept then, and `desired` is the caller's to set.
  Id put(const json::Value& document);
  bool erase(std::string_view key);
  /// Grows with every change of what selects whom.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// Those that select the pod, in order of name.
  [[nodiscard]] std::vector<Id> of(const model::PodView& pod) const;
  [[nodiscard]] const Budget& operator[](Id id) const { return all_[id]; }
  [[nodiscard]] Budget& at(Id id) { return all_[id]; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] std::vector<std::string> names() const;
  /// By "namespace/name"; null when absent or gone.
  [[nodiscard]] const Budget* find(std::string_view key) const;

  /// One healthy pod more or less. Returns whether the number allowed changed.
  bool count(Id id, int by);
  /// From here on: first_… and lowest are of now.
  void start();

 private:
  std::vector<Budget> all_;
  std::map<std::string, Id, std::less<>> by_key_;
  /// By namespace and one label that the selector wants; others by namespace and "".
  std::unordered_map<std::string, std::vector<Id>> by_label_;
  std::uint64_t generation_ = 0;
  void index(Id id);
};

}  // namespace berth::whatif
