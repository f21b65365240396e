#include "cli/dashboard_answers.h"

#include <fmt/format.h>

#include "autoscaler/advice.h"
#include "cli/placement_input.h"
#include "cli/scaling_view.h"
#include "cli/whatif_input.h"
#include "placement/explain.h"

namespace berth::cli {
namespace {

/// One pass of the autoscaler in thought; an error where nobody wants scaling.
Result<ScalingView> scaling_of_live(client::Client& client, const placement::Profiles& profiles) {
  auto documents = read_scaling_objects(client);
  if (!documents) return std::unexpected(documents.error());
  auto options = scaling_options_of(*documents);
  if (!options) return std::unexpected(options.error());
  return look_at_scaling(*documents, std::move(*options), profiles);
}

Result<json::Value> explain_live(const PlacementFlags& flags, const std::string& ns, const std::string& name) {
  auto session = Session::open(flags.connection);
  if (!session) return std::unexpected(session.error());
  const auto document = (*session)->client().get_and_wait({"", "v1", "pods"}, ns, name);
  if (!document) return fail(document.error().code == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable, document.error().message);
  const std::string scheduler(json::get_string(*document, {"spec", "schedulerName"}));
  auto input = read_placement_input(flags, scheduler.empty() ? "default-scheduler" : scheduler);
  if (!input) return std::unexpected(input.error());
  const auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(*document)), input->cluster.era());
  placement::ExplainOptions options;
  options.preemption.budgets_are_hard = input->budgets_are_hard;
  auto explanation = placement::explain(input->framework_for(*pod), input->cluster, pod, options);
  explanation.configuration = input->sources.find(input->profile_for(pod->view().scheduler_name))->second;
  json::Value out = placement::to_json(explanation);
  out.get_object()["text"] = placement::to_text(explanation, false);
  if (!pod->view().node_name.empty()) return out;
  const auto scaling = scaling_of_live((*session)->client(), input->profiles_for_all());
  out.get_object()["growth"] =
      scaling ? autoscaler::explain_growth(scaling->snapshot, scaling->actions, scaling->options, pod->key) : scaling.error().message;
  return out;
}

Result<json::Value> node_live(const PlacementFlags& flags, const std::string& name) {
  auto session = Session::open(flags.connection);
  if (!session) return std::unexpected(session.error());
  const auto input = read_placement_config(flags, read_known_schedulers((*session)->client()));
  if (!input) return std::unexpected(input.error());
  const auto scaling = scaling_of_live((*session)->client(), input->profiles_for_all());
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
  out.what_if = [flags](const json::Value& question) -> Result<json::Value> {
    WhatIfFlags wanted;
    wanted.placement = flags;
    auto present = read_present(wanted);
    if (!present) return std::unexpected(present.error());
    return present->ask(question);
  };
  out.node = [flags](const std::string& node) { return node_live(flags, node); };
  return out;
}

}  // namespace berth::cli
