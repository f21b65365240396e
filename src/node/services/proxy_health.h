// Port 10256: whether this node leads Services as it should, for balancers in front of nodes (kube-proxy's pkg/proxy/healthcheck).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/mutex.h"
#include "net/http.h"
#include "net/server.h"

namespace berth::node::services {

inline constexpr std::uint16_t kProxyHealthPort = 10256;

/// What the rules' keeper has said of its work, and what is answered by it. Thread-safe.
class ProxyHealth {
 public:
  explicit ProxyHealth(const Clock& clock) : clock_(clock) {}
  /// Changes wait to be taken by the kernel; then: it took them.
  void changes_wait();
  void changes_done();
  /// The node as it is in the API: one that goes, or that an autoscaler is about to take away, gets no new connections.
  void set_node(const json::Value& node);
  /// /healthz and /livez; everything else is not found.
  [[nodiscard]] net::HttpResponse answer(std::string_view path) const;

 private:
  const Clock& clock_;
  mutable Mutex mutex_;
  std::optional<TimePoint> waits_since_ BERTH_GUARDED_BY(mutex_), done_at_ BERTH_GUARDED_BY(mutex_);
  bool is_eligible_ BERTH_GUARDED_BY(mutex_) = true;
};

/// Serves the above at every address of the machine; nullptr, said in the log, where somebody else has the port: one a machine is enough.
class ProxyHealthServer {
 public:
  static std::unique_ptr<ProxyHealthServer> start(std::uint16_t port, const ProxyHealth& health);
  ~ProxyHealthServer();

 private:
  struct Handler;
  ProxyHealthServer();
  std::unique_ptr<Handler> handler_;
  std::unique_ptr<net::Server> server_;  ///< Goes first.
};

}  // namespace berth::node::services
