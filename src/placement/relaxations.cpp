#include "placement/relaxations.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/explain.h"
#include "placement/lacks.h"

namespace berth::placement {
namespace {

std::string describe(const model::NodeSelectorTerm& term) {
  std::vector<std::string> parts;
  for (const auto& expression : term.expressions) parts.push_back(model::Selector({expression}).to_string());
  for (const auto& field : term.fields) parts.push_back(field.key + "=" + fmt::format("{}", fmt::join(field.values, "|")));
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::string describe(const model::NodeSelector& selector) {
  std::vector<std::string> parts;
  for (const auto& term : selector.terms) parts.push_back(describe(term));
  return fmt::format("{}", fmt::join(parts, ", or "));
}

/// Sets the pod's request of one resource so that its total becomes `wanted`.
void lower_request(model::PodView& pod, const std::string& resource, std::int64_t wanted) {
  const auto is_it = [&](const auto& one) { return one.first == resource; };
  for (auto* containers : {&pod.containers, &pod.init_containers})
    containers->change_each([&](model::ContainerView& container) { std::erase_if(container.requests, is_it); });
  pod.pod_requests.erase_if(is_it);
  pod.overhead.erase_if(is_it);
  if (pod.containers.empty() || wanted <= 0) return;
  pod.containers.change_at(0, [&](model::ContainerView& container) {
    auto& list = container.requests;
    list.emplace_back(resource, resource == "cpu" ? model::Quantity::from_milli(wanted) : model::Quantity::from_value(wanted));
    std::ranges::sort(list, {}, [](const auto& one) { return one.first; });
  });
}

}  // namespace

std::vector<RelaxableConstraint> relaxable_constraints(const PodInfo& pod, const std::vector<model::Taint>& taints,
                                                       const std::vector<std::pair<std::string, std::int64_t>>& largest_free) {
  std::vector<RelaxableConstraint> out;
  const model::PodView& view = pod.view();
  for (const auto& [resource, free] : largest_free) {
    const std::int64_t asked = amount_of(pod.wanted(), resource);
    if (asked <= free || free < 0) continue;
    out.push_back(
        {fmt::format("lower the {} request from {} to {}", resource, format_amount(resource, asked), format_amount(resource, free)),
         [resource = resource, free = free](model::PodView& changed) { lower_request(changed, resource, free); }});
  }
  for (const auto& taint : taints) {
    const std::string text = fmt::format("{}{}:{}", taint.key, taint.value.empty() ? "" : "=" + taint.value, taint.effect);
    out.push_back({fmt::format("tolerate the taint {}", text), [taint](model::PodView& changed) {
                     changed.tolerations.push_back({taint.key, "Equal", taint.value, taint.effect, std::nullopt});
                   }});
  }
  for (const auto& [key, value] : view.node_selector)
    out.push_back({fmt::format("drop the node selector {}={}", key, value), [key = key](model::PodView& changed) {
                     changed.node_selector.change(
                         [&](auto& all) { std::erase_if(all, [&](const auto& one) { return one.first == key; }); });
                   }});
  if (view.node_affinity.required)
    out.push_back({fmt::format("drop the required node affinity ({})", describe(*view.node_affinity.required)),
                   [](model::PodView& changed) { changed.node_affinity.required.reset(); }});
  for (std::size_t i = 0; i < view.required_affinity.size(); ++i)
    out.push_back(
        {fmt::format("drop the pod affinity to {} by {}", view.required_affinity[i].selector.to_string(),
                     view.required_affinity[i].topology_key),
         [i](model::PodView& changed) { changed.required_affinity.change_at(i, [](auto& term) { term.topology_key.clear(); }); }});
  for (std::size_t i = 0; i < view.required_anti_affinity.size(); ++i)
    out.push_back(
        {fmt::format("drop the pod anti-affinity to {} by {}", view.required_anti_affinity[i].selector.to_string(),
                     view.required_anti_affinity[i].topology_key),
         [i](model::PodView& changed) { changed.required_anti_affinity.change_at(i, [](auto& term) { term.topology_key.clear(); }); }});
  for (std::size_t i = 0; i < view.spread_constraints.size(); ++i) {
    const auto& constraint = view.spread_constraints[i];
    if (!constraint.is_hard) continue;
    out.push_back({fmt::format("make the topology spread by {} (maxSkew {}) ScheduleAnyway", constraint.topology_key, constraint.max_skew),
                   [i](model::PodView& changed) { changed.spread_constraints.change_at(i, [](auto& one) { one.is_hard = false; }); }});
  }
  if (!pod.host_ports.empty()) {
    std::vector<std::string> ports;
    for (const auto& port : pod.host_ports) ports.push_back(std::to_string(port.port));
    out.push_back({fmt::format("give up the host port(s) {}", fmt::join(ports, ", ")), [](model::PodView& changed) {
                     for (auto* containers : {&changed.containers, &changed.init_containers})
                       containers->change_each([](auto& container) { container.host_ports.clear(); });
                   }});
  }
  if (!view.node_name.empty())
    out.push_back({fmt::format("give up the fixed node {}", view.node_name), [](model::PodView& changed) { changed.node_name.clear(); }});
  for (const auto& volume : view.volumes) {
    if (volume.kind == model::VolumeView::Kind::kOther) continue;
    out.push_back({fmt::format("do without the volume {}", volume.name), [name = volume.name](model::PodView& changed) {
                     changed.volumes.change([&](auto& all) { std::erase_if(all, [&](const auto& one) { return one.name == name; }); });
                   }});
  }
  return out;
}

}  // namespace berth::placement
