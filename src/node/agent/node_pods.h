// The pods of a node: those that the API binds to it and those of its own manifests, each with its worker; their statuses on the way back
// (kubelet's pod manager, status manager and mirror client).
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifeline.h"
#include "base/mutex.h"
#include "client/client.h"
#include "client/informer.h"
#include "node/admission.h"
#include "node/agent/kubelet_server.h"
#include "node/agent/pod_worker.h"
#include "node/agent/static_pods.h"

namespace berth::node::agent {

/// Threading: start, stop, push_status and set_static_pods on the client's loop; the rest from any thread.
class NodePods {
 public:
  /// `refuse` says why a new pod may not start on the node (nullopt: it may), given the pods that run there already. `node`: the Node
  /// object as it was just read; null: as it is known. Who is refused by its labels is asked about once more with one that was read for it.
  using Refuse =
      std::function<std::optional<Refusal>(const json::Value& pod, const std::vector<json::Value>& active, const json::Value* node)>;
  NodePods(client::Client& client, PodEnvironment& environment, Refuse refuse);
  ~NodePods();
  NodePods(const NodePods&) = delete;
  NodePods& operator=(const NodePods&) = delete;

  /// Watches the API; repeated calls do nothing.
  void start();
  /// Ends the watch and what is under way. The workers stay until the destructor, which waits for their steps; containers keep running.
  void stop();
  /// A pod's status changed, or everything of it is gone: brings the API up to date.
  void push_status(const std::string& uid);
  /// The manifests as they are now: new ones start, changed ones are replaced, missing ones stop.
  void set_static_pods(std::vector<json::Value> pods);

  [[nodiscard]] std::vector<std::shared_ptr<PodWorker>> workers() const;
  [[nodiscard]] bool contains(const std::string& uid) const;
  /// Null: no such pod.
  [[nodiscard]] std::shared_ptr<PodWorker> worker(const std::string& uid) const;
  [[nodiscard]] std::optional<KubeletBackend::Pod> find_pod(const std::string& ns, const std::string& name) const;
  /// /pods
  [[nodiscard]] json::Value pod_list() const;
  /// The API's pods are known: what the runtime has besides them is left over.
  [[nodiscard]] bool is_synced() const { return is_synced_; }
  /// Joins the threads of workers that are over; off the loop.
  void bury();

 private:
  /// A pod with what is known of its reports. The worker is shared with threads that look at all pods.
  struct Pod {
    std::shared_ptr<PodWorker> worker;
    json::Value reported;
    std::string reported_uid;  ///< Whose status that is: a mirror may be replaced.
    bool is_writing = false, is_deleting = false, is_stale = false;
    bool says_again = false;  ///< Others wrote over what was reported.
    bool is_static = false;
  };
  /// What stands for a static pod in the API.
  struct Mirror {
    std::string uid, hash;
    bool is_writing = false;
  };

  void pod_seen(const client::Object& object);
  void pod_gone(const client::Object& object);
  void stop_pod(const std::string& uid);
  void mirror_seen(const client::Object& object, const json::Value& document);
  void ensure_mirror(const std::shared_ptr<Pod>& pod);
  /// Starts the pod, as one that runs or as one that is refused: at once, or when the node's labels have been read.
  void start_admitted(const std::shared_ptr<Pod>& pod, const json::Value& document, const json::Value* node = nullptr);
  [[nodiscard]] std::optional<Refusal> why_not(const std::shared_ptr<Pod>& pod, const json::Value& document, const json::Value* node) const;
  void write_status(const std::string& uid, const std::shared_ptr<Pod>& pod, const std::string& api_uid, json::Value status);
  [[nodiscard]] std::shared_ptr<Pod> find(const std::string& uid) const;
  void push_later(const std::string& uid);
  void insist(const std::shared_ptr<Pod>& pod, const std::string& api_uid, const json::Value& seen);

  client::Client& client_;
  EventLoop& loop_;
  PodEnvironment& environment_;
  const Refuse refuse_;
  std::unique_ptr<client::Informer> informer_;
  std::map<std::string, Mirror> mirrors_;  ///< By namespace/name; on the loop.
  Lifeline lifeline_;
  std::atomic<bool> is_synced_{false};

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Pod>> pods_ BERTH_GUARDED_BY(mutex_);  ///< By the uid that the runtime knows.
  std::vector<std::shared_ptr<Pod>> graveyard_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::node::agent
