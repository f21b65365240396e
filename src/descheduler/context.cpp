#include "descheduler/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "descheduler/judge.h"

namespace berth::descheduler {
namespace {

void add(Amounts& to, const Amounts& what, std::int64_t sign) {
  for (const auto& [name, amount] : what) to[name] += sign * amount;
}

/// A number in base 10 without leading zeros; nullopt for anything else.
std::optional<std::int64_t> plain_number(const std::string& text) {
  std::int64_t out = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  if (error != std::errc() || stop != end || std::to_string(out) != text) return std::nullopt;
  return out;
}

/// Knows the operators Gt and Lt too, as kubernetes-sigs/descheduler does whatever the scheduler's feature gates say.
bool tolerates_taint(const model::Toleration& toleration, const model::Taint& taint) {
  if (toleration.op != "Gt" && toleration.op != "Lt") return toleration.tolerates(taint);
  if ((!toleration.effect.empty() && toleration.effect != taint.effect) || toleration.key != taint.key) return false;
  const auto bound = plain_number(toleration.value), value = plain_number(taint.value);
  return bound && value && (toleration.op == "Gt" ? *value > *bound : *value < *bound);
}

}  // namespace

Context::Context(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles, const CycleOptions& options,
                 CycleResult& result)
    : policy_(policy),
      snapshot_(snapshot),
      options_(options),
      result_(result),
      judge_(std::make_unique<Judge>(snapshot, profiles, options.check)),
      budgets_(snapshot.cluster, placement::BudgetRule::kEviction) {
  for (const placement::NodeInfo* info : snapshot.cluster.nodes()) {
    const model::NodeView& view = *info->node;
    if (!is_ready(view)) continue;
    Node node{.view = &view, .capacity = capacity_of(view)};
    node.used["pods"] = 0;
    if (const auto found = snapshot.pods_by_node.find(view.name()); found != snapshot.pods_by_node.end()) node.pods = found->second;
    for (const PodPtr& pod : node.pods) {
      if (pod->view().is_terminal()) continue;
      add(node.used, requests_of(*pod->info), 1);
      ++node.used["pods"];
    }
    (policy.node_selector.matches(view.labels()) ? nodes_ : other_nodes_).push_back(std::move(node));
  }
  std::ranges::sort(nodes_, {}, [](const Node& node) -> const std::string& { return node.name(); });
}

Context::~Context() = default;

Result<void> Context::enter(const Profile& profile) {
  profile_ = &profile;
  priority_threshold_ = profile.evictor.priority_threshold;
  const std::string& name = profile.evictor.priority_threshold_class;
  if (name.empty()) return {};
  const auto& classes = snapshot_.cluster.priority_classes();
  if (const auto found = classes.find(name); found != classes.end())
    priority_threshold_ = found->second->value;
  else if (name == "system-cluster-critical" || name == "system-node-critical")
    priority_threshold_ = kSystemCriticalPriority + (name == "system-node-critical" ? 1000 : 0);
  else
    return invalid(
        fmt::format("unable to get priority value from the priority class: priorityclasses.scheduling.k8s.io \"{}\" not found", name));
  if (*priority_threshold_ > kSystemCriticalPriority)
    return invalid(fmt::format("priority threshold can't be greater than {}", kSystemCriticalPriority));
  return {};
}

Node* Context::find(std::string_view name) {
  const auto found = std::ranges::lower_bound(nodes_, name, {}, [](const Node& node) { return std::string_view(node.name()); });
  return found != nodes_.end() && found->name() == name ? &*found : nullptr;
}

std::vector<PodPtr> Context::running(const Node& node) {
  std::vector<PodPtr> out;
  for (const PodPtr& pod : node.pods)
    if (!pod->view().is_terminal()) out.push_back(pod);
  return out;
}

bool Context::selects(const Plugin& plugin, const Pod& pod) {
  return plugin.namespaces.admits(pod.view().ns()) && (!plugin.labels || plugin.labels->matches(pod.view().meta.labels));
}

bool Context::may_evict(const Plugin& plugin, const Pod& pod) { return selects(plugin, pod) && filter(pod) && pre_eviction_filter(pod); }

Verdict Context::refuse(Eviction eviction, Outcome outcome, std::string message, Verdict verdict) {
  result_.attempts.push_back({std::move(eviction), outcome, std::move(message)});
  return verdict;
}

bool Context::was_moved(const Pod& pod) const {
  return !chooses_as_kubernetes() && !pod.view().is_terminal() && options_.is_moved && options_.is_moved(pod);
}

std::optional<Context::Limit> Context::limit_before(const Pod& pod) {
  if (policy_.max_evictions_total && evicted_total_ + 1 > *policy_.max_evictions_total)
    return Limit{Outcome::kTotalLimit, Verdict::kTotalLimit, fmt::format("the limit of the cycle is {}", *policy_.max_evictions_total)};
  if (policy_.max_evictions_per_node && evicted_by_node_[pod.node] + 1 > *policy_.max_evictions_per_node)
    return Limit{Outcome::kNodeLimit, Verdict::kNodeLimit, fmt::format("the limit of a node is {}", *policy_.max_evictions_per_node)};
  if (policy_.max_evictions_per_namespace && evicted_by_namespace_[pod.view().ns()] + 1 > *policy_.max_evictions_per_namespace)
    return Limit{Outcome::kNamespaceLimit, Verdict::kRefused,
                 fmt::format("the limit of a namespace is {}", *policy_.max_evictions_per_namespace)};
  return std::nullopt;
}

Verdict Context::evict(const PodPtr& pod, std::string why, const DestinationRule& rule) {
  // Again: what was evicted since the strategy chose may have left its owner with too few.
  if (evicted_.contains(pod->key()) || (!chooses_as_kubernetes() && !filter(*pod))) return Verdict::kRefused;
  Eviction eviction{pod, profile_->name, strategy_, std::move(why), ""};
  auto limit = limit_before(*pod);
  if (limit && !in_flight_.empty()) {
    settle_down_to(0);  // What is refused yet does not count.
    limit = limit_before(*pod);
  }
  if (limit) return refuse(std::move(eviction), limit->outcome, std::move(limit->message), limit->verdict);
  if (was_moved(*pod)) return refuse(std::move(eviction), Outcome::kNoBetterPlace, std::string(kMovedAlready), Verdict::kRefused);
  Judgement judgement = judge_->judge(*pod, rule);
  if (!judgement.is_accepted) return refuse(std::move(eviction), Outcome::kNoBetterPlace, std::move(judgement.reason), Verdict::kRefused);
  eviction.destination = std::move(judgement.destination);
  std::optional<Answer> answer;
  if (options_.counts_budgets) answer = ask_budgets(*pod);
  if (!answer && options_.begin_eviction)
    begin(eviction);
  else if (!answer && options_.evict)
    answer = options_.evict(eviction);
  if (answer && answer->outcome != Outcome::kEvicted) {
    judge_->undo(*pod);
    return refuse(std::move(eviction), answer->outcome, std::move(answer->message), Verdict::kRefused);
  }
  record(std::move(eviction));
  return Verdict::kEvicted;
}

void Context::record(Eviction eviction) {
  const PodPtr& pod = eviction.pod;
  ++evicted_total_;
  ++evicted_by_node_[pod->node];
  ++evicted_by_namespace_[pod->view().ns()];
  for (const auto& owner : pod->owners()) ++evicted_by_owner_[owner.uid];
  forget(pod);
  result_.attempts.push_back({std::move(eviction), Outcome::kEvicted, ""});
}

/// The attempt is the next in the result's list.
void Context::begin(const Eviction& eviction) {
  settle_down_to(std::max<std::size_t>(options_.most_in_flight, 1) - 1);
  in_flight_.push_back({result_.attempts.size(), options_.begin_eviction(eviction)});
}

void Context::settle_down_to(std::size_t most) {
  while (!in_flight_.empty()) {
    InFlight& oldest = in_flight_.front();
    // Answers that are there already are taken without waiting: the sooner a failure is known the better.
    if (in_flight_.size() <= most && oldest.answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    Answer answer = oldest.answer.get();
    if (answer.outcome != Outcome::kEvicted) take_back(result_.attempts[oldest.attempt], std::move(answer));
    in_flight_.pop_front();
  }
}

void Context::take_back(Attempt& attempt, Answer answer) {
  const PodPtr& pod = attempt.eviction.pod;
  attempt.outcome = answer.outcome;
  attempt.message = std::move(answer.message);
  judge_->undo(*pod);
  BERTH_CHECK(evicted_total_ > 0 && evicted_by_node_[pod->node] > 0 && evicted_by_namespace_[pod->view().ns()] > 0,
              "{}: an eviction is taken back that was not counted", pod->key());
  --evicted_total_;
  --evicted_by_node_[pod->node];
  --evicted_by_namespace_[pod->view().ns()];
  for (const auto& owner : pod->owners()) --evicted_by_owner_[owner.uid];
  Node* node = find(pod->node);
  if (node == nullptr) return;
  node->pods.insert(
      std::ranges::upper_bound(node->pods, pod->key(), {}, [](const PodPtr& one) -> const std::string& { return one->key(); }), pod);
  if (pod->view().is_terminal()) return;
  add(node->used, requests_of(*pod->info), 1);
  ++node->used["pods"];
}

void Context::forget(const PodPtr& pod) {
  evicted_.insert(pod->key());
  Node* node = find(pod->node);
  if (node == nullptr || std::erase(node->pods, pod) == 0 || pod->view().is_terminal()) return;
  add(node->used, requests_of(*pod->info), -1);
  --node->used["pods"];
}

std::optional<Answer> Context::ask_budgets(const Pod& pod) {
  switch (budgets_.ask(pod.view()).answer) {
    case placement::DisruptionLedger::Answer::kAllowed:
      break;
    case placement::DisruptionLedger::Answer::kNothingLeft:
      return Answer{Outcome::kProtected, "Cannot evict pod as it would violate the pod's disruption budget."};
    case placement::DisruptionLedger::Answer::kSeveral:
      return Answer{Outcome::kFailed, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."};
  }
  (void)budgets_.take(pod.view());
  return std::nullopt;
}

void sort_by_priority(std::vector<PodPtr>& pods) {
  std::ranges::stable_sort(
      pods, {}, [](const PodPtr& pod) { return std::tuple(pod->priority.value_or(INT64_MIN), pod->qos, pod->prefers_no_eviction); });
}

bool tolerates(const std::vector<model::Toleration>& tolerations, const std::vector<model::Taint>& taints,
               const std::function<bool(const model::Taint&)>& counts) {
  return std::ranges::all_of(taints, [&](const model::Taint& taint) {
    return (counts && !counts(taint)) || std::ranges::any_of(tolerations, [&](const auto& one) { return tolerates_taint(one, taint); });
  });
}

bool is_hard_taint(const model::Taint& taint) { return taint.effect == "NoSchedule" || taint.effect == "NoExecute"; }

}  // namespace berth::descheduler
