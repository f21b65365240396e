#include "placement/numa/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

namespace berth::placement::numa {
namespace {

constexpr int kMostAligned = 8;  ///< NUMA nodes of a machine whose sets are all looked at; max-allowable-numa-nodes allows more.

/// What one choice of hints comes to.
struct Choice {
  NodeSet common = 0;             ///< That all of them have.
  std::optional<NodeSet> chosen;  ///< By all that chose any, as long as they are alike.
  bool is_preferred = true;
  auto operator<=>(const Choice&) const = default;
};

Choice with(Choice choice, const Hint& hint) {
  choice.is_preferred = choice.is_preferred && hint.is_preferred;
  if (!hint.nodes) return choice;
  choice.is_preferred = choice.is_preferred && (!choice.chosen || *choice.chosen == *hint.nodes);
  choice.chosen = hint.nodes;
  choice.common &= *hint.nodes;
  return choice;
}

/// All choices of one hint a resource: those that come to the same count once, so that there are never more than sets of nodes squared.
std::set<Choice> choices_of(const Machine& machine, const std::vector<std::vector<Hint>>& resources) {
  std::set<Choice> out{{.common = machine.nodes}};
  for (const auto& hints : resources) {
    std::set<Choice> next;
    for (const Choice& choice : out)
      for (const Hint& hint : hints) next.insert(with(choice, hint));
    out = std::move(next);
  }
  return out;
}

int size_of(NodeSet nodes) { return std::popcount(nodes); }

/// Which of two sets of NUMA nodes is better, all else being equal: the narrower, then the nearer, then the lower.
bool is_better_set(const AlignmentPolicy& policy, const Machine& machine, NodeSet one, NodeSet other) {
  if (size_of(one) != size_of(other)) return size_of(one) < size_of(other);
  if (policy.prefers_closest && policy.align != Align::kSingleNumaNode)
    if (const double mine = mean_distance(machine, one), theirs = mean_distance(machine, other); mine != theirs) return mine < theirs;
  return one < other;
}

/// `wanted`: as many nodes as the resource takes that takes the most. Among choices that nobody prefers that is the aim: the widest below
/// it, or the narrowest above.
bool is_better(const AlignmentPolicy& policy, const Machine& machine, int wanted, const Choice& one, const Choice& other) {
  if (one.is_preferred != other.is_preferred) return one.is_preferred;
  const int mine = size_of(one.common), theirs = size_of(other.common);
  if (one.is_preferred || mine == theirs || (mine > wanted && theirs > wanted))
    return is_better_set(policy, machine, one.common, other.common);
  if (mine > wanted || theirs > wanted) return mine <= wanted;
  return mine > theirs;
}

std::vector<std::vector<Hint>> flat(const std::vector<HintsByResource>& all) {
  std::vector<std::vector<Hint>> out;
  for (const HintsByResource& giver : all)
    for (const auto& [resource, hints] : giver) {
      if (!hints)
        out.push_back({Hint{}});
      else if (hints->empty())
        out.push_back({Hint{.is_preferred = false}});
      else
        out.push_back(*hints);
    }
  return out;
}

}  // namespace

std::vector<int> numbers_of(NodeSet nodes) {
  std::vector<int> out;
  for (int i = 0; i < kMostNodes; ++i)
    if ((nodes >> i & 1) != 0) out.push_back(i);
  return out;
}

void for_each_subset(NodeSet nodes, const std::function<void(NodeSet)>& take) {
  for (NodeSet part = nodes; part != 0; part = (part - 1) & nodes) take(part);
}

double mean_distance(const Machine& machine, NodeSet nodes) {
  const std::vector<int> all = numbers_of(machine.nodes), own = numbers_of(nodes);
  double sum = 0;
  for (const int from : own) {
    const auto distances = machine.distances.find(from);
    if (distances == machine.distances.end()) continue;
    for (const int to : own) {
      const auto at = static_cast<std::size_t>(std::ranges::find(all, to) - all.begin());
      if (at < distances->second.size()) sum += static_cast<double>(distances->second[at]);
    }
  }
  return own.empty() ? 0 : sum / static_cast<double>(own.size() * own.size());
}

int fewest_nodes(NodeSet machine, const std::function<bool(NodeSet)>& could) {
  int out = size_of(machine);
  for_each_subset(machine, [&](NodeSet nodes) {
    if (could(nodes)) out = std::min(out, size_of(nodes));
  });
  return out;
}

std::vector<Hint> hints_where(NodeSet machine, const std::function<bool(NodeSet)>& could, const std::function<bool(NodeSet)>& can) {
  const int fewest = fewest_nodes(machine, could);
  std::vector<Hint> out;
  for_each_subset(machine, [&](NodeSet nodes) {
    if (can(nodes)) out.push_back({nodes, size_of(nodes) == fewest});
  });
  return out;
}

void prefer_sockets(std::vector<Hint>& hints, NodeSet machine, int fewest_nodes, const std::vector<NodeSet>& sockets) {
  const int in_each = sockets.empty() ? 0 : size_of(machine) / static_cast<int>(sockets.size());
  if (in_each == 0) return;
  const int fewest_sockets = (fewest_nodes + in_each - 1) / in_each;
  for (Hint& hint : hints)
    hint.is_preferred |=
        hint.nodes && std::ranges::count_if(sockets, [&](NodeSet socket) { return (socket & *hint.nodes) != 0; }) == fewest_sockets;
}

Hint merge(const AlignmentPolicy& policy, const Machine& machine, const std::vector<HintsByResource>& hints) {
  auto resources = flat(hints);
  if (policy.align == Align::kSingleNumaNode)
    for (auto& one : resources)
      std::erase_if(one, [](const Hint& hint) { return !hint.is_preferred || (hint.nodes && size_of(*hint.nodes) != 1); });
  int wanted = 0;
  for (const auto& one : resources) {
    int fewest = 0;
    for (const Hint& hint : one)
      if (hint.nodes && (fewest == 0 || size_of(*hint.nodes) < fewest)) fewest = size_of(*hint.nodes);
    wanted = std::max(wanted, fewest);
  }
  std::optional<Choice> best;
  for (const Choice& choice : choices_of(machine, resources))
    if (choice.common != 0 && (!best || is_better(policy, machine, wanted, choice, *best))) best = choice;
  if (!best) return {machine.nodes, false};
  // From anywhere, then: nobody chose.
  if (policy.align == Align::kSingleNumaNode && best->common == machine.nodes) return {std::nullopt, best->is_preferred};
  return {best->common, best->is_preferred};
}

bool is_admitted(const AlignmentPolicy& policy, const Hint& merged) {
  return policy.align == Align::kNone || policy.align == Align::kBestEffort || merged.is_preferred;
}

Refusal unexpected(const std::string& why) {
  return {"UnexpectedAdmissionError", fmt::format("Allocate failed due to {}, which is unexpected", why)};
}

Refusal too_few_cpus(std::int64_t wanted, std::int64_t available) {
  return unexpected(fmt::format("not enough cpus available to satisfy request: requested={}, available={}", wanted, available));
}

Refusal too_few_devices(const std::string& resource, std::int64_t wanted, std::int64_t available) {
  return unexpected(
      fmt::format("requested number of devices unavailable for {}. Requested: {}, Available: {}", resource, wanted, available));
}

std::optional<Refusal> refuse_half_cores(std::int64_t cpus, std::int64_t threads_per_core) {
  if (cpus % threads_per_core == 0) return std::nullopt;
  return Refusal{"SMTAlignmentError",
                 fmt::format("SMT Alignment Error: requested {} cpus not multiple cpus per core = {}", cpus, threads_per_core)};
}

std::optional<Refusal> admit(const AlignmentPolicy& policy, const Machine& machine, const PodWishes& pod,
                             const std::vector<Giver*>& givers) {
  const bool is_aligned = policy.align != Align::kNone;
  const auto hint_of = [&](const auto& hints) {
    std::vector<HintsByResource> all;
    for (const Giver* giver : givers) all.push_back(hints(*giver));
    return merge(policy, machine, all);
  };
  const Refusal unaligned{"TopologyAffinityError", "Resources cannot be allocated with Topology locality"};
  Hint near;
  if (is_aligned && policy.is_by_pod) near = hint_of([&](const Giver& giver) { return giver.pod_hints(pod); });
  if (!is_admitted(policy, near)) return unaligned;
  std::optional<Refusal> refusal;
  for (const Wish& container : pod.containers) {
    if (is_aligned && !policy.is_by_pod) near = hint_of([&](const Giver& giver) { return giver.hints(pod, container); });
    if (!is_admitted(policy, near)) refusal = unaligned;
    for (Giver* giver : givers)
      if (!refusal) refusal = giver->give(pod, container, near);
    if (!refusal) continue;
    refusal->container = container.name;
    break;
  }
  if (refusal)
    for (Giver* giver : givers) giver->release(pod.uid);
  return refusal;
}

Result<AlignmentPolicy> alignment_policy(const std::string& policy, const std::string& scope,
                                         const std::map<std::string, std::string>& options, const Machine& machine) {
  AlignmentPolicy out;
  if (policy == "best-effort")
    out.align = Align::kBestEffort;
  else if (policy == "restricted")
    out.align = Align::kRestricted;
  else if (policy == "single-numa-node")
    out.align = Align::kSingleNumaNode;
  else if (policy != "none" && !policy.empty())
    return invalid(fmt::format("topologyManagerPolicy: unknown policy: \"{}\" (none, best-effort, restricted, single-numa-node)", policy));
  if (scope != "container" && scope != "pod" && !scope.empty())
    return invalid(fmt::format("topologyManagerScope: unknown scope: \"{}\" (container, pod)", scope));
  out.is_by_pod = scope == "pod";
  int most = kMostAligned;
  for (const auto& [name, value] : options) {
    const std::string field = fmt::format("topologyManagerPolicyOptions.{}", name);
    if (name == "prefer-closest-numa-nodes") {
      if (value != "true" && value != "false") return invalid(field + ": true or false is wanted");
      out.prefers_closest = value == "true";
    } else if (name == "max-allowable-numa-nodes") {
      most = std::atoi(value.c_str());
      if (most < kMostAligned || most > 16)
        return invalid(fmt::format("{}: a number of {} to 16 is wanted (every set of so many nodes is looked at)", field, kMostAligned));
    } else {
      return invalid(field + ": this node knows prefer-closest-numa-nodes and max-allowable-numa-nodes");
    }
  }
  if (out.align != Align::kNone && size_of(machine.nodes) > most)
    return invalid(fmt::format(
        "topologyManagerPolicy: this machine has {} NUMA nodes, and at most {} can be aligned to: choose the policy none, or set "
        "topologyManagerPolicyOptions.max-allowable-numa-nodes",
        size_of(machine.nodes), most));
  return out;
}

}  // namespace berth::placement::numa
