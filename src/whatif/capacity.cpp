// How many more of a pod fit, and what stops the next one (kubernetes-sigs/cluster-capacity asks the same).
#include <fmt/format.h>

#include <algorithm>

#include "model/topology_labels.h"
#include "placement/groups/group_placement.h"
#include "whatif/manifests.h"
#include "whatif/question.h"
#include "whatif/workloads.h"

namespace berth::whatif {
namespace {

constexpr std::int64_t kMostCopies = 10'000'000;

std::string zone_of(const placement::NodeInfo& node) {
  const std::string* out = node.label(model::kZoneLabel.present);
  if (out == nullptr) out = node.label(model::kZoneLabel.old);
  return out == nullptr ? std::string() : *out;
}

/// The pod that is asked about: of a Pod itself, or of a workload's template.
Result<model::PodView> asked_pod(World& world, const json::Value& document) {
  if (!document.is_object()) return invalid("capacity.pod: a Pod, or a workload with a template, is wanted");
  auto complete = checked(document);
  if (!complete) return std::unexpected(complete.error());
  json::Value pod = std::move(*complete);
  if (json::get_string(pod, {"kind"}) != "Pod") {
    if (json::find(pod, {"spec", "template"}) == nullptr)
      return invalid(fmt::format("capacity.pod: a {} has no pods: a Pod or a workload is wanted", json::get_string(pod, {"kind"})));
    const std::string name(json::get_string(pod, {"metadata", "name"}));
    if (json::get_string(pod, {"metadata", "namespace"}).empty())
      json::set(pod, {"metadata", "namespace"}, json::Value(world.options().default_namespace));
    pod = pod_of_template(pod);
    json::set(pod, {"metadata", "name"}, json::Value(name));
  }
  pod = complete_pod(std::move(pod), world.cluster(), world.options().default_namespace);
  model::PodView view = model::PodView::parse(pod);
  if (auto unknown = unknown_priority(view.priority_class_name, world.cluster()); !unknown.empty()) world.note(std::move(unknown));
  view.node_name.clear();
  view.phase = "Pending";
  return view;
}

struct GangsAsked {
  std::int64_t size = 0, most = 0;
  std::string topology_key;
};

/// How many gangs of so many of the pod, each placed whole.
json::Object capacity_in_gangs(placement::Trial& trial, model::PodView pod, const GangsAsked& asked,
                               const std::function<std::optional<std::string>(const placement::PodInfo&)>& quota) {
  placement::PodGroup group;
  group.ns = pod.meta.ns;
  group.is_gang = true;
  group.min_count = asked.size;
  group.topology_key = asked.topology_key;
  const std::string name = pod.meta.name;
  std::map<std::string, std::int64_t> by_node;
  std::int64_t total = 0;
  std::string reason;
  for (; total < asked.most && reason.empty(); ++total) {
    std::vector<placement::PodInfoPtr> members;
    for (std::int64_t i = 0; i < asked.size && reason.empty(); ++i) {
      pod.meta.name = fmt::format("{}-{}-{}", name, total, i);
      pod.meta.uid = fmt::format("what-if/capacity/{}/{}", total, i);
      members.push_back(placement::PodInfo::make(std::make_shared<const model::PodView>(pod), trial.cluster().era()));
      if (auto refused = quota(*members.back())) reason = "Quota: " + *refused;
    }
    if (!reason.empty()) break;
    group.name = fmt::format("{}-{}", name, total);
    const auto decision = placement::place_group(trial, {.group = &group, .members = members});
    if (decision.outcome != placement::GroupDecision::Outcome::kScheduled) {
      const auto failed = std::ranges::find_if(decision.members, [](const auto& one) { return one.decision.diagnosis != nullptr; });
      reason = fmt::format("Unschedulable: of the next gang's {} pods {} would have a place{}{}", asked.size,
                           placement::count_placed(decision), asked.topology_key.empty() ? "" : " in the domain that comes nearest",
                           failed == decision.members.end()
                               ? ": " + decision.message
                               : ": " + placement::fit_error_message(*failed->decision.diagnosis, trial.cluster().era(), {}));
      break;
    }
    for (const placement::MemberDecision& one : decision.members) ++by_node[trial.cluster().node(one.decision.node)->name];
  }
  if (reason.empty()) reason = fmt::format("LimitReached: {} were asked for, and more may fit", asked.most);
  json::Array nodes, zones;
  std::map<std::string, std::int64_t> by_zone;
  for (const auto& [node, count] : by_node) {
    const std::string zone = zone_of(*trial.cluster().find_node(node));
    by_zone[zone] += count;
    nodes.push_back(json::Object{{"name", node}, {"zone", zone}, {"count", count}});
  }
  for (const auto& [zone, count] : by_zone) zones.push_back(json::Object{{"name", zone}, {"count", count}});
  return json::Object{{"pod", pod.meta.ns + "/" + name}, {"gang", asked.size},        {"total", total},           {"reason", reason},
                      {"limits", json::Array()},         {"zones", std::move(zones)}, {"nodes", std::move(nodes)}};
}

}  // namespace

Result<json::Object> capacity_for(World& world, const json::Value& request) {
  const json::Value* document = json::find(request, "pod");
  auto view = asked_pod(world, document == nullptr ? json::Value() : *document);
  if (!view) return std::unexpected(view.error());
  const std::int64_t most = json::get_int(request, {"most"}, kMostCopies);
  if (most < 1) return invalid("capacity.most: a number above 0 is wanted");
  placement::Trial trial = world.trial().fork();
  auto quota = quota_of(world, view->meta.ns);
  const std::string name = view->meta.name;
  std::map<std::string, std::int64_t> by_node, by_zone;
  for (const auto* node : trial.cluster().nodes()) by_zone.try_emplace(zone_of(*node), 0);
  json::Array limits;
  std::string reason;
  std::int64_t total = 0;
  const std::int64_t size = json::get_int(request, {"gang"});
  if (size < 0 || (json::find(request, "gang") != nullptr && size == 0))
    return invalid("capacity.gang: a number of pods above 0 is wanted");
  const std::string topology(json::get_string(request, {"topology"}));
  if (!topology.empty() && size == 0) return invalid("capacity.topology: is of gangs: say how many pods one has (capacity.gang)");
  if (size > 0) return capacity_in_gangs(trial, *view, {.size = size, .most = most, .topology_key = topology}, quota);
  for (; total < most; ++total) {
    view->meta.name = fmt::format("{}-{}", name, total);
    view->meta.uid = fmt::format("what-if/capacity/{}", total);
    const auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(*view), trial.cluster().era());
    if (auto refused = quota(*pod)) {
      reason = "Quota: " + *refused;
      limits.push_back(json::Object{{"reason", "exceeded quota"}, {"nodes", 0}});
      break;
    }
    const placement::Placement placed = trial.place(pod);
    if (!placed.is_placed()) {
      reason = "Unschedulable: " + placed.status.message();
      if (placed.decision.diagnosis != nullptr) {
        auto reasons = placed.decision.diagnosis->reasons;
        std::ranges::stable_sort(reasons, std::greater{}, [](const auto& one) { return one.second; });
        for (const auto& [words, nodes] : reasons)
          limits.push_back(json::Object{{"reason", words}, {"nodes", static_cast<std::int64_t>(nodes)}});
      }
      break;
    }
    const auto* node = trial.cluster().node(placed.node);
    ++by_node[node->name];
    ++by_zone[zone_of(*node)];
  }
  if (reason.empty()) reason = fmt::format("LimitReached: {} were asked for, and more may fit", most);
  json::Array nodes, zones;
  for (const auto& [node, count] : by_node)
    nodes.push_back(json::Object{{"name", node}, {"zone", zone_of(*trial.cluster().find_node(node))}, {"count", count}});
  for (const auto& [zone, count] : by_zone) zones.push_back(json::Object{{"name", zone}, {"count", count}});
  return json::Object{{"pod", view->meta.ns + "/" + name}, {"total", total},           {"reason", reason}, {"limits", std::move(limits)},
                      {"zones", std::move(zones)},         {"nodes", std::move(nodes)}};
}

}  // namespace berth::whatif
