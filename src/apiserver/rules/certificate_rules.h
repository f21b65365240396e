// What the API server itself knows of CertificateSigningRequests: who asked, and whether the X.509 in them is in order
// (pkg/registry/certificates, pkg/apis/certificates/validation).
#pragma once
#include "apiserver/auth/interfaces.h"
#include "base/json.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// Writes who asks into the spec, whatever stood there.
void set_requestor(const UserInfo& user, json::Value& request);
/// Findings about spec.request and status.certificate; `old` is null at creation. What is stored already is not judged anew.
model::FieldErrors check_certificate_request(const json::Value* old, const json::Value& request);

}  // namespace berth::apiserver
