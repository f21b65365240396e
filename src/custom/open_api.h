// Custom kinds in OpenAPI documents (apiextensions-apiserver/pkg/controller/openapi/builder). Pure.
#pragma once
#include <span>

#include "custom/definition.h"

namespace berth::custom {

/// "com.example.stable.v1.CronTab"
std::string openapi_name(const model::KindInfo& kind);
/// Adds the definitions and paths of a kind. `v3`: as OpenAPI 3; otherwise what Swagger 2.0 can say of it.
void add_openapi(const CustomKind& kind, bool v3, json::Object& schemas, json::Object& paths);

}  // namespace berth::custom
