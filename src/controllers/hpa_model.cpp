#include "controllers/hpa_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

namespace berth::controllers::hpa {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;
using json::Value;
using std::chrono::seconds;

/// Names are the load's.
using ByPod = std::unordered_map<std::string_view, std::int64_t>;

struct Grouped {
  std::int64_t ready = 0;
  std::set<std::string_view> unready, missing, ignored;
};

/// A pod that has just started burns CPU that says nothing about load.
bool is_too_young(const Pod& pod, const Sample& sample, const HorizontalPodAutoscalerOptions& options, TimePoint now) {
  if (!pod.has_ready_condition || pod.started == TimePoint{}) return true;
  if (pod.started + options.cpu_initialization_period > now) return !pod.is_ready || sample.at < pod.ready_changed + sample.window;
  return !pod.is_ready && pod.started + options.initial_readiness_delay > pod.ready_changed;
}

Grouped group(const Load& load, const HorizontalPodAutoscalerOptions& options, TimePoint now) {
  Grouped out;
  for (const Pod& pod : load.pods) {
    const auto sample = load.samples.find(pod.name);
    if (pod.is_deleting || pod.is_failed)
      out.ignored.insert(pod.name);
    else if (pod.is_pending)
      out.unready.insert(pod.name);
    else if (sample == load.samples.end())
      out.missing.insert(pod.name);
    else if (load.resource == "cpu" && is_too_young(pod, sample->second, options, now))
      out.unready.insert(pod.name);
    else
      ++out.ready;
  }
  return out;
}

struct Use {
  double ratio = 0;  ///< Of the target.
  std::int64_t percent = 0, average_milli = 0;
};

/// The use of the pods in `milli`, as a share of the target.
Result<Use> measure(const Load& load, const ByPod& milli, const ByPod& requests) {
  std::int64_t used = 0, requested = 0;
  for (const auto& [pod, value] : milli) {
    if (load.target_utilization_percent) {
      const auto request = requests.find(pod);
      if (request == requests.end()) continue;
      requested += request->second;
    }
    used += value;
  }
  Use out;
  out.average_milli = milli.empty() ? 0 : used / static_cast<std::int64_t>(milli.size());
  if (!load.target_utilization_percent) {
    out.ratio = static_cast<double>(out.average_milli) / static_cast<double>(load.target_average_milli);
    return out;
  }
  if (requested == 0) return invalid("no metrics returned matched known pods");
  out.percent = used * 100 / requested;
  out.ratio = static_cast<double>(out.percent) / static_cast<double>(*load.target_utilization_percent);
  return out;
}

std::int64_t ceil_of(double value) { return static_cast<std::int64_t>(std::ceil(value)); }

const Value& rules_of(const Value& spec, const char* direction) {
  static const Value kNone = json::Object();
  const Value* rules = json::find(spec, {"behavior", direction});
  return rules == nullptr ? kNone : *rules;
}

Duration longest_period(const Value& rules) {
  std::int64_t longest = 0;
  for (const Value& policy : get_array(rules, {"policies"})) longest = std::max(longest, get_int(policy, {"periodSeconds"}));
  return seconds(longest);
}

std::int64_t changed_since(const std::vector<ScaleEvent>& events, TimePoint after) {
  std::int64_t sum = 0;
  for (const ScaleEvent& event : events)
    if (event.at > after) sum += event.change;
  return sum;
}

/// What the policies of one direction let the count reach now.
std::int64_t reach(const Value& rules, bool up, std::int64_t current, const History& history, TimePoint now) {
  const std::string_view select = get_string(rules, {"selectPolicy"}, "Max");
  if (select == "Disabled") return current;
  // "Max" is the largest change: the highest reach up, the lowest down.
  const bool want_largest = up == (select != "Min");
  std::int64_t best = want_largest ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  for (const Value& policy : get_array(rules, {"policies"})) {
    const TimePoint since = now - seconds(get_int(policy, {"periodSeconds"}));
    const std::int64_t at_start = current - changed_since(history.ups, since) + changed_since(history.downs, since),
                       value = get_int(policy, {"value"});
    std::int64_t proposed = 0;
    if (get_string(policy, {"type"}) == "Pods")
      proposed = up ? at_start + value : at_start - value;
    else if (up)
      proposed = ceil_of(static_cast<double>(at_start) * (1 + static_cast<double>(value) / 100));
    else
      proposed = static_cast<std::int64_t>(static_cast<double>(at_start) * (1 - static_cast<double>(value) / 100));
    best = want_largest ? std::max(best, proposed) : std::min(best, proposed);
  }
  return get_array(rules, {"policies"}).empty() ? current : best;
}

void prune(std::vector<Recommendation>& recommendations, Duration window, TimePoint now) {
  std::erase_if(recommendations, [&](const Recommendation& one) { return one.at + window < now; });
}

/// Without spec.behavior: downwards the highest recommendation of the last minutes counts; at most doubled, or four, at once.
Limited limit_by_flags(const Value& spec, std::int64_t current, std::int64_t wanted, History& history,
                       const HorizontalPodAutoscalerOptions& options, TimePoint now) {
  Limited out;
  std::int64_t stable = wanted;
  prune(history.recommendations, options.downscale_stabilization, now);
  for (const Recommendation& one : history.recommendations) stable = std::max(stable, one.replicas);
  history.recommendations.push_back({now, wanted});
  out.is_stabilized = stable != wanted;
  out.stable_reason = "ScaleDownStabilized";
  out.stable_message = "recent recommendations were higher than current one, applying the highest recent recommendation";
  const std::int64_t least = get_int(spec, {"minReplicas"}, 1), most = get_int(spec, {"maxReplicas"}),
                     fastest = std::max<std::int64_t>(2 * current, 4);
  out.replicas = stable;
  if (stable < least) {
    out.replicas = least;
    out.limit_reason = "TooFewReplicas";
    out.limit_message = "the desired replica count is less than the minimum replica count";
  } else if (stable > std::min(most, fastest)) {
    out.replicas = std::min(most, fastest);
    out.limit_reason = most > fastest ? "ScaleUpLimit" : "TooManyReplicas";
    out.limit_message = most > fastest ? "the desired replica count is increasing faster than the maximum scale rate"
                                       : "the desired replica count is more than the maximum replica count";
  }
  out.is_limited = out.replicas != stable;
  return out;
}

Limited limit_by_behavior(const Value& spec, std::int64_t current, std::int64_t wanted, History& history,
                          const HorizontalPodAutoscalerOptions& options, TimePoint now) {
  Limited out;
  const Value &up = rules_of(spec, "scaleUp"), &down = rules_of(spec, "scaleDown");
  const auto flag_seconds = std::chrono::duration_cast<seconds>(options.downscale_stabilization).count();
  const Duration up_window = seconds(get_int(up, {"stabilizationWindowSeconds"})),
                 down_window = seconds(get_int(down, {"stabilizationWindowSeconds"}, flag_seconds));
  std::int64_t lowest = wanted, highest = wanted;
  for (const Recommendation& one : history.recommendations) {
    if (one.at > now - up_window) lowest = std::min(lowest, one.replicas);
    if (one.at > now - down_window) highest = std::max(highest, one.replicas);
  }
  prune(history.recommendations, std::max(up_window, down_window), now);
  history.recommendations.push_back({now, wanted});
  const std::int64_t stable = std::min(std::max(current, lowest), highest);
  out.is_stabilized = stable != wanted;
  out.stable_reason = wanted >= current ? "ScaleUpStabilized" : "ScaleDownStabilized";
  out.stable_message = wanted >= current
                           ? "recent recommendations were lower than current one, applying the lowest recent recommendation"
                           : "recent recommendations were higher than current one, applying the highest recent recommendation";
  const std::int64_t least = get_int(spec, {"minReplicas"}, 1), most = get_int(spec, {"maxReplicas"});
  out.replicas = stable;
  if (stable > current) {
    const std::int64_t fastest = std::max(reach(up, true, current, history, now), current), allowed = std::min(most, fastest);
    if (stable > allowed) {
      out.replicas = allowed;
      out.limit_reason = most > fastest ? "ScaleUpLimit" : "TooManyReplicas";
      out.limit_message = most > fastest ? "the desired replica count is increasing faster than the maximum scale rate"
                                         : "the desired replica count is more than the maximum replica count";
    }
  } else if (stable < current) {
    const std::int64_t fastest = std::min(reach(down, false, current, history, now), current), allowed = std::max(least, fastest);
    if (stable < allowed) {
      out.replicas = allowed;
      out.limit_reason = least < fastest ? "ScaleDownLimit" : "TooFewReplicas";
      out.limit_message = least < fastest ? "the desired replica count is decreasing faster than the maximum scale rate"
                                          : "the desired replica count is less than the minimum replica count";
    }
  }
  out.is_limited = out.replicas != stable;
  return out;
}

}  // namespace

Result<Proposal> propose(const Load& load, std::int64_t current_replicas, const Tolerance& tolerance,
                         const HorizontalPodAutoscalerOptions& options, TimePoint now) {
  if (load.pods.empty()) return invalid("no pods returned by selector while calculating replica count");
  const Grouped grouped = group(load, options, now);
  ByPod milli, requests;
  milli.reserve(load.samples.size());
  requests.reserve(load.pods.size());
  for (const auto& [pod, sample] : load.samples)
    if (!grouped.ignored.contains(pod) && !grouped.unready.contains(pod)) milli.emplace(pod, sample.milli);
  if (load.target_utilization_percent) {
    for (const Pod& pod : load.pods) {
      if (!pod.request_milli)
        return invalid(
            fmt::format("missing request for {} in container {} of Pod {}", load.resource, pod.container_without_request, pod.name));
      requests.emplace(pod.name, *pod.request_milli);
    }
  }
  if (milli.empty()) return invalid("did not receive metrics for targeted pods (pods might be unready)");
  const Result<Use> use = measure(load, milli, requests);
  if (!use) return std::unexpected(use.error());
  Proposal out{.replicas = current_replicas, .utilization_percent = use->percent, .average_milli = use->average_milli};
  const bool growing_with_unready = !grouped.unready.empty() && use->ratio > 1.0;
  if (!growing_with_unready && grouped.missing.empty()) {
    if (!tolerance.covers(use->ratio)) out.replicas = ceil_of(use->ratio * static_cast<double>(grouped.ready));
    return out;
  }

  // What is not known is assumed to speak against the change.
  for (const std::string_view pod : grouped.missing) {
    if (use->ratio > 1.0)
      milli[pod] = 0;
    else if (use->ratio < 1.0)
      milli[pod] = load.target_utilization_percent ? requests[pod] * std::max<std::int64_t>(100, *load.target_utilization_percent) / 100
                                                   : load.target_average_milli;
  }
  if (growing_with_unready)
    for (const std::string_view pod : grouped.unready) milli[pod] = 0;
  const Result<Use> damped = measure(load, milli, requests);
  if (!damped) return std::unexpected(damped.error());
  if (tolerance.covers(damped->ratio) || (use->ratio < 1.0 && damped->ratio > 1.0) || (use->ratio > 1.0 && damped->ratio < 1.0)) return out;
  const std::int64_t replicas = ceil_of(damped->ratio * static_cast<double>(milli.size()));
  const bool turns = (damped->ratio < 1.0 && replicas > current_replicas) || (damped->ratio > 1.0 && replicas < current_replicas);
  if (!turns) out.replicas = replicas;
  return out;
}

Limited limit(const Value& spec, std::int64_t current, std::int64_t wanted, History& history, const HorizontalPodAutoscalerOptions& options,
              TimePoint now) {
  Limited out = json::find(spec, "behavior") != nullptr ? limit_by_behavior(spec, current, wanted, history, options, now)
                                                        : limit_by_flags(spec, current, wanted, history, options, now);
  if (!out.is_stabilized) {
    out.stable_reason = "ReadyForNewScale";
    out.stable_message = "recommended size matches current size";
  }
  if (!out.is_limited) {
    out.limit_reason = "DesiredWithinRange";
    out.limit_message = "the desired count is within the acceptable range";
  }
  return out;
}

void record_change(const Value& spec, std::int64_t before, std::int64_t after, History& history, TimePoint now) {
  if (json::find(spec, "behavior") == nullptr) return;
  const auto forget = [&](std::vector<ScaleEvent>& events, const char* direction) {
    const Duration keep = longest_period(rules_of(spec, direction));
    std::erase_if(events, [&](const ScaleEvent& event) { return event.at + keep < now; });
  };
  forget(history.ups, "scaleUp");
  forget(history.downs, "scaleDown");
  if (after > before)
    history.ups.push_back({now, after - before});
  else if (after < before)
    history.downs.push_back({now, before - after});
}

}  // namespace berth::controllers::hpa
