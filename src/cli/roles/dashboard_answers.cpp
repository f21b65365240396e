#include "cli/roles/dashboard_answers.h"

#include <fmt/format.h>

#include "autoscaler/advice.h"
#include "cli/planning/placement_input.h"
#include "cli/planning/scaling_view.h"
#include "cli/planning/whatif_input.h"
#include "placement/explain.h"

namespace berth::cli {
namespace {

/// One pass of the autoscaler in thought; an error where nobody wants scaling, or where the server gives not all (`refused`).
Result<ScalingView> scaling_of_live(client::Client& client, const placement::Profiles& profiles,
                                    std::optional<model::ApiStatus>* refused = nullptr) {
  auto documents = read_scaling_objects(client, refused);
  if (!documents) return std::unexpected(documents.error());
  auto options = scaling_options_of(*documents);
  if (!options) return std::unexpected(options.error());
  return look_at_scaling(*documents, std::move(*options), profiles);
}

using dashboard::Answer;
using dashboard::Failure;

/// The cluster's own words, where it was the cluster.
Failure failure_of(const Error& error, const std::optional<model::ApiStatus>& refused) {
  return refused ? Failure(*refused) : Failure(error);
}

void add_notes(json::Value& explanation, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  json::Array notes;
  for (const std::string& sentence : sentences) notes.emplace_back(sentence);
  for (const json::Value& known : json::get_array(explanation, {"notes"})) notes.push_back(known);
  explanation.get_object()["notes"] = std::move(notes);
}

Answer explain_live(const PlacementFlags& flags, const std::string& ns, const std::string& name) {
  auto session = Session::open(flags.connection);
  if (!session) return std::unexpected(session.error());
  const auto document = (*session)->client().get_and_wait({"", "v1", "pods"}, ns, name);
  if (!document) return std::unexpected(Failure(document.error()));
  const std::string scheduler(json::get_string(*document, {"spec", "schedulerName"}));
  std::optional<model::ApiStatus> refused;
  auto input = read_placement_input(flags, scheduler.empty() ? "default-scheduler" : scheduler, &refused);
  if (!input) return std::unexpected(failure_of(input.error(), refused));
  const auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(*document)), input->cluster.era());
  placement::ExplainOptions options;
  options.preemption.budgets_are_hard = input->budgets_are_hard;
  auto explanation = placement::explain(input->framework_for(*pod), input->cluster, pod, options);
  explanation.configuration = input->sources.find(input->profile_for(pod->view().scheduler_name))->second;
  json::Value out = placement::to_json(explanation);
  out.get_object()["text"] = placement::to_text(explanation, false);
  add_notes(out, input->unread);
  if (!pod->view().node_name.empty()) return out;
  const auto scaling = scaling_of_live((*session)->client(), input->profiles_for_all());
  out.get_object()["growth"] =
      scaling ? autoscaler::explain_growth(scaling->snapshot, scaling->actions, scaling->options, pod->key) : scaling.error().message;
  return out;
}

Answer node_live(const PlacementFlags& flags, const std::string& name) {
  auto session = Session::open(flags.connection);
  if (!session) return std::unexpected(session.error());
  // Who may not see the node is told of nothing that is worked out of it.
  if (const auto node = (*session)->client().get_and_wait({"", "v1", "nodes"}, "", name); !node)
    return std::unexpected(Failure(node.error()));
  const auto input = read_placement_config(flags, read_known_schedulers((*session)->client()));
  if (!input) return std::unexpected(input.error());
  std::optional<model::ApiStatus> refused;
  const auto scaling = scaling_of_live((*session)->client(), input->profiles_for_all(), &refused);
  if (refused) return std::unexpected(Failure(*refused));
  if (!scaling) return json::Value(json::Object{{"text", scaling.error().message}});
  const std::string text = autoscaler::explain_node(scaling->snapshot, scaling->actions, name, scaling->patience);
  if (text.empty()) return fail(ErrorCode::kNotFound, fmt::format("nodes \"{}\" not found", name));
  return json::Value(json::Object{{"text", text}});
}

}  // namespace

dashboard::Answers dashboard_answers(const ConnectionFlags& connection) {
  PlacementFlags flags;
  flags.connection = connection;
  flags.connection.ns.clear();
  dashboard::Answers out;
  out.explain = [flags](const std::string& ns, const std::string& pod) { return explain_live(flags, ns, pod); };
  out.what_if = [flags](const json::Value& question) -> Answer {
    WhatIfFlags wanted;
    wanted.placement = flags;
    std::optional<model::ApiStatus> refused;
    auto present = read_present(wanted, &refused);
    if (!present) return std::unexpected(failure_of(present.error(), refused));
    auto answer = present->ask(question);
    if (!answer) return std::unexpected(Failure(answer.error()));
    return std::move(*answer);
  };
  out.node = [flags](const std::string& node) { return node_live(flags, node); };
  return out;
}

}  // namespace berth::cli
