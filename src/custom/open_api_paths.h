// The operations of custom kinds in OpenAPI documents, as Kubernetes publishes them
// (apiextensions-apiserver/pkg/controller/openapi/builder).
#pragma once
#include "custom/definition.h"

namespace berth::custom {

/// "#/components/schemas/NAME" (3.0) or "#/definitions/NAME" (2.0).
std::string openapi_reference(bool v3, std::string_view name);

/// Adds every path of a kind, and to `schemas` what the answers refer to besides the kind itself, where it is not there yet.
void add_openapi_paths(const CustomKind& kind, bool v3, json::Object& schemas, json::Object& paths);

}  // namespace berth::custom
