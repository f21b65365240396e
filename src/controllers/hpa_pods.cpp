#include "controllers/hpa_pods.h"

#include "controllers/common.h"
#include "model/quantity.h"

namespace berth::controllers::hpa {
namespace {

using json::get_array;
using json::get_string;
using json::Value;

std::int64_t quantity_milli(std::string_view quantity) {
  return model::Quantity::parse(quantity).value_or(model::Quantity()).milli_value();
}
}  // namespace

Pod pod_facts(const PodInfo& info, const Value& document, const Wanted& wanted) {
  Pod pod;
  pod.name = info.name();
  pod.is_deleting = info.deleting;
  pod.is_failed = info.phase == PodPhase::kFailed;
  pod.is_pending = info.phase == PodPhase::kPending;
  pod.is_ready = info.ready;
  pod.ready_changed = info.ready_since;
  pod.has_ready_condition = find_condition(document, "Ready") != nullptr;
  pod.started = read_time(document, {"status", "startTime"});
  pod.request_milli = 0;
  const auto count = [&](const Value& container) {
    if (!wanted.container.empty() && get_string(container, {"name"}) != wanted.container) return;
    const std::string_view request = get_string(container, {"resources", "requests", wanted.resource});
    if (request.empty()) {
      if (pod.request_milli) pod.container_without_request = get_string(container, {"name"});
      pod.request_milli.reset();
    } else if (pod.request_milli) {
      *pod.request_milli += quantity_milli(request);
    }
  };
  for (const Value& container : get_array(document, {"spec", "containers"})) count(container);
  for (const Value& container : get_array(document, {"spec", "initContainers"}))
    if (get_string(container, {"restartPolicy"}) == "Always") count(container);
  return pod;
}

std::vector<Measured> measured_pods(const Value& list) {
  std::vector<Measured> out;
  std::string last_time;  // Mostly one for all.
  TimePoint at{};
  for (const Value& item : get_array(list, {"items"})) {
    Measured one{.pod = std::string(get_string(item, {"metadata", "name"})), .sample = {}, .uses = {}};
    if (const std::string_view time = get_string(item, {"timestamp"}); time != last_time) {
      last_time = time;
      at = read_time(item, {"timestamp"});
    }
    one.sample.at = at;
    one.sample.window = parse_go_duration(get_string(item, {"window"})).value_or(Duration{});
    for (const Value& container : get_array(item, {"containers"})) {
      ++one.containers;
      for (const auto& [resource, quantity] : json::get_object(container, {"usage"}))
        if (quantity.is_string() && !quantity.get_string().empty())
          one.uses.push_back({std::string(get_string(container, {"name"})), std::string(resource), quantity_milli(quantity.get_string())});
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::optional<Sample> sample_of(const Measured& measured, const Wanted& wanted) {
  Sample sample = measured.sample;
  std::size_t found = 0;
  for (const Measured::Use& use : measured.uses) {
    if (use.resource != wanted.resource || (!wanted.container.empty() && use.container != wanted.container)) continue;
    sample.milli += use.milli;
    ++found;
  }
  return found > 0 && (!wanted.container.empty() || found == measured.containers) ? std::optional(sample) : std::nullopt;
}

const std::vector<Pod>& RememberedPods::facts(const Cache& cache, const std::string& ns, const model::Selector& selector,
                                              const Wanted& wanted) {
  std::vector<PodRef> seen;
  std::vector<Pod> facts;
  seen.reserve(seen_.size());
  facts.reserve(seen_.size());
  std::size_t next = 0;
  cache.for_each_matching(ns, selector, [&](const PodRef& pod) {
    // Both are in order of name.
    while (next < seen_.size() && seen_[next] != pod && seen_[next]->name() < pod->name()) ++next;
    if (next < seen_.size() && seen_[next] == pod)
      facts.push_back(std::move(facts_[next++]));
    else
      facts.push_back(pod_facts(*pod, pod->object->document(), wanted));
    seen.push_back(pod);
  });
  seen_ = std::move(seen);
  facts_ = std::move(facts);
  return facts_;
}

}  // namespace berth::controllers::hpa
