// A pod's volumes on this machine: emptyDir (disk or memory), hostPath, configMap, secret, downwardAPI, projected, and claims bound to
// volumes that lie on this machine or that a CSI driver mounts.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "node/agent/container_config.h"
#include "node/csi/volume_request.h"

namespace berth::node::agent {

/// What a token is asked for.
struct TokenRequest {
  std::string ns, service_account, audience, pod_name, pod_uid;
  std::int64_t expiration_seconds = 3600;
};
struct Token {
  std::string text;
  TimePoint expires{};
};
/// Asks the API for a token of the pod's service account, bound to the pod.
using TokenSource = std::function<Result<Token>(const TokenRequest& request)>;

/// The tokens of one pod's volumes, asked for again when four fifths of their life (or a day) are over. One thread.
class TokenCache {
 public:
  Result<Token> get(const TokenSource& source, const TokenRequest& request, TimePoint now);

 private:
  struct Entry {
    Token token;
    TimePoint asked{};
  };
  std::map<std::string, Entry> entries_;
};

/// Has a driver mount a volume; blocks. Null: this node has no drivers.
using DriverVolumes = std::function<Result<PlacedVolume>(const csi::PodVolume& volume)>;

/// Makes what is missing, brings files up to date and fills `context.volumes`. Safe to repeat. Errors are for the event FailedMount; what
/// was made stays for the next try.
Result<void> set_up_volumes(PodContext& context, const ObjectSource& objects, const TokenSource& tokens, TokenCache& cache, TimePoint now,
                            const DriverVolumes& drivers = {});
/// Unmounts and removes everything below the pod's directory. Nothing is removed when something is still mounted there.
Result<void> tear_down_volumes(const std::string& pod_directory);

/// The name of the claim that a volume refers to: its own for generic ephemeral volumes; empty for other volumes.
[[nodiscard]] std::string claim_name(const json::Value& pod, const json::Value& volume);

/// Bytes and files below a path on its own filesystem.
struct DiskUse {
  std::uint64_t bytes = 0, files = 0;
};
[[nodiscard]] DiskUse disk_use(const std::string& path);

}  // namespace berth::node::agent
