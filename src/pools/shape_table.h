// The shapes of one plan as the packing needs them: rooms as numbers, and which pods may go to which.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "pools/packing.h"
#include "pools/plan.h"

namespace berth::pools {

/// Shapes of one pool whose labels no waiting pod can tell apart are one place: what holds of one of them but for sizes holds of all.
class ShapeTable {
 public:
  /// `pods` are all that will be asked about. What `input` points to must outlive it.
  ShapeTable(const ProvisionInput& input, const std::vector<placement::PodInfoPtr>& pods);

  [[nodiscard]] std::size_t width() const { return resources_.size(); }
  [[nodiscard]] const BinShape& shape(std::uint32_t s) const { return bins_[s]; }
  [[nodiscard]] std::size_t place_of(std::uint32_t s) const { return places_[s]; }
  /// One shape of each place.
  [[nodiscard]] const std::vector<std::uint32_t>& speakers() const { return speaker_; }
  [[nodiscard]] std::int64_t weight_of(std::uint32_t s) const { return (*input_.pools)[bins_[s].pool].weight; }
  /// Of the pools that have shapes, descending.
  [[nodiscard]] const std::vector<std::int64_t>& weights() const { return weights_; }
  [[nodiscard]] Amounts amounts(const placement::PodInfo& pod) const;
  /// Shapes whose labels and taints let the pod in, by index; sizes are another matter.
  [[nodiscard]] std::vector<std::uint32_t> allowed(const placement::PodInfo& pod);
  [[nodiscard]] bool is_allowed(const placement::PodInfo& pod, std::uint32_t shape) const;
  /// Of these, those that it prefers most by node affinity, and whose PreferNoSchedule taints it tolerates.
  [[nodiscard]] std::vector<std::uint32_t> preferred(const placement::PodInfo& pod);
  /// `keeps_choices` false: as if no pool had minValues.
  [[nodiscard]] PackingProblem problem(const std::vector<Amounts>& left, bool keeps_choices = true) const;
  /// Whether some pool has minValues.
  [[nodiscard]] bool keeps_choices() const;
  [[nodiscard]] std::vector<Amounts> limits_left() const;
  [[nodiscard]] model::NodeViewPtr node(std::uint32_t shape, const std::string& name) const;
  /// A node of the place with room for everybody.
  [[nodiscard]] model::NodeViewPtr endless_node(std::size_t place, const std::string& name) const;
  /// Of a node of the place, as far as anybody sees them.
  [[nodiscard]] const model::Labels& labels_of(std::size_t place) const { return shapes_[speaker_[place]].labels; }
  /// The daemons that come to it, as pods of that node.
  [[nodiscard]] std::vector<placement::PodInfoPtr> daemons_on(std::uint32_t shape, const std::string& name) const;
  /// The claim with every type that would take the content, at most sixty.
  [[nodiscard]] NewClaim claim(std::uint32_t shape, const Amounts& used, const std::vector<placement::PodInfoPtr>& pods,
                               const std::vector<Amounts>& left);
  /// Why the claim is not flexible enough for its pool's minValues; empty: it is.
  [[nodiscard]] std::string lacking_values(const NewClaim& claim) const;
  /// For people: pool by pool.
  [[nodiscard]] std::string why_not(const placement::PodInfo& pod, const std::vector<Amounts>& left);

 private:
  [[nodiscard]] std::vector<std::size_t> daemons_of(const NodeShape& shape) const;
  /// Where a pool wants a choice (minValues), a shape's room is what as many others have too.
  void keep_choices();

  const ProvisionInput& input_;
  std::vector<NodeShape> shapes_;
  std::vector<BinShape> bins_;
  std::vector<Amounts> rooms_;  ///< What daemons leave, before keep_choices.
  std::vector<std::size_t> places_;
  std::vector<std::uint32_t> speaker_;                   ///< Of each place: one of its shapes.
  std::vector<std::vector<std::size_t>> place_daemons_;  ///< Of each shape: indices of the daemons.
  std::vector<std::string> resources_;                   ///< cpu, memory, pods, and what pods ask for beyond.
  std::vector<std::string> limited_;                     ///< Resources that some pool limits.
  std::map<std::string, std::int64_t> supplies_;         ///< By group of machines: how many more there are. Limits of every pool.
  std::vector<std::int64_t> weights_;
};

}  // namespace berth::pools
