// berth's own roles as the programs of pods on simulated nodes: each a process of this binary with the pod's service account, its
// ConfigMaps and Secrets where the pod mounts them, and nothing else of this machine (document 002 §16.3.5).
#pragma once
#include <memory>
#include <string>

#include "client/kubeconfig.h"
#include "node/simulated/simulated_nodes.h"

namespace berth::cli {

struct PodProgramsOptions {
  /// As whom volumes are read and tokens are asked for: what a kubelet may.
  std::shared_ptr<client::Transport> transport;
  /// Where the programs find the API server: server, ca_pem, tls_server_name.
  client::KubeconfigEntry server;
  std::string directory;  ///< Each program's files lie below it while it runs; made when it is missing, for the owner alone.
};

/// The destructor stops every program and waits for it.
std::shared_ptr<node::simulated::ProgramRunner> make_pod_programs(PodProgramsOptions options);

/// The arguments for this binary, with the pod's paths as `mounts` (there to here) say. The error names the first flag that a pod may not
/// give, or whose file is not the pod's. A last word that can be a callout number of the documents is left out, which is told in `notes`.
Result<std::vector<std::string>> program_arguments(const node::simulated::RoleCommand& command,
                                                   const std::vector<std::pair<std::string, std::string>>& mounts,
                                                   std::vector<std::string>& notes);

}  // namespace berth::cli
