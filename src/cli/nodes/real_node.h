// The real node of `berth up`: whether this machine can be one, its runtime, its agent.
#pragma once
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/command/compatibility.h"
#include "client/transport.h"

namespace CLI {
class App;
}
namespace berth::net::tracing {
class Tracer;
}
namespace berth::cli {

enum class RealNodeMode { kAuto, kOn, kOff };

struct RealNodeFlags {
  std::string mode = "auto";
  std::string name;              ///< Empty: the machine's.
  std::string runtime_endpoint;  ///< Empty: containerd's or CRI-O's usual socket; with "on" one of berth's own when neither answers.
  std::string config;            ///< As `berth node --config`.
  std::vector<std::string> kubelet_arguments;
  std::string device_plugins;    ///< As `berth node --device-plugins`.
  std::string plugins_registry;  ///< As `berth node --plugins-registry`.
  std::string pod_resources;     ///< As `berth node --pod-resources`.
  Compatibility compatibility;   ///< Of `berth up`, where the scheduler's flag sets it for all.
  void add_to(CLI::App& app);
};

/// A node agent in this process. The destructor stops it (and the runtime, when it is berth's own); containers run on.
class RealNode {
 public:
  struct Place {
    std::string data_dir;  ///< The node keeps its things in DATA_DIR/node.
    std::string ca_pem;    ///< Who signs the API server's client certificate.
    std::shared_ptr<client::Transport> transport;
    /// Of what reads Services, policies and pods of all nodes, and writes the name service's Service.
    std::shared_ptr<client::Transport> network;
    std::shared_ptr<net::tracing::Tracer> tracer;  ///< Is told of pods' starts; null: nobody is.
  };
  virtual ~RealNode() = default;
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual const std::string& runtime() const = 0;
  /// Who signed what the agent's endpoints show.
  [[nodiscard]] virtual const std::string& serving_ca_pem() const = 0;

  /// What stands in the way of a real node here, without changing anything; empty: nothing. With kOn a runtime that can be started is no
  /// hindrance.
  static std::string missing(const RealNodeFlags& flags, RealNodeMode mode);
  static Result<std::unique_ptr<RealNode>> start(const RealNodeFlags& flags, RealNodeMode mode, const Place& place);
};

/// Why the container runtime at a socket cannot run pods; empty: it can. `binary`: the runtime's, which carries the CRI's description.
[[nodiscard]] std::string trouble_with_runtime(const std::string& socket, const std::string& binary);
/// The machine's name as a node's: in lower case.
[[nodiscard]] std::string machine_name();
[[nodiscard]] inline std::string real_node_name(const RealNodeFlags& flags) { return flags.name.empty() ? machine_name() : flags.name; }
/// The address from which this machine reaches others; 127.0.0.1 when it has none.
[[nodiscard]] std::string machine_address();

}  // namespace berth::cli
