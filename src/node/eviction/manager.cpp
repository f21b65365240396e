#include "node/eviction/manager.h"

namespace berth::node::eviction {
namespace {

Quantity bytes(std::uint64_t value) { return Quantity::from_value(static_cast<std::int64_t>(value), Quantity::Format::kBinarySI); }

Amount find_resource(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? Amount{} : found->second;
}

std::optional<std::string> over_empty_dir_limit(const RankedPod& pod) {
  for (const VolumeFacts& volume : pod.facts->volumes) {
    if (!volume.is_empty_dir || !volume.size_limit || volume.size_limit->sign() <= 0) continue;
    const auto used = std::ranges::find_if(pod.usage->volumes, [&](const VolumeUsage& v) { return v.name == volume.name; });
    if (used == pod.usage->volumes.end() || !used->fs.used_bytes || bytes(*used->fs.used_bytes) <= *volume.size_limit) continue;
    return fmt::format("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ", volume.name, volume.size_limit->to_string());
  }
  return std::nullopt;
}

std::optional<std::string> over_pod_limit(const RankedPod& pod) {
  const std::optional<Amount> limit = pod_limit(*pod.facts, "ephemeral-storage");
  if (!limit) return std::nullopt;
  const std::uint64_t used = pod.usage->ephemeral_storage ? pod.usage->ephemeral_storage->used_bytes.value_or(0) : 0;
  if (bytes(used) <= *limit) return std::nullopt;
  return fmt::format("Pod ephemeral local storage usage exceeds the total limit of containers {}. ", limit->to_string());
}

std::optional<std::string> over_container_limit(const RankedPod& pod, DiskLayout layout) {
  for (const ContainerUsage& usage : pod.usage->containers) {
    const auto container =
        std::ranges::find_if(pod.facts->containers, [&](const ContainerFacts& c) { return !c.is_init && c.name == usage.name; });
    if (container == pod.facts->containers.end()) continue;
    const Amount limit = find_resource(container->limits, "ephemeral-storage");
    if (limit.value() == 0) continue;
    Quantity used = bytes(usage.logs ? usage.logs->used_bytes.value_or(0) : 0);
    // On a filesystem of their own, writable layers do not count against the node's.
    if (!layout.dedicated_image_fs) used += bytes(usage.rootfs ? usage.rootfs->used_bytes.value_or(0) : 0);
    if (used > limit) return fmt::format("Container {} exceeded its local ephemeral storage limit \"{}\". ", usage.name, limit.to_string());
  }
  return std::nullopt;
}

const std::optional<Observation>& at(const Observations& observations, Signal signal) {
  return observations[static_cast<std::size_t>(signal)];
}

enum class Rounding { kDown, kNearest, kUp };

/// "20Gi", "1.38Gi": bytes in the largest unit that makes them at least one, with two decimals at most; counts as they are. An amount that
/// is below a limit is rounded down, one above it up, so that both never read the same.
std::string readable(const Quantity& quantity, Rounding rounding) {
  if (quantity.format() != Quantity::Format::kBinarySI) return quantity.to_string();
  static constexpr std::array<std::string_view, 7> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const std::int64_t value = quantity.value();
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && (value >> (10 * (unit + 1))) != 0 && value > 0) ++unit;
  if (unit == 0) return quantity.to_string();
  const __int128 scaled = static_cast<__int128>(value) * 100, one = static_cast<__int128>(1) << (10 * unit);
  const __int128 extra = rounding == Rounding::kDown ? 0 : rounding == Rounding::kUp ? one - 1 : one / 2;
  const auto hundredths = static_cast<std::int64_t>((scaled + extra) / one);
  std::string text = fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + std::string(kUnits[unit]);
}

/// What a container used of the starved resource; nullopt where it is not measured, or not told per container (inodes, processes).
std::optional<Quantity> container_use(StarvedResource resource, const ContainerUsage& usage) {
  if (resource == StarvedResource::kMemory && usage.memory && usage.memory->working_set_bytes)
    return bytes(*usage.memory->working_set_bytes);
  if (resource == StarvedResource::kEphemeralStorage && usage.rootfs && usage.rootfs->used_bytes && usage.logs && usage.logs->used_bytes)
    return bytes(*usage.rootfs->used_bytes + *usage.logs->used_bytes);
  return std::nullopt;
}

}  // namespace

std::vector<Reclaim> reclaim_for(EvictionRules rules, Signal signal, DiskLayout layout) {
  const StarvedResource resource = resource_of(signal);
  if (resource == StarvedResource::kMemory || resource == StarvedResource::kPids) return {};
  const bool is_node = signal == Signal::kNodeFsAvailable || signal == Signal::kNodeFsInodesFree;
  const bool is_image = signal == Signal::kImageFsAvailable || signal == Signal::kImageFsInodesFree;
  if (rules == EvictionRules::kDocument && layout.dedicated_image_fs) return {is_image ? Reclaim::kImages : Reclaim::kContainers};
  if (layout.dedicated_image_fs && !layout.dedicated_container_fs) {
    if (is_node) return {};  // Dead containers and images lie elsewhere.
    return {Reclaim::kContainers, Reclaim::kImages};
  }
  if (layout.dedicated_image_fs) return is_image ? std::vector{Reclaim::kImages} : std::vector{Reclaim::kContainers};
  return {Reclaim::kContainers, Reclaim::kImages};
}

EvictionText describe_eviction(const Threshold& threshold, const Observations& observations, const RankedPod& pod, AmountText amounts) {
  const auto words = [amounts](const Quantity& quantity, Rounding rounding) {
    return amounts == AmountText::kKubelet ? quantity.to_string() : readable(quantity, rounding);
  };
  const StarvedResource resource = resource_of(threshold.signal);
  const std::string_view name = to_string(resource);
  EvictionText text;
  text.message = fmt::format("The node was low on resource: {}. ", name);
  if (const auto& observed = at(observations, threshold.signal))
    text.message +=
        fmt::format("Threshold quantity: {}, available: {}. ",
                    threshold.value.quantity ? threshold.value.text : words(threshold.value.of(observed->capacity), Rounding::kNearest),
                    words(observed->available, Rounding::kDown));
  if (!pod.usage) return text;
  if (resource == StarvedResource::kMemory && pod.facts->has_pod_level_resources && pod.usage->memory) {
    if (const auto request = pod.facts->pod_requests.find(name); request != pod.facts->pod_requests.end()) {
      const Quantity used = bytes(pod.usage->memory->working_set_bytes.value_or(0));
      text.message += fmt::format("Pod {} was using {}, request is {}, has larger consumption of {}. ", pod.facts->name,
                                  words(used, Rounding::kUp), request->second.to_string(), name);
      text.annotations["offending_pod"] = pod.facts->name;
      text.annotations["offending_pod_usage"] = used.to_string();
    }
  }
  std::vector<std::string> names, uses;
  for (const ContainerUsage& usage : pod.usage->containers) {
    const auto container = std::ranges::find(pod.facts->containers, usage.name, &ContainerFacts::name);
    if (container == pod.facts->containers.end()) continue;
    const Amount request = find_resource(container->requests, name);
    const std::optional<Quantity> used = container_use(resource, usage);
    if (!used || *used <= request) continue;
    text.message += fmt::format("Container {} was using {}, request is {}, has larger consumption of {}. ", usage.name,
                                words(*used, Rounding::kUp), request.to_string(), name);
    names.push_back(usage.name);
    uses.push_back(used->to_string());
  }
  text.annotations["offending_containers"] = fmt::format("{}", fmt::join(names, ","));
  text.annotations["offending_containers_usage"] = fmt::format("{}", fmt::join(uses, ","));
  text.annotations["starved_resource"] = name;
  return text;
}

std::string EvictionManager::set_layout(DiskLayout layout) {
  layout_ = layout;
  ContainerFsUpdate update = add_container_fs_thresholds(config_.thresholds, layout, config_.spare_places);
  first_pass_thresholds_ = std::move(update.first_pass);
  return update.warning;
}

std::vector<Threshold> EvictionManager::thresholds_met(const std::vector<Threshold>& thresholds, const Observations& observations,
                                                       bool with_reclaim) const {
  std::vector<Threshold> met;
  for (const Threshold& threshold : thresholds) {
    const auto& observed = at(observations, threshold.signal);
    if (!observed || !threshold.has_operator) continue;
    Quantity limit = threshold.value.of(observed->capacity);
    if (with_reclaim && threshold.min_reclaim) limit += threshold.min_reclaim->of(observed->capacity);
    if (limit > observed->available) met.push_back(threshold);
  }
  return met;
}

const Outcome& EvictionManager::begin(const std::vector<PodFacts>& active, const Summary& summary, TimePoint now) {
  outcome_ = Outcome{};
  active_ = &active;
  summary_ = &summary;
  const std::vector<Threshold> configured =
      first_pass_thresholds_ ? *std::exchange(first_pass_thresholds_, std::nullopt) : config_.thresholds;
  const Observations observations = observe_signals(summary.node);
  std::vector<Threshold> met = thresholds_met(configured, observations, false);
  for (Threshold& unresolved : thresholds_met(met_, observations, true))
    if (std::ranges::none_of(met, [&](const Threshold& t) { return is_equivalent(t, unresolved); })) met.push_back(std::move(unresolved));

  std::vector<MetThreshold> first_observed;
  for (const Threshold& threshold : met) {
    const auto same = [&](const MetThreshold& entry) { return is_same(entry.threshold, threshold); };
    if (std::ranges::any_of(first_observed, same)) continue;
    const auto known = std::ranges::find_if(first_observed_, same);
    first_observed.push_back({threshold, known == first_observed_.end() ? now : known->first_observed});
    condition_observed_[static_cast<std::size_t>(condition_of(threshold.signal))] = now;
  }
  conditions_.clear();
  for (std::size_t i = 0; i < kConditionCount; ++i)
    if (condition_observed_[i] && (now - *condition_observed_[i]).count() * 1000 < config_.pressure_transition_period_ns)
      conditions_.push_back(static_cast<NodeCondition>(i));

  met_.clear();
  for (const MetThreshold& entry : first_observed)
    if ((now - entry.first_observed).count() * 1000 >= entry.threshold.grace_period_ns) met_.push_back(entry.threshold);
  first_observed_ = first_observed;
  outcome_.observed = std::move(first_observed);
  outcome_.met = met_;

  // Stale figures keep a condition alive but never evict: the last eviction may not show in them yet.
  std::vector<Threshold> fresh;
  for (const Threshold& threshold : met_) {
    const auto &observed = at(observations, threshold.signal), &last = at(last_observations_, threshold.signal);
    if (observed && (!last || !observed->time || (last->time ? *observed->time > *last->time : true))) fresh.push_back(threshold);
  }
  last_observations_ = observations;

  if (config_.local_storage_capacity_isolation) {
    evict_over_local_limits();
    if (!outcome_.evictions.empty()) return outcome_;
  }
  if (fresh.empty()) return outcome_;
  // Of several, memory first; a hard threshold before a soft one of its signal.
  const auto order = [](const Threshold& t) { return std::pair(t.signal, !t.is_hard()); };
  outcome_.acting_on = *std::ranges::min_element(fresh, {}, order);
  outcome_.attempt = resource_of(outcome_.acting_on->signal);
  outcome_.reclaim = reclaim_for(config_.rules, outcome_.acting_on->signal, *layout_);
  if (outcome_.reclaim.empty()) rank_and_evict();
  return outcome_;
}

const Outcome& EvictionManager::finish(const NodeUsage* node_after) {
  // Any threshold still met, minimum reclaim included, whatever its signal and grace period, keeps the eviction going.
  if (node_after && is_relieved(*node_after)) return outcome_;
  rank_and_evict();
  return outcome_;
}

void EvictionManager::evict_over_local_limits() {
  for (std::size_t i = 0; i < active_->size(); ++i) {
    const PodFacts& facts = (*active_)[i];
    const auto usage = summary_->pods.find(facts.uid);
    if (usage == summary_->pods.end()) continue;
    const RankedPod pod{&facts, &usage->second};
    // A critical pod is spared at each of the three checks.
    if (facts.is_critical) continue;
    std::optional<std::string> message = over_empty_dir_limit(pod);
    if (!message) message = over_pod_limit(pod);
    if (!message) message = over_container_limit(pod, *layout_);
    if (message) outcome_.evictions.push_back({i, 1, std::move(*message), false, std::nullopt});
  }
}

void EvictionManager::rank_and_evict() {
  if (active_->empty()) return;
  const Threshold& threshold = *outcome_.acting_on;
  outcome_.was_ranked = true;
  for (const PodFacts& facts : *active_) {
    const auto usage = summary_->pods.find(facts.uid);
    outcome_.ranking.push_back({&facts, usage == summary_->pods.end() ? nullptr : &usage->second});
  }
  rank_pods(outcome_.ranking, config_.rules, threshold.signal, *layout_);
  for (const RankedPod& pod : outcome_.ranking) {
    if (pod.facts->is_critical) continue;
    Eviction eviction;
    eviction.pod = static_cast<std::size_t>(pod.facts - active_->data());
    if (!threshold.is_hard()) {
      eviction.grace_period_seconds = config_.max_pod_grace_period_seconds;
      if (pod.facts->grace_period_seconds)
        eviction.grace_period_seconds = std::min(eviction.grace_period_seconds, *pod.facts->grace_period_seconds);
    }
    EvictionText text = describe_eviction(threshold, last_observations_, pod, config_.amounts);
    eviction.message = std::move(text.message);
    eviction.annotations = std::move(text.annotations);
    eviction.is_disruption = true;
    outcome_.evictions.push_back(std::move(eviction));
    return;
  }
}

std::optional<std::string> EvictionManager::refuse(const PodFacts& pod) const {
  if (conditions_.empty() || pod.is_critical) return std::nullopt;
  const bool only_memory = conditions_.size() == 1 && conditions_[0] == NodeCondition::kMemoryPressure;
  if (only_memory && (pod.qos != QosClass::kBestEffort || pod.tolerates_memory_pressure)) return std::nullopt;
  std::vector<std::string_view> names;
  for (const NodeCondition condition : conditions_) names.push_back(to_string(condition));
  return fmt::format("The node had condition: [{}]. ", fmt::join(names, " "));
}

}  // namespace berth::node::eviction
