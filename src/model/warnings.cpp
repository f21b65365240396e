#include "model/warnings.h"

#include <fmt/format.h>

#include <map>

#include "base/base64.h"
#include "model/kind_hooks.h"
#include "model/pod_warnings.h"
#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model {
namespace {

using json::get_array;
using json::get_object;
using json::get_string;
using json::Value;
using validation::check_dns1123_label;
using validation::Path;
using Sentences = std::vector<std::string>;

constexpr std::string_view kOldStorageClass = "volume.beta.kubernetes.io/storage-class";
constexpr std::string_view kOldIngressClass = "kubernetes.io/ingress.class";

void surprising_name(const Value& doc, Sentences& out) {
  const std::string why = check_dns1123_label(get_string(doc, {"metadata", "name"}));
  if (why.empty()) return;
  std::string listed = why;
  std::ranges::replace(listed, '\n', ' ');
  out.push_back(
      fmt::format("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
                  "is recommended: [{}]",
                  listed));
}

const Value* template_of(const Value& spec) { return json::find(spec, "template"); }

void of_template(const Value& doc, json::Path where, const Path& at, Sentences& out) {
  if (const Value* found = json::find(doc, where)) pod_warnings(*found, &at, out);
}

void job_spec(const Value& spec, const Path& at, Sentences& out) {
  const std::int64_t completions = json::get_int(spec, {"completions"}), parallel = json::get_int(spec, {"parallelism"});
  if (get_string(spec, {"completionMode"}) == "Indexed" && completions > 100000 && parallel > 10000) {
    out.push_back(
        fmt::format("{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
                    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
                    at.text()));
  }
  const Path template_at = at / "template";
  if (const Value* found = template_of(spec)) pod_warnings(*found, &template_at, out);
}

void workload(const KindInfo& kind, const Value* old, const Value& doc, Sentences& out) {
  const bool is_job = kind.kind == "Job" || kind.kind == "CronJob";
  if (old == nullptr && (is_job || kind.kind == "Deployment" || kind.kind == "ReplicaSet" || kind.kind == "ReplicationController"))
    surprising_name(doc, out);
  // An update that leaves the spec alone says nothing new.
  if (old != nullptr && json::get_int(*old, {"metadata", "generation"}) == json::get_int(doc, {"metadata", "generation"})) return;
  const Path spec("spec");
  const Path template_at = spec / "template", job_template = spec / "jobTemplate";
  if (kind.kind == "CronJob") {
    if (const Value* inner = json::find(doc, {"spec", "jobTemplate", "spec"})) job_spec(*inner, job_template / "spec", out);
  } else if (kind.kind == "Job") {
    if (const Value* inner = json::find(doc, "spec")) job_spec(*inner, spec, out);
  } else {
    of_template(doc, {"spec", "template"}, template_at, out);
  }
  if (kind.kind != "StatefulSet") return;
  const Path claims = spec / "volumeClaimTemplates";
  std::size_t i = 0;
  for (const Value& claim : get_array(doc, {"spec", "volumeClaimTemplates"})) {
    const Path one = claims[i++];
    if (const Value* claim_spec = json::find(claim, "spec")) claim_warnings(*claim_spec, one, out);
  }
  if (json::get_int(doc, {"spec", "revisionHistoryLimit"}) < 0)
    out.emplace_back("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended");
}

void service(const Value& doc, Sentences& out) {
  constexpr std::string_view kHints = "service.kubernetes.io/topology-aware-hints";
  if (json::find(doc, {"metadata", "annotations", kHints}) != nullptr)
    out.push_back(fmt::format("annotation {} is deprecated, please use service.kubernetes.io/topology-mode instead", kHints));
  const std::string_view type = get_string(doc, {"spec", "type"});
  const bool is_headless = type == "ClusterIP" && get_string(doc, {"spec", "clusterIP"}) == "None";
  const bool has_external_ips = !get_array(doc, {"spec", "externalIPs"}).empty();
  if (is_headless) {
    if (!get_string(doc, {"spec", "loadBalancerIP"}).empty()) out.emplace_back("spec.loadBalancerIP is ignored for headless services");
    if (has_external_ips) out.emplace_back("spec.externalIPs is ignored for headless services");
    if (get_string(doc, {"spec", "sessionAffinity"}) != "None") out.emplace_back("spec.SessionAffinity is ignored for headless services");
  } else if (has_external_ips && type != "ExternalName") {
    out.emplace_back("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  }
  if (type == "ExternalName" && has_external_ips) out.emplace_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  if (type != "ExternalName" && !get_string(doc, {"spec", "externalName"}).empty())
    out.emplace_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  if (get_string(doc, {"spec", "trafficDistribution"}) == "PreferClose")
    out.emplace_back("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
}

void volume(const Value& doc, Sentences& out) {
  static constexpr std::string_view kReclaim = "volume.beta.kubernetes.io/storage-class";
  for (const auto& [annotation, instead] : {std::pair(kReclaim, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
                                            std::pair(std::string_view("volume.beta.kubernetes.io/mount-options"),
                                                      "deprecated since v1.31; use \"mountOptions\" attribute instead")})
    if (json::find(doc, {"metadata", "annotations", annotation}) != nullptr)
      out.push_back(fmt::format("metadata.annotations[{}]: {}", annotation, instead));
  if (get_string(doc, {"spec", "persistentVolumeReclaimPolicy"}) == "Recycle")
    out.emplace_back(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
        "provisioning.");
  if (const Value* selector = json::find(doc, {"spec", "nodeAffinity", "required"})) {
    const Path spec("spec");
    const Path affinity = spec / "nodeAffinity";
    const Path required = affinity / "required";
    node_terms_warnings(*selector, required / "nodeSelectorTerms", out);
  }
  for (const auto& [source, since] : {std::pair("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
                                      std::pair("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
                                      std::pair("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
                                      std::pair("storageos", "deprecated in v1.22, non-functional in v1.25+"),
                                      std::pair("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
                                      std::pair("rbd", "deprecated in v1.28, non-functional in v1.31+")})
    if (json::find(doc, {"spec", source}) != nullptr)
      out.push_back(fmt::format("spec.{}: {}", std::string_view(source) == "storageos" ? "storageOS" : source, since));
}

void claim(const Value& doc, Sentences& out) {
  if (json::find(doc, {"metadata", "annotations", kOldStorageClass}) != nullptr)
    out.push_back(
        fmt::format("metadata.annotations[{}]: deprecated since v1.8; use \"storageClassName\" attribute instead", kOldStorageClass));
  if (const Value* spec = json::find(doc, "spec")) claim_warnings(*spec, Path("spec"), out);
}

void node(const Value& doc, Sentences& out) {
  if (json::find(doc, {"spec", "configSource"}) != nullptr) out.emplace_back("spec.configSource: the feature is no longer supported");
  if (!get_string(doc, {"spec", "externalID"}).empty())
    out.emplace_back("spec.externalID: this field is deprecated, and is unused by Kubernetes");
}

/// A pair of a certificate and its key is tried as a server would load it; only the first step of that is done here.
void secret(const Value& doc, Sentences& out) {
  if (get_string(doc, {"type"}) != "kubernetes.io/tls") return;
  for (const auto& [key, what] : {std::pair("tls.crt", "certificate"), std::pair("tls.key", "key")}) {
    const auto bytes = base64_decode(get_string(doc, {"data", key}));
    if (bytes && bytes->find("-----BEGIN ") != std::string::npos) continue;
    out.push_back(fmt::format("tls: failed to find any PEM data in {} input", what));
    return;
  }
}

void csi_driver(const Value& doc, Sentences& out) {
  if (!get_array(doc, {"spec", "tokenRequests"}).empty() && json::find(doc, {"spec", "serviceAccountTokenInSecrets"}) == nullptr)
    out.emplace_back(
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in "
        "volume attributes");
}

void storage_class(const Value& doc, Sentences& out) {
  const Path at("allowedTopologies");
  std::size_t i = 0;
  for (const Value& term : get_array(doc, {"allowedTopologies"})) {
    const Path term_at = at[i++];
    const Path list = term_at / "matchLabelExpressions";
    std::size_t k = 0;
    for (const Value& expression : get_array(term, {"matchLabelExpressions"})) {
      const Path one = list[k++];
      if (const auto why = old_node_label(get_string(expression, {"key"})); !why.empty())
        out.push_back(fmt::format("{}: {}", (one / "key").text(), why));
    }
  }
}

void runtime_class(const Value& doc, Sentences& out) {
  for (const auto& [key, value] : get_object(doc, {"scheduling", "nodeSelector"}))
    if (const auto why = old_node_label({key.data(), key.size()}); !why.empty())
      out.push_back(fmt::format("scheduling.nodeSelector: {}", why));
}

}  // namespace

std::vector<std::string> write_warnings(const KindInfo& kind, const Value* old, const Value& doc) {
  Sentences out;
  if (kind.hooks != nullptr) {
    if (const auto& own = kind.hooks->rules->warnings) own(old, doc, out);
    return out;
  }
  const std::string_view name = kind.kind;
  if (kind.group == "apps" || kind.group == "batch" || name == "ReplicationController") {
    if (name != "ControllerRevision") workload(kind, old, doc, out);
  } else if (kind.group.empty()) {
    // Nobody reads what is said about the update of a pod: programs make them.
    if (name == "Pod" && old == nullptr) pod_warnings(doc, nullptr, out);
    if (name == "PodTemplate") of_template(doc, {"template"}, Path("template"), out);
    if (name == "Service") service(doc, out);
    if (name == "PersistentVolume") volume(doc, out);
    if (name == "PersistentVolumeClaim") claim(doc, out);
    if (name == "Node") node(doc, out);
    if (name == "Secret") secret(doc, out);
  } else if (name == "Ingress" && old == nullptr) {
    if (json::find(doc, {"metadata", "annotations", kOldIngressClass}) != nullptr)
      out.push_back(fmt::format("annotation \"{}\" is deprecated, please use 'spec.ingressClassName' instead", kOldIngressClass));
  } else if (name == "CSIDriver") {
    csi_driver(doc, out);
  } else if (name == "StorageClass" && old == nullptr) {
    storage_class(doc, out);
  } else if (name == "RuntimeClass") {
    runtime_class(doc, out);
  } else if (name == "EndpointSlice" && get_string(doc, {"addressType"}) == "FQDN") {
    out.emplace_back("spec.addressType: FQDN endpoints are deprecated");
  }
  return out;
}

std::string_view kind_warning(const KindInfo& kind) {
  if (kind.hooks != nullptr) return kind.hooks->rules->deprecation;
  if (kind.group.empty() && kind.kind == "Endpoints") return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  if (kind.group.empty() && kind.kind == "ComponentStatus") return "v1 ComponentStatus is deprecated in v1.19+";
  return {};
}

}  // namespace berth::model
