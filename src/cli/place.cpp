// `berth place`: where would these pods go, one after the other (SPEC I2).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/parse.h"
#include "cli/placement_commands.h"
#include "cli/placement_input.h"
#include "placement/trial.h"

namespace berth::cli {
namespace {

using placement::PodInfoPtr;

struct Placed {
  std::string pod, node, reason;
  std::size_t tied = 0;
};

/// Places pods in the queue's order and keeps each where it went.
class Planner {
 public:
  Planner(PlacementInput& input, std::uint64_t seed, bool first_by_name)
      : input_(input),
        trial_(input.cluster, input.profiles_for_all(),
               {.engine = {.tie_break = first_by_name ? placement::EngineOptions::TieBreak::kFirstByName
                                                      : placement::EngineOptions::TieBreak::kRandom,
                           .seed = seed},
                .preemption = {}}) {}

  Placed place(const PodInfoPtr& pod) {
    Placed out{pod->key, {}, {}, 0};
    (void)input_.framework_for(*pod);  // Says so when it is not the one that the pod asks for.
    const placement::Placement placement = trial_.place(pod);
    if (placement.is_placed()) {
      out.node = input_.cluster.node(placement.node)->name;
      out.tied = placement.decision.tied_nodes;
    } else {
      out.reason = placement.status.message();
    }
    return out;
  }

 private:
  PlacementInput& input_;
  placement::Trial trial_;
};

void print_text(const std::vector<Placed>& all, bool is_summary) {
  if (!is_summary) {
    std::size_t width = 3;
    for (const auto& one : all) width = std::max(width, one.pod.size());
    fmt::print("{:<{}}  NODE\n", "POD", width);
    for (const auto& one : all) fmt::print("{:<{}}  {}\n", one.pod, width, one.node.empty() ? "<none> " + one.reason : one.node);
    fmt::print("\n");
  }
  std::map<std::string, std::size_t> reasons;
  const auto placed = std::ranges::count_if(all, [](const auto& one) { return !one.node.empty(); });
  for (const auto& one : all)
    if (one.node.empty()) ++reasons[one.reason];
  fmt::print("{} of {} pods placed\n", placed, all.size());
  for (const auto& [reason, count] : reasons) fmt::print("{} not: {}\n", count, reason);
}

}  // namespace

// Longer than a screen: flags, what is wrong with them, then the question and its answer in both forms.
int run_place(const std::vector<std::string>& args) {
  CLI::App app(
      "Answers where pods would go, without touching the cluster: each pod counts as running for those after it.\n"
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
  auto documents = read_objects(files);
  if (!documents) return report(documents.error());
  std::string scheduler;
  for (const auto& document : *documents)
    for (const auto& pod : pods_of(document))
      if (scheduler.empty()) scheduler = json::get_string(pod, {"spec", "schedulerName"}, "default-scheduler");
  auto input = read_placement_input(flags, scheduler);
  if (!input) return report(input.error());
  warn_of_ignored(*input);
  tell_notes(*input);

  std::vector<PodInfoPtr> pods;
  const auto add = [&](json::Value document) {
    const json::Value pod = complete_pod(std::move(document), input->cluster, flags.connection.ns);
    pods.push_back(placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), input->cluster.era()));
  };
  if (pending_too)
    for (const auto& object : input->objects)
      if (json::get_string(object, {"kind"}) == "Pod" && json::get_string(object, {"spec", "nodeName"}).empty() &&
          !json::get_string(object, {"metadata", "name"}).empty())
        add(object);
  for (const auto& document : *documents)
    for (auto& pod : pods_of(document)) add(std::move(pod));
  if (pods.empty()) return report(Error{ErrorCode::kInvalid, "no pods to place"});
  if (!in_file_order) std::ranges::stable_sort(pods, std::greater{}, [](const auto& pod) { return pod->view().priority; });

  Planner planner(*input, seed, !at_random);
  std::vector<Placed> all;
  constexpr std::int64_t kMaxCopies = 10'000'000;
  const std::int64_t rounds = until_full ? kMaxCopies : copies;
  bool is_full = false;
  for (std::int64_t round = 0; round < rounds && !is_full; ++round) {
    for (const auto& pod : pods) {
      PodInfoPtr copy = pod;
      if (rounds > 1) {
        auto view = std::make_shared<model::PodView>(pod->view());
        view->meta.name += fmt::format("-{}", round);
        view->meta.uid += fmt::format("-{}", round);
        copy = placement::PodInfo::make(std::move(view), input->cluster.era());
      }
      all.push_back(planner.place(copy));
      is_full |= until_full && all.back().node.empty();
    }
  }
  if (output == "json") {
    json::Array list;
    for (const auto& one : all) {
      json::Object entry = {{"pod", one.pod}};
      if (one.node.empty()) {
        entry["reason"] = one.reason;
      } else {
        entry["node"] = one.node;
        entry["equallyGoodNodes"] = one.tied;
      }
      list.push_back(std::move(entry));
    }
    const std::string text = json::serialize_pretty(json::Object{{"placements", std::move(list)}});
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    print_text(all, output == "summary" || until_full);
    std::printf("By the configuration of %s.\n", configuration_words(*input, scheduler).c_str());
  }
  const bool all_placed = std::ranges::all_of(all, [](const auto& one) { return !one.node.empty(); });
  return all_placed || until_full ? 0 : 1;
}

}  // namespace berth::cli
