// The limits over the whole cluster: nodes of every kind count, managed or not (SPEC H2).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autoscaler/node_template.h"
#include "autoscaler/options.h"

namespace berth::autoscaler {

/// By the limit's name: "cpu" in cores, "memory" in bytes, and each GPU type.
using Amounts = std::map<std::string, std::int64_t, std::less<>>;
/// What a node counts for. GPUs count under a type when the node's label cluster-api/accelerator says so, else under their resource's name.
Amounts amounts_of(const model::NodeView& node, const Options& options);

class ClusterLimits {
 public:
  /// `templates`: what a node of each group is, by the group's id; groups count with their target.
  ClusterLimits(const Snapshot& snapshot, const NodeTemplates& templates, const Options& options);
  /// How many of `wanted` more nodes like this fit below the maxima.
  [[nodiscard]] std::int64_t allowed(const Amounts& node, std::int64_t wanted) const;
  /// Which maxima one more such node would pass; sorted.
  [[nodiscard]] std::vector<std::string> exceeded(const Amounts& node) const;
  /// Whether the minima still hold without such a node.
  [[nodiscard]] bool may_remove(const Amounts& node) const;
  void add(const Amounts& node, std::int64_t count);
  [[nodiscard]] const Amounts& totals() const { return totals_; }

 private:
  std::map<std::string, Bounds, std::less<>> bounds_;
  Amounts totals_;
};

}  // namespace berth::autoscaler
