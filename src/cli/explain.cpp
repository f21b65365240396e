// `berth explain`: why a pod is where it is, or why it is pending (SPEC I3).
#include "placement/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>

#include "autoscaler/advice.h"
#include "cli/parse.h"
#include "cli/placement_commands.h"
#include "cli/placement_input.h"
#include "cli/scaling_view.h"

namespace berth::cli {
namespace {

using placement::PodInfoPtr;

/// "web" or "prod/web"; without a namespace the only pod of that name anywhere.
std::vector<PodInfoPtr> find_pods(const PlacementInput& input, const std::vector<json::Value>& pending, const std::string& name,
                                  const std::string& ns) {
  std::vector<PodInfoPtr> out;
  const auto matches = [&](const PodInfoPtr& pod) { return pod->view().name() == name && (ns.empty() || pod->view().ns() == ns); };
  for (const placement::NodeInfo* node : input.cluster.nodes())
    for (const auto& pod : node->pods)
      if (matches(pod)) out.push_back(pod);
  for (const auto& document : pending) {
    auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), input.cluster.era());
    if (matches(pod) && std::ranges::none_of(out, [&](const auto& other) { return other->key == pod->key; })) out.push_back(std::move(pod));
  }
  return out;
}

void print(const placement::Explanation& explanation, const std::string& output) {
  const std::string text =
      output == "json" ? json::serialize_pretty(placement::to_json(explanation)) : placement::to_text(explanation, output == "wide");
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// What the autoscaler would say: nothing where nobody wants scaling.
std::optional<ScalingView> scaling_of(const PlacementFlags& flags, const PlacementInput& input) {
  std::vector<json::Value> documents = input.objects;
  if (flags.cluster_files.empty()) {
    auto session = Session::open(flags.connection);
    auto live = session ? read_scaling_objects((*session)->client()) : Result<std::vector<json::Value>>(std::unexpected(session.error()));
    if (!live) {
      std::fprintf(stderr, "note: what the autoscaler would do is not known: %s\n", live.error().message.c_str());
      return std::nullopt;
    }
    documents = std::move(*live);
  }
  auto options = scaling_options_of(documents);
  if (!options) return std::nullopt;
  return look_at_scaling(documents, std::move(*options), input.profiles);
}

int explain_nodes(const PlacementFlags& flags, const PlacementInput& input, const std::string& name) {
  const auto scaling = scaling_of(flags, input);
  if (!scaling) return report(Error{ErrorCode::kNotFound, "there is no ClusterAutoscaler: nobody wants nodes to go"});
  const std::string words = autoscaler::explain_node(scaling->snapshot, scaling->actions, name);
  if (words.empty()) return report(Error{ErrorCode::kNotFound, fmt::format("nodes \"{}\" not found", name)});
  std::fwrite(words.data(), 1, words.size(), stdout);
  return 0;
}

}  // namespace

int run_explain(const std::vector<std::string>& args) {
  CLI::App app(
      "Explains why a pod is where it is, or why it is pending: node by node, plugin by plugin, the smallest change that would place it, and "
      "why each group of nodes does not grow for it. Explains why the autoscaler keeps a node, and what would free it.\n"
      "  berth explain pod web -n prod\n"
      "  berth explain node worker-3\n"
      "  berth explain --cluster nodes.yaml --cluster pods.json --pod web.yaml",
      "berth explain");
  PlacementFlags flags;
  flags.add_to(app);
  std::vector<std::string> words, pod_files;
  std::string output = "text";
  bool budgets_are_hard = false;
  app.add_option("args", words, "pod NAME, pod/NAME, or node NAME");
  app.add_option("--pod", pod_files, "A manifest with the pod (or the workload whose pod it is)");
  app.add_option("-o,--output", output, "text, wide or json")->check(CLI::IsMember({"text", "wide", "json"}));
  app.add_flag("--hard-budgets", budgets_are_hard, "Never plan an eviction that breaks a PodDisruptionBudget");
  if (const auto code = parse_args(app, args)) return *code;

  // `--cluster FILE… pod NAME`: the option takes all words that follow it.
  auto& files = flags.cluster_files;
  const auto is_pod_word = [](const std::string& word) { return word == "pod" || word == "pods" || word == "po"; };
  const auto is_node_word = [](const std::string& word) { return word == "node" || word == "nodes" || word == "no"; };
  const auto is_kind = [&](const std::string& word) { return is_pod_word(word) || is_node_word(word); };
  if (words.empty() && pod_files.empty() && files.size() > 2 && is_kind(files[files.size() - 2])) {
    words.assign(files.end() - 2, files.end());
    files.resize(files.size() - 2);
  }

  if (words.size() == 1 && words[0].starts_with("node/")) words = {"node", words[0].substr(5)};
  if (words.size() == 2 && is_node_word(words[0])) {
    auto input = read_placement_input(flags);
    if (!input) return report(input.error());
    return explain_nodes(flags, *input, words[1]);
  }

  std::string name;
  if (words.size() == 2 && is_pod_word(words[0])) name = words[1];
  if (words.size() == 1) name = words[0].substr(words[0].find('/') == std::string::npos ? 0 : words[0].find('/') + 1);
  if (name.empty() == pod_files.empty()) {
    std::fprintf(stderr, "error: say what: `berth explain pod NAME`, `berth explain node NAME` or `berth explain --pod FILE`\n");
    return 2;
  }
  auto input = read_placement_input(flags);
  if (!input) return report(input.error());
  warn_of_ignored(*input);

  std::vector<PodInfoPtr> pods;
  if (!pod_files.empty()) {
    auto documents = read_objects(pod_files);
    if (!documents) return report(documents.error());
    for (const auto& document : *documents) {
      auto all = pods_of(document);
      if (all.empty()) continue;
      const json::Value pod = complete_pod(std::move(all[0]), input->cluster, flags.connection.ns);
      pods.push_back(placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), input->cluster.era()));
    }
    if (pods.empty()) return report(Error{ErrorCode::kInvalid, "no pod in " + pod_files[0]});
  } else {
    std::vector<json::Value> pending;
    if (flags.cluster_files.empty()) {
      auto session = Session::open(flags.connection);
      if (!session) return report(session.error());
      auto pod = (*session)->client().get_and_wait({"", "v1", "pods"}, (*session)->ns(), name);
      if (!pod) return report(pod.error());
      pods.push_back(placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(*pod)), input->cluster.era()));
    } else {
      for (const auto& object : input->objects)
        if (json::get_string(object, {"kind"}) == "Pod") pending.push_back(object);
      pods = find_pods(*input, pending, name, flags.connection.ns);
      if (pods.empty()) return report(Error{ErrorCode::kNotFound, fmt::format("pods \"{}\" not found", name)});
    }
  }
  placement::ExplainOptions options;
  options.preemption.budgets_are_hard = budgets_are_hard;
  std::optional<ScalingView> scaling;
  if (output != "json" && std::ranges::any_of(pods, [](const PodInfoPtr& pod) { return pod->view().node_name.empty(); }))
    scaling = scaling_of(flags, *input);
  bool is_first = true;
  for (const auto& pod : pods) {
    if (!is_first && output != "json") std::printf("\n");
    is_first = false;
    print(placement::explain(input->framework_for(*pod), input->cluster, pod, options), output);
    if (!scaling) continue;
    const std::string words = autoscaler::explain_growth(scaling->snapshot, scaling->actions, scaling->options, pod->key);
    std::fwrite(words.data(), 1, words.size(), stdout);
  }
  return 0;
}

}  // namespace berth::cli
