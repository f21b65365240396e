// Kubernetes' features that are off by default there and that this server can have on: of each a gate by its name (pkg/features of 1.36).
#pragma once
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::model {

enum class Feature : std::uint8_t {
  kNone,                             ///< Of what needs no gate: always on.
  kGenericWorkload,                  ///< Workload, PodGroup, spec.schedulingGroup of pods (KEP-4671, KEP-5832).
  kGangScheduling,                   ///< The scheduler keeps the policy "gang" (KEP-4671).
  kTopologyAwareWorkloadScheduling,  ///< spec.schedulingConstraints (KEP-5732).
  kWorkloadAwarePreemption,          ///< disruptionMode, priorityClassName, priority of groups (KEP-5710).
  kWorkloadWithJob,                  ///< The Job controller makes a Workload and a PodGroup (KEP-5547).
  kDRAWorkloadResourceClaims,        ///< Claims that a group shares (KEP-5729).
};

/// Which are on. A value: copied freely.
class Features {
 public:
  /// As Kubernetes has them: none.
  Features() = default;
  /// What this server has on unless it is told otherwise: all but kDRAWorkloadResourceClaims, which nothing here acts on yet.
  static Features preferred();

  [[nodiscard]] bool has(Feature feature) const { return feature == Feature::kNone || on_.test(static_cast<std::size_t>(feature)); }
  void set(Feature feature, bool on) { on_.set(static_cast<std::size_t>(feature), on); }
  friend bool operator==(const Features&, const Features&) = default;

 private:
  std::bitset<8> on_;
};

std::string_view name_of(Feature feature);
/// Nothing: no gate of this name has anything to do here.
std::optional<Feature> feature_named(std::string_view name);
/// All gates by name, in the order above.
std::vector<std::string_view> feature_names();

/// Sets what is said by name and sees to what depends on what: all of them need GenericWorkload, so that GenericWorkload=false alone turns
/// them off (pkg/features, defaultKubernetesFeatureGateDependencies). What is wrong, for people: one is said to be on whose condition is
/// off; empty: nothing.
std::string set_gates(Features& features, const std::vector<std::pair<Feature, bool>>& said);

}  // namespace berth::model
