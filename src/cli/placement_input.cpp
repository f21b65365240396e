#include "cli/placement_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "base/config_reader.h"
#include "client/list_all.h"
#include "model/schema.h"
#include "placement/cluster_kinds.h"

namespace berth::cli {
namespace {

constexpr std::int64_t kMaxReplicas = 1'000'000;

Result<std::string> read_text(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) return fail(ErrorCode::kNotFound, fmt::format("{}: cannot be read", path));
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  return text.str();
}

void take_apart(json::Value document, std::vector<json::Value>& out) {
  const std::string kind(json::get_string(document, {"kind"}));
  if (!kind.ends_with("List") || json::find(document, "items") == nullptr) {
    if (document.is_object()) out.push_back(std::move(document));
    return;
  }
  const std::string item_kind = kind.substr(0, kind.size() - 4);
  const std::string api_version(json::get_string(document, {"apiVersion"}));
  auto* items = json::find(document, "items");
  if (!items->is_array()) return;
  for (auto& item : items->get_array()) {
    if (!item.is_object()) continue;
    // The items of a typed list leave out what the list says.
    if (json::find(item, "kind") == nullptr && !item_kind.empty()) {
      item.get_object()["kind"] = item_kind;
      item.get_object()["apiVersion"] = api_version;
    }
    out.push_back(std::move(item));
  }
}

Result<bool> read_live(const ConnectionFlags& flags, placement::Cluster& cluster) {
  auto session = Session::open(flags);
  if (!session) return std::unexpected(session.error());
  for (const auto& [group, plural] : placement::kClusterResources) {
    const auto read = client::list_all((*session)->client(), group, plural, [&](const json::Value& item) { cluster.upsert(item); });
    if (read) continue;
    // A server may not serve a kind, or not let us read it; the answer then does without it, except for these.
    if (plural == "nodes" || plural == "pods")
      return fail(ErrorCode::kUnavailable, fmt::format("listing {}: {}", plural, read.error().message));
    if (read.error().code != 404)
      std::fprintf(stderr, "warning: listing %s: %s\n", std::string(plural).c_str(), read.error().message.c_str());
  }
  return true;
}

}  // namespace

void PlacementFlags::add_to(CLI::App& app) {
  connection.add_to(app);
  app.add_option("--cluster", cluster_files,
                 "Dumps of a cluster instead of a live one: `kubectl get nodes,pods,… -A -o yaml` or json; \"-\" is standard input");
  app.add_option("--config", config_file, "The scheduler's configuration: KubeSchedulerConfiguration or Policy");
  compatibility.add_to(app, "The scheduler's plugins and formulas");
}

const placement::FrameworkPtr& PlacementInput::framework_for(const placement::PodInfo& pod) const {
  const auto* profile = config.profile(pod.view().scheduler_name);
  if (profile == nullptr) {
    std::fprintf(stderr, "warning: no profile has the name of the pod's scheduler \"%s\"; using \"%s\"\n",
                 pod.view().scheduler_name.c_str(), config.profiles[0].scheduler_name.c_str());
    profile = &config.profiles[0];
  }
  return profiles.find(profile->scheduler_name);
}

void warn_of_ignored(const PlacementInput& input) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(kMost, input.ignored.size()); ++i)
    std::fprintf(stderr, "warning: ignored %s\n", input.ignored[i].c_str());
  if (input.ignored.size() > kMost) std::fprintf(stderr, "warning: ignored %zu more\n", input.ignored.size() - kMost);
}

Result<std::vector<json::Value>> read_objects(const std::vector<std::string>& files) {
  std::vector<json::Value> out;
  for (const auto& file : files) {
    auto text = read_text(file);
    if (!text) return std::unexpected(text.error());
    const auto first = text->find_first_not_of(" \t\r\n");
    if (first != std::string::npos && (*text)[first] == '{') {
      // Dumps are big: JSON is read as such when it is.
      if (auto document = json::parse(*text)) {
        take_apart(std::move(*document), out);
        continue;
      }
    }
    auto documents = config::parse_stream(*text);
    if (!documents) return invalid(fmt::format("{}: {}", file, documents.error().message));
    for (auto& document : *documents) take_apart(std::move(document), out);
  }
  return out;
}

Result<PlacementInput> read_placement_config(const PlacementFlags& flags) {
  const std::optional<placement::Era> era = flags.compatibility.era();
  auto config = scheduler::config::default_config(era.value_or(placement::Era::k136));
  if (!flags.config_file.empty()) {
    auto loaded = scheduler::config::load(flags.config_file, {.file = flags.config_file, .era = era});
    if (!loaded) return std::unexpected(loaded.error());
    config = std::move(*loaded);
  }
  PlacementInput out{std::move(config), {}, placement::Cluster(placement::Era::k136), {}, {}};
  out.cluster = placement::Cluster(out.config.era);
  auto profiles = placement::Profiles::create(out.config.profiles);
  if (!profiles) return std::unexpected(profiles.error());
  out.profiles = std::move(*profiles);
  return out;
}

Result<PlacementInput> read_placement_input(const PlacementFlags& flags) {
  auto input = read_placement_config(flags);
  if (!input) return input;
  for (const std::string& note : input->config.notes) std::fprintf(stderr, "warning: %s\n", note.c_str());
  PlacementInput& out = *input;
  if (flags.cluster_files.empty()) {
    auto read = read_live(flags.connection, out.cluster);
    if (!read) return std::unexpected(read.error());
    return input;
  }
  auto objects = read_objects(flags.cluster_files);
  if (!objects) return std::unexpected(objects.error());
  std::set<std::string> seen;
  for (const auto& object : *objects) {
    const std::string kind(json::get_string(object, {"kind"}));
    const std::string name(json::get_string(object, {"metadata", "name"}));
    if (kind.empty()) {
      out.ignored.emplace_back("a document without kind");
      continue;
    }
    if (name.empty()) {
      out.ignored.push_back(fmt::format("a {} without a name", kind));
      continue;
    }
    const std::string ns(json::get_string(object, {"metadata", "namespace"}));
    const std::string what = ns.empty() ? fmt::format("{} {}", kind, name) : fmt::format("{} {}/{}", kind, ns, name);
    if (out.cluster.upsert(object) && !seen.insert(what).second) out.ignored.push_back(fmt::format("all but the last {}", what));
  }
  for (std::uint32_t i = 0; i < out.cluster.slot_count(); ++i) {
    const auto* node = out.cluster.node(placement::NodeIndex{i});
    if (node == nullptr || node->node != nullptr) continue;
    for (const auto& pod : node->pods) out.ignored.push_back(fmt::format("Pod {}: its node {} is not there", pod->key, node->name));
  }
  out.objects = std::move(*objects);
  return input;
}

json::Value complete_pod(json::Value pod, const placement::Cluster& cluster, const std::string& default_namespace) {
  if (json::get_string(pod, {"metadata", "namespace"}).empty())
    json::set(pod, {"metadata", "namespace"}, json::Value(default_namespace.empty() ? "default" : default_namespace));
  if (json::get_string(pod, {"metadata", "name"}).empty()) {
    const std::string prefix(json::get_string(pod, {"metadata", "generateName"}, "pod"));
    json::set(pod, {"metadata", "name"}, json::Value(prefix));
  }
  if (const auto* kind = model::find_kind("", "v1", "Pod")) {
    json::Value decoded = pod;
    model::DecodeReport report;
    if (model::decode(*kind, decoded, report)) {
      model::apply_defaults(*kind, decoded);
      pod = std::move(decoded);
    }
  }
  if (json::find(pod, {"spec", "priority"}) == nullptr) {
    const std::string class_name(json::get_string(pod, {"spec", "priorityClassName"}));
    std::int64_t value = class_name == "system-node-critical" ? 2'000'001'000 : class_name == "system-cluster-critical" ? 2'000'000'000 : 0;
    for (const auto& [name, one] : cluster.priority_classes()) {
      if (class_name.empty() ? !one->global_default : name != class_name) continue;
      value = one->value;
      if (!one->preemption_policy.empty() && json::find(pod, {"spec", "preemptionPolicy"}) == nullptr)
        json::set(pod, {"spec", "preemptionPolicy"}, json::Value(one->preemption_policy));
    }
    json::set(pod, {"spec", "priority"}, json::Value(value));
  }
  return pod;
}

std::vector<json::Value> pods_of(const json::Value& document) {
  const auto kind = json::get_string(document, {"kind"});
  if (kind == "Pod") return {document};
  const bool is_workload =
      kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet" || kind == "ReplicationController" || kind == "Job";
  if (!is_workload) return {};
  const auto* pod_template = json::find(document, {"spec", "template"});
  if (pod_template == nullptr || !pod_template->is_object()) return {};
  const std::int64_t wanted = json::get_int(document, {"spec", kind == "Job" ? "parallelism" : "replicas"}, 1);
  const std::string name(json::get_string(document, {"metadata", "name"}));
  std::vector<json::Value> out;
  for (std::int64_t i = 0; i < std::clamp<std::int64_t>(wanted, 0, kMaxReplicas); ++i) {
    json::Value pod = *pod_template;
    pod.get_object()["kind"] = "Pod";
    pod.get_object()["apiVersion"] = "v1";
    json::set(pod, {"metadata", "name"}, json::Value(fmt::format("{}-{}", name, i)));
    json::set(pod, {"metadata", "namespace"}, json::Value(std::string(json::get_string(document, {"metadata", "namespace"}))));
    out.push_back(std::move(pod));
  }
  return out;
}

}  // namespace berth::cli
