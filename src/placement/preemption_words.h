// The PostFilter stage's words, shared by the plain and the fast form of preemption.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "placement/framework.h"

namespace berth::placement::words {

inline constexpr std::string_view kNotHelpful = "Preemption is not helpful for scheduling";
inline constexpr std::string_view kNoVictims = "No preemption victims found for incoming pod";
inline constexpr std::string_view kNever = "not eligible due to preemptionPolicy=Never.";
inline constexpr std::string_view kTerminating = "not eligible due to a terminating pod on the nominated node.";
inline constexpr std::string_view kHardBudget = "evicting there would violate a PodDisruptionBudget";

/// "0/5 nodes are available: 2 …, 3 ….": why evicting helps nowhere.
std::string fit_error(std::size_t node_count, const std::map<std::string, std::size_t>& reasons);
/// Several errors as one (apimachinery's Aggregate): each text once, in brackets when there are more.
std::string aggregate(std::vector<std::string> errors);
/// The whole stage's status when the pod may not preempt, for the reason `why`, and nothing else is to be done for it.
Status refused(std::string_view why, const Framework& framework);

}  // namespace berth::placement::words
