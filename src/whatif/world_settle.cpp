// How waiting pods get places, and how budgets are counted.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "controllers/budget_ledger.h"
#include "placement/engine.h"
#include "whatif/world.h"

namespace berth::whatif {

using placement::Decision;
using placement::Placement;
using placement::PodInfoPtr;

std::vector<std::string> World::waiting_since_thought() const {
  std::vector<std::string> out;
  std::ranges::set_difference(waiting_, thought_->resting, std::back_inserter(out));
  return out;
}

namespace {

/// Spreads keys evenly; the same everywhere (splitmix64 over FNV-1a).
std::uint64_t shuffled(const std::string& key, int order) {
  std::uint64_t out = 14695981039346656037U + static_cast<std::uint64_t>(order);
  for (const char c : key) out = (out ^ static_cast<unsigned char>(c)) * 1099511628211U;
  out = (out ^ out >> 30) * 0xbf58476d1ce4e5b9U;
  out = (out ^ out >> 27) * 0x94d049bb133111ebU;
  return out ^ out >> 31;
}

}  // namespace

std::vector<std::string> World::waiting() const {
  struct Waiter {
    std::uint64_t rank;
    std::int64_t priority;
    TimePoint created;
    const std::string* key;
  };
  std::vector<Waiter> all;
  for (const std::string& key : waiting_) {
    const Record& record = tables_.pods.at(key);
    if (!record.is_parked && (thought_ == nullptr || !thought_->resting.contains(key)))
      all.push_back({order_ > 1 ? shuffled(key, order_) : 0, record.view().priority, record.created, &key});
  }
  std::ranges::sort(all, [](const Waiter& a, const Waiter& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.created != b.created ? a.created < b.created : *a.key < *b.key;
  });
  if (order_ == 1) std::ranges::reverse(all);
  std::vector<std::string> out;
  out.reserve(all.size());
  for (const Waiter& one : all) out.push_back(*one.key);
  return out;
}

void World::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::string& pod : waiting())
      if (waiting_.contains(pod)) moved |= attempt(pod);
  }
}

bool World::attempt(const std::string& pod) {
  Record& record = tables_.pods.at(pod);
  if (const placement::PodGroupPtr group = group_of(record)) return attempt_group(*group);
  if (failed_epoch_ != epoch_) {
    failed_.clear();
    failed_epoch_ = epoch_;
  }
  // A pod like one that has just failed fails for the same reason.
  const placement::Framework* framework = trial_.profiles().of(*record.info).get();
  if (const auto& failures = failed_[framework]; !failures.empty() && !cluster().is_nominated(pod)) {
    if (const auto known = failures.find(trial_.sign(*record.info)); known != failures.end()) {
      if (record.message != known->second) save(pod);
      record.message = known->second;
      return false;
    }
  }
  const Placement placement = trial_.place(record.info);
  if (placement.is_placed()) {
    note_refusal(pod, placement);
    arrive(pod, placement.node);
    return true;
  }
  std::string words = placement.status.message();
  if (placement.decision.diagnosis != nullptr && placement.decision.outcome == Decision::Outcome::kUnschedulable) {
    std::string preemption_words;
    if (preempt(pod, preemption_words)) return true;
    words = placement::fit_error_message(*placement.decision.diagnosis, cluster().era(), preemption_words);
  }
  save(pod);
  tables_.pods.at(pod).message = words;
  if (failed_epoch_ == epoch_) failed_[framework].insert_or_assign(trial_.sign(*tables_.pods.at(pod).info), std::move(words));
  return false;
}

bool World::preempt(const std::string& pod, std::string& words) {
  sync_budgets();
  const PodInfoPtr info = tables_.pods.at(pod).info;
  const placement::PostFilterResult result = trial_.victims_for(info);
  const placement::Candidate* choice = result.choice();
  if (choice == nullptr) {
    words = result.status.message();
    return false;
  }
  const placement::NodeIndex node = choice->node;
  const std::vector<PodInfoPtr> victims = choice->victims;
  for (const PodInfoPtr& victim : victims)
    if (find(victim->key) != nullptr)
      leave(victim->key,
            {.outcome = "preempted",
             .reason = fmt::format("preempted by {} (priority {} over {})", pod, info->view().priority, victim->view().priority),
             .by = pod});
  // It has the node's room by its nomination; nothing can come between.
  cluster().nominate(info, cluster().node(node)->name);
  const Placement placement = trial_.place(info);
  if (!placement.is_placed()) {
    words = placement.status.message();
    return false;
  }
  note_refusal(pod, placement);
  arrive(pod, placement.node);
  return true;
}

void World::note_refusal(const std::string& pod, const Placement& placement) {
  if (!placement.would_refuse.empty()) note(fmt::format("{} goes where it cannot start: {}", pod, placement.would_refuse));
}

// Budgets

void World::put_budget(const json::Value& document) {
  const Budgets::Id id = tables_.budgets.put(document);
  tables_.budgets.at(id).is_touched = true;
  recount_budget(id);
  cluster().upsert(document);
}

namespace {

/// Who says how many pods there shall be: the pods' controller, or the Deployment above it.
struct Scale {
  std::string who;
  std::optional<std::int64_t> replicas;  ///< nullopt: it is not among the objects.
};

Scale scale_of(const Tables& tables, const model::OwnerReference& owner, std::string_view ns) {
  const json::Value* object = tables.find(owner.kind, ns, owner.name);
  Scale out{owner.kind + "/" + owner.name, std::nullopt};
  if (object == nullptr) return out;
  if (owner.kind == "ReplicaSet")
    for (const json::Value& above : json::get_array(*object, {"metadata", "ownerReferences"})) {
      if (json::get_string(above, {"kind"}) != "Deployment") continue;
      const std::string name(json::get_string(above, {"name"}));
      if (const json::Value* deployment = tables.find("Deployment", ns, name)) object = deployment;
      out.who = "Deployment/" + name;
    }
  out.replicas = json::get_int(*object, {"spec", "replicas"}, 1);
  return out;
}

}  // namespace

std::vector<Tally> tally(Tables& tables) {
  std::vector<Tally> out(tables.budgets.size());
  std::vector<std::map<std::string, std::int64_t>> scales(out.size());
  std::unordered_map<std::string, Scale> known;  // By the controller's key: it is looked for once, not for each of its pods.
  for (auto& [key, record] : tables.pods) {
    for (const Budgets::Id id : budgets_of(tables, record)) {
      ++out[id].pods;
      out[id].healthy += record.is_healthy();
      const model::OwnerReference* owner = record.owner();
      if (owner == nullptr) continue;
      const auto [at, is_new] = known.try_emplace(Tables::key(owner->kind, record.view().ns(), owner->name));
      if (is_new) at->second = scale_of(tables, *owner, record.view().ns());
      std::int64_t& scale = scales[id][at->second.who];
      scale = at->second.replicas.value_or(scale + 1);  // Of unknown size: as many as there are.
    }
  }
  for (std::size_t id = 0; id < out.size(); ++id) {
    for (const auto& [who, count] : scales[id]) out[id].scale += count;
    const json::Value& budget = tables.budgets[static_cast<Budgets::Id>(id)].document;
    out[id].desired = controllers::desired_healthy(budget, controllers::counts_by_scale(budget) ? out[id].scale : out[id].pods);
  }
  return out;
}

void World::recount_budget(Budgets::Id id) {
  Budget& budget = tables_.budgets.at(id);
  const Tally counted = tally(tables_)[id];
  budget.healthy = counted.healthy;
  budget.held = 0;
  budget.desired = counted.desired;
  budget.computed = counted.desired;
  budget.lowest = std::min(budget.lowest, budget.healthy);
  unsynced_.insert(id);
}

void World::recount_scales() {
  if (tables_.budgets.empty()) return;
  const std::vector<Tally> counted = tally(tables_);
  for (Budgets::Id id = 0; id < tables_.budgets.size(); ++id) {
    Budget& budget = tables_.budgets.at(id);
    if (budget.is_gone) continue;
    // What the status says differs perhaps; what was changed since is counted on top of it.
    const std::int64_t before = budget.computed.value_or(counted[id].desired);
    budget.desired += counted[id].desired - before;
    budget.computed = counted[id].desired;
    budget.is_touched |= counted[id].desired != before;
    unsynced_.insert(id);
  }
}

// Thoughts

void World::begin_thought() {
  sync_budgets();  // What is synced in the thought is taken back with it.
  thought_ = std::unique_ptr<Thought>(new Thought{.attempt = placement::Attempt(trial_),
                                                  .pods = {},
                                                  .budgets = {},
                                                  .job_failures = job_failures_,
                                                  .node_states = node_states,
                                                  .resting = waiting_,
                                                  .moves = moves.size(),
                                                  .departures = departures.size(),
                                                  .notes = notes.size()});
  dipped.clear();
}

void World::end_thought() {
  Thought& was = *thought_;
  for (auto& [pod, record] : was.pods) tables_.pods.at(pod) = std::move(record);
  for (const auto& [id, counts] : was.budgets) {
    static_cast<BudgetCounts&>(tables_.budgets.at(id)) = counts;
    unsynced_.insert(id);
  }
  job_failures_ = std::move(was.job_failures);
  node_states = std::move(was.node_states);
  waiting_ = std::move(was.resting);
  moves.resize(was.moves);
  departures.resize(was.departures);
  for (std::size_t i = was.notes; i < notes.size(); ++i) told_.erase(notes[i]);
  notes.resize(was.notes);
  thought_ = nullptr;
  ++epoch_;
}

}  // namespace berth::whatif
