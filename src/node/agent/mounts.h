// A container's mounts: its volumes, the pod's /etc/hosts, its termination message file (kubelet makeMounts, subpath).
#pragma once
#include "node/agent/container_config.h"

namespace berth::node::agent {

/// The mounts for the container's CRI configuration. Makes files and bind mounts below the pod's directory: a subPath is opened inside its
/// volume, whatever links a pod made there. kNotFound: an image volume has no such subPath. `termination_file` becomes the host's path of
/// the termination message, or stays empty.
[[nodiscard]] Result<json::Array> container_mounts(const PodContext& context, std::size_t index, int attempt,
                                                   const std::map<std::string, std::string>& variables, std::string& termination_file);

/// How messages about image volumes begin (the CRI's word).
inline constexpr const char* kImageVolumeMountFailed = "ImageVolumeMountFailed";

/// A file below a directory, up to 1 MiB, never through a link that leads out of it. Nullopt: there is none that can be read.
[[nodiscard]] std::optional<std::string> read_file_beneath(const std::string& directory, const std::string& path);

/// Detaches every mount below a directory, deepest first.
void unmount_below(const std::string& directory);
/// The mount points below a directory, deepest first, of a mountinfo text.
[[nodiscard]] std::vector<std::string> mount_points_below(std::string_view mountinfo, const std::string& directory);

/// Where a container's termination message is kept on the host.
[[nodiscard]] std::string termination_message_file(const std::string& pod_directory, std::string_view container, int attempt);

}  // namespace berth::node::agent
