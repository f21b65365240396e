// Rules that give pods tolerations and node affinity by what they are and who makes them: the "custom admission controller" that the
// documents' dedicated-node and special-hardware examples ask for (SPEC A7). Pure.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::cli {

/// One rule. Of each kind of condition given one value must hold; a rule without conditions is refused when read.
struct PodRule {
  std::string name;
  std::vector<std::string> groups, users;                  ///< Who creates the pod. For pods of workloads that is the controller, so:
  std::vector<std::string> namespaces;                     ///< where it is created.
  std::map<std::string, std::string> labels, annotations;  ///< The pod's own; all of them must be there.
  std::vector<std::string> resources;                      ///< A container asks for one of these ("example.com/gpu").
  json::Array tolerations;                                 ///< Added where the pod has none equal.
  std::map<std::string, std::string> node_labels;          ///< Required node affinity: In, added to every term.
};

/// Reads `rules:` of a YAML file's text. The error lists all that is wrong, "FILE:LINE: PATH: …".
Result<std::vector<PodRule>> parse_pod_rules(std::string_view text, const std::string& file);

/// Answers an AdmissionReview (admission.k8s.io/v1) about a pod: allowed, with a JSON patch where rules match. kInvalid when it is not one.
Result<json::Value> review_pod(const std::vector<PodRule>& rules, const json::Value& review);

}  // namespace berth::cli
