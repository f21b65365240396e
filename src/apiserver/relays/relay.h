// Requests that go on to a node's agent or to what runs in a pod, and their answers on the way back.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "apiserver/answers/respond.h"
#include "base/mutex.h"
#include "net/client.h"

namespace berth::net {
class Reactor;
}

namespace berth::apiserver {

/// An API server that was aggregated: how it is known.
struct Upstream {
  std::string ca_pem;  ///< Empty: the system's authorities.
  bool insecure = false;
  std::string server_name;  ///< That its certificate must be for.
  friend bool operator==(const Upstream&, const Upstream&) = default;
};

/// Where a request goes on to.
struct FarEnd {
  std::string url;                   ///< scheme://address:port
  std::string node;                  ///< The node whose agent this is; empty: a pod.
  bool on_host = false;              ///< A pod in its node's own network: it may be on this machine.
  std::string failure;               ///< What stands before the reason when nothing answers there.
  std::optional<Upstream> upstream;  ///< Of an aggregated API server.
  std::string path_prefix;  ///< Below which path of this server its pages are seen: links and redirects are moved there. Empty: they stay.
};

/// The clients that requests go on by: one I/O thread for all, connections only to where they may lead. Thread-safe.
class RelayClients {
 public:
  /// `node_client`: the credentials towards nodes; its ca_pem, when not empty, signs every node's serving certificate.
  RelayClients(net::ClientConfig node_client, std::string service_cidr);
  ~RelayClients() { stop(); }
  /// Ends what is under way and waits for the I/O thread. Idempotent.
  void stop();

  /// Where this server is reached: a node that claims to be there is refused, in whatever spelling.
  void serves_on(const std::string& advertise_address, std::uint16_t port);
  /// The serving certificate of this node is verified against `ca_pem`, whatever holds for the others.
  void trust_node(const std::string& node, std::string ca_pem);
  /// Who this server is to nodes from now on, and what verifies them.
  void set_node_client(net::ClientConfig node_client);
  /// Who this server is to aggregated servers: the front proxy.
  void set_front_proxy(std::string certificate_pem, std::string private_key_pem);

  Result<std::shared_ptr<net::HttpClient>> client_for(const FarEnd& far);
  /// Lets go of something on the I/O thread, after what runs there now.
  void release_later(std::shared_ptr<void> what);

 private:
  struct Own;
  Result<std::shared_ptr<net::HttpClient>> make_client(const FarEnd& far) BERTH_REQUIRES(mutex_);

  const std::shared_ptr<Own> own_;
  Mutex mutex_;
  net::ClientConfig node_client_ BERTH_GUARDED_BY(mutex_);
  std::string proxy_certificate_pem_ BERTH_GUARDED_BY(mutex_), proxy_key_pem_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<net::Reactor> reactor_ BERTH_GUARDED_BY(mutex_);           ///< Started with the first client.
  std::map<std::string, std::string> authorities_ BERTH_GUARDED_BY(mutex_);  ///< Of single nodes.
  std::map<std::string, std::shared_ptr<net::HttpClient>> clients_ BERTH_GUARDED_BY(mutex_);
};

/// 503: nobody is there whom the request could go to.
model::ApiStatus unavailable(std::string message);

/// Sends requests on. Thread-safe.
struct Relays {
  /// `ground` and `respond` outlive this. `node_client`: as RelayClients'.
  Relays(Ground& ground, Responder& respond, net::ClientConfig node_client);

  /// Sends a request on and its answer back, or joins the two connections when it asks for an upgrade. Whatever either side does, at most a
  /// megabyte is held between them, and when one goes the other's request is called off.
  void send_on(const RequestPtr& request, const FarEnd& far, net::HttpRequest onward);

  EventLoop& loop;
  Responder& respond;
  RelayClients clients;
};

}  // namespace berth::apiserver
