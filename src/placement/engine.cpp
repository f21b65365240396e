#include "placement/engine.h"

#include <algorithm>
#include <random>

namespace berth::placement {

struct Engine::Impl {
  const Cluster& cluster;
  EngineOptions options;
  std::mt19937_64 random;

  Impl(const Cluster& over, EngineOptions with) : cluster(over), options(with), random(with.seed) {}

  /// Of `count` equals, the one to take.
  std::size_t pick(std::size_t count) {
    if (count <= 1 || options.tie_break == EngineOptions::TieBreak::kFirstByName) return 0;
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  }

  Decision decide_plainly(const Framework& framework, const PodInfo& pod);
};

Decision Engine::Impl::decide_plainly(const Framework& framework, const PodInfo& pod) {
  Evaluation evaluation = placement::evaluate(framework, cluster, pod);
  Decision out;
  if (!evaluation.errors.empty()) {
    out.outcome = Decision::Outcome::kError;
    out.error = evaluation.errors.front();
    return out;
  }
  if (evaluation.tied.empty()) {
    out.diagnosis = std::make_shared<const Diagnosis>(std::move(evaluation.diagnosis));
    return out;
  }
  out.outcome = Decision::Outcome::kScheduled;
  out.node = evaluation.tied[pick(evaluation.tied.size())];
  out.node_name = cluster.node(out.node)->name;
  out.score = std::ranges::find(evaluation.feasible, out.node, &Evaluation::Feasible::node)->total;
  out.feasible_nodes = evaluation.feasible.size();
  out.tied_nodes = evaluation.tied.size();
  out.nominated_first = evaluation.nominated_first;
  return out;
}

Engine::Engine(const Cluster& cluster, EngineOptions options) : impl_(std::make_unique<Impl>(cluster, options)) {}
Engine::~Engine() = default;

Decision Engine::schedule(const FrameworkPtr& framework, const PodInfoPtr& pod) { return impl_->decide_plainly(*framework, *pod); }

Evaluation Engine::evaluate(const Framework& framework, const PodInfo& pod) const { return placement::evaluate(framework, impl_->cluster, pod); }

std::size_t Engine::memory_bytes() const { return 0; }

}  // namespace berth::placement
