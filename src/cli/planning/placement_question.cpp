#include "cli/planning/placement_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>

#include "client/client.h"
#include "model/views/pod_facts.h"
#include "placement/explain.h"
#include "placement/groups/group_explain.h"

namespace berth::cli {
namespace {

constexpr std::array<std::string_view, 4> kOutputs = {"text", "wide", "json", "page"};

/// Of a pod that waits with its group: a node that fits the pod alone is not all that it needs. Empty for others.
std::string words_of_group(const json::Value& pod) {
  const std::string_view group = json::get_string(pod, {"spec", "schedulingGroup", "podGroupName"});
  if (group.empty() || !json::get_string(pod, {"spec", "nodeName"}).empty()) return {};
  return fmt::format(
      "It is one of the PodGroup {}, and this answer is about the pod alone: the scheduler places enough pods of a gang at once, or none, "
      "and tries none of them before the group and its minCount of pods are there.",
      group);
}

/// What its PodScheduled condition says against the verdict, or nothing.
std::string contradiction_of(const json::Value& pod, const placement::Explanation& explanation) {
  if (explanation.verdict != placement::Explanation::Verdict::kFits) return {};
  if (std::string group = words_of_group(pod); !group.empty()) return group;
  for (const json::Value& condition : json::get_array(pod, {"status", "conditions"})) {
    if (json::get_string(condition, {"type"}) != "PodScheduled" || json::get_string(condition, {"status"}) != "False") continue;
    return fmt::format(
        "The scheduler says otherwise: PodScheduled is False ({}) since {}: {}\nOne of the two is not up to date: the cluster changed and "
        "the "
        "scheduler has not tried again yet, or no scheduler named {} runs, or it runs by another configuration than this answer "
        "(--config FILE answers by the one you give).",
        json::get_string(condition, {"reason"}), json::get_string(condition, {"lastTransitionTime"}),
        json::get_string(condition, {"message"}), explanation.scheduler);
  }
  return {};
}

/// For a page: the nodes that matter most come first, and a browser is sent no more of them than somebody may look through.
json::Value page_of(placement::Explanation explanation) {
  constexpr std::size_t kMostNodes = 2000;
  const std::string text = placement::to_text(explanation, false);
  if (const std::size_t all = explanation.nodes.size(); all > kMostNodes) {
    explanation.nodes.resize(kMostNodes);
    explanation.notes.push_back(fmt::format("of {} nodes the first {} are shown; `berth explain pod -o wide` shows all", all, kMostNodes));
  }
  json::Value out = placement::to_json(explanation);
  json::set(out, {"text"}, json::Value(text));
  return out;
}

std::string rendered(const placement::Explanation& explanation, const placement::GroupExplanation* group, const std::string& output) {
  if (output == "text" || output == "wide") {
    std::string text = placement::to_text(explanation, output == "wide");
    if (group) text += "\n" + placement::to_text(*group);
    return text;
  }
  json::Value document = output == "page" ? page_of(explanation) : placement::to_json(explanation);
  if (group) json::set(document, {"group"}, placement::to_json(*group));
  return output == "page" ? json::serialize(document) : json::serialize_pretty(document);
}

}  // namespace

std::string PlacementQuestion::body() const {
  json::Object out{{"output", output}, {"hardBudgets", budgets_are_hard}};
  if (group.empty())
    out["pod"] = pod;
  else
    out["podGroup"] = group;
  return json::serialize(out);
}

Result<PlacementQuestion> PlacementQuestion::parse(std::string_view body) {
  auto document = json::parse(body);
  if (!document) return std::unexpected(document.error());
  json::Value* const pod = json::find(*document, {"pod"});
  const std::string group(json::get_string(*document, {"podGroup"}));
  if (pod != nullptr ? !group.empty() : group.empty()) return invalid("one of pod and podGroup is wanted");
  if (pod != nullptr && json::get_string(*pod, {"metadata", "name"}).empty()) return invalid("pod: a whole pod with a name is wanted");
  PlacementQuestion out;
  out.output = json::get_string(*document, {"output"}, "text");
  if (std::ranges::find(kOutputs, out.output) == kOutputs.end())
    return invalid(fmt::format("output: \"{}\" is none of text, wide, json and page", out.output));
  out.budgets_are_hard = json::get_bool(*document, {"hardBudgets"});
  out.group = group;
  if (pod != nullptr) out.pod = std::move(*pod);
  return out;
}

std::string answer_of(const PlacementQuestion& question, const std::shared_ptr<const placement::Framework>& framework,
                      const placement::Cluster& cluster, const std::string& configuration, const placement::GroupExplanation* group) {
  const auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(question.pod)), cluster.era());
  placement::ExplainOptions options;
  options.preemption.budgets_are_hard = question.budgets_are_hard;
  auto explanation = placement::explain(framework, cluster, pod, options);
  explanation.configuration = configuration;
  explanation.contradiction = contradiction_of(question.pod, explanation);
  return rendered(explanation, group, question.output);
}

std::string answer_of(const placement::GroupExplanation& group, const std::string& output, const std::string& configuration) {
  if (output == "json") return json::serialize_pretty(placement::to_json(group));
  return fmt::format("{}\nBy the configuration of {}.\n", placement::to_text(group), configuration);
}

std::optional<std::string> ask_running_scheduler(client::Client& client, const PlacementQuestion& question) {
  net::HttpRequest request;
  request.method = "POST";
  request.path = kQuestionPath;
  request.headers.add("Content-Type", "application/json");
  request.body = question.body();
  std::promise<net::HttpResponse> answered;
  client.transport()->send(std::move(request), [&](net::HttpResponse response) { answered.set_value(std::move(response)); });
  net::HttpResponse response = answered.get_future().get();
  if (response.status != 200) return std::nullopt;
  return std::move(response.body);
}

}  // namespace berth::cli
