// Who may write what of resource claims beyond what roles say of the whole object (pkg/registry/resource/utils.go).
#pragma once
#include <string>
#include <vector>

#include "apiserver/auth_interfaces.h"
#include "apiserver/object_cache.h"
#include "base/json.h"
#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::apiserver {

struct DeviceWrite {
  const model::KindInfo& kind;
  const std::string& subresource;
  const std::string& ns;
  const UserInfo& user;
  std::string verb;  ///< "update" or "patch"; of no account at creation.
};

/// Findings that come before the validation's own: access for administrators asks for a label of the namespace, an allocation for the
/// permission on resourceclaims/binding, a device's status for the one on resourceclaims/driver. `old` is null at creation.
model::FieldErrors check_device_write(const DeviceWrite& write, const json::Value* old, const json::Value& updated, ObjectCache& cache,
                                      Authorizer& authorizer);

/// Selectors that are no expressions over a device, or cost too much. What is stored already is not judged anew.
model::FieldErrors check_device_selectors(const model::KindInfo& kind, const json::Value* old, const json::Value& updated);

}  // namespace berth::apiserver
