#include "apiserver/aggregation/aggregator.h"

namespace berth::apiserver::aggregation {

/// An API group version that this server serves itself, as kube-aggregator's autoregistration writes it; the priorities are
/// kube-apiserver's (controlplane/apiserver/aggregator.go).
json::Value own_api_service(const std::string& group, const std::string& version, const std::string& now) {
  struct Priority {
    int group, version;
  };
  static const std::map<std::string_view, Priority> kPriorities = {{"", {18000, 1}},
                                                                   {"apps", {17800, 15}},
                                                                   {"events.k8s.io", {17750, 15}},
                                                                   {"authentication.k8s.io", {17700, 15}},
                                                                   {"authorization.k8s.io", {17600, 15}},
                                                                   {"autoscaling", {17500, 15}},
                                                                   {"batch", {17400, 15}},
                                                                   {"certificates.k8s.io", {17300, 15}},
                                                                   {"networking.k8s.io", {17200, 15}},
                                                                   {"policy", {17100, 15}},
                                                                   {"rbac.authorization.k8s.io", {17000, 15}},
                                                                   {"storage.k8s.io", {16800, 15}},
                                                                   {"admissionregistration.k8s.io", {16700, 15}},
                                                                   {"scheduling.k8s.io", {16600, 15}},
                                                                   {"coordination.k8s.io", {16500, 15}},
                                                                   {"node.k8s.io", {16300, 15}},
                                                                   {"discovery.k8s.io", {16200, 15}},
                                                                   {"resource.k8s.io", {16200, 21}},
                                                                   {"flowcontrol.apiserver.k8s.io", {16100, 21}}};
  const auto known = kPriorities.find(group);
  auto priority = known == kPriorities.end() ? Priority{1000, 15} : known->second;
  if (version != "v1") priority.version = version == "v2" ? 30 : 9;
  json::Object spec;
  if (!group.empty()) spec["group"] = group;
  spec["version"] = version;
  spec["groupPriorityMinimum"] = priority.group;
  spec["versionPriority"] = priority.version;
  json::Object condition{{"type", "Available"},
                         {"status", "True"},
                         {"lastTransitionTime", now},
                         {"reason", "Local"},
                         {"message", "Local APIServices are always available"}};
  json::Object labels{{"kube-aggregator.kubernetes.io/automanaged", "onstart"}};
  return json::Object{{"metadata", json::Object{{"name", version + "." + group}, {"labels", std::move(labels)}}},
                      {"spec", std::move(spec)},
                      {"status", json::Object{{"conditions", json::Array{std::move(condition)}}}}};
}

}  // namespace berth::apiserver::aggregation
