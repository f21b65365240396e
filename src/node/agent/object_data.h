// What pods refer to in the API: ConfigMaps, Secrets, claims, services.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::node::agent {

enum class ObjectKind { kConfigMap, kSecret };

/// Looks up what environment variables and volumes refer to. kNotFound: the object is not there. May be called from any thread, and may
/// block.
struct ObjectSource {
  using Lookup = std::function<Result<json::Value>(const std::string& ns, const std::string& name)>;
  Lookup config_map, secret, claim, resource_claim;
  std::function<Result<json::Value>(const std::string& name)> persistent_volume;
  /// The services whose variables a pod of this namespace gets: default/kubernetes, and `with_namespace` those of its own. May be empty.
  std::function<std::vector<json::Value>(const std::string& ns, bool with_namespace)> services;
};

/// The decoded data of a ConfigMap (data and binaryData) or Secret. kNotFound says `configmap "NAME" not found`.
[[nodiscard]] Result<std::map<std::string, std::string>> object_data(const std::string& ns, const std::string& name, ObjectKind kind,
                                                                     const ObjectSource& objects);

[[nodiscard]] std::string decode_base64(std::string_view text);
[[nodiscard]] std::string encode_base64(std::string_view bytes);

}  // namespace berth::node::agent
