#include "descheduler/execution.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::descheduler {
namespace {

/// After a refusal a plan looks no further than that: where much is refused, most of it would be planned in vain again and again.
constexpr std::size_t kFewSteps = 32;

}  // namespace

Execution::Execution(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles, CycleOptions options,
                     std::size_t most_in_flight)
    : policy_(&policy),
      snapshot_(&snapshot),
      profiles_(&profiles),
      options_(std::move(options)),
      most_in_flight_(std::max<std::size_t>(most_in_flight, 1)) {}

Result<Execution> Execution::begin(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles,
                                   CycleOptions options, std::size_t most_in_flight) {
  Execution out(policy, snapshot, profiles, std::move(options), most_in_flight);
  if (auto planned = out.plan(); !planned) return std::unexpected(planned.error());
  return out;
}

Result<void> Execution::plan() {
  auto plan = plan_cycle(*policy_, *snapshot_, *profiles_, options_, known_);
  if (!plan) return std::unexpected(plan.error());
  plan_ = std::move(*plan);
  next_ = 0;
  is_refused_ = false;
  const auto& runs = plan_.result.runs;
  seconds_.resize(std::max(seconds_.size(), runs.size()));
  for (std::size_t i = 0; i < runs.size(); ++i) seconds_[i] += runs[i].seconds;
  return {};
}

std::vector<Step> Execution::due() {
  std::vector<Step> out;
  if (is_stopped_) return out;
  if (in_flight_ == 0 && (is_refused_ || (plan_.is_cut && next_ == plan_.steps.size()))) {
    if (is_refused_)
      options_.most_new = kFewSteps;
    else if (options_.most_new < SIZE_MAX / 2)
      options_.most_new *= 2;
    const auto planned = plan();
    BERTH_CHECK(planned.has_value(), "a cycle that could be planned cannot be planned again: {}", planned.error().message);
  }
  while (!is_refused_ && in_flight_ < most_in_flight_ && next_ < plan_.steps.size()) {
    const Step& step = plan_.steps[next_];
    if (step.waits && in_flight_ > 0) break;
    if (step.kind == Step::Kind::kEvict) known_.removals.insert_or_assign(step.removal.pod->key(), step.removal);
    out.push_back(step);
    ++next_;
    ++in_flight_;
  }
  return out;
}

void Execution::answered(const Step& step, Answer answer) {
  BERTH_CHECK(in_flight_ > 0, "{}: answered twice", step.removal.pod->key());
  --in_flight_;
  is_refused_ |= !goes(answer.outcome);
  const std::string& key = step.removal.pod->key();
  if (step.kind == Step::Kind::kKeepRoom) {
    known_.rooms.insert_or_assign({key, step.node}, std::move(answer));
    return;
  }
  Removal& removal = known_.removals.at(key);
  BERTH_CHECK(removal.outcome == Outcome::kPlanned, "{}: answered twice", key);
  removal.outcome = answer.outcome;
  removal.message = std::move(answer.message);
}

bool Execution::is_over() const {
  return in_flight_ == 0 && (is_stopped_ || (!is_refused_ && next_ == plan_.steps.size() && !plan_.is_cut));
}

CycleResult Execution::result() && {
  CycleResult out = std::move(plan_.result);
  std::erase_if(out.removals, [this](Removal& removal) {
    if (removal.outcome != Outcome::kPlanned) return false;
    const auto known = known_.removals.find(removal.pod->key());
    if (known == known_.removals.end()) return true;  // Nobody was asked.
    removal = known->second;
    return false;
  });
  for (std::size_t i = 0; i < out.runs.size(); ++i) out.runs[i].seconds = seconds_[i];
  return out;
}

}  // namespace berth::descheduler
