// `berth node`: this machine as a node of a cluster, its pods as real containers (SPEC F1–F11).
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/version.h"
#include "client/client.h"
#include "node/agent/machine.h"
#include "node/cri/channel.h"
#include "node/eviction/kubelet_config.h"

namespace berth::net::tracing {
class Tracer;
}

namespace berth::node::agent {

struct AgentOptions {
  std::string node_name;
  std::string root = "/var/lib/berth-node";  ///< Pods' volumes, logs and the endpoint's certificate.
  cri::ChannelOptions runtime;
  std::string runtime_root;                      ///< A path on the runtime's filesystem; empty: the runtime is asked.
  std::string address = "127.0.0.1";             ///< Where the API server reaches the endpoints, and the node's InternalIP.
  std::uint16_t port = 10250;                    ///< 0: any free one.
  std::string certificate_pem, private_key_pem;  ///< What the endpoints show.
  std::string client_ca_pem;                     ///< Who signs the certificates that may use the endpoints (the API server's).
  std::map<std::string, std::string> labels;
  json::Array taints;  ///< Of a node that is new.
  /// The cgroup that stands for the machine (its memory limit is the node's memory); empty: the machine itself.
  std::string node_cgroup;
  eviction::KubeletSettings settings;
  std::string device_plugins;    ///< The directory where device plugins register; empty: none can.
  std::string plugins_registry;  ///< The directory of the sockets by which drivers and plugins are found; empty: none are.
  std::string pod_resources;     ///< The directory where monitoring agents ask who has what; empty: it is not served.
  std::string kubelet_version{kBuildVersion};
  std::shared_ptr<net::tracing::Tracer> tracer;  ///< Is told of pods' starts; null: nobody is.
};

/// Owns its threads. The destructor stops the agent; containers keep running and are taken over by the next one.
class Agent {
 public:
  /// Checks everything that the node needs before anything is registered: the configuration, root, cgroups, the runtime. Errors say what is
  /// missing and what to do. `client` must have a loop and outlive the agent; `blocking` is a client of the same server without one.
  static Result<std::unique_ptr<Agent>> start(client::Client& client, client::Client& blocking, AgentOptions options);
  virtual ~Agent() = default;
  /// What the endpoints show from now on; connections that are open go on. Thread-safe.
  virtual Result<void> show_certificate(const std::string& certificate_pem, const std::string& private_key_pem) = 0;
};

}  // namespace berth::node::agent
