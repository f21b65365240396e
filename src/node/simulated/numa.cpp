#include "node/simulated/numa.h"

#include <fmt/format.h>

#include "model/quantity.h"
#include "placement/resource.h"

namespace berth::node::simulated {
namespace {

constexpr int kMostNumaNodes = 8;
constexpr std::int64_t kNear = 10, kFar = 20;  ///< Distances, as ACPI's tables have them.

std::int64_t amount_in(const NumaPart::Resources& resources, const std::string& name) {
  const auto found = resources.find(name);
  const auto amount = found == resources.end() ? std::nullopt : model::Quantity::parse(found->second);
  return amount ? amount->value() : 0;
}

/// An even share; what is left over is the first one's.
std::int64_t share_of(std::int64_t all, int nodes, int number) { return all / nodes + (number == 0 ? all % nodes : 0); }

}  // namespace

Result<NumaTemplate> parse_numa(std::string_view text) {
  NumaTemplate out;
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals), value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    const auto number = numa::number_in(is_first ? part : value);
    if (std::exchange(is_first, false)) {
      if (!number || *number < 1 || *number > kMostNumaNodes)
        return invalid(fmt::format("\"{}\": a number of NUMA nodes from 1 to {} is wanted first", part, kMostNumaNodes));
      out.nodes = *number;
    } else if (key == "policy") {
      out.policy = value;
    } else if (key == "scope") {
      out.scope = value;
    } else if (key == "full-pcpus-only" && number && *number >= 1) {
      out.threads_of_whole_cores = *number;
    } else {
      return invalid(fmt::format("\"{}\": wanted policy=POLICY, scope=SCOPE or full-pcpus-only=THREADS", part));
    }
  }
  if (is_first) return invalid("a number of NUMA nodes is wanted");
  return out;
}

Result<NumaPart> NumaPart::make(const NumaTemplate& from, const Resources& capacity, const Resources& allocatable) {
  numa::TopologyReport report{.gives_cpus = true, .gives_memory = true, .threads_of_whole_cores = from.threads_of_whole_cores};
  report.machine.nodes = (numa::NodeSet{1} << from.nodes) - 1;
  for (int number = 0; number < from.nodes; ++number)
    for (int to = 0; to < from.nodes; ++to) report.machine.distances[number].push_back(number == to ? kNear : kFar);
  auto policy = numa::alignment_policy(from.policy, from.scope, {}, report.machine);
  if (!policy) return std::unexpected(policy.error());
  report.policy = *policy;
  for (const auto& [name, text] : capacity) {
    if (name != "cpu" && !placement::numa::is_memory(name) && !placement::is_extended_resource_name(name)) continue;
    const std::int64_t all = amount_in(capacity, name), reserved = all - amount_in(allocatable, name);
    for (int number = 0; number < from.nodes; ++number) {
      numa::Offer::Amount& amount = report.offer.amounts[name][number];
      amount.capacity = share_of(all, from.nodes, number);
      const std::int64_t kept = name == "cpu" ? (number == 0 ? reserved : 0) : share_of(reserved, from.nodes, number);
      amount.allocatable = amount.available = std::max<std::int64_t>(0, amount.capacity - kept);
    }
  }
  numa::ZoneLedger ledger(model::NodeTopologyView::parse(numa::topology_document(report)), {});
  return NumaPart(std::move(report), std::move(ledger));
}

std::optional<Refusal> NumaPart::admit(const json::Value& pod, const std::set<std::string>& active) {
  ledger_.keep_only(active);
  return numa::admit(report_.policy, report_.machine, numa::wishes_of(model::PodView::parse(pod)), {&ledger_});
}

std::string NumaPart::document(const std::string& node_name, const std::string& node_uid) const {
  numa::TopologyReport report = report_;
  report.node_name = node_name;
  report.node_uid = node_uid;
  report.offer = {};
  ledger_.tell(report.offer);
  return json::serialize(numa::topology_document(report));
}

}  // namespace berth::node::simulated
