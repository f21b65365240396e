#include "parity/autoscaling.h"

#include <fmt/format.h>

#include "autoscaler/autoscaler.h"
#include "autoscaler/cluster_cache.h"
#include "parity/autoscaling_decision.h"

namespace berth::autoscaler {
namespace {

// --- the recorded side ---

Decision::Names read_names(const json::Value& from, std::string_view key) {
  Decision::Names out;
  for (const json::Value& one : json::get_array(from, {key})) out.emplace(json::as_view(one));
  return out;
}

Decision::Reasons read_reasons(const json::Value& from, std::string_view key) {
  Decision::Reasons out;
  for (const auto& [name, list] : json::get_object(from, {key}))
    for (const json::Value& one : list.get_array()) out[std::string(name.data(), name.size())].emplace_back(json::as_view(one));
  return out;
}

Decision read_outcome(const json::Value& outcome) {
  Decision out;
  out.result = json::get_string(outcome, {"result"});
  for (const auto& [group, nodes] : json::get_object(outcome, {"grow"}))
    out.grow[std::string(group.data(), group.size())] = json::get_int(outcome, {"grow", group});
  for (const json::Value& option : json::get_array(outcome, {"options"}))
    out.options[std::string(json::get_string(option, {"group"}))] = {json::get_int(option, {"nodes"}), json::get_int(option, {"pods"})};
  out.best = read_names(outcome, "bestGroups");
  out.triggered = read_names(outcome, "triggered");
  out.awaiting = read_names(outcome, "awaiting");
  out.not_triggered = read_reasons(outcome, "notTriggered");
  out.unneeded = read_names(outcome, "unneeded");
  out.staying = read_reasons(outcome, "staying");
  for (const std::string_view key : {"removeEmpty", "removeDrain"}) out.removed.merge(read_names(outcome, key));
  return out;
}

// --- this side ---

std::string_view result_name(ScaleUpPlan::Result result) {
  switch (result) {
    case ScaleUpPlan::Result::kNotNeeded:
      return "NotNeeded";
    case ScaleUpPlan::Result::kNoOptions:
    case ScaleUpPlan::Result::kLimitedByMaxNodesTotal:
      return "NoOptionsAvailable";
    case ScaleUpPlan::Result::kSuccessful:
      return "Successful";
  }
  return "";
}

Decision decision_of(const Actions& actions) {
  Decision out;
  const ScaleUpPlan& plan = actions.status.plan;
  out.result = result_name(plan.result);
  for (const Resize& resize : actions.grow) out.grow[resize.group] = resize.to - resize.from;
  for (const ScaleUpPlan::Option& option : plan.options) out.options[option.group] = {option.nodes, static_cast<std::int64_t>(option.pods)};
  out.best = {plan.best.begin(), plan.best.end()};
  for (const PodPtr& pod : plan.estimated) out.triggered.insert(pod->key());
  for (const PodPtr& pod : plan.awaiting) out.awaiting.insert(pod->key());
  // Nobody is told of a refusal in a pass that grows.
  if (plan.result != ScaleUpPlan::Result::kSuccessful)
    for (const auto& [pod, why] : plan.not_helped) out.not_triggered[pod->key()] = count_reasons(*why);
  for (const auto& [node, since] : actions.status.unneeded) out.unneeded.insert(node);
  for (const Unremovable& one : actions.status.unremovable) {
    std::vector<std::string> words{std::string(one.reason)};
    if (!one.blocking_reason.empty()) words.insert(words.end(), {std::string(one.blocking_reason), one.blocking_pod->key()});
    out.staying[one.node] = std::move(words);
  }
  for (const NodeRemoval& removal : actions.remove) out.removed.insert(removal.node);
  return out;
}

/// `@now-60s` becomes the time a minute before the pass.
void set_times(json::Value& value, TimePoint now) {
  if (value.is_array())
    for (json::Value& one : value.get_array()) set_times(one, now);
  if (value.is_object())
    for (auto& [key, one] : value.get_object()) set_times(one, now);
  if (value.is_string() && json::as_view(value) == "@now-60s") value = format_rfc3339(now - std::chrono::seconds(60));
}

/// One first pass of a fresh autoscaler, as the recordings are: nothing waits for time to go by.
struct Replay {
  ClusterCache cache;
  Options options;
  Snapshot snapshot;
  Actions actions;
  TimePoint now = *parse_rfc3339("2026-11-22T12:00:00Z");

  Result<void> run(const json::Value& file) {
    json::Value input = *json::find(file, "input");
    set_times(input, now);
    for (const json::Value& object : json::get_array(input, {"items"})) cache.upsert(object);
    if (cache.cluster_autoscaler() == nullptr) return invalid("there is no ClusterAutoscaler named default");
    auto parsed = Options::parse(*cache.cluster_autoscaler());
    if (!parsed) return std::unexpected(parsed.error());
    options = std::move(*parsed);
    options.unneeded_time = options.unready_time = Duration::zero();
    auto framework = placement::Framework::create(placement::default_profile(placement::Era::k136));
    if (!framework) return std::unexpected(framework.error());
    snapshot = cache.snapshot();
    actions = Autoscaler(*framework, 0).step(snapshot, options, now);
    return {};
  }
};

}  // namespace

bool is_autoscaler_vector(const json::Value& file) {
  return file.is_object() && json::find(file, {"input", "items"}) != nullptr && json::find(file, "outcomes") != nullptr;
}

std::vector<std::string> replay_autoscaler(const json::Value& file) {
  const json::Array& outcomes = json::get_array(file, {"outcomes"});
  if (!is_autoscaler_vector(file) || outcomes.empty()) return {"this is no recorded pass: it needs input.items and outcomes"};
  Replay pass;
  if (const auto ran = pass.run(file); !ran) return {ran.error().message};
  const Decision got = decision_of(pass.actions);
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    std::vector<std::string> differences =
        compare_decisions(read_outcome(outcomes[i]), got, {&pass.snapshot, &pass.options, &pass.actions, pass.now});
    if (differences.empty()) return {};
    if (i == 0 || differences.size() < nearest.size()) nearest = std::move(differences);
  }
  return nearest;
}

}  // namespace berth::autoscaler
