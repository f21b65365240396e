// Kubernetes' features that are off by default there and that this server can have on: of each a gate by its name (pkg/features of 1.36).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/schema.h"

namespace berth::model {

enum class Feature : std::uint8_t {
  kNone,                             ///< Of what needs no gate: always on.
  kGenericWorkload,                  ///< Workload, PodGroup, spec.schedulingGroup of pods (KEP-4671, KEP-5832).
  kGangScheduling,                   ///< The scheduler keeps the policy "gang" (KEP-4671).
  kTopologyAwareWorkloadScheduling,  ///< spec.schedulingConstraints (KEP-5732).
  kWorkloadAwarePreemption,          ///< disruptionMode, priorityClassName, priority of groups (KEP-5710).
  kWorkloadWithJob,                  ///< The Job controller makes a Workload and a PodGroup (KEP-5547).
  kDRAWorkloadResourceClaims,        ///< Claims that a group shares (KEP-5729).
  kDRADeviceTaintRules,              ///< DeviceTaintRule: taints on devices by a selector (KEP-5055).
};

/// Which are on: a set, a bit a feature. Headers that only hand it on declare it.
enum class Features : std::uint8_t { kAsKubernetes = 0 };

/// What this server has on unless it is told otherwise: all of them.
Features preferred_features();
constexpr bool has(Features features, Feature feature) {
  return feature == Feature::kNone || (static_cast<unsigned>(features) >> static_cast<unsigned>(feature) & 1U) != 0;
}
constexpr void set(Features& features, Feature feature, bool on) {
  const unsigned bit = 1U << static_cast<unsigned>(feature), all = static_cast<unsigned>(features);
  features = static_cast<Features>(on ? all | bit : all & ~bit);
}

std::string_view name_of(Feature feature);
/// Nothing: no gate of this name has anything to do here.
std::optional<Feature> feature_named(std::string_view name);
/// All gates by name, in the order above.
std::vector<std::string_view> feature_names();

/// Sets what is said by name and sees to what depends on what: all that groups of pods are made of needs GenericWorkload, so that
/// GenericWorkload=false alone turns it off (pkg/features, defaultKubernetesFeatureGateDependencies). What is wrong, for people: one is
/// said to be on whose condition is off; empty: nothing.
std::string set_gates(Features& features, const std::vector<std::pair<Feature, bool>>& said);

/// The feature without which the kind is not served.
Feature feature_of(const KindInfo& kind);
/// The feature without which the field is dropped; kNone of those that are off for good. Of fields that are off.
Feature feature_of(const TypeDef& type, const FieldDef& field);

/// As in schema.h, with features on. An update keeps what the old object has of a feature with a gate: it was on then.
void prepare_for_create(const KindInfo& kind, json::Value& doc, Features features);
void prepare_for_update(const KindInfo& kind, const json::Value& old, json::Value& doc, std::string_view subresource, std::string_view now,
                        Features features);

}  // namespace berth::model
