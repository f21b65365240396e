#include "whatif/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "whatif/retries.h"

namespace berth::whatif {

using placement::NodeIndex;
using placement::PodInfo;
using placement::PodInfoPtr;

std::string Tables::key(std::string_view kind, std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}/{}", kind, ns, name);
}

const json::Value* Tables::find(std::string_view kind, std::string_view ns, std::string_view name) const {
  const auto found = objects.find(key(kind, ns, name));
  return found == objects.end() ? nullptr : found->second.get();
}

placement::TrialOptions trial_options(const Options& options) {
  // Every single loss asks for pods of other workloads, all of them again and again: those of 4,000 workloads on 5,000 nodes stay known.
  constexpr std::size_t kColumnsBytes = 1ULL << 30;
  return {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName, .columns_bytes = kColumnsBytes},
          .preemption = {.budgets_are_hard = options.budgets_are_hard}};
}

World::World(placement::Trial trial, Tables tables, const Options& options)
    : trial_(std::move(trial)), tables_(std::move(tables)), options_(&options) {
  for (const auto& [key, record] : tables_.pods)
    if (record.node.empty()) waiting_.insert(key);
  for (Budgets::Id id = 0; id < tables_.budgets.size(); ++id) unsynced_.insert(id);
}

World World::fork() {
  World out(trial_.fork(), tables_, *options_);
  out.change_ = change_;
  out.reason_ = reason_;
  out.node_states = node_states;
  out.job_failures_ = job_failures_;
  out.gangs_before = gangs_before;
  return out;
}

Record* World::find(const std::string& pod) {
  const auto found = tables_.pods.find(pod);
  return found == tables_.pods.end() ? nullptr : &found->second;
}

void World::begin_change(int number, std::string reason) {
  change_ = number;
  reason_ = std::move(reason);
}

void World::note(std::string text) {
  if (told_.insert(text).second) notes.push_back(std::move(text));
}

// Nodes

void World::put_node(model::NodeViewPtr node) {
  ++epoch_;
  cluster().upsert_node(std::move(node));
}

void World::drop_node(const std::string& name) {
  ++epoch_;
  cluster().remove_node(name);
}

model::NodeViewPtr World::node(std::string_view name) const {
  const auto* found = cluster().find_node(name);
  return found == nullptr ? nullptr : found->node;
}

std::vector<std::string> World::node_names() const {
  std::vector<std::string> out;
  for (const auto* node : cluster().nodes()) out.push_back(node->name);
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> World::pods_on(std::string_view node) const {
  std::vector<std::string> out;
  const auto* found = cluster().find_node(node);
  if (found == nullptr) return out;
  for (const PodInfoPtr& pod : found->pods) out.push_back(pod->key);
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> World::pods_of(const std::string& owner_uid) const {
  std::vector<std::string> out;
  const auto found = tables_.pods_of_owner.find(owner_uid);
  if (found == tables_.pods_of_owner.end()) return out;
  for (const std::string& key : found->second) {
    const auto pod = tables_.pods.find(key);
    if (pod != tables_.pods.end() && pod->second.owner() != nullptr && pod->second.owner()->uid == owner_uid) out.push_back(key);
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

// Pods

void World::save(const std::string& pod) {
  if (thought_ != nullptr) thought_->pods.try_emplace(pod, tables_.pods.at(pod));
}

bool World::add(PodInfoPtr pod, model::PodFacts facts, std::string reason) {
  const std::string key = pod->key;
  const auto [place, is_new] = tables_.pods.try_emplace(key);
  if (!is_new) return false;
  ++epoch_;
  Record& record = place->second;
  record.info = pod;
  record.read = std::make_shared<const placement::ReadPod>(placement::ReadPod{std::move(pod), std::move(facts)});
  record.created = options_->now;
  record.change = change_;
  record.reason = std::move(reason);
  record.is_new = true;
  if (record.owner() != nullptr) tables_.pods_of_owner[record.owner()->uid].push_back(key);
  waiting_.insert(key);
  return true;
}

void World::hold(const std::string& pod, const std::string& node) {
  Record& record = tables_.pods.at(pod);
  const auto* there = cluster().find_node(node);
  if (there == nullptr) return;
  trial_.hold(record.info, there->index);
  arrive(pod, there->index);
}

void World::replace(const std::string& pod, PodInfoPtr now) {
  save(pod);
  ++epoch_;
  tables_.pods.at(pod).info = now;
  cluster().upsert_pod(std::move(now));
}

World::Remaking World::remaking_of(const Record& record) {
  if (record.is_mirror()) return {false, "a mirror pod: it is its node's own"};
  const model::OwnerReference* owner = record.owner();
  if (owner == nullptr) return {false, "nobody controls it: nothing makes it anew"};
  if (record.view().meta.is_deleting) return {false, "it was on its way out already"};
  if (owner->kind == "DaemonSet") return {false, "a DaemonSet's: it goes with its node"};
  const bool is_workload =
      owner->kind == "ReplicaSet" || owner->kind == "ReplicationController" || owner->kind == "StatefulSet" || owner->kind == "Job";
  if (!is_workload) {
    note(fmt::format("pods of {} {} are supposed to be made anew by it", owner->kind, owner->name));
    return {};
  }
  const json::Value* object = tables_.find(owner->kind, record.view().ns(), owner->name);
  if (object != nullptr) return owner->kind == "Job" ? remaking_by_job(record, *object) : Remaking{};
  if (!tables_.kinds.contains(owner->kind)) return {};  // Said once when the cluster was read.
  return {false, fmt::format("its {} {} is not there any more: nothing makes it anew", owner->kind, owner->name)};
}

/// A pod that is taken away is a failed one to its Job.
World::Remaking World::remaking_by_job(const Record& record, const json::Value& job) {
  const std::string uid = record.owner()->uid, index = index_of(record.view());
  std::int64_t &of_job = job_failures_[uid], &of_index = job_failures_[uid + "/" + index];
  const JobVerdict verdict = verdict_of(job, record.view(), {of_job, of_index});
  of_job += verdict.counts;
  of_index += verdict.counts;
  if (verdict.gives_up.empty()) return {};
  if (verdict.fails)
    note(fmt::format("Job {}/{} fails by this: its other pods end too, which the answer leaves where they are", record.view().ns(),
                     record.owner()->name));
  return {false, verdict.gives_up};
}

PodInfoPtr World::take_off(const Record& record, bool renews) {
  ++epoch_;
  const placement::EvictedPod eviction = trial_.evict(record.info);
  return renews ? trial_.renew(eviction) : nullptr;
}

bool World::leave(const std::string& pod, const Leaving& how) {
  Record& record = tables_.pods.at(pod);
  Remaking remaking = how.comes_back ? remaking_of(record) : Remaking{false, {}};
  save(pod);
  if (record.is_healthy()) {
    count_health(record, -1);
    if (how.outcome == "evicted" || how.outcome == "preempted") watch_budgets(record);
  }
  const std::string node = record.node;
  PodInfoPtr next = node.empty() ? record.info : take_off(record, remaking.comes_back);
  if (!how.outcome.empty()) {
    const bool is_lost = how.comes_back && !remaking.comes_back;
    std::string reason = how.reason;
    if (is_lost) reason += (reason.empty() ? "" : "; ") + remaking.why;
    departures.push_back({pod, node, is_lost ? "lost" : std::string(how.outcome), std::move(reason), {}, how.by, change_});
  }
  if (!remaking.comes_back) {
    waiting_.erase(pod);
    if (thought_ == nullptr)
      tables_.pods.erase(pod);
    else
      record.node.clear();
    return false;
  }
  record.info = std::move(next);
  record.node.clear();
  record.from = node;
  record.is_ready = false;
  record.created = options_->now;
  record.restarts = 0;
  record.reason = how.reason;
  record.when = how.when;
  record.is_parked = how.is_parked;
  record.change = change_;
  waiting_.insert(pod);
  return true;
}

void World::requeue(const std::string& pod) {
  Record& record = tables_.pods.at(pod);
  if (record.is_healthy()) count_health(record, -1);
  record.info = take_off(record, true);
  record.node.clear();
  record.from.clear();
  waiting_.insert(pod);
}

void World::decide_by(placement::Profiles profiles, placement::Era era) {
  ++epoch_;
  const placement::TrialOptions options = trial_options(*options_);
  if (era == cluster().era()) {
    trial_ = placement::Trial::on_fork(cluster(), std::move(profiles), options);
    return;
  }
  // Pods count otherwise in the other release: all of it anew.
  placement::Cluster other(era);
  for (const auto* node : cluster().nodes()) other.upsert_node(node->node);
  for (const auto& [key, object] : tables_.objects) other.upsert(*object);
  for (auto& [key, record] : tables_.pods) {
    auto view = std::make_shared<model::PodView>(record.view());
    view->node_name = record.node;
    record.info = PodInfo::make(std::move(view), era);
    other.upsert_pod(record.info);
  }
  trial_ = placement::Trial::on_fork(other, std::move(profiles), options);
  for (Budgets::Id id = 0; id < tables_.budgets.size(); ++id) unsynced_.insert(id);
}

void World::unpark() {
  for (const std::string& pod : waiting_) {
    Record& record = tables_.pods.at(pod);
    if (record.is_parked) save(pod);
    record.is_parked = false;
  }
}

void World::arrive(const std::string& pod, NodeIndex node) {
  ++epoch_;
  Record& record = tables_.pods.at(pod);
  save(pod);
  record.node = cluster().node(node)->name;
  record.is_ready = true;
  record.ready_since = options_->now;
  record.message.clear();
  waiting_.erase(pod);
  count_health(record, 1);
  moves.push_back({pod, record.from, record.node, record.reason, record.when, record.change});
  record.from.clear();
}

// Budgets

const std::vector<Budgets::Id>& budgets_of(const Tables& tables, Record& pod) {
  if (pod.budget_generation != tables.budgets.generation()) {
    pod.budgets = tables.budgets.of(pod.view());
    pod.budget_generation = tables.budgets.generation();
  }
  return pod.budgets;
}

void World::count_health(Record& record, int by) {
  for (const Budgets::Id id : budgets_of(tables_, record)) {
    Budget& budget = tables_.budgets.at(id);
    if (thought_ != nullptr) thought_->budgets.try_emplace(id, budget);
    if (tables_.budgets.count(id, by)) unsynced_.insert(id);
  }
}

void World::watch_budgets(Record& record) {
  for (const Budgets::Id id : budgets_of(tables_, record)) {
    Budget& budget = tables_.budgets.at(id);
    if (budget.healthy >= budget.desired) continue;
    dipped.insert(id);
    if (thought_ == nullptr) budget.is_broken = true;
  }
}

void World::sync_budgets() {
  for (const Budgets::Id id : unsynced_) {
    const Budget& budget = tables_.budgets[id];
    const auto& known = cluster().disruption_budgets();
    const auto found = known.find(budget.key());
    if (found == known.end() || budget.is_gone || found->second->disruptions_allowed == budget.allowed()) continue;
    auto view = std::make_shared<model::PodDisruptionBudgetView>(*found->second);
    view->disruptions_allowed = budget.allowed();
    cluster().upsert(std::shared_ptr<const model::PodDisruptionBudgetView>(std::move(view)));
  }
  unsynced_.clear();
}

std::optional<Refusal> World::evict(const std::string& pod, const std::string& reason) {
  Record& record = tables_.pods.at(pod);
  const bool is_free = record.node.empty() || record.view().meta.is_deleting;
  const auto& ids = budgets_of(tables_, record);
  if (!is_free && ids.size() > 1) return Refusal{std::string(model::kSeveralBudgets), {}};
  if (!is_free && ids.size() == 1) {
    const Budget& budget = tables_.budgets[ids[0]];
    const bool may_go_unready = !record.is_ready && budget.view.lets_unready_go(budget.healthy, budget.desired);
    if (!may_go_unready && budget.allowed() <= 0)
      return Refusal{fmt::format("{} The disruption budget {} needs {} healthy pods and has {} currently", model::kBudgetViolated,
                                 budget.view.meta.name, budget.desired, budget.healthy),
                     budget.key()};
  }
  leave(pod, {.outcome = "evicted", .reason = reason});
  return std::nullopt;
}

void World::block(const std::string& pod, const Refusal& refusal) {
  Record& record = tables_.pods.at(pod);
  departures.push_back({pod, record.node, "blocked", refusal.why, refusal.budget, {}, change_});
  if (thought_ != nullptr) return;
  for (const Budgets::Id id : budgets_of(tables_, record)) {
    tables_.budgets.at(id).blocks.insert(pod);
    tables_.budgets.at(id).is_touched = true;
  }
}

}  // namespace berth::whatif
