// The flags of a component's own HTTPS port (kube-scheduler's and kube-controller-manager's --secure-port, --bind-address, …).
#pragma once
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "cli/command/findings.h"
#include "client/component_server.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct ComponentPortFlags {
  std::string bind_address = "0.0.0.0";
  int port = -1;  ///< 0: none is served; -1 (no flag): the usual one, or any free one when that is taken.
  std::uint16_t usual_port = 0;
  std::string certificate_file, key_file, client_ca_file;
  bool profiling = true;
  const CLI::App* app = nullptr;  ///< Whose flags /flagz shows; outlives the start.
  /// `default_port` as Kubernetes has it.
  void add_to(CLI::App& app, int default_port);
  /// That the files are there and go together.
  void check(Findings& findings) const;
};

/// Every flag with its value, or its default, by name without dashes: what /flagz shows.
std::vector<std::pair<std::string, std::string>> shown_flags(const CLI::App& app);

/// Serves the port of a component that has a process of its own; null when the flags say none. Without --client-ca-file the cluster is
/// asked for its authority. `options` has everything but address, port and TLS. The error names the flag.
Result<std::unique_ptr<client::ComponentServer>> serve_component(const ComponentPortFlags& flags, client::ComponentServerOptions options);

/// The ports of the components within `berth up`: "auto" takes Kubernetes' own port or, if that is taken, any free one; "0" serves none.
Result<std::unique_ptr<client::ComponentServer>> serve_component_of_up(const std::string& flag, const std::string& port,
                                                                       std::uint16_t usual_port, client::ComponentServerOptions options);

/// That such a port is "auto", 0 or a number.
Result<void> check_component_port(const std::string& flag, const std::string& port);

/// Asks on the loop's thread, waiting up to a second; "does not respond" when it takes longer.
std::string ask_loop(EventLoop& loop, std::function<std::string()> question);
/// A check that the component's loop turns.
client::ComponentCheck loop_check(std::string name, EventLoop& loop);

}  // namespace berth::cli
