#include "model/subresources.h"

namespace berth::model {

Subresource subresource_of(const KindInfo& parent, std::string_view name) {
  const std::vector<std::string> view{"get", "patch", "update"}, post{"create"}, session{"create", "get"};
  if (name == "status" || name == "approval") return {parent.kind, "", "", view};
  if (name == "scale") return {"Scale", "autoscaling", "v1", view};
  if (name == "binding") return {"Binding", "", "", post};
  if (name == "eviction") return {"Eviction", "policy", "v1", post};
  if (name == "token") return {"TokenRequest", "authentication.k8s.io", "v1", post};
  if (name == "log") return {"Pod", "", "", {"get"}};
  if (name == "ephemeralcontainers" || name == "resize") return {"Pod", "", "", view};
  if (name == "exec") return {"PodExecOptions", "", "", session, true};
  if (name == "attach") return {"PodAttachOptions", "", "", session, true};
  if (name == "portforward") return {"PodPortForwardOptions", "", "", session, true};
  if (name == "proxy") return {parent.kind + "ProxyOptions", "", "", {"create", "delete", "get", "patch", "update"}};
  if (name == "finalize") return {parent.kind, "", "", {"update"}};
  return {parent.kind, "", "", {"get"}};
}

}  // namespace berth::model
