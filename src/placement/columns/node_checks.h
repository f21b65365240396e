// The plugins of volumes and devices, asked node by node for one pod.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "placement/columns/cluster_index.h"
#include "placement/framework.h"

namespace berth::placement {

/// For one choice: the cluster may not change meanwhile. What a plugin says of all nodes with the same labels (of a zone, say) is asked
/// once for all of them.
class NodeChecks {
 public:
  /// `state` has been through the PreFilter of these plugins; all outlive this. `of_many`: nodes will be asked for by the hundred.
  NodeChecks(const Framework& framework, const CycleState& state, const PodInfo& pod, ClusterIndex& index, bool of_many);
  /// No plugin has anything to say of any node.
  [[nodiscard]] bool empty() const { return checks_.empty(); }
  /// Some plugin may end in an error on some node.
  [[nodiscard]] bool may_fail() const;
  /// What any plugin refuses, it refuses whoever goes from the node.
  [[nodiscard]] bool refuse_for_good() const;
  /// Success, or what the first plugin that objects says.
  [[nodiscard]] Status of(const NodeInfo& node);

  /// Whether the node takes the pod, nominated pods in mind; each is asked once.
  [[nodiscard]] bool accepts(std::uint32_t node) {
    if (words_.empty()) words_.resize(index_.cluster().slot_count());
    if (words_[node] == Word::kNotAsked) ask(node);
    return words_[node] == Word::kYes;
  }
  /// Whether it takes the pod however few others are there: what objects has nothing to do with the pods on the node.
  [[nodiscard]] bool never_accepts(std::uint32_t node) { return !accepts(node) && words_[node] == Word::kNever; }
  /// All nodes will be asked for: what can be said of them together is said at once, without touching them.
  void foretell();
  /// Some plugin could not tell, of a node that was asked.
  [[nodiscard]] bool has_failed() const { return has_failed_; }

 private:
  enum class Word : std::uint8_t { kNotAsked, kYes, kNo, kNever };
  struct Check {
    const Plugin* plugin;
    std::vector<std::size_t> topologies{};          ///< Of the labels that decide.
    std::vector<std::optional<Status>> verdicts{};  ///< By their values; empty: every node is asked.
    std::int64_t ample_claims = -1;                 ///< CountsClaims::ample_claims.
  };
  /// Beyond so many combinations of values, asking each node is as good.
  static constexpr std::size_t kMostVerdicts = 1024;
  void ask(std::uint32_t node);
  [[nodiscard]] Word foretold(std::uint32_t node);
  [[nodiscard]] const Status& verdict(Check& check, const NodeInfo& node);
  [[nodiscard]] std::size_t place_of(const Check& check, std::uint32_t node) const;

  const Framework& framework_;
  const CycleState& state_;
  const PodInfo& pod_;
  const ClusterIndex& index_;
  std::vector<Check> checks_;
  std::vector<Word> words_;  ///< By node slot.
  bool has_failed_ = false;
};

}  // namespace berth::placement
