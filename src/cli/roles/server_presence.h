// Which API servers live on one etcd, told as kube-apiserver tells it:
//
//   /registry/masterleases/IP                   goes by itself 15 s after its server stopped renewing it
//   Endpoints, EndpointSlice default/kubernetes  the addresses there: where pods find the API
//   Lease kube-system/apiserver-…                who serves, for people
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "client/client.h"
#include "store/shared.h"

namespace berth::cli {

struct PresenceFacts {
  std::string prefix;   ///< Of all keys.
  std::string address;  ///< Where this server is reached; one server an address, as in Kubernetes.
  std::uint16_t port = 6443;
  std::string identity;          ///< The Lease's name.
  std::function<void()> repair;  ///< Called every few minutes, from the presence's thread.
};

/// Renews from a thread of its own until withdraw() or destruction.
class ServerPresence {
 public:
  ServerPresence(std::shared_ptr<store::SharedStore> store, client::Client client, const Clock& clock, PresenceFacts facts);
  ~ServerPresence();
  /// From now on this server is not among the addresses: called when it is to stop, before it stops serving.
  void withdraw();

 private:
  void run();
  void renew();
  void publish();
  void write_lease(bool is_gone);
  void put(const model::Gvr& gvr, json::Value document);
  [[nodiscard]] std::string lease_key() const { return facts_.prefix + "/masterleases/" + facts_.address; }

  const std::shared_ptr<store::SharedStore> store_;
  client::Client client_;
  const Clock& clock_;
  const PresenceFacts facts_;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// "apiserver-" and what is made of the host's name and the server's address.
std::string server_identity(const std::string& host, const std::string& address, std::uint16_t port);

}  // namespace berth::cli
