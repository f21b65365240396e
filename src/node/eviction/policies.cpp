#include "node/eviction/policies.h"

#include "node/numa/shared.h"

namespace berth::node::eviction {
namespace {

constexpr std::int64_t kAnyGraceSeconds = 1'000'000'000;

Duration from_ns(std::int64_t ns) { return Duration(ns / 1000); }

}  // namespace

TextResult<ManagerConfig> manager_config(const KubeletSettings& settings) {
  const EvictionSettings eviction = settings.eviction();
  auto thresholds = parse_thresholds(eviction);
  if (!thresholds) return std::unexpected(std::move(thresholds.error()));
  ManagerConfig config;
  config.thresholds = std::move(*thresholds);
  config.spare_places = thresholds_spare_places(eviction);
  config.max_pod_grace_period_seconds =
      settings.eviction_max_pod_grace_period_seconds < 0 ? kAnyGraceSeconds : settings.eviction_max_pod_grace_period_seconds;
  config.pressure_transition_period_ns = settings.eviction_pressure_transition_period_ns;
  config.local_storage_capacity_isolation = settings.local_storage_capacity_isolation;
  config.rules = settings.eviction_rules;
  return config;
}

ReservationSettings reservation_settings(const KubeletSettings& settings) {
  ReservationSettings out;
  out.kube_reserved = settings.kube_reserved;
  out.system_reserved = settings.system_reserved;
  // Processors that are named count instead of amounts.
  if (const auto named = numa::parse_number_list(settings.reserved_system_cpus, "processors"); named && !named->empty()) {
    out.kube_reserved.erase("cpu");
    out.system_reserved["cpu"] = std::to_string(named->size());
  }
  out.eviction_hard = settings.eviction_hard.value_or(StatementMap{});
  out.ignore_eviction_threshold = settings.allocatable_ignores_eviction;
  out.local_storage_capacity_isolation = settings.local_storage_capacity_isolation;
  out.max_pods = settings.max_pods;
  out.pods_per_core = settings.pods_per_core;
  return out;
}

void follow_documents(KubeletSettings& settings) {
  settings.eviction_rules = EvictionRules::kDocument;
  settings.allocatable_ignores_eviction = true;
}

ContainerGcPolicy container_gc_policy(const KubeletSettings& settings) {
  return {.minimum_age = from_ns(settings.minimum_container_ttl_ns),
          .most_per_container = settings.maximum_dead_containers_per_container,
          .most = settings.maximum_dead_containers};
}

ImageGcPolicy image_gc_policy(const KubeletSettings& settings) {
  return {.high_threshold_percent = settings.image_gc_high_threshold_percent,
          .low_threshold_percent = settings.image_gc_low_threshold_percent,
          .minimum_age = from_ns(settings.image_minimum_gc_age_ns),
          .maximum_age = from_ns(settings.image_maximum_gc_age_ns)};
}

}  // namespace berth::node::eviction
