// What a Service keeps and loses at an update, around what the server had chosen for it.
#pragma once
#include "base/json.h"

namespace berth::model {

/// `service` replaces `old`: what `service` leaves out and the server had allocated (address, node ports by port name, the health check's
/// port) stays where its type still has it; what the new type has no use for goes, unless this write also changed it, which validation then
/// refuses (Kubernetes: pkg/registry/core/service, patchAllocatedValues and dropTypeDependentFields).
void prepare_service_update(const json::Value& old, json::Value& service);

/// A new Service's address in its newer form, where only the older one was given.
void prepare_service(json::Value& service);

}  // namespace berth::model
