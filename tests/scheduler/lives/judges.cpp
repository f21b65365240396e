// What must hold after each step of a life, whatever was decided: counted anew from the objects by plain code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "placement/cluster_kinds.h"
#include "placement/groups/group_placement.h"
#include "tests/scheduler/lives/life.h"

namespace berth::scheduler::lives {

using client::ObjectRef;
using placement::PodInfo;
using placement::PodInfoPtr;

namespace {

PodInfoPtr read(const client::Object& object, placement::Era era) {
  return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(object.document())), era);
}

bool has_ended(const ObjectRef& pod) { return PodGlance(pod->text()).is_terminal(); }

}  // namespace

void Life::wrong(const std::string& what) {
  say("  WRONG: " + what);
  if (++wrongs_ > 3) return;
  std::size_t begin = text_.size();
  for (int lines = 0; begin > 0 && lines < 30; --begin)
    if (text_[begin - 1] == '\n') ++lines;
  ADD_FAILURE() << "seed " << subject.seed << ", step " << steps_ << ": " << what << "\n" << text_.substr(begin);
}

void Life::judge() {
  const std::size_t open = open_.size() - waits_for_nobody_ + timers_.size() +
                           static_cast<std::size_t>(std::ranges::count_if(posted_, [](Ask id) { return id != kTurns; }));
  if (core_->out.open() != open) wrong(fmt::format("{} effects wait for an answer, and {} are open", core_->out.open(), open));
  judge_pods();
  judge_indexes();
  judge_groups();
  judge_new_places();
  if (steps_ % 4 == 0) judge_gauges();
  if (steps_ % 16 == 0) judge_against_fresh_engine();
}

/// scheduler_unschedulable_pods says of each plugin whom it holds back: the queue's rejections and the gates.
void Life::judge_gauges() {
  std::map<std::string, std::int64_t> held, told;
  const auto key = [](std::string_view plugin, std::string_view profile) { return fmt::format("{} of {}", plugin, profile); };
  for (const auto& [uid, pod] : core_->pods) {
    const std::string& profile = pod.info->view().scheduler_name;
    if (!pod.gated_by.empty()) ++held[key(pod.gated_by, profile)];
    const auto* queued = core_->queue.find(uid);
    if (pod.held() != nullptr || queued == nullptr || core_->queue.is_in_flight(uid)) continue;
    for (const std::string_view plugin : core_->bits.names(queued->rejected_by))
      if (!is_reason_of_queue(plugin)) ++held[key(plugin, profile)];
  }
  const std::string all = core_->meters.registry().expose();
  constexpr std::string_view kName = "\nscheduler_unschedulable_pods{plugin=\"";
  for (std::size_t at = all.find(kName); at != std::string::npos; at = all.find(kName, at + 1)) {
    const std::string_view line = std::string_view(all).substr(at + kName.size(), all.find('\n', at + 1) - at - kName.size());
    const std::size_t quote = line.find('"'), profile = line.find("profile=\"") + 9;
    const std::int64_t count = std::stoll(std::string(line.substr(line.rfind(' ') + 1)));
    if (count != 0) told[key(line.substr(0, quote), line.substr(profile, line.find('"', profile) - profile))] = count;
  }
  if (held != told) wrong(fmt::format("plugins hold back {}, and are said to hold back {}", held, told));
}

/// Who is in the cluster, where, and as whom: the pods that the watch has shown on a node, and those that hold a place.
void Life::judge_pods() {
  std::size_t placed = 0;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sums;  // Cpu and pods by node.
  const auto count = [&](const PodInfo& pod, const std::string& node) {
    ++placed;
    sums[node].first += pod.request.total.cpu_milli;
    ++sums[node].second;
  };
  for (const ObjectRef& object : server.all_known("pods")) {
    const PodGlance glance(object->text());
    if (glance.node_name.empty() || glance.is_terminal()) continue;
    const PodInfoPtr there = core_->cluster.find_pod(object->key());
    const auto index = core_->cluster.pod_node(object->key());
    if (there == nullptr || !index.is_valid() || core_->cluster.node(index)->name != glance.node_name) {
      wrong(fmt::format("{} is on {} and not in the cluster there", object->key(), glance.node_name));
      continue;
    }
    const PodInfoPtr read_anew = read(*object, core_->cluster.era());
    count(*read_anew, std::string(glance.node_name));
    const model::PodView &a = there->view(), &b = read_anew->view();
    if (a.meta.uid != b.meta.uid || there->request != read_anew->request || !placement::same_traits(*there, *read_anew) ||
        a.priority != b.priority || a.resize_infeasible != b.resize_infeasible || a.meta.annotations != b.meta.annotations ||
        there->start_time_ns != read_anew->start_time_ns || a.terminating_by_preemption != b.terminating_by_preemption ||
        a.meta.owner_references != b.meta.owner_references || there->host_ports != read_anew->host_ports)
      wrong(fmt::format("{} is known otherwise than it was seen", object->key()));
  }
  for (const auto& [uid, pod] : core_->pods)
    if (const HeldPtr held = pod.held(); held != nullptr && held->is_assumed) {
      const PodInfoPtr there = core_->cluster.find_pod(held->info->key);
      if (there == nullptr || there->view().meta.uid != uid || core_->cluster.pod_node(held->info->key) != held->node)
        wrong(fmt::format("{} holds a place on {} that the cluster does not know", uid, held->node_name));
      else
        count(*there, held->node_name);
    }
  if (core_->cluster.pod_count() != placed) wrong(fmt::format("{} pods in the cluster, {} counted", core_->cluster.pod_count(), placed));
  for (const auto& [name, sum] : sums) {
    const placement::NodeInfo* node = core_->cluster.find_node(name);
    if (node != nullptr && (node->requested.cpu_milli != sum.first || std::ssize(node->pods) != sum.second))
      wrong(fmt::format("{} has {}m and {} pods, counted {}m and {}", name, node->requested.cpu_milli, node->pods.size(), sum.first,
                        sum.second));
  }
  std::size_t nodes = 0;
  for (const ObjectRef& object : server.all_known("nodes")) {
    const placement::NodeInfo* node = core_->cluster.find_node(object->name());
    if (node == nullptr || node->node == nullptr) wrong(fmt::format("node {} is not in the cluster", object->name()));
    ++nodes;
  }
  if (core_->cluster.node_count() != nodes) wrong(fmt::format("{} nodes in the cluster, {} seen", core_->cluster.node_count(), nodes));
}

/// Each index of the records says what a walk over them says.
void Life::judge_indexes() {
  std::size_t assumed = 0, slots = 0, waiting = 0;
  std::set<std::string> at_permit;
  std::map<std::string, std::set<std::string>> preemptors, gates, by_claim, bindings;
  for (const auto& [uid, pod] : core_->pods) {
    const HeldPtr held = pod.held();
    if (held == nullptr) {
      ++waiting;
      if (!core_->queue.contains(uid)) wrong(fmt::format("{} wants a node and is not in the queue", uid));
      const bool is_popped = pod.as<Aside>() != nullptr || pod.as<Asking>() != nullptr;
      if (is_popped != core_->queue.is_in_flight(uid))
        wrong(fmt::format("{} is {}in flight as {}", uid, is_popped ? "not " : "", shown(pod)));
      for (const auto& entry : pod.info->view().resource_claims)
        if (const std::string& name = entry.claim_name.empty() ? entry.made_name : entry.claim_name; !name.empty())
          by_claim["default/" + name].insert(uid);
      const auto nominated = core_->cluster.nominated_node(pod.info->key);
      const placement::NodeInfo* node = pod.nominated().empty() ? nullptr : core_->cluster.find_node(pod.nominated());
      const bool is_there = node != nullptr && node->node != nullptr;
      if (is_there != nominated.is_valid() || (is_there && nominated != node->index))
        wrong(fmt::format("{} counts on \"{}\", and the cluster says otherwise", uid, pod.nominated()));
    } else {
      assumed += held->is_assumed ? 1 : 0;
      slots += held->holds_slot ? 1 : 0;
    }
    const auto* queued = core_->queue.find(uid);
    if (held == nullptr && queued != nullptr && queued->pod.gated == pod.gated_by.empty() && !core_->queue.is_in_flight(uid))
      wrong(fmt::format("{} is gated in one place alone: {}", uid, shown(pod)));
    if (!pod.gated_by.empty()) gates[pod.gated_by].insert(uid);
    if (const auto* wait = pod.as<AtPermit>(); wait != nullptr && !wait->plugins.empty()) at_permit.insert(uid);
    if (const auto* open = pod.as<Preempting>()) {
      if (open->victims.empty()) wrong(fmt::format("{} waits for no victim", uid));
      for (const std::string& victim : open->victims) preemptors[victim].insert(uid);
    }
    if (const auto* wait = pod.as<AwaitingClaims>())
      for (const auto& write : wait->held->writes)
        bindings[fmt::format("{}/{}/{}", write.uid.empty() ? write.resource : "resourceclaims", write.ns, write.name)].insert(uid);
  }
  const auto same = [this](const auto& index, const auto& walked, const char* what) {
    bool is_same = index.size() == walked.size();
    for (const auto& [key, uids] : walked) {
      const auto found = index.find(key);
      is_same = is_same && found != index.end() && std::set<std::string>(found->second.begin(), found->second.end()) == uids;
    }
    if (!is_same) wrong(fmt::format("the index of {} is not what a walk says", what));
  };
  same(core_->preempted_by, preemptors, "victims");
  same(core_->waiting_for_claim, by_claim, "claims that are waited for");
  same(core_->bindings_by_claim, bindings, "claims that bindings wait for");
  std::map<std::string, std::set<std::string>> gated;
  for (const auto& [name, gate] : core_->gates) gated[name] = gate.uids;
  same(gated, gates, "gates");
  if (core_->at_permit != at_permit) wrong("the index of those at Permit is not what a walk says");
  if (core_->assumed != assumed) wrong(fmt::format("{} are assumed, counted {}", core_->assumed, assumed));
  if (core_->bindings_in_flight != slots) wrong(fmt::format("{} bindings under way, counted {}", core_->bindings_in_flight, slots));
  const auto sizes = core_->queue.sizes();
  std::size_t queued = 0;
  for (const auto& [uid, pod] : core_->pods) queued += core_->queue.contains(uid) && !core_->queue.is_in_flight(uid) ? 1 : 0;
  if (sizes.active + sizes.backoff + sizes.unschedulable + sizes.gated != queued)
    wrong("the queue's boxes hold others than those who wait");
  for (const ObjectRef& object : server.all_known("pods")) {
    const PodGlance glance(object->text());
    const bool wants = glance.node_name.empty() && !glance.is_terminal() && core_->frameworks.contains(glance.scheduler_name);
    if (wants && !core_->pods.contains(object->uid()) && !object->is_deleting())
      wrong(fmt::format("{} wants a node, and nobody knows it", object->uid()));
    if (wants && !core_->options.profiles.empty() && core_->pods.contains(object->uid()) && core_->wanting(object->uid()) != nullptr &&
        core_->wanting(object->uid())->object != object)
      wrong(fmt::format("{} is known as it was before", object->uid()));
  }
  (void)waiting;
}

void Life::judge_groups() {
  std::map<std::string, std::set<std::string>> members;
  for (const ObjectRef& object : server.all_known("pods")) {
    const PodGlance glance(object->text());
    if (!glance.group.empty() && !has_ended(object)) members[fmt::format("default/{}", glance.group)].insert(object->uid());
  }
  for (const auto& [key, uids] : members) {
    std::set<std::string> known;
    for (const auto& member : core_->groups.members(key)) known.insert(member.uid);
    if (known != uids) wrong(fmt::format("members of {}: known {}, seen {}", key, fmt::join(known, " "), fmt::join(uids, " ")));
  }
  for (const ObjectRef& object : server.all_known("podgroups")) {
    const auto known = core_->groups.find(object->key());
    const auto anew = placement::PodGroup::parse(object->document());
    if (known == nullptr || !known->asks_the_same(anew)) wrong(fmt::format("group {} is known otherwise than it was seen", object->key()));
    if (!members.contains(object->key()) && core_->groups.count(object->key()) != 0)
      wrong(fmt::format("group {} has members that are gone", object->key()));
  }
  const auto is_known = [this](const std::string& key) { return core_->groups.find(key) != nullptr; };
  for (const auto& [key, said] : core_->group_conditions)
    if (!is_known(key)) wrong(fmt::format("what was said of {} is remembered, which is gone", key));
  for (const auto& [key, kept] : core_->reservations)
    if (!is_known(key)) wrong(fmt::format("room is kept for {}, which is gone", key));
  for (const auto& [key, wait] : core_->group_waits)
    if (!is_known(key)) wrong(fmt::format("{} waits, which is gone", key));
  for (const auto& [key, uid] : core_->group_preempting)
    if (const Tracked* waiter = core_->wanting(uid); waiter == nullptr || waiter->as<Preempting>() == nullptr)
      wrong(fmt::format("{} waits for victims through {}, who does not", key, uid));
}

/// Who holds a place since this step had room there, and was welcome.
void Life::judge_new_places() {
  std::map<std::string, std::string> held_now;
  for (const auto& [uid, pod] : core_->pods) {
    const HeldPtr held = pod.held();
    if (held == nullptr) continue;
    held_now[uid] = held->node_name;
    const auto before = last_held_.find(uid);
    if (!held->is_assumed || (before != last_held_.end() && before->second == held->node_name)) continue;
    const placement::NodeInfo* node = core_->cluster.find_node(held->node_name);
    if (node == nullptr || node->node == nullptr) {
      wrong(fmt::format("{} is put on {}, which is gone", uid, held->node_name));
      continue;
    }
    const model::PodView& view = held->info->view();
    std::int64_t cpu = 0;
    std::map<std::int64_t, int> ports;
    for (const PodInfoPtr& other : node->pods) {
      cpu += other->request.total.cpu_milli;
      for (const auto& port : other->host_ports) ++ports[port.port];
    }
    if (held->info->request.total.cpu_milli > 0 && cpu > node->allocatable.cpu_milli)
      wrong(fmt::format("{} has {}m, and {}m are taken with {}", node->name, node->allocatable.cpu_milli, cpu, uid));
    if (std::ssize(node->pods) > node->allocatable.allowed_pods) wrong(fmt::format("{} has too many pods with {}", node->name, uid));
    for (const auto& port : held->info->host_ports)
      if (ports[port.port] > 1) wrong(fmt::format("port {} of {} is taken twice with {}", port.port, node->name, uid));
    const bool tolerates = !view.tolerations.empty();
    if (!tolerates && (node->node->unschedulable ||
                       std::ranges::any_of(node->node->taints, [](const auto& taint) { return taint.effect == "NoSchedule"; })))
      wrong(fmt::format("{} is put on {}, whose taints it does not tolerate", uid, node->name));
    for (const auto& [key, value] : view.node_selector)
      if (const std::string* has = node->label(key); has == nullptr || *has != value)
        wrong(fmt::format("{} selects no such node as {}", uid, node->name));
    if (!view.scheduling_gates.empty() && core_->cluster.era() != placement::Era::k120)
      wrong(fmt::format("{} has a gate and is placed", uid));
  }
  last_held_ = std::move(held_now);
}

/// An engine that lived through it all answers as a new one over the same objects.
void Life::judge_against_fresh_engine() {
  placement::Cluster fresh(core_->cluster.era());
  for (const auto& kind : placement::kClusterResources) {
    if (kind.plural == "pods" || kind.plural == "podgroups") continue;
    for (const ObjectRef& object : server.all_known(std::string(kind.plural))) {
      json::Value document = object->document();
      document.get_object()["kind"] = kind.kind;
      fresh.upsert(document);
    }
  }
  // Who has no node counts where this scheduler knows it: what others nominate is theirs.
  for (const ObjectRef& object : server.all_known("pods"))
    if (!PodGlance(object->text()).node_name.empty()) fresh.upsert_pod(read(*object, fresh.era()));
  bool has_writes = false;
  std::vector<PodInfoPtr> waiting;
  for (const auto& [uid, pod] : core_->pods) {
    const HeldPtr held = pod.held();
    if (held == nullptr) {
      waiting.push_back(pod.info);
      fresh.nominate(pod.info, pod.nominated());
    } else {
      has_writes = has_writes || !held->writes.empty();
      if (!held->is_assumed) continue;
      const PodInfoPtr there = core_->cluster.find_pod(held->info->key);
      if (const placement::NodeInfo* node = fresh.find_node(held->node_name); node != nullptr) {
        fresh.assume(there, node->index);
        continue;
      }
      auto view = std::make_shared<model::PodView>(there->view());
      view->node_name = held->node_name;
      fresh.upsert_pod(std::move(view));
    }
  }
  for (const auto& [key, kept] : core_->reservations)
    for (const auto& [pod, node] : kept.stand_ins) fresh.nominate(pod, node);
  if (has_writes || !core_->cluster.pending_allocations().empty()) return;  // What is reserved, and not yet written, no object says.
  const placement::EngineOptions engine{.tie_break = placement::EngineOptions::TieBreak::kFirstByName};
  placement::Trial anew(fresh, *placement::Profiles::create(core_->options.profiles), {engine, core_->options.preemption});
  std::ranges::sort(waiting, {}, [](const PodInfoPtr& pod) { return pod->view().meta.uid; });
  for (const PodInfoPtr& pod : waiting) {
    const auto told = [&](placement::Trial& trial, bool names_node) {
      const auto decision = trial.decide(pod);
      if (decision.outcome == placement::Decision::Outcome::kError) return "error " + decision.error;
      if (decision.outcome == placement::Decision::Outcome::kScheduled)
        return fmt::format("{} of {} points, {} feasible, {} as good", names_node ? decision.node_name : "a node", decision.score,
                           decision.feasible_nodes, decision.tied_nodes);
      std::string out = placement::fit_error_message(*decision.diagnosis, fresh.era(), "");
      const auto victims = trial.victims_for(pod);
      out += ", " + victims.status.message();
      // Of two that are as good to lose, either goes.
      if (const auto* choice = victims.choice())
        for (const PodInfoPtr& victim : choice->victims)
          out += fmt::format(" one of {} since {}", victim->view().priority, victim->start_time_ns);
      return out;
    };
    const std::string lived = told(core_->trial, !subject.random_ties), newly = told(anew, !subject.random_ties);
    if (lived != newly) wrong(fmt::format("{}: decided \"{}\", by a new engine \"{}\"", pod->key, lived, newly));
  }
}

/// Nobody waits who could be placed, and the API says what is known here.
void Life::judge_rest() {
  if (!open_.empty() || !server.news().empty()) return wrong("there is no rest");
  const auto sizes = core_->queue.sizes();
  if (sizes.active != 0) wrong("somebody's turn does not come");
  judge_groups_at_rest();
  for (const auto& [uid, pod] : core_->pods) {
    if (pod.held() != nullptr || !pod.gated_by.empty()) continue;
    const std::string group = core_->groups.group_of(uid);
    const bool is_held_up = pod.info->view().meta.labels.get("door") != nullptr;  // Where Permit says no, it does so at each attempt.
    const auto decision = core_->trial.decide(pod.info);
    if (group.empty() && !subject.extenders && !is_held_up && decision.outcome == placement::Decision::Outcome::kScheduled)
      wrong(fmt::format("{} could be on {}, and waits: {}", uid, decision.node_name, shown(pod)));
    const json::Value* stored = server.find("pods", "default", pod.info->view().meta.name);
    if (stored == nullptr || pod.object->is_deleting()) continue;
    std::string_view said;
    for (const json::Value& one : json::get_array(*stored, {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == "PodScheduled") said = json::get_string(one, {"message"});
    if (!pod.message.empty() && said != pod.message) wrong(fmt::format("{} says \"{}\", known here is \"{}\"", uid, said, pod.message));
    if (json::get_string(*stored, {"status", "nominatedNodeName"}) != pod.nominated())
      wrong(fmt::format("{} is nominated to \"{}\" in the API, and here to \"{}\"", uid,
                        json::get_string(*stored, {"status", "nominatedNodeName"}), pod.nominated()));
  }
}

/// No group waits of which enough could be placed.
void Life::judge_groups_at_rest() {
  const bool are_others_asked = subject.extenders || !subject.profiles.front().permit.empty();
  if (!core_->are_groups_on() || are_others_asked) return;
  for (const std::string& name : server.names("podgroups")) {
    const auto group = core_->groups.find(name);
    std::vector<PodInfoPtr> waiting;
    for (const auto& member : core_->groups.members(name))
      if (const Tracked* pod = core_->wanting(member.uid); pod != nullptr && pod->gated_by.empty() && !pod->object->is_deleting())
        waiting.push_back(pod->info);
    if (waiting.empty() || !group->mistake.empty()) continue;
    std::ranges::stable_sort(waiting, std::greater(), [](const PodInfoPtr& pod) { return pod->view().priority; });
    const auto& framework = core_->frameworks.at(waiting.front()->view().scheduler_name);
    const placement::GroupQuestion question{.group = group.get(),
                                            .members = waiting,
                                            .standing = placement::standing_of(core_->groups, core_->cluster, name),
                                            .by_topology = core_->group_options.topology,
                                            .budgets_are_hard = core_->has_hard_budgets(*framework)};
    const auto own_room = core_->reservations.find(name);
    if (own_room != core_->reservations.end()) core_->lift_stand_ins(own_room->second);
    if (core_->decide_group_beside_rooms(question).outcome == placement::GroupDecision::Outcome::kScheduled)
      wrong(fmt::format("group {} could be placed, and waits", name));
    if (own_room != core_->reservations.end()) core_->put_stand_ins(own_room->second);
  }
}

void Life::expect_nothing_left() {
  std::vector<std::string> left;
  const auto expect = [&](bool is_empty, const char* what) {
    if (!is_empty) left.emplace_back(what);
  };
  expect(core_->pods.empty(), "pods");
  expect(core_->out.open() == 0, "questions");
  expect(core_->assumed == 0 && core_->bindings_in_flight == 0, "counts");
  expect(core_->preempted_by.empty(), "victims");
  expect(core_->waiting_for_claim.empty() && core_->bindings_by_claim.empty(), "claims");
  expect(core_->at_permit.empty() && core_->gates.empty() && core_->aside.empty() && core_->asked.empty(), "waits");
  expect(core_->group_conditions.empty() && core_->group_preempting.empty() && core_->group_waits.empty(), "groups");
  expect(core_->reservations.empty() && core_->incomplete_groups.empty() && core_->groups.empty(), "rooms");
  expect(core_->kinds_of_pods.size() == 0, "kinds of pods");
  expect(core_->cluster.pod_count() == 0 && core_->cluster.node_count() == 0 && !core_->cluster.has_nominations(), "the cluster");
  expect(core_->cluster.pending_allocations().empty(), "pending allocations");
  const auto sizes = core_->queue.sizes();
  expect(sizes.active + sizes.backoff + sizes.unschedulable + sizes.gated == 0, "the queue");
  judge_gauges();
  if (!left.empty()) wrong(fmt::format("of an emptied world is left: {}", fmt::join(left, ", ")));
}

}  // namespace berth::scheduler::lives
