#include "placement/lacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/config_reader.h"
#include "placement/devices/extended.h"
#include "placement/devices/taints.h"
#include "placement/explain.h"
#include "placement/node_match.h"
#include "placement/numa/node_alignment.h"
#include "placement/plugins/pod_claims.h"

namespace berth::placement {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::size_t kMostNames = 5;

std::string text_of(const model::Requirement& requirement) { return model::Selector({requirement}).to_string(); }

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('/') == std::string_view::npos ? 0 : key.rfind('/') + 1); }

}  // namespace

std::int64_t amount_of(const Resource& resource, std::string_view name) {
  if (name == "cpu") return resource.cpu_milli;
  if (name == "memory") return resource.memory_bytes;
  if (name == "ephemeral-storage") return resource.ephemeral_storage_bytes;
  return resource.scalar(name);
}

std::vector<Shortage> shortages(const Cluster& cluster, const PodInfo& pod, const NodeInfo& node) {
  std::vector<Shortage> out;
  const auto check = [&](std::string_view name, std::int64_t asked, std::int64_t used, std::int64_t allocatable) {
    const std::int64_t free = saturating_sub(allocatable, used);
    if (asked > 0 && asked > free) out.push_back({std::string(name), asked, free, allocatable});
  };
  const Resource& wanted = pod.wanted();
  check("cpu", wanted.cpu_milli, node.requested.cpu_milli, node.allocatable.cpu_milli);
  check("memory", wanted.memory_bytes, node.requested.memory_bytes, node.allocatable.memory_bytes);
  check("ephemeral-storage", wanted.ephemeral_storage_bytes, node.requested.ephemeral_storage_bytes,
        node.allocatable.ephemeral_storage_bytes);
  check("pods", 1, static_cast<std::int64_t>(node.pods.size()), node.allocatable.allowed_pods);
  for (const auto& [name, amount] : wanted.scalars)
    if (!devices::is_left_to_devices(cluster, node.allocatable, name))
      check(name, amount, node.requested.scalar(name), node.allocatable.scalar(name));
  return out;
}

std::vector<model::Taint> untolerated(const PodInfo& pod, const NodeInfo& node) {
  std::vector<model::Taint> out;
  for (const auto& taint : node.node->taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    const bool tolerated = std::ranges::any_of(pod.view().tolerations, [&](const auto& one) { return one.tolerates(taint); });
    if (!tolerated) out.push_back(taint);
  }
  return out;
}

std::vector<model::Requirement> failed_affinity(const PodInfo& pod, const NodeInfo& node) {
  const auto& required = pod.view().node_affinity.required;
  std::vector<model::Requirement> best;
  if (!required || required->matches(node.labels(), node.name)) return best;
  for (const model::NodeSelectorTerm& term : required->terms) {
    std::vector<model::Requirement> failed;
    for (const auto& expression : term.expressions)
      if (!expression.matches(node.labels())) failed.push_back(expression);
    for (const auto& field : term.fields)
      if ((std::ranges::find(field.values, node.name) != field.values.end()) != (field.op == model::Requirement::Op::kIn))
        failed.push_back(field);
    if (!failed.empty() && (best.empty() || failed.size() < best.size())) best = std::move(failed);
  }
  return best;
}

std::string some_of(const std::vector<std::string>& names, std::size_t limit) {
  const std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(limit, names.size())));
  std::string out = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > limit) out += fmt::format(" and {} more", names.size() - limit);
  return out;
}

std::vector<std::string> pinned_nodes(const model::PodView& pod) {
  if (!pod.node_name.empty()) return {pod.node_name};
  for (const auto& [key, value] : pod.node_selector)
    if (key == kHostname) return {value};
  std::vector<std::string> out;
  if (!pod.node_affinity.required) return out;
  for (const model::NodeSelectorTerm& term : pod.node_affinity.required->terms) {
    const auto names_nodes = [](const model::Requirement& one, bool is_field) {
      return one.op == model::Requirement::Op::kIn && (is_field ? one.key == "metadata.name" : one.key == kHostname);
    };
    const auto field = std::ranges::find_if(term.fields, [&](const auto& one) { return names_nodes(one, true); });
    const auto label = std::ranges::find_if(term.expressions, [&](const auto& one) { return names_nodes(one, false); });
    if (field == term.fields.end() && label == term.expressions.end()) return {};  // This term allows other nodes.
    const auto& values = field != term.fields.end() ? field->values : label->values;
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

bool is_pinned_to(const std::vector<std::string>& pins, const NodeInfo& node) {
  const std::string* hostname = node.label(kHostname);
  return std::ranges::any_of(pins, [&](const std::string& pin) { return pin == node.name || (hostname != nullptr && pin == *hostname); });
}

std::vector<std::string> Lacks::of(const NodeInfo& node, std::string_view plugin) {
  std::vector<std::string> out;
  if (plugin == "NodeResourcesFit") {
    for (const auto& one : shortages(cluster_, pod_, node))
      out.push_back(fmt::format("{}: {} more (asks {}, free {} of {})", one.resource,
                                format_amount(one.resource, saturating_sub(one.asked, one.free)), format_amount(one.resource, one.asked),
                                format_amount(one.resource, one.free), format_amount(one.resource, one.allocatable)));
  } else if (plugin == "TaintToleration") {
    for (const auto& taint : untolerated(pod_, node))
      out.push_back(fmt::format("a toleration for {}{}:{}", taint.key, taint.value.empty() ? "" : "=" + taint.value, taint.effect));
  } else if (plugin == "NodeAffinity") {
    out = of_affinity(node);
  } else if (plugin == "DynamicResources") {
    if (const auto claims = claims_of(pod_.view(), cluster_)) out = devices::taints_in_the_way(*node.node, *claims, cluster_);
  } else if (plugin == "NodeResourceTopologyMatch") {
    out = numa::lacks_beforehand(node, pod_);
  } else if (plugin == "NodeUnschedulable") {
    out.emplace_back("to be uncordoned");
  } else if (plugin == "NodeName") {
    out.push_back(fmt::format("the name {} (spec.nodeName)", pod_.view().node_name));
  } else if (plugin == "NodePorts") {
    out = of_ports(node);
  } else if (plugin == "InterPodAffinity") {
    out = of_pods(node);
  } else if (plugin == "PodTopologySpread") {
    out = of_spread(node);
  } else if (plugin == "NodeLabel") {
    for (const std::string& key : framework_.profile().args.node_label.present_labels)
      if (node.label(key) == nullptr) out.push_back(fmt::format("the label {}{}", key, values_of(key).empty() ? " (no node has it)" : ""));
    for (const std::string& key : framework_.profile().args.node_label.absent_labels)
      if (node.label(key) != nullptr) out.push_back(fmt::format("to be without the label {}", key));
  }
  return out;
}

std::vector<std::string> Lacks::of_affinity(const NodeInfo& node) {
  using Op = model::Requirement::Op;
  std::vector<std::string> out;
  for (const auto& [key, value] : pod_.view().node_selector) {
    const auto* actual = node.label(key);
    if (actual == nullptr || *actual != value)
      out.push_back(fmt::format("the label {}={}{}", key, value, values_there(node, key, {value})));
  }
  for (const model::Requirement& one : failed_affinity(pod_, node)) {
    if (one.key == "metadata.name")
      out.push_back(fmt::format("{} {}", one.op == Op::kIn ? "the name" : "another name than", fmt::join(one.values, " or ")));
    else if (one.op == Op::kDoesNotExist || one.op == Op::kNotIn)
      out.push_back(fmt::format("to be without the label {}{}", one.key, node.label(one.key) == nullptr ? "" : "=" + *node.label(one.key)));
    else
      out.push_back(fmt::format("the label {}{}", text_of(one), values_there(node, one.key, one.values)));
  }
  return out;
}

std::vector<std::string> Lacks::of_ports(const NodeInfo& node) const {
  std::vector<std::string> out;
  for (const model::HostPort& port : pod_.host_ports)
    for (const PodInfoPtr& other : node.pods)
      if (ports_conflict(std::span(&port, 1), other->host_ports)) {
        out.push_back(
            fmt::format("the host port {}/{} (held by {})", port.port, port.protocol.empty() ? "TCP" : port.protocol, other->key));
        break;
      }
  return out;
}

std::vector<std::string> Lacks::of_pods(const NodeInfo& node) {
  read_pods();
  std::vector<std::string> out;
  for (std::size_t i = 0; i < pod_.required_affinity.size(); ++i) {
    const AffinityTerm& term = pod_.required_affinity[i];
    const std::string* value = node.label(term.topology_key);
    if (value == nullptr) {
      out.push_back(missing_key(term.topology_key));
      continue;
    }
    if (affinity_[i].contains(*value)) continue;
    std::vector<std::string> where;
    for (const auto& [domain, pods] : affinity_[i]) where.push_back(domain);
    out.push_back(fmt::format("a pod with {} in {}={} ({})", term.selector.to_string(), term.topology_key, *value,
                              where.empty() ? "there is none anywhere" : "there are in " + some_of(where, kMostNames)));
  }
  for (std::size_t i = 0; i < pod_.required_anti_affinity.size(); ++i) {
    const AffinityTerm& term = pod_.required_anti_affinity[i];
    const std::string* value = node.label(term.topology_key);
    if (value == nullptr) continue;
    if (const auto found = anti_affinity_[i].find(*value); found != anti_affinity_[i].end())
      out.push_back(fmt::format("to be without {}{} in {}={}, which {} {}", found->second.first,
                                found->second.second > 1 ? fmt::format(" and {} more", found->second.second - 1) : "", term.topology_key,
                                *value, found->second.second > 1 ? "match" : "matches", term.selector.to_string()));
  }
  for (const auto& [domain, pod] : repelled_by_)
    if (const std::string* value = node.label(domain.first); value != nullptr && *value == domain.second)
      out.push_back(fmt::format("to be without {} in {}={}, whose anti-affinity keeps such pods away", pod, domain.first, domain.second));
  return out;
}

std::vector<std::string> Lacks::of_spread(const NodeInfo& node) {
  std::vector<std::string> out;
  for (const model::TopologySpreadConstraint& constraint : pod_.view().spread_constraints) {
    if (!constraint.is_hard) continue;
    const std::string* value = node.label(constraint.topology_key);
    if (value == nullptr)
      out.push_back(missing_key(constraint.topology_key));
    else
      out.push_back(fmt::format("fewer pods with {} in {}={} (maxSkew {})", constraint.selector.to_string(), constraint.topology_key,
                                *value, constraint.max_skew));
  }
  // One that the node satisfies is not wanting; which one fails is not told by the plugin when there are several.
  return out.size() == 1 ? out : std::vector<std::string>{};
}

std::string Lacks::values_there(const NodeInfo& node, const std::string& key, const std::vector<std::string>& wanted) {
  if (const std::string* actual = node.label(key)) return fmt::format(" (has {})", *actual);
  const std::set<std::string>& there = values_of(key);
  if (there.empty()) {
    return " " + no_such_key(key);
  }
  std::vector<std::string> shown(there.begin(), there.end());
  const std::vector<std::string_view> views(shown.begin(), shown.end());
  // The value that was probably meant comes first.
  if (!wanted.empty()) {
    const std::string near(config::nearest(wanted[0], views));
    std::ranges::stable_partition(shown, [&](const std::string& one) { return one == near; });
  }
  return fmt::format(" (the nodes have {})", some_of(shown, kMostNames));
}

const std::set<std::string>& Lacks::values_of(const std::string& key) {
  const auto [at, is_new] = values_.try_emplace(key);
  if (!is_new) return at->second;
  for (const NodeInfo* node : cluster_.nodes())
    if (const std::string* value = node->label(key)) at->second.insert(*value);
  return at->second;
}

std::string Lacks::missing_key(const std::string& key) {
  return fmt::format("the label {} {}", key, values_of(key).empty() ? no_such_key(key) : "(other nodes have it)");
}

std::string Lacks::no_such_key(const std::string& key) const {
  std::set<std::string> keys;
  for (const NodeInfo* node : cluster_.nodes())
    for (const auto& [name, value] : node->labels().pairs()) keys.insert(name);
  std::vector<std::string> near, all(keys.begin(), keys.end());
  std::ranges::copy_if(all, std::back_inserter(near), [&](const std::string& one) { return last_part(one) == last_part(key); });
  const std::vector<std::string_view> views(all.begin(), all.end());
  if (const auto meant = config::nearest(key, views); near.empty() && !meant.empty()) near.emplace_back(meant);
  if (near.empty()) near = std::move(all);
  return fmt::format("(no node has that key{})", near.empty() ? "" : "; there is " + some_of(near, kMostNames));
}

std::map<std::string, std::pair<std::string, std::size_t>> Lacks::domains_of(const AffinityTerm& term) const {
  std::map<std::string, std::pair<std::string, std::size_t>> out;
  for (const NodeInfo* node : cluster_.nodes()) {
    const std::string* value = node->label(term.topology_key);
    if (value == nullptr) continue;
    for (const PodInfoPtr& pod : node->pods) {
      if (!term.matches(pod->view(), cluster_.namespace_labels(pod->view().ns()))) continue;
      auto& [name, count] = out[*value];
      if (count++ == 0) name = pod->key;
    }
  }
  return out;
}

void Lacks::read_pods() {
  if (std::exchange(has_read_pods_, true)) return;
  for (const AffinityTerm& term : pod_.required_affinity) affinity_.push_back(domains_of(term));
  for (const AffinityTerm& term : pod_.required_anti_affinity) anti_affinity_.push_back(domains_of(term));
  const model::Labels& labels = cluster_.namespace_labels(pod_.view().ns());
  for (const NodeInfo* node : cluster_.nodes()) {
    if (node->pods_with_required_anti_affinity == 0) continue;
    for (const PodInfoPtr& other : node->pods)
      for (const AffinityTerm& term : other->required_anti_affinity) {
        const std::string* value = node->label(term.topology_key);
        if (value != nullptr && term.matches(pod_.view(), labels)) repelled_by_.try_emplace({term.topology_key, *value}, other->key);
      }
  }
}

}  // namespace berth::placement
