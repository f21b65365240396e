#include "descheduler/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

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
                 const Known& known, Plan& plan)
    : policy_(policy),
      snapshot_(snapshot),
      options_(options),
      known_(known),
      plan_(plan),
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
  for (const auto& [key, removal] : known.removals) {
    // Where the server knew of no leave any more there is none for others either.
    if (goes(removal.outcome) || removal.outcome == Outcome::kProtected) budgets_.take(removal.pod->view());
    if (goes(removal.outcome)) unmet_.count(*removal.pod, 1);
  }
}

Context::~Context() = default;

void Context::Counts::count(const Pod& pod, std::int64_t sign) {
  const auto change = [sign](std::uint64_t& number) { number += static_cast<std::uint64_t>(sign); };
  BERTH_CHECK(sign > 0 || total > 0, "{}: an eviction is taken off that was not counted", pod.key());
  change(total);
  change(by_node[pod.node()]);
  change(by_namespace[pod.view().ns()]);
  for (const auto& owner : pod.owners()) change(by_owner[owner.uid]);
}

void Context::enter(Strategy strategy) {
  strategy_ = strategy;
  is_first_step_ = true;
}

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

Verdict Context::refuse(Removal removal, Outcome outcome, std::string message, Verdict verdict) {
  removal.outcome = outcome;
  removal.message = std::move(message);
  plan_.result.removals.push_back(std::move(removal));
  return verdict;
}

bool Context::was_moved(const Pod& pod) const {
  return !chooses_as_kubernetes() && !pod.view().is_terminal() && options_.moved.contains(pod.view().meta.uid);
}

std::optional<Context::Limit> Context::limit_before(std::span<const PodPtr> more, bool with_unmet) const {
  Counts all = {.total = counts_.total + (with_unmet ? unmet_.total : 0), .by_node = {}, .by_namespace = {}, .by_owner = {}};
  const auto gone = [&](auto which, const std::string& name) {
    const auto of = [&](const Counts& counts) {
      const auto found = (counts.*which).find(name);
      return found == (counts.*which).end() ? 0 : found->second;
    };
    return of(counts_) + (with_unmet ? of(unmet_) : 0);
  };
  all.total += more.size();
  if (policy_.max_evictions_total && all.total > *policy_.max_evictions_total)
    return Limit{Outcome::kTotalLimit, Verdict::kTotalLimit, fmt::format("the limit of the cycle is {}", *policy_.max_evictions_total)};
  for (const PodPtr& pod : more)
    if (policy_.max_evictions_per_node &&
        ++all.by_node[pod->node()] + gone(&Counts::by_node, pod->node()) > *policy_.max_evictions_per_node)
      return Limit{Outcome::kNodeLimit, Verdict::kNodeLimit, fmt::format("the limit of a node is {}", *policy_.max_evictions_per_node)};
  for (const PodPtr& pod : more)
    if (const std::string& ns = pod->view().ns();
        policy_.max_evictions_per_namespace &&
        ++all.by_namespace[ns] + gone(&Counts::by_namespace, ns) > *policy_.max_evictions_per_namespace)
      return Limit{Outcome::kNamespaceLimit, Verdict::kRefused,
                   fmt::format("the limit of a namespace is {}", *policy_.max_evictions_per_namespace)};
  return std::nullopt;
}

Removal Context::removal_of(const PodPtr& pod, std::string why) const {
  return {.pod = pod, .profile = profile_->name, .strategy = strategy_, .why = std::move(why), .destination = {}, .message = {}};
}

Verdict Context::evict_as_known(const Removal& known, Removal removal) {
  if (!goes(known.outcome)) return refuse(std::move(removal), known.outcome, known.message, Verdict::kRefused);
  judge_->carry_out(*known.pod, known.destination);
  unmet_.count(*known.pod, -1);
  record(known);
  return Verdict::kEvicted;
}

Verdict Context::evict(const PodPtr& pod, std::string why, const DestinationRule& rule) {
  // Again: what was evicted since the strategy chose may have left its owner with too few.
  if (gone_.contains(pod->key()) || (!chooses_as_kubernetes() && !filter(*pod))) return Verdict::kRefused;
  Removal removal = removal_of(pod, std::move(why));
  const auto known = known_.removals.find(pod->key());
  const bool is_known = known != known_.removals.end();
  if (!is_known || !goes(known->second.outcome))
    if (auto limit = limit_before({&pod, 1}, false))
      return refuse(std::move(removal), limit->outcome, std::move(limit->message), limit->verdict);
  if (is_known) return evict_as_known(known->second, std::move(removal));
  // Those that the strategy has not come to have gone all the same; it goes on, to come to them.
  if (auto limit = limit_before({&pod, 1}, true))
    return refuse(std::move(removal), limit->outcome, std::move(limit->message), Verdict::kRefused);
  if (!chooses_as_kubernetes() && !why_too_few(*pod, true).empty()) return Verdict::kRefused;
  if (was_moved(*pod)) return refuse(std::move(removal), Outcome::kNoBetterPlace, std::string(kMovedAlready), Verdict::kRefused);
  if (!may_go_on()) return Verdict::kTotalLimit;
  auto held = options_.counts_budgets ? ask_budgets(budgets_, *pod) : std::nullopt;
  Judgement judgement = judge_->judge(*pod, rule, !held);
  if (!judgement.is_accepted) return refuse(std::move(removal), Outcome::kNoBetterPlace, std::move(judgement.reason), Verdict::kRefused);
  removal.destination = std::move(judgement.destination);
  if (held) return refuse(std::move(removal), held->outcome, std::move(held->message), Verdict::kRefused);
  budgets_.take(pod->view());
  add_step({.kind = Step::Kind::kEvict, .removal = removal, .node = {}});
  record(std::move(removal));
  return Verdict::kEvicted;
}

bool Context::may_go_on() {
  plan_.is_cut |= plan_.steps.size() >= options_.most_new;
  return !plan_.is_cut;
}

void Context::add_step(Step step) {
  // A strategy counts on what those before it did.
  step.waits |= std::exchange(is_first_step_, false);
  plan_.steps.push_back(std::move(step));
}

void Context::record(Removal removal) {
  const PodPtr pod = removal.pod;
  counts_.count(*pod, 1);
  gone_.insert(pod->key());
  plan_.result.removals.push_back(std::move(removal));
  Node* node = find(pod->node());
  if (node == nullptr || std::erase(node->pods, pod) == 0 || pod->view().is_terminal()) return;
  add(node->used, requests_of(*pod->info), -1);
  --node->used["pods"];
}

void Context::list_unmet() {
  for (const auto& [key, removal] : known_.removals)
    if (goes(removal.outcome) && !gone_.contains(key)) plan_.result.removals.push_back(removal);
}

std::optional<Answer> Context::ask_budgets(const placement::DisruptionLedger& budgets, const Pod& pod) {
  switch (budgets.ask(pod.view()).answer) {
    case placement::DisruptionLedger::Answer::kAllowed:
      break;
    case placement::DisruptionLedger::Answer::kNothingLeft:
      return Answer{Outcome::kProtected, std::string(model::kBudgetViolated)};
    case placement::DisruptionLedger::Answer::kSeveral:
      return Answer{Outcome::kFailed, std::string(model::kSeveralBudgets)};
  }
  return std::nullopt;
}

void sort_by_priority(std::vector<PodPtr>& pods) {
  std::ranges::stable_sort(pods, {}, [](const PodPtr& pod) {
    return std::tuple(pod->facts.priority.value_or(INT64_MIN), pod->facts.qos, prefers_no_eviction(*pod));
  });
}

bool tolerates(const std::vector<model::Toleration>& tolerations, const std::vector<model::Taint>& taints,
               const std::function<bool(const model::Taint&)>& counts) {
  return std::ranges::all_of(taints, [&](const model::Taint& taint) {
    return (counts && !counts(taint)) || std::ranges::any_of(tolerations, [&](const auto& one) { return tolerates_taint(one, taint); });
  });
}

bool is_hard_taint(const model::Taint& taint) { return taint.effect == "NoSchedule" || taint.effect == "NoExecute"; }

}  // namespace berth::descheduler
