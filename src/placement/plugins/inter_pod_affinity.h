// What InterPodAffinity's plain and columnar forms share.
#pragma once
#include <string>
#include <vector>

#include "placement/framework.h"

namespace berth::placement {

inline constexpr std::string_view kReasonAffinityRules = "node(s) didn't match pod affinity rules";
inline constexpr std::string_view kReasonAntiAffinityRules = "node(s) didn't match pod anti-affinity rules";
inline constexpr std::string_view kReasonExistingAntiAffinity = "node(s) didn't satisfy existing pods anti-affinity rules";
/// 1.20 gives this one with each of the others.
inline constexpr std::string_view kReasonAffinity120 = "node(s) didn't match pod affinity/anti-affinity";

/// The incoming pod's terms with namespaceSelector replaced by the names of the namespaces that match it now; one that selects
/// everything stays.
std::vector<AffinityTerm> resolve_namespaces(std::vector<AffinityTerm> terms, const Cluster& cluster);
/// False when there are no terms.
bool matches_all_terms(const model::PodView& pod, const model::Labels& namespace_labels, const std::vector<AffinityTerm>& terms);
/// 100 * (raw - min) / (max - min), truncated; 0 when all are equal. 1.20 counts 0 among the extremes.
inline std::int64_t affinity_normalized(std::int64_t raw, std::int64_t min, std::int64_t max) {
  if (max <= min) return 0;
  return static_cast<std::int64_t>(static_cast<double>(kMaxNodeScore) * (static_cast<double>(raw - min) / static_cast<double>(max - min)));
}
/// The columnar form for a class of pods.
TopologyOutcome make_affinity_part(const TopologySetup& setup, const InterPodAffinityArgs& args, Era era);
/// The same for preemption; null where only Filter knows.
std::unique_ptr<RemovableLoad> make_affinity_load(const TopologySetup& setup, const InterPodAffinityArgs& args, Era era);
/// The rejection with the release's reasons.
Status affinity_rejection(Code code, std::string_view reason, Era era);

}  // namespace berth::placement
