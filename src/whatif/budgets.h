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

namespace berth::whatif {

struct Budget {
  std::string ns, name;
  model::Selector selector;
  bool selects_nothing = false;
  bool always_allows_unhealthy = false;  ///< unhealthyPodEvictionPolicy: AlwaysAllow.
  json::Value document;                  ///< As given.

  std::int64_t healthy = 0, desired = 0;
  std::int64_t held = 0;    ///< What the status holds back for pods that are already on their way out.
  std::int64_t lowest = 0;  ///< The fewest healthy pods there were.
  bool is_gone = false, is_touched = false, is_broken = false;
  std::optional<std::int64_t> computed;                      ///< `desired` as counted here, where the status may say another.
  std::set<std::string> blocks;                              ///< Pods that it kept where they are.
  std::optional<std::int64_t> first_healthy, first_desired;  ///< At the question's beginning; nullopt: it came with the question.

  [[nodiscard]] std::string key() const { return ns + "/" + name; }
  [[nodiscard]] std::int64_t allowed() const { return std::max<std::int64_t>(0, healthy - desired - held); }
  [[nodiscard]] bool selects(const model::PodView& pod) const;
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

/// How many healthy pods the budget wants when its pods' controllers want `scale`, or there are `pods`.
std::int64_t desired_healthy(const json::Value& budget, std::int64_t scale, std::int64_t pods);

}  // namespace berth::whatif
