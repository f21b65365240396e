#include "autoscaler/rules.h"

#include <fmt/format.h>

#include "base/log.h"

namespace berth::autoscaler {

std::optional<Options> Rules::read(const json::Value* object) {
  if (fixed_) return fixed_;
  if (object == nullptr) {
    problem_.clear();
    return std::nullopt;
  }
  std::vector<std::string> notes;
  auto parsed = Options::parse(*object, &notes);
  if (!parsed) {
    if (problem_ != parsed.error().message) log::error("autoscaler", "ClusterAutoscaler default: {}", parsed.error().message);
    problem_ = parsed.error().message;
    return std::nullopt;
  }
  problem_.clear();
  if (notes != notes_)
    for (const std::string& note : notes) log::warning("autoscaler", "{}", note);
  notes_ = std::move(notes);
  parsed->follow(era_);
  return std::move(*parsed);
}

void RemovalGrounds::follow(const std::optional<Options>& rules, const std::string& problem) {
  why_none_ = rules             ? rules->scale_down_enabled ? "" : "nodes are not to be removed any more"
              : problem.empty() ? "nobody wants nodes to be scaled any more"
                                : "the ClusterAutoscaler makes no sense any more";
}

void RemovalGrounds::follow(const std::vector<NodeGroup>& groups) {
  bounds_.clear();
  for (const NodeGroup& group : groups) bounds_[group.id] = {group.min, group.target};
}

std::string RemovalGrounds::why_not(const NodeRemoval& removal) const {
  if (!why_none_.empty()) return why_none_;
  const auto group = bounds_.find(removal.group);
  if (group == bounds_.end()) return fmt::format("group {} is gone, no longer scaled, or too little is known of it", removal.group);
  const auto& [least, present] = group->second;
  return present <= least ? fmt::format("group {} is at its minimum by now", removal.group) : "";
}

Duration ClockJumps::look(TimePoint wall, Duration steady) {
  const Duration jump = last_ ? (wall - last_->first) - (steady - last_->second) : Duration::zero();
  last_ = {wall, steady};
  constexpr auto kJump = std::chrono::seconds(30);  // Less is a clock that is kept right.
  return jump < kJump && jump > -kJump ? Duration::zero() : jump;
}

}  // namespace berth::autoscaler
