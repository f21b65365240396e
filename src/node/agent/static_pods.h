// Pods of a manifest directory, which run without an API server's word (kubelet's staticPodPath).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace berth::node::agent {

inline constexpr std::string_view kConfigSourceAnnotation = "kubernetes.io/config.source";
inline constexpr std::string_view kConfigHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kConfigSeenAnnotation = "kubernetes.io/config.seen";
inline constexpr std::string_view kConfigMirrorAnnotation = "kubernetes.io/config.mirror";

/// One manifest's pod as it runs here: named NAME-NODE, its uid a hash of its content, bound to the node, defaulted, tolerating NoExecute
/// taints. An error when the text is no pod.
[[nodiscard]] Result<json::Value> static_pod(std::string_view manifest, const std::string& path, const std::string& node_name,
                                             TimePoint now);

/// Every manifest of a directory (or the one file), in order of its file names; hidden files and those that are no pods are left out, the
/// latter with a text in `problems`. A directory that is not there holds nothing.
[[nodiscard]] std::vector<json::Value> read_static_pods(const std::string& path, const std::string& node_name, TimePoint now,
                                                        std::vector<std::string>& problems);

/// Names, times and sizes of the manifests: a text that differs when they do.
[[nodiscard]] std::string manifest_signature(const std::string& path);

/// What stands for a static pod in the API: without status and uid, owned by the node (whose uid may be empty).
[[nodiscard]] json::Value mirror_pod(const json::Value& pod, const std::string& node_name, const std::string& node_uid);

[[nodiscard]] bool is_static_pod(const json::Value& pod);
[[nodiscard]] bool is_mirror_pod(const json::Value& pod);

}  // namespace berth::node::agent
