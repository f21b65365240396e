// `berth explain`: why a pod, or a group of pods, is where it is, or why it is pending (SPEC I3).
#include "placement/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>

#include "autoscaler/advice.h"
#include "cli/command/keep_to_the_end.h"
#include "cli/command/kubectl_words.h"
#include "cli/command/parse.h"
#include "cli/planning/group_input.h"
#include "cli/planning/instance_types.h"
#include "cli/planning/placement_commands.h"
#include "cli/planning/placement_input.h"
#include "cli/planning/placement_question.h"
#include "cli/planning/pod_manifests.h"
#include "cli/planning/pool_view.h"
#include "cli/planning/scaling_view.h"
#include "client/list_all.h"
#include "placement/groups/group_placement.h"

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

bool is_pod_word(const std::string& word) { return word == "pod" || word == "pods" || word == "po"; }
bool is_group_word(const std::string& word) { return word == "podgroup" || word == "podgroups"; }
bool is_node_word(const std::string& word) { return word == "node" || word == "nodes" || word == "no"; }

/// Of a PodGroup: what the pods that wait would need to be placed together. Nullopt: there is none of the key.
std::optional<placement::GroupExplanation> explain_group_of(PlacementInput& input, const GroupInput& groups, const std::string& key) {
  const placement::GroupToExplain question = groups.question(key);
  if (question.group == nullptr) return std::nullopt;
  placement::Trial trial(input.cluster, input.profiles_for_all());
  return placement::explain_group(trial, groups.groups(), question);
}

GroupInput groups_of(const PlacementInput& input) {
  GroupInput out(input.cluster.era());
  for (const json::Value& object : input.grouped) out.add(object);
  return out;
}

/// One pod that is asked about, as the server or the file has it.
struct Asked {
  json::Value document;
  PodInfoPtr pod;
};

struct ExplainFlags {
  PlacementFlags placement;
  std::vector<std::string> words, pod_files;
  std::string output = "text", instance_types;
  bool budgets_are_hard = false;

  void add_to(CLI::App& app) {
    placement.add_to(app);
    app.add_option("args", words, "pod NAME, pod/NAME, podgroup NAME, podgroup/NAME, node NAME or node/NAME");
    app.add_option("--pod", pod_files, "A manifest with the pod (or the workload whose pod it is)");
    app.add_option("-o,--output", output, "text, wide or json")->check(CLI::IsMember({"text", "wide", "json"}));
    app.add_option(
        "--instance-types", instance_types,
        "What NodePools buy from, with prices: a file (docs/node-pools.md); default: what the cluster's autoscaler has published");
    app.add_flag("--hard-budgets", budgets_are_hard, "Never plan an eviction that breaks a PodDisruptionBudget");
  }

  /// `--cluster FILE… pod NAME`: the option takes all words that follow it; these two are given back.
  void take_back_words() {
    auto& files = placement.cluster_files;
    if (!words.empty() || !pod_files.empty() || files.size() <= 2) return;
    if (const std::string& word = files[files.size() - 2]; !is_pod_word(word) && !is_node_word(word) && !is_group_word(word)) return;
    words.assign(files.end() - 2, files.end());
    files.resize(files.size() - 2);
  }
  /// The name in "node NAME" or "node/NAME"; empty when it is not about a node.
  [[nodiscard]] std::string node_name() const {
    if (words.size() == 2 && is_node_word(words[0])) return words[1];
    return words.size() == 1 && words[0].starts_with("node/") ? words[0].substr(5) : "";
  }
  /// The name in "podgroup NAME" or "podgroup/NAME"; empty when it is not about a group.
  [[nodiscard]] std::string group_name() const {
    if (words.size() == 2 && is_group_word(words[0])) return words[1];
    const std::size_t slash = words.size() == 1 ? words[0].find('/') : std::string::npos;
    return slash != std::string::npos && is_group_word(words[0].substr(0, slash)) ? words[0].substr(slash + 1) : "";
  }
  /// The name in "pod NAME" or "pod/NAME" or "NAME"; empty when there is none.
  [[nodiscard]] std::string pod_name() const {
    if (words.size() == 2 && is_pod_word(words[0])) return words[1];
    if (words.size() != 1) return {};
    const std::size_t slash = words[0].find('/');
    return words[0].substr(slash == std::string::npos ? 0 : slash + 1);
  }
};

/// What is no pod: `explain pods.spec` means a kind's fields, to kubectl and oc.
int not_a_pod(const ExplainFlags& flags) {
  const std::string word = flags.words.empty() ? "" : flags.words[0];
  if (flags.words.size() == 1 && resolve_resource(word.substr(0, word.find('.')))) {
    std::fprintf(stderr, "error: berth explains where pods go: `berth explain pod NAME`. For the fields of a kind use kubectl:\n  %s\n",
                 kubectl_line("explain", flags.words).c_str());
  } else if (flags.words.size() == 2) {
    std::fprintf(stderr, "error: only pods, podgroups and nodes are explained, not \"%s\": `berth explain pod NAME`\n", word.c_str());
  } else {
    std::fprintf(stderr, "error: say which pod: `berth explain pod NAME` or `berth explain --pod FILE`\n");
  }
  return 2;
}

/// The documents that are asked about and whose scheduler it is: the cluster is looked at by that one's configuration.
Result<std::vector<json::Value>> asked_documents(const ExplainFlags& flags, const std::string& name) {
  std::vector<json::Value> out;
  if (!flags.pod_files.empty()) {
    auto documents = read_pod_manifests(flags.pod_files);
    if (!documents) return std::unexpected(documents.error());
    for (const auto& document : *documents)
      if (auto all = pods_of(document); !all.empty()) out.push_back(std::move(all[0]));
    if (out.empty()) return invalid("no pod in " + flags.pod_files[0]);
  } else if (flags.placement.cluster_files.empty()) {
    auto session = Session::open(flags.placement.connection);
    if (!session) return std::unexpected(session.error());
    auto pod = (*session)->client().get_and_wait({"", "v1", "pods"}, (*session)->ns(), name);
    if (!pod) return fail(ErrorCode::kNotFound, pod.error().message);
    out.push_back(std::move(*pod));
  }
  return out;
}

/// As the engine sees them. Pods of a dump are found in it.
Result<std::vector<Asked>> asked_pods(const ExplainFlags& flags, const PlacementInput& input, std::vector<json::Value> documents,
                                      const std::string& name) {
  std::vector<Asked> out;
  const auto add = [&](json::Value document) {
    auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), input.cluster.era());
    out.push_back({std::move(document), std::move(pod)});
  };
  for (json::Value& document : documents)
    add(flags.pod_files.empty() ? std::move(document) : complete_pod(std::move(document), input.cluster, flags.placement.connection.ns));
  if (!out.empty()) return out;
  std::vector<json::Value> pending;
  for (const auto& object : input.objects)
    if (json::get_string(object, {"kind"}) == "Pod") pending.push_back(object);
  for (auto& pod : find_pods(input, pending, name, flags.placement.connection.ns)) {
    json::Value document;
    for (const json::Value& one : pending)
      if (json::get_string(one, {"metadata", "name"}) == pod->view().name() &&
          json::get_string(one, {"metadata", "namespace"}) == pod->view().ns())
        document = one;
    out.push_back({std::move(document), std::move(pod)});
  }
  if (out.empty()) return fail(ErrorCode::kNotFound, fmt::format("pods \"{}\" not found", name));
  return out;
}

/// By the scheduler that runs in the server's process; nullopt: it cannot be asked.
std::optional<int> explain_group_by_running(const ExplainFlags& flags, const std::string& name) {
  if (!flags.placement.cluster_files.empty() || flags.placement.has_configuration()) return std::nullopt;
  auto session = Session::open(flags.placement.connection);
  if (!session) return std::nullopt;
  const std::string& ns = (*session)->ns();
  const auto group = (*session)->client().get_and_wait({"scheduling.k8s.io", "v1alpha2", "podgroups"}, ns, name);
  if (!group) return group.error().code == 404 ? std::optional(report(group.error())) : std::nullopt;
  const PlacementQuestion question{.pod = {}, .output = flags.output == "json" ? "json" : "text", .group = ns + "/" + name};
  const auto answer = ask_running_scheduler((*session)->client(), question);
  if (!answer) return std::nullopt;
  std::fwrite(answer->data(), 1, answer->size(), stdout);
  return 0;
}

int explain_group_named(const ExplainFlags& flags, const std::string& name) {
  if (const auto code = explain_group_by_running(flags, name)) return *code;
  auto input = read_placement_input(flags.placement);
  if (!input) return report(input.error());
  warn_of_ignored(*input);
  tell_notes(*input);
  std::string ns = flags.placement.connection.ns;
  if (ns.empty() && flags.placement.cluster_files.empty()) {
    auto session = Session::open(flags.placement.connection);
    if (!session) return report(session.error());
    ns = (*session)->ns();
  }
  for (const json::Value& object : input->grouped)
    if (ns.empty() && json::get_string(object, {"kind"}) == "PodGroup" && json::get_string(object, {"metadata", "name"}) == name)
      ns = json::get_string(object, {"metadata", "namespace"});
  const auto explanation = explain_group_of(*input, groups_of(*input), fmt::format("{}/{}", ns, name));
  if (!explanation) return report(Error{ErrorCode::kNotFound, fmt::format("podgroups.scheduling.k8s.io \"{}\" not found", name)});
  const std::string text = answer_of(*explanation, flags.output, configuration_words(*input, "default-scheduler"));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

/// What those who add and remove nodes are told of: of a dump all, live what they watch. Nothing where that cannot be read.
std::vector<json::Value> scaled_objects(const ExplainFlags& flags, const PlacementInput& input) {
  if (!flags.placement.cluster_files.empty()) return input.objects;
  auto session = Session::open(flags.placement.connection);
  if (session)
    if (const auto scaled = is_scaled((*session)->client()); scaled && !*scaled) return {};
  auto live = session ? read_scaling_objects((*session)->client()) : Result<std::vector<json::Value>>(std::unexpected(session.error()));
  auto pools = live ? read_live_pools((*session)->client(), *live) : Result<void>(std::unexpected(live.error()));
  if (pools) return std::move(*live);
  std::fprintf(stderr, "note: what the autoscaler and NodePools would do is not known: %s\n", pools.error().message.c_str());
  return {};
}

/// What the autoscaler would say: nothing where there is no ClusterAutoscaler.
std::optional<ScalingView> scaling_of(const std::vector<json::Value>& documents, const PlacementInput& input) {
  auto options = scaling_options_of(documents);
  if (!options) return std::nullopt;
  return look_at_scaling(documents, std::move(*options), input.profiles_for_all());
}

/// What NodePools would do: nothing where there is none. `more`: objects that are not in the cluster. The note says what cannot be told.
std::unique_ptr<PoolView> pools_of(const ExplainFlags& flags, const std::vector<json::Value>& documents, const PlacementInput& input,
                                   const std::vector<json::Value>& more) {
  const bool has_pools = std::ranges::any_of(documents, [](const json::Value& one) {
    return json::get_string(one, {"kind"}) == "NodePool" && json::get_string(one, {"apiVersion"}).starts_with("karpenter.sh/");
  });
  if (!has_pools) return nullptr;
  auto catalogue = catalogue_of(flags.instance_types, documents);
  if (!catalogue) {
    std::fprintf(stderr, "note: %s\n", catalogue.error().message.c_str());
    return nullptr;
  }
  auto out = std::make_unique<PoolView>();
  out->catalogue = std::move(*catalogue);
  out->profiles = input.profiles_for_all();
  for (const auto* list : {&documents, &more})
    for (const json::Value& document : *list) out->cache.upsert(document);
  out->look(SystemClock().now());
  return out;
}

/// Who may add a node for a pod that waits.
struct Growth {
  std::optional<ScalingView> scaling;
  std::unique_ptr<PoolView> pools;

  [[nodiscard]] std::string words_about(const placement::PodInfo& pod) const {
    std::string out;
    if (pools && pod.view().node_name.empty()) out += explain_buying(*pools, pod.key);
    if (scaling) out += autoscaler::explain_growth(scaling->snapshot, scaling->actions, scaling->options, pod.key);
    return out;
  }
};

Growth growth_of(const ExplainFlags& flags, const PlacementInput& input, const std::vector<Asked>& pods) {
  const std::vector<json::Value> documents = scaled_objects(flags, input);
  std::vector<json::Value> asked;
  for (const Asked& one : pods)
    if (one.document.is_object()) {
      asked.push_back(one.document);
      json::set(asked.back(), {"kind"}, json::Value("Pod"));
    }
  return {scaling_of(documents, input), pools_of(flags, documents, input, asked)};
}

/// Profiles, and of files the objects: the cluster itself is not read.
Result<PlacementInput> read_profiles(const PlacementFlags& flags) {
  if (!flags.cluster_files.empty()) return read_placement_input(flags);
  auto session = Session::open(flags.connection);
  if (!session) return std::unexpected(session.error());
  return read_placement_config(flags, flags.has_configuration() ? KnownSchedulers{} : read_known_schedulers((*session)->client()));
}

int explain_node_of(const ExplainFlags& flags, const std::string& name) {
  auto input = read_profiles(flags.placement);
  if (!input) return report(input.error());
  const std::vector<json::Value> documents = scaled_objects(flags, *input);
  if (const auto pools = pools_of(flags, documents, *input, {}))
    if (const std::string words = explain_keeping(*pools, name); !words.empty()) {
      std::fwrite(words.data(), 1, words.size(), stdout);
      return 0;
    }
  const auto scaling = scaling_of(documents, *input);
  if (!scaling)
    return report(Error{ErrorCode::kNotFound,
                        "it is no node of a NodePool, and the cluster has no ClusterAutoscaler: nodes are neither added nor removed by "
                        "themselves"});
  const std::string words = autoscaler::explain_node(scaling->snapshot, scaling->actions, name, scaling->patience);
  if (words.empty()) return report(Error{ErrorCode::kNotFound, fmt::format("nodes \"{}\" not found", name)});
  std::fwrite(words.data(), 1, words.size(), stdout);
  return 0;
}

/// Prints the answers, a pod's each, and who would add a node for those that wait.
int tell(const ExplainFlags& flags, const PlacementInput& input, const std::vector<Asked>& pods, const std::vector<std::string>& answers) {
  if (!flags.pod_files.empty()) {
    std::vector<std::string> classes;
    for (const Asked& asked : pods) classes.push_back(asked.pod->view().priority_class_name);
    tell_unknown_priorities(classes, input.cluster);
  }
  Growth growth;
  if (flags.output != "json" && std::ranges::any_of(pods, [](const Asked& asked) { return asked.pod->view().node_name.empty(); }))
    growth = growth_of(flags, input, pods);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const std::string text =
        (i > 0 && flags.output != "json" ? "\n" : "") + answers[i] + (flags.output == "json" ? "" : growth.words_about(*pods[i].pod));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

/// By the scheduler that runs in the server's process, which has the cluster; nullopt: it does not answer about all of them.
std::optional<int> explain_by_running(const ExplainFlags& flags, const std::vector<json::Value>& documents) {
  if (!flags.placement.cluster_files.empty() || flags.placement.has_configuration()) return std::nullopt;
  auto session = Session::open(flags.placement.connection);
  auto input = session ? read_profiles(flags.placement) : Result<PlacementInput>(std::unexpected(session.error()));
  if (!input) return std::nullopt;
  client::Client& client = (*session)->client();
  // What admission would make of a manifest's priority.
  if (!flags.pod_files.empty() &&
      !client::list_all(client, "scheduling.k8s.io", "priorityclasses", [&](const json::Value& one) { input->cluster.upsert(one); }))
    return std::nullopt;
  const auto pods = asked_pods(flags, *input, documents, {});
  if (!pods) return std::nullopt;
  std::vector<std::string> answers;
  for (const Asked& asked : *pods) {
    auto answer = ask_running_scheduler(client, {asked.document, flags.output, flags.budgets_are_hard});
    if (!answer) return std::nullopt;
    answers.push_back(std::move(*answer));
  }
  return tell(flags, *input, *pods, answers);
}

/// By the whole cluster, as it is read for this answer, or by the files' one.
int explain_by_reading(const ExplainFlags& flags, std::vector<json::Value> documents, const std::string& name) {
  std::string scheduler;
  for (const json::Value& document : documents)
    if (scheduler.empty()) scheduler = json::get_string(document, {"spec", "schedulerName"});
  auto read = read_placement_input(flags.placement, scheduler.empty() ? "default-scheduler" : scheduler);
  if (!read) return report(read.error());
  PlacementInput& input = keep_to_the_end(std::move(*read));
  warn_of_ignored(input);
  const auto pods = asked_pods(flags, input, std::move(documents), name);
  if (!pods) return report(pods.error());
  tell_notes(input);
  const GroupInput groups = groups_of(input);
  std::vector<std::string> answers;
  for (const Asked& asked : *pods) {
    const std::string key = model::pod_group_key(asked.document);
    const auto group = key.empty() ? std::nullopt : explain_group_of(input, groups, key);
    answers.push_back(answer_of(
        {asked.document, flags.output, flags.budgets_are_hard || input.budgets_are_hard}, input.framework_for(*asked.pod), input.cluster,
        input.sources.find(input.profile_for(asked.pod->view().scheduler_name))->second, group ? &*group : nullptr));
  }
  return tell(flags, input, *pods, answers);
}

}  // namespace

int run_explain(const std::vector<std::string>& args) {
  CLI::App app(
      "Explains why a pod is where it is, or why it is pending: node by node, plugin by plugin, the smallest change that would place it, "
      "and "
      "why each group of nodes does not grow for it, and why no NodePool buys one. Explains what a group of pods waits for: which of them "
      "stops it, which domain comes "
      "nearest, and what would place it. Explains why the autoscaler keeps a node, and what would free it; of a node of a NodePool also "
      "what it costs.\n"
      "  berth explain pod web -n prod\n"
      "  berth explain podgroup training\n"
      "  berth explain node worker-3\n"
      "  berth explain --cluster nodes.yaml --cluster pods.json --pod web.yaml",
      "berth explain");
  ExplainFlags flags;
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  flags.take_back_words();
  if (const std::string node = flags.node_name(); !node.empty() && flags.pod_files.empty()) return explain_node_of(flags, node);
  if (const std::string group = flags.group_name(); !group.empty() && flags.pod_files.empty()) return explain_group_named(flags, group);
  const std::string name = flags.pod_name();
  const bool is_kind = flags.pod_files.empty() && flags.words.size() == 1 && flags.words[0].find('/') == std::string::npos &&
                       (flags.words[0].find('.') != std::string::npos || is_pod_word(flags.words[0])) &&
                       resolve_resource(flags.words[0].substr(0, flags.words[0].find('.')));
  if (name.empty() == flags.pod_files.empty() || is_kind) return not_a_pod(flags);

  auto documents = asked_documents(flags, name);
  if (!documents) return report(documents.error());
  if (const auto code = explain_by_running(flags, *documents)) return *code;
  return explain_by_reading(flags, std::move(*documents), name);
}

}  // namespace berth::cli
