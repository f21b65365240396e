// `berth place`: where would these pods go, one after the other, and those of a gang together (SPEC I2).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/command/keep_to_the_end.h"
#include "cli/command/parse.h"
#include "cli/planning/group_input.h"
#include "cli/planning/placement_commands.h"
#include "cli/planning/placement_input.h"
#include "cli/planning/pod_manifests.h"
#include "placement/groups/group_placement.h"
#include "placement/trial.h"

namespace berth::cli {
namespace {

using placement::PodInfoPtr;

struct Placed {
  std::string pod, node, reason;  ///< reason: also why the node would refuse it.
  std::size_t tied = 0;
  std::string group;  ///< Of a member: its PodGroup's key.
};

/// What is decided at once: a pod, or all of a group.
struct Unit {
  std::vector<PodInfoPtr> pods;
  std::string group;  ///< Key; empty: none.
  [[nodiscard]] Unit copy(std::int64_t round, placement::Era era) const {
    Unit out{{}, group};
    for (const PodInfoPtr& pod : pods) {
      auto view = std::make_shared<model::PodView>(pod->view());
      view->meta.name += fmt::format("-{}", round);
      view->meta.uid += fmt::format("-{}", round);
      out.pods.push_back(placement::PodInfo::make(std::move(view), era));
    }
    return out;
  }
};

/// One group as it was decided.
struct PlacedGroup {
  std::string group, words;
  bool is_placed = false;
};

/// Places pods in the queue's order and keeps each where it went.
class Planner {
 public:
  Planner(PlacementInput& input, const placement::PodGroups& groups, std::uint64_t seed, bool first_by_name)
      : input_(input),
        groups_(groups),
        trial_(input.cluster, input.profiles_for_all(),
               {.engine = {.tie_break = first_by_name ? placement::EngineOptions::TieBreak::kFirstByName
                                                      : placement::EngineOptions::TieBreak::kRandom,
                           .seed = seed},
                .preemption = {}}) {}

  /// Of a copy none that stand count.
  std::vector<Placed> place(const Unit& unit, bool is_copy) {
    if (unit.group.empty()) return {place(unit.pods.front())};
    std::vector<Placed> out;
    for (const PodInfoPtr& pod : unit.pods) out.push_back({pod->key, {}, {}, 0, unit.group});
    const std::string why = place_together(unit, is_copy, out);
    const auto placed = std::ranges::count_if(out, [](const Placed& one) { return !one.node.empty(); });
    for (Placed& one : out)
      if (one.node.empty() && one.reason.empty()) one.reason = why;
    told_.push_back({unit.group,
                     placed > 0 ? fmt::format("{} of {} pods placed, together", placed, out.size())
                                : fmt::format("none of {} pods placed: {}", out.size(), why),
                     placed > 0});
    return out;
  }
  [[nodiscard]] const std::vector<PlacedGroup>& groups() const { return told_; }

 private:
  /// Why none is placed, or not all; empty: all are.
  std::string place_together(const Unit& unit, bool is_copy, std::vector<Placed>& out) {
    const placement::PodGroupPtr group = groups_.find(unit.group);
    if (group == nullptr) return "its PodGroup is not there, and none of its pods is tried before";
    for (const PodInfoPtr& pod : unit.pods) (void)input_.framework_for(*pod);
    placement::GroupQuestion question{.group = group.get(), .members = unit.pods, .standing = {}};
    if (!is_copy) question.standing = placement::standing_of(groups_, input_.cluster, unit.group);
    const auto there = static_cast<std::int64_t>(question.standing.size() + unit.pods.size());
    if (there < group->min_count)
      return fmt::format("it has {} of the {} pods that it needs (minCount), and none is tried before", there, group->min_count);
    for (const PodInfoPtr& pod : unit.pods)
      if (const placement::Status gate = trial_.admits(*pod); !gate.is_success()) return fmt::format("{}: {}", pod->key, gate.message());
    const placement::GroupDecision decision = placement::place_group(trial_, question);
    for (std::size_t i = 0; i < decision.members.size(); ++i) {
      const placement::Decision& mine = decision.members[i].decision;
      if (decision.outcome == placement::GroupDecision::Outcome::kScheduled && decision.members[i].has_place())
        out[i].node = input_.cluster.node(mine.node)->name, out[i].tied = mine.tied_nodes;
      else if (mine.diagnosis != nullptr)
        out[i].reason = placement::fit_error_message(*mine.diagnosis, input_.cluster.era(), "");
    }
    if (decision.outcome == placement::GroupDecision::Outcome::kScheduled) return {};
    const auto stopped = std::ranges::find_if(out, [](const Placed& one) { return !one.reason.empty(); });
    return stopped == out.end() ? decision.message : fmt::format("{} stops it: {}", stopped->pod, stopped->reason);
  }

  Placed place(const PodInfoPtr& pod) {
    Placed out{pod->key, {}, {}, 0, {}};
    (void)input_.framework_for(*pod);  // Says so when it is not the one that the pod asks for.
    const placement::Placement placement = trial_.place(pod);
    if (placement.is_placed()) {
      out.node = input_.cluster.node(placement.node)->name;
      out.tied = placement.decision.tied_nodes;
      out.reason = placement.would_refuse;
    } else {
      out.reason = placement.status.message();
    }
    return out;
  }

  PlacementInput& input_;
  const placement::PodGroups& groups_;
  placement::Trial trial_;
  std::vector<PlacedGroup> told_;
};

void print_text(const std::vector<Placed>& all, const std::vector<PlacedGroup>& groups, bool is_summary) {
  if (!is_summary) {
    std::size_t width = 3;
    for (const auto& one : all) width = std::max(width, one.pod.size());
    fmt::print("{:<{}}  NODE\n", "POD", width);
    for (const auto& one : all)
      fmt::print("{:<{}}  {}\n", one.pod, width,
                 one.node.empty()     ? "<none> " + one.reason
                 : one.reason.empty() ? one.node
                                      : fmt::format("{} ({})", one.node, one.reason));
    fmt::print("\n");
  }
  std::map<std::string, std::size_t> reasons;
  const auto placed = std::ranges::count_if(all, [](const auto& one) { return !one.node.empty(); });
  for (const auto& one : all)
    if (one.node.empty() && one.group.empty()) ++reasons[one.reason];
  fmt::print("{} of {} pods placed\n", placed, all.size());
  for (const PlacedGroup& one : groups) fmt::print("{}: {}\n", one.group, one.words);
  for (const auto& [reason, count] : reasons) fmt::print("{} not: {}\n", count, reason);
}

}  // namespace

// Longer than a screen: flags, what is wrong with them, then the question and its answer in both forms.
int run_place(const std::vector<std::string>& args) {
  CLI::App app(
      "Answers where pods would go, without touching the cluster: each pod counts as running for those after it. Pods of a "
      "gang (a PodGroup, or an Indexed Job with as many pods at once as completions) are placed together or not at all.\n"
      "  berth place --cluster cluster.yaml --pods deployment.yaml\n"
      "  berth place --pods pod.yaml --until-full      # how many more of it fit",
      "berth place");
  PlacementFlags flags;
  flags.add_to(app);
  std::vector<std::string> files;
  std::string output = "text";
  std::int64_t copies = 1;
  std::uint64_t seed = 0;
  bool until_full = false, pending_too = false, in_file_order = false, at_random = false;
  app.add_option("--pods", files, "Manifests: Pods, or workloads with their replicas");
  app.add_option("--copies", copies, "Each pod this many times")->check(CLI::Range(1, 1'000'000));
  app.add_flag("--until-full", until_full, "Go on with copies until one does not fit");
  app.add_flag("--pending", pending_too, "Also the pending pods of the cluster's dump");
  app.add_flag("--in-order", in_file_order, "In the order given instead of by priority");
  app.add_flag("--random-ties", at_random, "Choose among equal nodes at random instead of by name");
  app.add_option("--seed", seed, "For --random-ties");
  app.add_option("-o,--output", output, "text, summary or json")->check(CLI::IsMember({"text", "summary", "json", "wide"}));
  if (const auto code = parse_args(app, args)) return *code;
  if (files.empty() && !pending_too) {
    std::fprintf(stderr, "error: say which pods: --pods FILE, or --pending\n");
    return 2;
  }
  auto documents = read_pod_manifests(files);
  if (!documents) return report(documents.error());
  std::string scheduler;
  for (const auto& document : *documents)
    for (const auto& pod : pods_of(document))
      if (scheduler.empty()) scheduler = json::get_string(pod, {"spec", "schedulerName"}, "default-scheduler");
  auto read = read_placement_input(flags, scheduler);
  if (!read) return report(read.error());
  PlacementInput* const input = &keep_to_the_end(std::move(*read));
  warn_of_ignored(*input);
  tell_notes(*input);

  GroupInput groups(input->cluster.era());
  for (const json::Value& object : input->grouped) groups.add(object);
  std::vector<Unit> units;
  const auto add = [&](json::Value document, std::string group) {
    const json::Value pod = complete_pod(std::move(document), input->cluster, flags.connection.ns);
    if (group.empty()) group = model::pod_group_key(pod);
    auto info = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), input->cluster.era());
    const auto unit = group.empty() ? units.end() : std::ranges::find(units, group, &Unit::group);
    if (unit != units.end())
      unit->pods.push_back(std::move(info));
    else
      units.push_back({{std::move(info)}, std::move(group)});
  };
  if (pending_too)
    for (const auto& object : input->objects)
      if (json::get_string(object, {"kind"}) == "Pod" && json::get_string(object, {"spec", "nodeName"}).empty() &&
          !json::get_string(object, {"metadata", "name"}).empty())
        add(object, {});
  for (const auto& document : *documents) {
    json::Value group = json::get_string(document, {"kind"}) == "PodGroup" ? document : group_of_job(document);
    std::string of_job;
    if (!group.is_null()) {
      if (json::get_string(group, {"metadata", "namespace"}).empty())
        json::set(group, {"metadata", "namespace"}, json::Value(flags.connection.ns.empty() ? "default" : flags.connection.ns));
      if (json::get_string(document, {"kind"}) == "Job") of_job = placement::PodGroup::parse(group).key();
      groups.add(group);
    }
    for (auto& pod : pods_of(document)) add(std::move(pod), of_job);
  }
  if (units.empty()) return report(Error{ErrorCode::kInvalid, "no pods to place"});
  std::vector<std::string> classes;
  for (const Unit& unit : units)
    for (const auto& pod : unit.pods) classes.push_back(pod->view().priority_class_name);
  tell_unknown_priorities(classes, input->cluster);
  const auto by_priority = [](const auto& pod) { return pod->view().priority; };
  for (Unit& unit : units) std::ranges::stable_sort(unit.pods, std::greater{}, by_priority);
  if (!in_file_order) std::ranges::stable_sort(units, std::greater{}, [&](const Unit& unit) { return by_priority(unit.pods.front()); });

  Planner planner(*input, groups.groups(), seed, !at_random);
  std::vector<Placed> all;
  constexpr std::int64_t kMaxCopies = 10'000'000;
  const std::int64_t rounds = until_full ? kMaxCopies : copies;
  bool is_full = false;
  for (std::int64_t round = 0; round < rounds && !is_full; ++round) {
    for (const Unit& unit : units)
      for (Placed& one : planner.place(rounds > 1 ? unit.copy(round, input->cluster.era()) : unit, rounds > 1)) {
        is_full |= until_full && one.node.empty();
        all.push_back(std::move(one));
      }
  }
  if (output == "json") {
    json::Array list;
    for (const auto& one : all) {
      json::Object entry = {{"pod", one.pod}};
      if (!one.group.empty()) entry["group"] = one.group;
      if (one.node.empty()) {
        entry["reason"] = one.reason;
      } else {
        entry["node"] = one.node;
        if (!one.reason.empty()) entry["wouldRefuse"] = one.reason;
        entry["equallyGoodNodes"] = one.tied;
      }
      list.push_back(std::move(entry));
    }
    json::Object document{{"placements", std::move(list)}};
    json::Array decided;
    for (const PlacedGroup& one : planner.groups())
      decided.push_back(json::Object{{"group", one.group}, {"placed", one.is_placed}, {"words", one.words}});
    if (!decided.empty()) document["groups"] = std::move(decided);
    const std::string text = json::serialize_pretty(document);
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    print_text(all, planner.groups(), output == "summary" || until_full);
    std::printf("By the configuration of %s.\n", configuration_words(*input, scheduler).c_str());
  }
  const bool all_placed = std::ranges::all_of(all, [](const auto& one) { return !one.node.empty(); });
  return all_placed || until_full ? 0 : 1;
}

}  // namespace berth::cli
