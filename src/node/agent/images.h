// Names of images, and who may pull them (credentialprovider's keyring).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::node::agent {

/// NAME:latest when the reference has neither tag nor digest.
[[nodiscard]] std::string with_default_tag(const std::string& image);
/// Why a reference is none ("invalid reference format", …); nullopt: it is one.
[[nodiscard]] std::optional<std::string> wrong_image_reference(std::string_view image);
/// IfNotPresent, Always or Never: as given, or by the tag.
[[nodiscard]] std::string pull_policy(const json::Value& container);
/// "docker.io/library/busybox" for "busybox:1": host and repository, as credentials name them.
[[nodiscard]] std::string image_repository(std::string_view image);

/// "docker.io/library/busybox:latest" for "busybox": as runtimes list it.
[[nodiscard]] std::string canonical_image(std::string_view image);

/// The CRI's AuthConfigs of the secrets (kubernetes.io/dockerconfigjson and dockercfg) that are for this image, the most specific first.
[[nodiscard]] std::vector<json::Object> image_credentials(std::string_view image, const std::vector<json::Value>& secrets);

/// "1.5s", "320ms": as Go prints a duration cut to milliseconds.
[[nodiscard]] std::string format_milliseconds(std::int64_t ms);

}  // namespace berth::node::agent
