#include "cli/roles/dashboard_answers.h"

#include <fmt/format.h>

#include "autoscaler/advice.h"
#include "cli/planning/placement_input.h"
#include "cli/planning/placement_question.h"
#include "cli/planning/scaling_view.h"
#include "cli/planning/whatif_input.h"

namespace berth::cli {
namespace {

/// One pass of the autoscaler in thought; an error where nobody wants scaling, or where the server gives not all (`refused`).
Result<ScalingView> scaling_of_live(client::Client& client, const placement::Profiles& profiles,
                                    std::optional<model::ApiStatus>* refused = nullptr) {
  if (const auto scaled = is_scaled(client); scaled && !*scaled) return std::unexpected(scaling_options_of({}).error());
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

/// By the scheduler that runs in the server's process, or by the whole cluster, read for this.
Answer explain_live(const PlacementFlags& flags, const std::string& ns, const std::string& name) {
  auto session = Session::open(flags.connection);
  if (!session) return std::unexpected(session.error());
  client::Client& client = (*session)->client();
  auto document = client.get_and_wait({"", "v1", "pods"}, ns, name);
  if (!document) return std::unexpected(Failure(document.error()));
  const bool waits = json::get_string(*document, {"spec", "nodeName"}).empty();
  const std::string scheduler(json::get_string(*document, {"spec", "schedulerName"}, "default-scheduler"));
  PlacementQuestion question{std::move(*document), "page", false};
  std::optional<std::string> text = ask_running_scheduler(client, question);
  std::optional<model::ApiStatus> refused;
  auto input =
      text ? read_placement_config(flags, read_known_schedulers(client), scheduler) : read_placement_input(flags, scheduler, &refused);
  if (!input) return std::unexpected(failure_of(input.error(), refused));
  if (!text) {
    const std::string profile = input->profile_for(scheduler);
    question.budgets_are_hard = input->budgets_are_hard;
    text = answer_of(question, input->profiles.find(profile), input->cluster, input->sources.find(profile)->second);
  }
  auto out = json::parse(*text);
  if (!out) return std::unexpected(out.error());
  add_notes(*out, input->unread);
  if (!waits) return std::move(*out);
  const auto scaling = scaling_of_live(client, input->profiles_for_all());
  out->get_object()["growth"] = scaling ? autoscaler::explain_growth(scaling->snapshot, scaling->actions, scaling->options, ns + "/" + name)
                                        : scaling.error().message;
  return std::move(*out);
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
