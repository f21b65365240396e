// What a node's endpoints show: a certificate that the cluster signs (signer kubernetes.io/kubelet-serving), ordered and renewed while the
// node runs, as a kubelet with serverTLSBootstrap does.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cli/nodes/node_identity.h"

namespace berth::cli {

/// Keeps DIRECTORY/kubelet-server-current.pem alive (certificate, then key, as a kubelet has it). Not thread-safe.
class ServingKeeper {
 public:
  struct Options {
    std::string node;
    std::vector<std::string> names;  ///< Of the node: its name and addresses.
    std::string directory;           ///< Is there.
    double share = 0.5;              ///< Where between 70% and 90% of the life it is renewed.
    std::function<bool()> wait;      ///< See CertificateOrder.
    std::function<Result<void>(const NodeIdentity&)> use;
  };
  explicit ServingKeeper(Options options) : options_(std::move(options)) {}
  /// Puts the certificate that is kept into use, if it is for these names and has not ended. True: done.
  Result<bool> reuse(TimePoint now);
  /// Orders one when it is time, keeps it and puts it into use. True: done; false: not yet due. After an error what was in use still is.
  Result<bool> keep(client::Client& client, TimePoint now);
  /// Epoch: there is none.
  [[nodiscard]] TimePoint end() const { return end_; }
  void set_wait(std::function<bool()> wait) { options_.wait = std::move(wait); }

 private:
  [[nodiscard]] std::string path() const { return options_.directory + "/kubelet-server-current.pem"; }
  Result<void> adopt(const NodeIdentity& identity);
  Options options_;
  TimePoint due_{}, end_{};
};

/// Does so on a thread of its own. The destructor ends it.
class ServingThread {
 public:
  ServingThread(ServingKeeper keeper, std::shared_ptr<client::Transport> transport);
  ~ServingThread();

 private:
  void run();
  /// False: it is to end. Waits for `pause` otherwise.
  bool wait_for(std::chrono::milliseconds pause);
  client::Client client_;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  ServingKeeper keeper_;
  std::thread thread_;
};

}  // namespace berth::cli
