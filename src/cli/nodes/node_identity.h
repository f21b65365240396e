// A node's certificates: ordered from the cluster by CertificateSigningRequests, as kubelets do (TLS bootstrap, certificate rotation).
#pragma once
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "client/replaceable_transport.h"
#include "net/certificates.h"

namespace berth::cli {

struct NodeIdentity {
  std::string certificate_pem, private_key_pem;
};

struct CertificateOrder {
  std::string signer;  ///< "kubernetes.io/kube-apiserver-client-kubelet" or "…/kubelet-serving"
  net::RequestSubject subject;
  std::vector<std::string> usages;
  std::function<bool()> wait;                            ///< Between two looks; false: no longer.
  std::function<void(const std::string& name)> ordered;  ///< Once the request is there; may be empty.
  std::string unknown_user = {};                         ///< What to tell when the server does not know who asks; empty: its own words.
};
CertificateOrder client_order(const std::string& node, std::function<bool()> wait);
CertificateOrder serving_order(const std::string& node, std::vector<std::string> names, std::function<bool()> wait);

/// Makes a key, asks for its certificate and waits for it. Errors are for people: denied, failed (with the signer's reason), not approved
/// in time (with what to type).
Result<NodeIdentity> order_certificate(client::Client& client, const CertificateOrder& order);

/// Keeps a kubeconfig's client certificate alive. Not thread-safe.
class IdentityKeeper {
 public:
  struct Options {
    std::string node, path;                             ///< Of the kubeconfig, which is written anew.
    client::KubeconfigEntry entry;                      ///< What stands in it now.
    double share = 0.5;                                 ///< Where between 70% and 90% of the life it is renewed.
    std::function<bool()> wait;                         ///< See CertificateOrder.
    client::ReplaceableTransport* transport = nullptr;  ///< Gets the new certificate; may be null.
  };
  /// The error says that the certificate cannot be read.
  static Result<IdentityKeeper> create(Options options);
  /// When keep() will order a new one.
  [[nodiscard]] TimePoint due() const { return due_; }
  [[nodiscard]] TimePoint end() const { return end_; }
  /// Orders a new certificate when it is time, writes it, and puts it into use. True: done; false: not yet due. After an error the old one
  /// is still in use, and the next call tries again.
  Result<bool> keep(client::Client& client, TimePoint now);
  void set_wait(std::function<bool()> wait) { options_.wait = std::move(wait); }

 private:
  explicit IdentityKeeper(Options options) : options_(std::move(options)) {}
  Result<void> read();
  Options options_;
  TimePoint due_, end_;
};

/// The node that a kubeconfig's client certificate is of ("system:node:NAME"); empty: of none.
std::string node_of_certificate(const std::string& certificate_pem);

/// Looks after a node's client certificate on a thread of its own while a node runs. The destructor ends it.
class IdentityThread {
 public:
  /// `keeper` was made for `transport`, by which it also asks.
  IdentityThread(IdentityKeeper keeper, std::shared_ptr<client::ReplaceableTransport> transport);
  ~IdentityThread();
  /// False: it is to end. Waits for `pause` otherwise.
  bool wait_for(std::chrono::milliseconds pause);

 private:
  void run();
  std::shared_ptr<client::ReplaceableTransport> transport_;
  client::Client client_;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  IdentityKeeper keeper_;
  std::thread thread_;
};

}  // namespace berth::cli
