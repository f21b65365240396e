#include "tests/placement/plugins/plugin_world.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

json::Value parse(const std::string& yaml) {
  auto out = json::parse_yaml("--- " + yaml);  // A text that begins with a brace would be read as JSON.
  EXPECT_TRUE(out.has_value()) << (out ? "" : out.error().message) << "\n" << yaml;
  return out.value_or(json::Value());
}

json::Value pod_document(const std::string& spec, const std::string& labels, const std::string& name) {
  json::Value out = {{"kind", "Pod"}, {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}}};
  json::set(out, {"metadata", "labels"}, parse(labels));
  json::set(out, {"spec"}, parse(spec));
  if (json::find(out, {"spec", "containers"}) == nullptr) json::set(out, {"spec", "containers"}, json::Array{{{"name", "c"}}});
  return out;
}

}  // namespace

PluginWorld& PluginWorld::add(const std::string& yaml) {
  json::Value object = parse(yaml);
  if (json::get_string(object, {"kind"}) == "Node") {
    if (json::find(object, {"status", "allocatable"}) == nullptr)
      json::set(object, {"status", "allocatable"}, {{"cpu", "4"}, {"memory", "4Gi"}, {"pods", "10"}, {"ephemeral-storage", "10Gi"}});
    json::set(object, {"metadata", "labels", "kubernetes.io/hostname"}, json::Value(json::get_string(object, {"metadata", "name"})));
  } else if (json::find(object, {"metadata", "namespace"}) == nullptr) {
    const auto kind = json::get_string(object, {"kind"});
    const bool is_cluster_wide = kind == "PersistentVolume" || kind == "StorageClass" || kind == "CSINode" || kind == "CSIDriver" ||
                                 kind == "Namespace" || kind == "DeviceClass" || kind == "DeviceTaintRule" || kind == "ResourceSlice" ||
                                 kind == "NodeResourceTopology";
    if (!is_cluster_wide) json::set(object, {"metadata", "namespace"}, json::Value("default"));
  }
  EXPECT_TRUE(cluster.upsert(object)) << yaml;
  return *this;
}

PodInfoPtr PluginWorld::pod(const std::string& spec, const std::string& labels, const std::string& name) const {
  return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod_document(spec, labels, name))), era);
}

PluginWorld& PluginWorld::run(const std::string& name, const std::string& node, const std::string& spec, const std::string& labels) {
  json::Value document = pod_document(spec, labels, name);
  json::set(document, {"spec", "nodeName"}, json::Value(node));
  cluster.upsert(document);
  return *this;
}

Evaluation PluginWorld::evaluate(const PodInfoPtr& pod) const { return placement::evaluate(*framework_of(profile), cluster, *pod); }

std::string PluginWorld::verdict(const std::string& node, const PodInfoPtr& pod) const {
  const Evaluation evaluation = evaluate(pod);
  if (!evaluation.errors.empty()) return "error: " + evaluation.errors.front();
  const auto words = [](const Status& status) { return fmt::format("{} {}: {}", status.plugin, code_name(status.code), status.message()); };
  if (!evaluation.pre_filter.is_success()) return "prefilter " + words(evaluation.pre_filter);
  for (const auto& one : evaluation.feasible)
    if (cluster.node(one.node)->name == node) return "fits";
  for (const auto& one : evaluation.rejected)
    if (cluster.node(one.node)->name == node) return words(one.status);
  return "not asked";
}

Scores PluginWorld::scores(const std::string& plugin, const PodInfoPtr& pod) const {
  const Evaluation evaluation = evaluate(pod);
  Scores out;
  const auto at = std::ranges::find(evaluation.scorers, plugin);
  if (at == evaluation.scorers.end()) return out;
  for (const auto& one : evaluation.feasible)
    out[cluster.node(one.node)->name] = one.scores[static_cast<std::size_t>(at - evaluation.scorers.begin())];
  return out;
}

PluginWorld& PluginWorld::score_by(const std::string& plugin, std::int64_t weight) {
  profile.score = {{plugin, weight}};
  return *this;
}

}  // namespace berth::placement::testing
