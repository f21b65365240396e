#include "node/eviction/manager.h"
#include "parity/eviction_kinds.h"

namespace berth::node::eviction {
namespace {

/// Plays one file of kind `manager`: the shell around the eviction core, with the recorded world instead of a machine.
class ManagerReplay {
 public:
  explicit ManagerReplay(const json::Value& file) : file_(file), config_(*json::find(file, "config")) {}

  std::vector<std::string> run() {
    EvictionSettings settings;
    settings.hard = read_statement_map(config_, "evictionHard");
    settings.soft = read_statement_map(config_, "evictionSoft");
    settings.soft_grace_period = read_statement_map(config_, "evictionSoftGracePeriod");
    settings.minimum_reclaim = read_statement_map(config_, "evictionMinimumReclaim");
    settings.enforce_node_allocatable.clear();
    for (const json::Value& key : json::get_array(config_, {"enforceNodeAllocatable"}))
      settings.enforce_node_allocatable.emplace_back(json::as_view(key));
    const auto thresholds = parse_thresholds(settings);
    if (!thresholds) return {"configuration refused: " + thresholds.error()};
    ManagerConfig config;
    config.amounts = AmountText::kKubelet;
    config.thresholds = *thresholds;
    config.spare_places = thresholds_spare_places(settings);
    config.max_pod_grace_period_seconds = json::get_int(config_, {"evictionMaxPodGracePeriod"});
    const auto transition = parse_duration_ns(json::get_string(config_, {"evictionPressureTransitionPeriod"}));
    if (!transition) return {"configuration refused: " + transition.error()};
    config.pressure_transition_period_ns = *transition;
    config.local_storage_capacity_isolation = json::get_bool(config_, {"localStorageCapacityIsolation"});
    EvictionManager manager(std::move(config));
    manager_ = &manager;
    layout_.dedicated_image_fs = json::get_bool(config_, {"dedicatedImageFs"});
    layout_.dedicated_container_fs = json::get_bool(config_, {"dedicatedContainerFs"}) &&
                                     json::get_string(config_, {"containerFsError"}).empty() &&
                                     !json::get_bool(config_, {"containerFsError"});
    disk_info_errors_ = json::get_int(config_, {"diskInfoErrors"});
    for (const json::Value& pod : json::get_array(file_, {"pods"})) {
      const PodFacts facts = read_pod_facts(pod);
      documents_.emplace(facts.key(), &pod);
      pods_.emplace(facts.key(), facts);
    }
    now_ = parse_rfc3339(json::get_string(file_, {"startTime"})).value_or(TimePoint{});
    return run_steps();
  }

 private:
  std::vector<std::string> run_steps() {
    std::vector<std::string> differences;
    const json::Array &steps = json::get_array(file_, {"steps"}), &expect = json::get_array(file_, {"expect"});
    if (steps.size() != expect.size()) return {"malformed file: steps and expect differ in length"};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const json::Value* advance = json::find(steps[i], "advanceSeconds");
      if (advance) now_ += Duration(static_cast<std::int64_t>(advance->to_number<double>() * 1e6 + 0.5));
      const json::Value got = step(steps[i]);
      if (std::string difference = compare_alternatives(got, resorted(expect[i])); !difference.empty())
        differences.push_back(fmt::format("step {}: {}", i, difference));
    }
    return differences;
  }

  /// The recorded alternatives with their threshold lists in sort_key's order.
  static json::Value resorted(const json::Value& alternatives) {
    json::Value out = alternatives;
    for (json::Value& alternative : out.as_array()) {
      for (const std::string_view list : {"thresholdsObserved", "thresholdsMet"}) {
        json::Value* found = json::find(alternative, list);
        if (!found || !found->is_array()) continue;
        std::multimap<std::string, json::Value> sorted;
        for (const json::Value& entry : found->get_array()) sorted.emplace(sort_key(entry.as_object()), entry);
        json::Array values;
        for (auto& [key, value] : sorted) values.push_back(std::move(value));
        *found = std::move(values);
      }
    }
    return out;
  }

  json::Value step(const json::Value& step) {
    json::Object answer{{"error", nullptr},         {"events", json::Array{}}, {"calls", json::Array{}}, {"summaryReads", 0},
                        {"reclaimSignal", nullptr}, {"ranking", nullptr},      {"kills", json::Array{}}, {"evicted", json::Array{}}};
    active_.clear();
    for (const json::Value& key : json::get_array(step, {"activePods"})) active_.push_back(pods_.at(std::string(json::as_view(key))));
    run_pass(step, answer);
    answer["observations"] = observations_json(manager_->last_observations());
    answer["thresholdsObserved"] = thresholds_json(observed_);
    answer["thresholdsMet"] = thresholds_json(met_);
    json::Array conditions;
    for (const NodeCondition condition : manager_->conditions()) conditions.push_back(json::Value(to_string(condition)));
    answer["conditions"] = std::move(conditions);
    if (json::get_bool(step, {"rankAll"})) answer["rankings"] = all_rankings(step);
    if (const json::Value* asked = json::find(step, "admit")) answer["admit"] = admissions(asked->as_array());
    return answer;
  }

  void run_pass(const json::Value& step, json::Object& answer) {
    if (!manager_->has_work()) return;
    if (!manager_->has_layout()) {
      if (disk_info_errors_ > 0) {
        --disk_info_errors_;
        answer["error"] = "eviction manager: failed to get HasDedicatedImageFs: imagefs not ready";
        return;
      }
      manager_->set_layout(layout_);
    }
    answer["summaryReads"] = 1;
    if (!json::get_string(step, {"summaryError"}).empty()) {
      manager_->skip_pass();
      return;
    }
    const Summary summary = read_summary(*json::find(step, "summary"));
    const Outcome* outcome = &manager_->begin(active_, summary, now_);
    if (!outcome->reclaim.empty()) {
      NodeUsage node = summary.node;
      json::Array& calls = answer["calls"].as_array();
      for (const Reclaim reclaim : outcome->reclaim) {
        const bool containers = reclaim == Reclaim::kContainers;
        calls.push_back(containers ? "containerGC" : "imageGC");
        if (const json::Value* after = json::find(step, containers ? "nodeAfterContainerGC" : "nodeAfterImageGC"))
          node = read_node_usage(*after);
      }
      answer["summaryReads"] = 2;
      const bool unreadable = json::find(step, "summaryErrorAfterGC") &&
                              (json::get_bool(step, {"summaryErrorAfterGC"}) || !json::get_string(step, {"summaryErrorAfterGC"}).empty());
      outcome = &manager_->finish(unreadable ? nullptr : &node);
    }
    record(*outcome, answer);
    observed_ = outcome->observed;
    met_.clear();
    for (const Threshold& threshold : outcome->met)
      met_.push_back(*std::ranges::find_if(observed_, [&](const MetThreshold& entry) { return is_same(entry.threshold, threshold); }));
  }

  void record(const Outcome& outcome, json::Object& answer) {
    json::Array& events = answer["events"].as_array();
    if (outcome.attempt)
      events.push_back(json::Object{{"object", "node"},
                                    {"type", "Warning"},
                                    {"reason", "EvictionThresholdMet"},
                                    {"message", fmt::format("Attempting to reclaim {}", to_string(*outcome.attempt))}});
    if (outcome.acting_on && (!outcome.reclaim.empty() || outcome.was_ranked))
      answer["reclaimSignal"] = to_string(outcome.acting_on->signal);
    if (outcome.was_ranked) answer["ranking"] = groups(outcome.ranking, outcome.acting_on->signal);
    for (const Eviction& eviction : outcome.evictions) {
      const PodFacts& pod = active_[eviction.pod];
      json::Object event{{"object", "pod " + pod.key()}, {"type", "Warning"}, {"reason", kEvictedReason}, {"message", eviction.message}};
      if (eviction.annotations) {
        json::Object annotations;
        for (const auto& [key, value] : *eviction.annotations) annotations[key] = value;
        event["annotations"] = std::move(annotations);
      }
      events.push_back(std::move(event));
      answer["kills"].as_array().push_back(json::Object{{"pod", pod.key()},
                                                        {"evict", true},
                                                        {"gracePeriodOverride", eviction.grace_period_seconds},
                                                        {"status", killed_status(*documents_.at(pod.key()), eviction)}});
      answer["evicted"].as_array().push_back(json::Value(pod.key()));
    }
  }

  static json::Value killed_status(const json::Value& pod, const Eviction& eviction) {
    json::Array conditions;
    bool replaced = false;
    json::Object disruption{
        {"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "TerminationByKubelet"}, {"message", eviction.message}};
    if (const std::int64_t generation = json::get_int(pod, {"metadata", "generation"}); generation > 0)
      disruption["observedGeneration"] = generation;
    for (const json::Value& condition : json::get_array(pod, {"status", "conditions"})) {
      if (eviction.is_disruption && json::get_string(condition, {"type"}) == "DisruptionTarget") {
        conditions.push_back(disruption);
        replaced = true;
        continue;
      }
      json::Object copy;
      for (const char* key : {"type", "status", "reason", "message"}) copy[key] = json::get_string(condition, {key});
      if (const std::int64_t seen = json::get_int(condition, {"observedGeneration"}); seen != 0) copy["observedGeneration"] = seen;
      conditions.push_back(std::move(copy));
    }
    if (eviction.is_disruption && !replaced) conditions.push_back(disruption);
    return json::Object{
        {"phase", "Failed"}, {"reason", kEvictedReason}, {"message", eviction.message}, {"conditions", std::move(conditions)}};
  }

  [[nodiscard]] json::Value groups(const std::vector<RankedPod>& ranking, Signal signal) const {
    json::Array out;
    for (std::size_t i = 0; i < ranking.size(); ++i) {
      if (i == 0 || compare_for_eviction(EvictionRules::kKubernetes, signal, layout_, ranking[i - 1], ranking[i]) != 0)
        out.emplace_back(json::Array{});
      out.back().as_array().push_back(json::Value(ranking[i].facts->key()));
    }
    return out;
  }

  json::Value all_rankings(const json::Value& step) {
    const Summary summary = read_summary(*json::find(step, "summary"));
    json::Object out;
    for (std::size_t i = 0; i < kSignalCount; ++i) {
      std::vector<RankedPod> pods;
      for (const PodFacts& facts : active_) {
        const auto usage = summary.pods.find(facts.uid);
        pods.push_back({&facts, usage == summary.pods.end() ? nullptr : &usage->second});
      }
      rank_pods(pods, EvictionRules::kKubernetes, static_cast<Signal>(i), layout_);
      out[to_string(static_cast<Signal>(i))] = groups(pods, static_cast<Signal>(i));
    }
    return out;
  }

  json::Value admissions(const json::Array& asked) {
    json::Array out;
    for (const json::Value& key : asked) {
      const std::optional<std::string> refusal = manager_->refuse(pods_.at(std::string(json::as_view(key))));
      out.push_back(json::Object{
          {"pod", json::as_view(key)}, {"admit", !refusal}, {"reason", refusal ? kEvictedReason : ""}, {"message", refusal.value_or("")}});
    }
    return out;
  }

  [[nodiscard]] json::Value thresholds_json(const std::vector<MetThreshold>& thresholds) const {
    std::multimap<std::string, json::Value> sorted;
    for (const MetThreshold& entry : thresholds) {
      const Threshold& t = entry.threshold;
      const auto& observed = manager_->last_observations()[static_cast<std::size_t>(t.signal)];
      json::Object out;
      out["signal"] = to_string(t.signal);
      out["operator"] = t.has_operator ? "LessThan" : "";
      out["value"] = threshold_value_json(t.value);
      out["gracePeriod"] = format_duration_ns(t.grace_period_ns);
      out["minReclaim"] = t.min_reclaim ? threshold_value_json(*t.min_reclaim) : json::Value(nullptr);
      if (observed) {
        const Quantity limit = t.value.of(observed->capacity);
        out["available"] = observed->available.to_string();
        out["capacity"] = observed->capacity.to_string();
        out["thresholdQuantity"] = t.value.text_of(observed->capacity);
        out["availableValue"] = observed->available.value();
        out["thresholdValue"] = limit.value();
      }
      out["firstObservedSecondsAgo"] = static_cast<double>((now_ - entry.first_observed).count()) / 1e6;
      sorted.emplace(sort_key(out), std::move(out));
    }
    json::Array out;
    for (auto& [key, value] : sorted) out.push_back(std::move(value));
    return out;
  }
  /// The recorded lists have an order of their own: both sides are brought into this one.
  static std::string sort_key(const json::Object& object) {
    const std::map<std::string, json::Value> keys = [&] {
      std::map<std::string, json::Value> out;
      for (const auto& [key, value] : object) out.emplace(std::string(key), value);
      return out;
    }();
    std::string text;
    for (const auto& [key, value] : keys)
      if (key != "firstObservedSecondsAgo") text += key + ":" + json::serialize(value) + ",";
    return text;
  }

  const json::Value& file_;
  const json::Value& config_;
  EvictionManager* manager_ = nullptr;
  DiskLayout layout_;
  std::int64_t disk_info_errors_ = 0;
  std::map<std::string, PodFacts> pods_;
  std::map<std::string, const json::Value*> documents_;
  std::vector<PodFacts> active_;
  std::vector<MetThreshold> observed_, met_;
  TimePoint now_{};
};

}  // namespace

std::vector<std::string> replay_manager(const json::Value& file) {
  if (!json::find(file, "config")) return {"malformed file: no config"};
  return ManagerReplay(file).run();
}

}  // namespace berth::node::eviction
