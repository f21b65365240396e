// RemovePodsHavingTooManyRestarts (toomanyrestarts.go), RemoveFailedPods (failedpods.go), PodLifeTime (pod_lifetime.go).
#include <fmt/format.h>

#include <algorithm>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

using Words = std::set<std::string, std::less<>>;

/// Whether the plugin looks at the container.
bool counts(const Plugin& plugin, const ContainerState& state) {
  switch (state.kind) {
    case ContainerState::Kind::kContainer:
      return true;
    case ContainerState::Kind::kInit:
      return plugin.including_init_containers;
    case ContainerState::Kind::kEphemeral:
      return plugin.including_ephemeral_containers;
  }
  return false;
}

std::int64_t age_seconds(const Pod& pod, TimePoint now) {
  if (!pod.facts.created) return INT64_MAX / 2'000'000;  // Made before anybody wrote it down.
  return std::chrono::duration_cast<std::chrono::seconds>(now - *pod.facts.created).count();
}

bool has_owner_kind(const Pod& pod, const auto& kinds) {
  return std::ranges::any_of(pod.owners(), [&](const auto& owner) { return std::ranges::find(kinds, owner.kind) != kinds.end(); });
}

bool has_exit_code(const Plugin& plugin, const Pod& pod) {
  return std::ranges::any_of(pod.status().containers, [&](const ContainerState& state) {
    return state.kind != ContainerState::Kind::kEphemeral && counts(plugin, state) && state.exit_code &&
           plugin.exit_codes.contains(*state.exit_code);
  });
}

bool is_failed_as_wanted(const Plugin& plugin, const Pod& pod, TimePoint now) {
  if (pod.view().phase != "Failed" || age_seconds(pod, now) < plugin.min_lifetime_seconds) return false;
  if (has_owner_kind(pod, plugin.exclude_owner_kinds)) return false;
  if (!plugin.reasons.empty()) {
    const bool has_reason =
        plugin.reasons.contains(pod.status().reason) || std::ranges::any_of(pod.status().containers, [&](const ContainerState& state) {
          return state.kind != ContainerState::Kind::kEphemeral && counts(plugin, state) &&
                 (plugin.reasons.contains(state.waiting_reason) || plugin.reasons.contains(state.terminated_reason));
        });
    if (!has_reason) return false;
  }
  return plugin.exit_codes.empty() || has_exit_code(plugin, pod);
}

bool has_restarted_too_often(const Plugin& plugin, const Pod& pod) {
  if (pod.status().restarts(plugin.including_init_containers) < plugin.restart_threshold) return false;
  if (plugin.states.empty() || plugin.states.contains(pod.view().phase)) return true;
  return std::ranges::any_of(pod.status().containers, [&](const ContainerState& state) {
    return state.kind != ContainerState::Kind::kEphemeral && counts(plugin, state) && plugin.states.contains(state.waiting_reason);
  });
}

bool meets_condition(const Pod& pod, const ConditionFilter& filter, TimePoint now) {
  return std::ranges::any_of(pod.status().conditions, [&](const PodCondition& condition) {
    if ((!filter.type.empty() && condition.type != filter.type) || (!filter.status.empty() && condition.status != filter.status) ||
        (!filter.reason.empty() && condition.reason != filter.reason))
      return false;
    if (!filter.min_seconds_since_transition) return true;
    return condition.last_transition && now - *condition.last_transition >= std::chrono::seconds(*filter.min_seconds_since_transition);
  });
}

bool is_in_state(const Plugin& plugin, const Pod& pod) {
  return plugin.states.contains(pod.view().phase) || plugin.states.contains(pod.status().reason) ||
         std::ranges::any_of(pod.status().containers, [&](const ContainerState& state) {
           return counts(plugin, state) &&
                  (plugin.states.contains(state.waiting_reason) || plugin.states.contains(state.terminated_reason));
         });
}

bool has_lived_long_enough(const Plugin& plugin, const Pod& pod, TimePoint now) {
  if (plugin.max_lifetime_seconds && age_seconds(pod, now) <= *plugin.max_lifetime_seconds) return false;
  if (!plugin.states.empty() && !is_in_state(plugin, pod)) return false;
  if (!plugin.include_owner_kinds.empty() && !has_owner_kind(pod, plugin.include_owner_kinds)) return false;
  if (has_owner_kind(pod, plugin.exclude_owner_kinds)) return false;
  if (!plugin.conditions.empty() &&
      std::ranges::none_of(plugin.conditions, [&](const ConditionFilter& filter) { return meets_condition(pod, filter, now); }))
    return false;
  return plugin.exit_codes.empty() || has_exit_code(plugin, pod);
}

}  // namespace

void remove_too_many_restarts(Context& ctx, const Plugin& plugin) {
  for (Node& node : ctx.nodes()) {
    std::vector<PodPtr> chosen;
    for (const PodPtr& pod : node.pods)
      if (has_restarted_too_often(plugin, *pod) && ctx.may_evict(plugin, *pod)) chosen.push_back(pod);
    sort_by_priority(chosen);
    const auto restarts = [&](const PodPtr& pod) { return pod->status().restarts(plugin.including_init_containers); };
    std::ranges::stable_sort(chosen, std::greater{}, restarts);
    for (const PodPtr& pod : chosen) {
      const Verdict verdict = ctx.evict(pod, fmt::format("{} restarts", restarts(pod)));
      if (verdict == Verdict::kNodeLimit) break;
      if (verdict == Verdict::kTotalLimit) return;
    }
  }
}

void remove_failed(Context& ctx, const Plugin& plugin) {
  for (Node& node : ctx.nodes()) {
    const std::vector<PodPtr> pods = node.pods;
    for (const PodPtr& pod : pods) {
      if (!is_failed_as_wanted(plugin, *pod, ctx.now()) || !ctx.may_evict(plugin, *pod)) continue;
      const Verdict verdict = ctx.evict(pod, pod->status().reason.empty() ? "it failed" : "it failed: " + pod->status().reason);
      if (verdict == Verdict::kNodeLimit) break;
      if (verdict == Verdict::kTotalLimit) return;
    }
  }
}

void remove_by_life_time(Context& ctx, const Plugin& plugin) {
  std::vector<PodPtr> chosen;
  for (Node& node : ctx.nodes())
    for (const PodPtr& pod : node.pods)
      if (has_lived_long_enough(plugin, *pod, ctx.now()) && ctx.may_evict(plugin, *pod)) chosen.push_back(pod);
  sort_by_priority(chosen);
  std::ranges::stable_sort(chosen, {}, [](const PodPtr& pod) { return pod->facts.created.value_or(TimePoint::min()); });
  for (const PodPtr& pod : chosen) {
    const auto age = std::chrono::seconds(age_seconds(*pod, ctx.now()));
    const std::string why = pod->facts.created ? fmt::format("{} old", format_go_duration(age)) : "of unknown age";
    if (ctx.evict(pod, why) == Verdict::kTotalLimit) return;
  }
}

}  // namespace berth::descheduler
