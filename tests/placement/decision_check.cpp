#include "tests/placement/decision_check.h"

#include <algorithm>

namespace berth::placement::testing {
namespace {

std::string describe(const Diagnosis& diagnosis) {
  std::string out =
      fmt::format("{} resolvable {} pre '{}':", diagnosis.node_count, diagnosis.resolvable_nodes, diagnosis.pre_filter.message());
  for (const auto& [reason, count] : diagnosis.reasons) out += fmt::format(" [{} {}]", count, reason);
  for (const auto& plugin : diagnosis.plugins) out += fmt::format(" {}", plugin);
  return out;
}

}  // namespace

std::string difference(const Cluster& cluster, const Framework& framework, const PodInfo& pod, const Decision& decision,
                       bool first_by_name) {
  const Evaluation plain = evaluate(framework, cluster, pod);
  if (!plain.errors.empty()) return decision.outcome == Decision::Outcome::kError ? "" : "plain: error " + plain.errors.front();
  if (plain.tied.empty()) {
    if (decision.outcome != Decision::Outcome::kUnschedulable) return fmt::format("plain: nothing fits, got {}", decision.node_name);
    const auto wanted = describe(plain.diagnosis);
    const auto got = describe(*decision.diagnosis);
    return wanted == got ? "" : fmt::format("diagnosis\n want {}\n got  {}", wanted, got);
  }
  if (decision.outcome != Decision::Outcome::kScheduled) return fmt::format("plain: {} fits, got none", cluster.node(plain.tied[0])->name);
  if (decision.nominated_first != plain.nominated_first) return "nominated_first differs";
  if (std::ranges::find(plain.tied, decision.node) == plain.tied.end()) {
    std::string out = fmt::format("got {} with {}; plain:", decision.node_name, decision.score);
    for (const auto& one : plain.feasible) out += fmt::format(" {}={}", cluster.node(one.node)->name, one.total);
    return out;
  }
  if (first_by_name && decision.node != plain.tied.front()) return "not the first by name";
  if (decision.nominated_first) return "";
  const auto total = std::ranges::find(plain.feasible, decision.node, &Evaluation::Feasible::node)->total;
  if (decision.score != total) return fmt::format("score {}, plain {}", decision.score, total);
  if (framework.sign(pod).has_checks()) {
    const bool bounds = decision.tied_nodes >= plain.tied.size() && decision.feasible_nodes >= plain.feasible.size();
    return bounds ? "" : "fewer nodes counted than fit";
  }
  if (decision.tied_nodes != plain.tied.size()) return fmt::format("{} tied, plain {}", decision.tied_nodes, plain.tied.size());
  if (decision.feasible_nodes != plain.feasible.size())
    return fmt::format("{} feasible, plain {}", decision.feasible_nodes, plain.feasible.size());
  return "";
}

}  // namespace berth::placement::testing
