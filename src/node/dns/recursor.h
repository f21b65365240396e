// The name service's process: PowerDNS Recursor (Debian's pdns-recursor). It forwards the world's names, and asks berth by a small script
// for the cluster's (docs/decisions/0031-cluster-dns.md). It lives at an address of its own on this machine's loopback, on port 53, so that
// pods and their NetworkPolicies see it as they would see CoreDNS.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace berth::node::dns {

struct RecursorOptions {
  std::string directory;  ///< Of its configuration and control socket.
  std::string address;
  std::uint16_t port = 53;
  std::uint16_t backend_port = 0;  ///< Where berth is asked, on 127.0.0.1.
  std::string domain;
  std::vector<std::string> upstream;  ///< Empty: it asks the root servers.
};

[[nodiscard]] std::string recursor_config(const RecursorOptions& options);
[[nodiscard]] std::string recursor_script(const RecursorOptions& options);

/// Owned by one thread, which must live as long as the process: the recursor ends with it. The destructor stops it.
class Recursor {
 public:
  Recursor() = default;
  ~Recursor();
  Recursor(const Recursor&) = delete;
  /// Writes the configuration and starts the program, in place of one that runs.
  Result<void> start(const RecursorOptions& options);
  [[nodiscard]] bool is_running();

 private:
  void stop();
  pid_t child_ = -1;
};

/// Empty: it is not installed.
[[nodiscard]] std::string recursor_program();
/// The name service's own address on this machine, by the node's directory: one of those that are never routed (198.18.0.0/15).
[[nodiscard]] std::string own_address(const std::string& directory);
/// Gives the loopback that address; again is well.
[[nodiscard]] Result<void> add_own_address(const std::string& directory);
/// Takes it away; true: it was there.
bool remove_own_address(const std::string& directory);
/// Whether a server can be bound there, for UDP and TCP. Needs the right to, for ports below 1024.
[[nodiscard]] bool can_bind(const std::string& address, std::uint16_t port);
/// A port free for both, for a moment.
[[nodiscard]] std::uint16_t free_port(const std::string& address);
[[nodiscard]] std::string runtime_directory(const std::string& directory);

}  // namespace berth::node::dns
