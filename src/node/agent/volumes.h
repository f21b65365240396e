// A pod's volumes on this machine: emptyDir (disk or memory), hostPath, configMap, secret, downwardAPI, projected.
#pragma once
#include <functional>
#include <string>

#include "node/agent/container_config.h"

namespace berth::node::agent {

/// Asks the API for a token of the pod's service account, bound to the pod.
using TokenSource = std::function<Result<std::string>(const std::string& ns, const std::string& service_account, const std::string& audience, std::int64_t expiration_seconds)>;

/// Makes what is missing and fills `context.volumes`. Safe to repeat: files are written anew, directories stay. Errors are for the event
/// FailedMount; what was made stays for the next try.
Result<void> set_up_volumes(PodContext& context, const std::string& pod_directory, const ObjectSource& objects, const TokenSource& tokens);
/// Unmounts and removes everything below the pod's directory.
Result<void> tear_down_volumes(const std::string& pod_directory);
/// Bytes and files below a path on its own filesystem.
struct DiskUse {
  std::uint64_t bytes = 0, files = 0;
};
[[nodiscard]] DiskUse disk_use(const std::string& path);

}  // namespace berth::node::agent
