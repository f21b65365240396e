// A life of gangs: nodes in racks and zones, pods that come, run and end, and gangs of every kind that ask for places, for victims and for
// room. What is answered stands in gangs*.txt beside this (BERTH_RECORD=1); what must hold of every answer is judged by plain code.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "placement/groups/group_placement.h"
#include "placement/groups/group_reservation.h"
#include "tests/placement/groups_world.h"
#include "tests/support/life.h"

namespace berth::placement::testing {
namespace {

/// Nodes with all that stands on them: equal texts, equal clusters.
std::string describe(const Cluster& cluster) {
  std::string out;
  for (std::uint32_t i = 0; i < cluster.slot_count(); ++i) {
    const NodeInfo* node = cluster.node(NodeIndex{i});
    if (node == nullptr) continue;
    out += fmt::format("{} {}{}m {} of {}:", i, node->name, node->node == nullptr ? " gone " : " ", node->requested.cpu_milli,
                       node->requested.memory_bytes, node->allocatable.cpu_milli);
    for (const PodInfoPtr& pod : node->pods) out += " " + pod->key + (pod->view().meta.is_deleting ? "-" : "");
    for (const PodInfoPtr& pod : cluster.nominated(node->index)) out += " (" + pod->key + ")";
    for (const auto& [claim, count] : node->claim_references) out += fmt::format(" {}x{}", claim, count);
    out += "\n";
  }
  for (const auto& [key, claim] : cluster.claims())
    out += fmt::format("{} {} {}\n", key, claim->volume_name, claim->meta.annotations.size());
  for (const auto& [key, volume] : cluster.persistent_volumes()) out += fmt::format("{} {}\n", key, volume->claim_name);
  for (const auto& [key, claim] : cluster.resource_claims()) {
    out += fmt::format("{} for {}", key, claim->reserved_for.size());
    if (claim->allocation != nullptr)
      for (const auto& device : claim->allocation->devices) out += fmt::format(" {}/{}/{}", device.driver, device.pool, device.device);
    out += "\n";
  }
  for (const auto& [uid, pending] : cluster.pending_allocations())
    out += fmt::format("{} soon {} for {}\n", uid, pending.allocation->devices.size(), pending.holders);
  return out;
}

class Gangs {
 public:
  Gangs(std::uint64_t seed, bool as_kubernetes) : dice_(seed), seed_(seed), as_kubernetes_(as_kubernetes), trial_(world_.trial()) {}

  std::string run() {
    for (int i = 0; i < 8; ++i) make_node(i);
    for (int i = 0; i < 150 && wrongs_ == 0; ++i) {
      change();
      if (dice_.chance(50)) ask();
    }
    return text_;
  }

 private:
  void wrong(const std::string& what) {
    ++wrongs_;
    ADD_FAILURE() << "seed " << seed_ << ": " << what << "\n"
                  << describe(world_.cluster) << text_.substr(text_.size() - std::min<std::size_t>(text_.size(), 1500));
  }
  void make_node(int i) {
    std::map<std::string, std::string> labels{{"zone", i < 4 ? "z0" : "z1"}};
    if (i != 7) labels["rack"] = fmt::format("r{}", i / 2);
    if (dice_.chance(40)) labels["kind"] = "fast";
    world_.node(fmt::format("n{}", i), 2 + dice_.below(3), labels);
  }
  void change() {
    switch (dice_.below(8)) {
      case 0:
        return make_node(dice_.below(8));
      case 1:
        if (dice_.chance(30)) (void)world_.cluster.remove_node(fmt::format("n{}", dice_.below(8)));
        return;
      case 2:
      case 3: {
        std::vector<PodInfoPtr> all;
        for (const NodeInfo* node : world_.cluster.nodes()) all.insert(all.end(), node->pods.begin(), node->pods.end());
        if (all.empty()) return;
        const PodInfoPtr gone = dice_.of(all);
        if (const std::string key = world_.groups.group_of(gone->view().meta.uid); !key.empty())
          world_.groups.remove_member(key, gone->view().meta.uid);
        world_.cluster.remove_pod(gone->key);
        return;
      }
      case 4:
        world_.cluster.upsert(json::Value{{"kind", "PodDisruptionBudget"},
                                          {"metadata", {{"name", "b"}, {"namespace", "default"}}},
                                          {"spec", {{"selector", {{"matchLabels", {{"app", "web"}}}}}}},
                                          {"status", {{"disruptionsAllowed", dice_.below(2)}}}});
        return;
      default: {
        PodSpec spec{.cpu = 1 + dice_.below(2), .priority = 10 * dice_.below(3), .node = fmt::format("n{}", dice_.below(8))};
        const NodeInfo* on = world_.cluster.find_node(spec.node);
        if (on == nullptr || on->node == nullptr || on->requested.cpu_milli + spec.cpu * 1000 > on->allocatable.cpu_milli) return;
        spec.started_s = 1 + dice_.below(500);
        if (dice_.chance(40)) spec.label = "web";
        const std::string group = dice_.chance(30) ? fmt::format("runs{}", dice_.below(2)) : "";
        if (!group.empty() && world_.groups.find("default/" + group) == nullptr) {
          PodGroup one = gang_of(1);
          one.name = group;
          one.goes_as_one = dice_.chance(50);
          one.priority = 10 * dice_.below(3);
          world_.groups.upsert(std::make_shared<const PodGroup>(one));
        }
        (void)world_.running(fmt::format("r{}", ++pods_), spec, group);
      }
    }
  }

  void ask() {
    const int size = 1 + dice_.below(5);
    std::vector<TopologyLevel> levels;
    if (dice_.chance(60)) levels.push_back({dice_.chance(50) ? "zone" : "rack", true});
    if (dice_.chance(30)) levels.push_back({"rack", levels.empty()});
    if (levels.size() == 2 && levels[0].key == levels[1].key) levels.pop_back();
    PodGroup group = gang_of(1 + dice_.below(static_cast<std::size_t>(size)), levels, 10 * dice_.below(4));
    if (dice_.chance(10)) group.is_gang = false, group.min_count = 1;
    std::vector<PodInfoPtr> members;
    std::string asked = fmt::format("gang of {} at least {}, priority {}", size, group.min_count, group.priority);
    for (const auto& level : group.levels) asked += fmt::format(", {} {}", level.is_required ? "one" : "rather one", level.key);
    const bool is_apart = dice_.chance(15), is_ranked = dice_.chance(40);
    for (int i = 0; i < size; ++i) {
      PodSpec spec{.cpu = 1 + dice_.below(3), .priority = group.priority};
      if (dice_.chance(15)) spec.selects = "fast";
      if (is_apart) spec.apart_by = "kubernetes.io/hostname";
      if (is_ranked) spec.rank = i;
      asked += fmt::format(" {}{}{}", spec.cpu, spec.selects, is_apart ? "!" : "");
      members.push_back(GroupWorld::make(fmt::format("m{}-{}", ++asked_, i), spec));
    }
    text_ += asked + "\n";
    GroupQuestion question{.group = &group, .members = members, .as_kubernetes = as_kubernetes_};
    const std::string before = describe(world_.cluster);
    const GroupDecision decision = decide_group(trial_, question);
    text_ += "  " + told(decision) + "\n";
    judge(question, decision, members);
    if (describe(world_.cluster) != before) return wrong("a decision left something");
    if (decision.outcome == GroupDecision::Outcome::kUnschedulable) ask_further(question, members);
    if (describe(world_.cluster) != before) return wrong("what was asked further left something");
    if (decision.outcome == GroupDecision::Outcome::kScheduled && dice_.chance(35)) keep(question, members);
  }
  std::string told(const GroupDecision& decision) {
    std::string out;
    for (std::size_t i = 0; i < decision.members.size(); ++i) {
      const MemberDecision& one = decision.members[i];
      out += one.has_place() ? world_.cluster.node(one.decision.node)->name + " " : "- ";
    }
    if (decision.outcome != GroupDecision::Outcome::kScheduled) out += decision.message;
    if (!decision.domain.empty()) out += " in " + decision.domain;
    if (decision.was_searched) out += ", searched";
    for (const MemberDecision& one : decision.members)
      if (!one.has_place() && one.decision.diagnosis != nullptr)
        return out + "; " + fit_error_message(*one.decision.diagnosis, Era::k136, "");
    return out;
  }

  /// Who has a place has room there, enough have one, and all are in one domain where that is required.
  void judge(const GroupQuestion& question, const GroupDecision& decision, const std::vector<PodInfoPtr>& members) {
    if (decision.outcome != GroupDecision::Outcome::kScheduled) return;
    if (decision.placed_count() < question.group->min_count) wrong("too few have a place");
    std::map<std::uint32_t, std::int64_t> asked;
    std::map<std::uint32_t, int> count;
    std::map<std::string, std::set<std::string>> domains;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!decision.members[i].has_place()) continue;
      const NodeInfo& node = *world_.cluster.node(decision.members[i].decision.node);
      asked[node.index.value] += members[i]->wanted().cpu_milli;
      if (++count[node.index.value] > 1 && !members[i]->required_anti_affinity.empty()) wrong("two that are to be apart are not");
      if (node.requested.cpu_milli + asked[node.index.value] > node.allocatable.cpu_milli) wrong(node.name + " is given more than it has");
      if (!members[i]->view().node_selector.empty() && node.label("kind") == nullptr) wrong(node.name + " is not what a member selects");
      for (const TopologyLevel& level : question.group->levels)
        if (level.is_required) domains[level.key].insert(node.label(level.key) != nullptr ? *node.label(level.key) : "");
    }
    const bool one_level = as_kubernetes_;
    for (const auto& [key, values] : domains)
      if ((!one_level || key == question.group->topology_key) && (values.size() > 1 || values.contains("")))
        wrong(fmt::format("not in one {}: {}", key, fmt::join(values, " ")));
  }

  void ask_further(const GroupQuestion& question, const std::vector<PodInfoPtr>& members) {
    const GroupVictims found = find_group_victims(trial_, question, world_.groups);
    std::vector<std::string> names;
    for (const PodInfoPtr& victim : found.victims) {
      names.push_back(victim->key);
      const std::string key = world_.groups.group_of(victim->view().meta.uid);
      const auto its = key.empty() ? nullptr : world_.groups.find(key);
      const std::int64_t priority = its != nullptr && its->goes_as_one ? its->priority : victim->view().priority;
      if (priority >= question.group->priority) wrong(victim->key + " is a victim of no lower priority");
    }
    text_ += fmt::format("  victims: {} {}{}{}\n", code_name(found.status.code), found.status.message(), fmt::join(names, " "),
                         found.budget_violations > 0 ? ", against a budget" : "");
    const GroupVictims plainly = find_group_victims_plainly(trial_, question, world_.groups);
    std::vector<std::string> others;
    for (const PodInfoPtr& victim : plainly.victims) others.push_back(victim->key);
    if (found.status.code != plainly.status.code || names != others)
      wrong(fmt::format("victims {}, plainly {}", fmt::join(names, " "), fmt::join(others, " ")));
    if (found.status.is_success()) {
      Trial fork = trial_.fork();
      for (const PodInfoPtr& victim : found.victims) (void)fork.evict(victim);
      if (decide_group(fork, question).outcome != GroupDecision::Outcome::kScheduled) wrong("the victims do not help");
      return;
    }
    const auto ends_at = [](const PodInfo& pod) -> std::optional<TimePoint> {
      if (pod.view().priority == 10) return std::nullopt;
      return TimePoint(std::chrono::hours(490'000)) + std::chrono::seconds(pod.start_time_ns / 1'000'000'000 % 100'000);
    };
    const auto room = plan_reservation(trial_, question, [&](const PodInfo& pod) {
      const auto at = ends_at(pod);
      return at;
    });
    if (!room) {
      text_ += "  no room ever\n";
      return;
    }
    text_ += fmt::format("  room{}{}, {} in the way:", room->domain.empty() ? "" : " in " + room->domain,
                         room->starts_at ? " by " + format_rfc3339(*room->starts_at) : "", room->in_the_way);
    for (const auto& [member, node] : room->places) text_ += fmt::format(" {}@{}", member, world_.cluster.node(node)->name);
    text_ += "\n";
    if (std::ssize(room->places) < question.group->min_count) wrong("room for too few");
    (void)members;
  }

  /// They have their places now, and run.
  void keep(const GroupQuestion& question, const std::vector<PodInfoPtr>& members) {
    const GroupDecision placed = place_group(trial_, question);
    if (placed.outcome != GroupDecision::Outcome::kScheduled) return wrong("what was decided cannot be done: " + placed.message);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const NodeIndex node = world_.cluster.pod_node(members[i]->key);
      if (node.is_valid() != placed.members[i].has_place()) wrong(members[i]->key + " is not where it was put");
    }
  }

  berth::testing::Dice dice_;
  std::uint64_t seed_;
  bool as_kubernetes_;
  GroupWorld world_;
  Trial trial_;
  std::string text_;
  int pods_ = 0, asked_ = 0, wrongs_ = 0;
};

/// The recorded life, and others, of which a digest is recorded. BERTH_SEEDS: so many are judged.
void play(const char* name, std::uint64_t first, bool as_kubernetes) {
  constexpr std::uint64_t kRecorded = 20;
  const char* seeds = std::getenv("BERTH_SEEDS");
  const std::uint64_t more = seeds != nullptr ? std::stoull(seeds) : kRecorded;
  std::string text = Gangs(first, as_kubernetes).run();
  for (std::uint64_t seed = 1; seed <= more && !::testing::Test::HasFailure(); ++seed) {
    const std::string other = Gangs(1000 * first + seed, as_kubernetes).run();
    if (seed <= kRecorded) text += berth::testing::line_of_life(name, 1000 * first + seed, other);
  }
  if (!::testing::Test::HasFailure() && more >= kRecorded)
    berth::testing::expect_life(fmt::format("tests/placement/lives/{}.txt", name), first, text);
}

TEST(PlacementLives, Gangs) { play("gangs", 11, false); }
TEST(PlacementLives, GangsAsKubernetes) { play("gangs_as_kubernetes", 12, true); }

}  // namespace
}  // namespace berth::placement::testing
