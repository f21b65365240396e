#include "whatif/manifests.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/kinds.h"
#include "model/schema.h"

namespace berth::whatif {
namespace {

constexpr std::int64_t kMaxReplicas = 1'000'000;

const model::KindInfo* kind_info(const json::Value& document) {
  const std::string_view api_version = json::get_string(document, {"apiVersion"});
  const std::size_t slash = api_version.find('/');
  const std::string_view group = slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  const std::string_view version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
  return model::find_kind(group, version, json::get_string(document, {"kind"}));
}

}  // namespace

Result<json::Value> checked(json::Value document) {
  const model::KindInfo* kind = kind_info(document);
  const auto name = [&] {
    return fmt::format("{} {}", json::get_string(document, {"kind"}), json::get_string(document, {"metadata", "name"}));
  };
  if (kind == nullptr)
    return invalid(fmt::format("no kind \"{}\" of apiVersion \"{}\" is known", json::get_string(document, {"kind"}),
                               json::get_string(document, {"apiVersion"})));
  model::DecodeReport report;
  const std::string what = name();
  if (const auto done = model::decode(*kind, document, report); !done)
    return invalid(fmt::format("{}: {}", what, done.error().status(*kind).message));
  if (!report.unknown_fields.empty()) return invalid(fmt::format("{}: unknown field \"{}\"", what, report.unknown_fields.front()));
  model::apply_defaults(*kind, document);
  return document;
}

json::Value with_defaults(json::Value document) {
  const model::KindInfo* kind = kind_info(document);
  if (kind == nullptr) return document;
  json::Value decoded = document;
  model::DecodeReport report;
  if (!model::decode(*kind, decoded, report)) return document;
  model::apply_defaults(*kind, decoded);
  return decoded;
}

Priority priority_of(std::string_view class_name, const placement::Cluster& cluster) {
  if (class_name == "system-node-critical") return {2'000'001'000, {}, true};
  if (class_name == "system-cluster-critical") return {2'000'000'000, {}, true};
  for (const auto& [name, one] : cluster.priority_classes())
    if (class_name.empty() ? one->global_default : name == class_name) return {one->value, one->preemption_policy, true};
  return {0, {}, class_name.empty()};
}

std::string unknown_priority(std::string_view class_name, const placement::Cluster& cluster) {
  if (priority_of(class_name, cluster).is_known) return {};
  return fmt::format("no PriorityClass with name {} is known: the API server would refuse such pods; they count with priority 0",
                     class_name);
}

json::Value complete_pod(json::Value pod, const placement::Cluster& cluster, const std::string& default_namespace) {
  if (json::get_string(pod, {"metadata", "namespace"}).empty())
    json::set(pod, {"metadata", "namespace"}, json::Value(default_namespace.empty() ? "default" : default_namespace));
  if (json::get_string(pod, {"metadata", "name"}).empty()) {
    const std::string prefix(json::get_string(pod, {"metadata", "generateName"}, "pod"));
    json::set(pod, {"metadata", "name"}, json::Value(prefix));
  }
  pod = with_defaults(std::move(pod));
  if (json::find(pod, {"spec", "priority"}) == nullptr) {
    const Priority priority = priority_of(json::get_string(pod, {"spec", "priorityClassName"}), cluster);
    if (!priority.preemption_policy.empty() && json::find(pod, {"spec", "preemptionPolicy"}) == nullptr)
      json::set(pod, {"spec", "preemptionPolicy"}, json::Value(priority.preemption_policy));
    json::set(pod, {"spec", "priority"}, json::Value(priority.value));
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

model::PodFacts facts_of_new(const json::Value& pod) {
  model::PodFacts out = model::PodFacts::parse(pod);
  out.status = std::make_shared<const model::PodStatus>();
  return out;
}

json::Value pod_of_template(const json::Value& workload) {
  json::Value pod = *json::find(workload, {"spec", "template"});
  pod.get_object()["kind"] = "Pod";
  pod.get_object()["apiVersion"] = "v1";
  json::set(pod, {"metadata", "namespace"}, json::Value(json::get_string(workload, {"metadata", "namespace"})));
  json::set(pod, {"metadata", "ownerReferences"},
            json::Array{json::Object{{"apiVersion", json::get_string(workload, {"apiVersion"})},
                                     {"kind", json::get_string(workload, {"kind"})},
                                     {"name", json::get_string(workload, {"metadata", "name"})},
                                     {"uid", json::get_string(workload, {"metadata", "uid"})},
                                     {"controller", true}}});
  return pod;
}

}  // namespace berth::whatif
