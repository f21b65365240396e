// `berth capacity` and `berth pack`: how much more fits, and with how little it would do (SPEC I2).
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command/parse.h"
#include "cli/planning/instance_types.h"
#include "cli/planning/placement_commands.h"
#include "cli/planning/pod_manifests.h"
#include "cli/planning/pool_documents.h"
#include "cli/planning/whatif_ask.h"

namespace berth::cli {
namespace {

int answer_question(json::Object question, const WhatIfFlags& flags) {
  auto present = read_present(flags);
  if (!present) return report(present.error());
  auto answer = present->ask(json::Value(std::move(question)));
  if (!answer) return report(answer.error());
  print_answer(*answer, flags);
  return 0;
}

}  // namespace

int run_capacity(const std::vector<std::string>& args) {
  CLI::App app(
      "How many more of a pod fit, where the scheduler would put them, and what stops the next one. Changes nothing.\n"
      "  berth capacity --pod pod.yaml\n"
      "  berth capacity --pod deployment.yaml --cluster dump.yaml -o json     # a workload: a pod of its template",
      "berth capacity");
  WhatIfFlags flags;
  std::string file;
  std::int64_t most = 0, gang = 0;
  std::string topology;
  app.add_option("--pod,--podspec,-f,--filename", file, "The pod, or a workload whose pod it is (the first of the file)")->required();
  app.add_option("--max-limit", most, "Stop at so many");
  app.add_option("--gang", gang, "How many gangs of so many such pods, each whole");
  app.add_option("--topology", topology, "With --gang: the node label in one of whose domains each gang is to be");
  flags.add_to(app, "--config,--scheduler-config", {"text", "json", "yaml"});
  if (const auto code = parse_args(app, args)) return *code;
  auto documents = read_pod_manifests({file});
  if (!documents) return report(documents.error());
  for (json::Value& document : *documents) {
    if (json::get_string(document, {"kind"}) != "Pod" && json::find(document, {"spec", "template"}) == nullptr) continue;
    json::Object request{{"pod", std::move(document)}};
    if (app.count("--max-limit") > 0) request["most"] = most;
    if (app.count("--gang") > 0) request["gang"] = gang;
    if (!topology.empty()) request["topology"] = topology;
    return answer_question({{"capacity", std::move(request)}}, flags);
  }
  return report(Error{ErrorCode::kInvalid, file + ": there is no Pod and no workload in it"});
}

int run_pack(const std::vector<std::string>& args) {
  CLI::App app(
      "The fewest nodes for what runs, and the order of safe evictions that gets there: budgets are honoured, and every pod that goes has "
      "a\n"
      "place. Changes nothing.\n"
      "  berth pack                                         # which of the nodes can go\n"
      "  berth pack --shape m5.4xlarge --shape cpu=64,memory=256Gi --prices prices.yaml    # the cheapest of these instead of what is "
      "there\n"
      "  berth pack --catalogue types.yaml                  # the cheapest mixture of instance types instead of what is there",
      "berth pack");
  WhatIfFlags flags;
  std::vector<std::string> shapes, pools;
  std::string check, catalogue;
  app.add_option("--check", check, "A saved plan (-o json): what has changed since, and whether it still holds; exit with 3 if not");
  app.add_option("--shape", shapes,
                 "New nodes of this shape instead of those that are there; several: the cheapest is taken (the fewest, without prices)")
      ->allow_extra_args(false);
  app.add_option("--catalogue,--instance-types", catalogue,
                 "New nodes in the cheapest mixture of the instance types of this file, on demand (docs/node-pools.md)");
  app.add_option("--node-pool", pools, "With --catalogue: files with NodePools that say which of them are allowed")
      ->allow_extra_args(false);
  flags.add_to(app, "--config,--scheduler-config", {"text", "json", "yaml", "html"});
  if (const auto code = parse_args(app, args)) return *code;
  if ((!shapes.empty() && !catalogue.empty()) || (!pools.empty() && catalogue.empty())) {
    std::fprintf(stderr, "error: --shape and --catalogue are two ways to say what is bought, and --node-pool goes with --catalogue\n");
    return 2;
  }
  if (!check.empty()) {
    if (shapes.empty() && catalogue.empty()) return check_answer(check, flags);
    std::fprintf(stderr, "error: --check asks what the saved plan was asked: no --shape and no --catalogue stands beside it\n");
    return 2;
  }
  json::Object request;
  json::Array list;
  for (const std::string& shape : shapes) list.emplace_back(shape);
  if (!list.empty()) request["shapes"] = std::move(list);
  if (!catalogue.empty()) {
    auto types = read_instance_types(catalogue);
    if (!types) return report(types.error());
    request["instanceTypes"] = std::move(*types);
    auto documents = read_pool_documents(pools);
    if (!documents) return report(documents.error());
    json::Array of;
    for (json::Value& one : *documents) of.push_back(std::move(one));
    if (!of.empty()) request["pools"] = std::move(of);
  }
  return answer_question({{"pack", std::move(request)}}, flags);
}

}  // namespace berth::cli
