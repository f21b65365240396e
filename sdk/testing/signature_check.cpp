// What a signature leaves out may change nothing.
#include <algorithm>

#include "berth/plugin_testing.h"
#include "placement/columns/cluster_index.h"
#include "placement/preemption.h"

namespace berth::plugin_testing {
namespace {

using model::PodView;
using namespace placement;

void relabel(PodView& pod, const std::string& key, const std::string& value) {
  auto pairs = *pod.meta.labels.pairs();
  std::erase_if(pairs, [&](const auto& pair) { return pair.first == key; });
  pairs.emplace_back(key, value);
  pod.meta.labels = model::Labels(std::move(pairs));
}

/// Of every field of a pod that a plugin could read; what its own nomination says is the one thing that stands beside the signature.
const Change kChanges[] = {
    {"name", [](PodView& pod, Dice&) { pod.meta.name += "-other"; }},
    {"uid", [](PodView& pod, Dice&) { pod.meta.uid += "-other"; }},
    {"namespace", [](PodView& pod, Dice& dice) { pod.meta.ns = dice.chance(50) ? "team-a" : "elsewhere"; }},
    {"a label of its own", [](PodView& pod, Dice& dice) { relabel(pod, "controller-uid", std::to_string(dice.below(1000))); }},
    {"the app label", [](PodView& pod, Dice& dice) { relabel(pod, "app", dice.chance(50) ? "web" : "batch"); }},
    {"the tier label", [](PodView& pod, Dice& dice) { relabel(pod, "tier", dice.chance(50) ? "gold" : "tin"); }},
    {"no labels", [](PodView& pod, Dice&) { pod.meta.labels = {}; }},
    {"an annotation",
     [](PodView& pod, Dice& dice) {
       pod.meta.annotations = {{"team", std::to_string(dice.below(9))}};
     }},
    {"the owner",
     [](PodView& pod, Dice& dice) {
       constexpr const char* kKinds[] = {"ReplicaSet", "Job", "StatefulSet"};
       pod.meta.owner_references = {{"apps/v1", kKinds[dice.below(3)], "owner", std::to_string(dice.below(5)), true}};
     }},
    {"its age", [](PodView& pod, Dice&) { pod.meta.creation_timestamp = "2026-01-01T00:00:00Z"; }},
    {"deletion", [](PodView& pod, Dice&) { pod.meta.is_deleting = !pod.meta.is_deleting; }},
    {"the priority class", [](PodView& pod, Dice&) { pod.priority_class_name = "other"; }},
    {"the priority", [](PodView& pod, Dice& dice) { pod.priority = dice.below(3) * 10; }},
    {"the preemption policy", [](PodView& pod, Dice&) { pod.preemption_never = !pod.preemption_never; }},
    {"the phase", [](PodView& pod, Dice&) { pod.phase = "Pending"; }},
    {"the start", [](PodView& pod, Dice&) { pod.start_time = "2026-01-01T00:00:00Z"; }},
    {"the host's network", [](PodView& pod, Dice&) { pod.host_network = !pod.host_network; }},
    {"the grace period", [](PodView& pod, Dice&) { pod.termination_grace_period_seconds = 7; }},
    {"a container's name", [](PodView& pod, Dice&) { pod.containers.change_at(0, [&](auto& one) { one.name = "other"; }); }},
    {"an image that nobody has",
     [](PodView& pod, Dice& dice) {
       pod.containers.change_at(0, [&](auto& one) { one.image = "job:" + std::to_string(dice.below(99)); });
     }},
    {"an image",
     [](PodView& pod, Dice& dice) {
       pod.containers.change_at(0, [&](auto& one) { one.image = dice.chance(50) ? "app:v1" : "big:latest"; });
     }},
    {"limits",
     [](PodView& pod, Dice&) { pod.containers.change_at(0, [&](auto& one) {
                                 one.limits = {{"cpu", model::Quantity::from_value(9)}};
                               }); }},
    {"a request",
     [](PodView& pod, Dice& dice) {
       pod.containers.change_at(0, [&](auto& one) { one.requests = {{"cpu", model::Quantity::from_milli(50 + dice.below(3))}}; });
     }},
    {"a host port",
     [](PodView& pod, Dice& dice) {
       pod.containers.change_at(0, [&](auto& one) { one.host_ports = {{8000 + dice.below(2), "TCP", ""}}; });
     }},
    {"a projected volume",
     [](PodView& pod, Dice& dice) {
       model::VolumeView volume;
       volume.name = "kube-api-access-" + std::to_string(dice.below(1000));
       pod.volumes.push_back(std::move(volume));
     }},
    {"the volumes' names",
     [](PodView& pod, Dice& dice) {
       pod.volumes.change_each([&](auto& volume) { volume.name = "v" + std::to_string(dice.below(1000)); });
     }},
    {"no volumes", [](PodView& pod, Dice&) { pod.volumes.clear(); }},
    {"the patience of tolerations",
     [](PodView& pod, Dice& dice) {
       pod.tolerations.change_each([&](auto& toleration) { toleration.toleration_seconds = dice.below(600); });
     }},
    {"a toleration",
     [](PodView& pod, Dice&) {
       pod.tolerations.push_back({"dedicated", "Exists", "", "", {}});
     }},
    {"the node selector",
     [](PodView& pod, Dice&) {
       pod.node_selector = {{"disk", "ssd"}};
     }},
    {"preferred nodes", [](PodView& pod, Dice&) { pod.node_affinity.preferred.clear(); }},
    {"required nodes", [](PodView& pod, Dice&) { pod.node_affinity.required.reset(); }},
    {"its anti-affinity", [](PodView& pod, Dice&) { pod.required_anti_affinity.clear(); }},
    {"its affinity", [](PodView& pod, Dice&) { pod.required_affinity.clear(); }},
    {"its preferences", [](PodView& pod, Dice&) { pod.preferred_affinity.change_each([](auto& term) { ++term.weight; }); }},
    {"its spreading",
     [](PodView& pod, Dice&) { pod.spread_constraints.change_each([](auto& constraint) { constraint.is_hard = !constraint.is_hard; }); }},
    {"the node's name", [](PodView& pod, Dice&) { pod.node_name = "n1"; }},
    {"a gate", [](PodView& pod, Dice&) { pod.scheduling_gates = {"wait"}; }},
    {"features", [](PodView& pod, Dice&) { pod.required_features = {"Something"}; }},
    {"an infeasible resize", [](PodView& pod, Dice&) { pod.resize_infeasible = !pod.resize_infeasible; }},
};

std::string describe(const Cluster& cluster, const Framework& framework, const PodInfo& pod) {
  const Status gate = framework.run_pre_enqueue(pod.view(), &cluster);
  std::string out = "gate " + gate.message();
  const Evaluation found = evaluate(framework, cluster, pod);
  out += "\npre " + found.pre_filter.message();
  if (!found.errors.empty()) return out + "\nan error";  // Its words may name the pod.
  for (const auto& one : found.feasible) {
    out += fmt::format("\n{} fits", one.node.value);
    for (const auto score : one.scores) out += fmt::format(" {}", score);
  }
  for (const auto& one : found.rejected)
    out += fmt::format("\n{} {} {}", one.node.value, static_cast<int>(one.status.code), one.status.message());
  return out;
}

std::string describe(const PostFilterResult& result) {
  std::string out = result.status.message();
  for (const auto& candidate : result.candidates) {
    out += fmt::format("\n{} breaks {}:", candidate.node.value, candidate.budget_violations);
    for (const auto& victim : candidate.victims) out += " " + victim->key;
  }
  return out;
}

}  // namespace

std::span<const Change> common_changes() { return kChanges; }

SignatureFindings compare_alike(const FrameworkPtr& framework, const Cluster& cluster, Onlookers* onlookers, const model::PodViewPtr& view,
                                std::span<const Change> changes, Dice& dice) {
  const Era era = framework->profile().era;
  SignatureFindings out;
  const auto pod = PodInfo::make(view, era);
  const Signature signature = framework->sign(*pod, onlookers);
  const Signature filters = framework->sign_filters(*pod, onlookers);
  const std::string said = describe(cluster, *framework, *pod);
  for (const Change& change : changes) {
    auto changed_view = std::make_shared<PodView>(*view);
    change.make(*changed_view, dice);
    const auto changed = PodInfo::make(std::move(changed_view), era);
    if (framework->sign(*changed, onlookers) == signature) {
      ++out.alike;
      const std::string says = describe(cluster, *framework, *changed);
      if (says != said) out.difference = fmt::format("{}:\n{}\nnot\n{}", change.what, says, said);
    } else {
      ++out.different;
    }
    if (framework->sign_filters(*changed, onlookers) != filters) continue;
    const auto victims = [&](const PodInfoPtr& one) {
      return describe(run_post_filter(framework, cluster, one, evaluate(*framework, cluster, *one, false), {.confirm = false}));
    };
    if (const auto a = victims(pod), b = victims(changed); a != b)
      out.difference = fmt::format("preemption by {}:\n{}\nnot\n{}", change.what, b, a);
  }
  return out;
}

}  // namespace berth::plugin_testing
