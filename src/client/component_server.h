// The HTTPS port that every component has besides its work: /healthz, /livez, /readyz, /metrics and /configz, as kube-scheduler serves on
// 10259 and kube-controller-manager on 10257 (SPEC I6).
//
// A component only fills in what it has: a metrics registry, its configuration, its checks. Health answers everybody; the rest asks the API
// server who may (client/delegated_auth.h).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "client/transport.h"
#include "net/server.h"

namespace berth::client {

struct ComponentCheck {
  std::string name;                      ///< As in "/readyz/NAME".
  std::function<std::string()> failure;  ///< Empty when all is well, otherwise why not. Called on an I/O thread; may wait a second.
  bool only_ready = false;               ///< Asked by /readyz alone.
};

struct ComponentServerOptions {
  std::string address = "0.0.0.0";
  std::uint16_t port = 0;                ///< 0: any free one.
  net::TlsServerConfig tls;              ///< Without a certificate one is made, signed by itself, for this start.
  std::string name = "berth";            ///< Of that certificate.
  std::function<std::string()> metrics;  ///< The text exposition; the process's own figures are added.
  std::string config_name;               ///< The key under which /configz shows the configuration ("componentconfig").
  std::function<json::Value()> config;
  std::vector<ComponentCheck> checks;                      ///< Besides "ping".
  bool profiling = true;                                   ///< /debug/pprof, for who may get it.
  std::vector<std::pair<std::string, std::string>> flags;  ///< What /flagz shows: names without dashes.
  /// Whom to ask about callers, as the component itself; outlives the server. Null: only certificates of system:masters pass.
  std::shared_ptr<Transport> transport;
};

/// Owns a thread and its sockets. The options' functions may be called until the destructor has returned; `metrics` and `config` even a
/// moment longer when the API server was slow to say who may: what they refer to is theirs to keep alive.
class ComponentServer {
 public:
  /// Errors: the address cannot be served on, the certificate is unusable.
  static Result<std::unique_ptr<ComponentServer>> start(ComponentServerOptions options);
  virtual ~ComponentServer() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

/// The cluster's authority for client certificates, as ConfigMap kube-system/extension-apiserver-authentication publishes it; empty when
/// the cluster has none or cannot be asked. Blocks.
std::string published_client_ca(const std::shared_ptr<Transport>& transport);

}  // namespace berth::client
