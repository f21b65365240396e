// What is special about PriorityLevelConfiguration and FlowSchema (flowcontrol.apiserver.k8s.io): their defaults and the objects that are
// always there (k8s.io/apiserver pkg/apis/flowcontrol/bootstrap, pkg/apis/flowcontrol/v1).
#pragma once
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::model::flow_control {

inline constexpr std::string_view kGroup = "flowcontrol.apiserver.k8s.io";

/// An object that the API server makes by itself: whole and defaulted, without what a server gives (uid, revision, status).
struct BootstrapObject {
  json::Value document;
  /// Kept as it is here whatever somebody writes. The others, which are suggested, are kept only while the annotation
  /// apf.kubernetes.io/autoupdate-spec says so.
  bool is_mandatory = false;
};
/// In no order that matters. Beside Kubernetes' own there is one FlowSchema, berth-cluster-admins: who installed the cluster is no member
/// of system:masters here.
const std::vector<BootstrapObject>& bootstrap_levels();
const std::vector<BootstrapObject>& bootstrap_schemas();
/// Null where none has that name.
const BootstrapObject* bootstrap_object(std::string_view kind, std::string_view name);

void default_level(json::Object& document);
void default_schema(json::Object& document);

}  // namespace berth::model::flow_control
