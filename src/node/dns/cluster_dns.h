// The cluster's name service on this node: keeps the names in step with Services and EndpointSlices, answers the recursor's questions, and
// puts the Service kube-system/kube-dns before it. Each node serves its own pods (internalTrafficPolicy Local).
#pragma once
#include <memory>
#include <string>

#include "client/client.h"

namespace berth::node::dns {

struct ClusterDnsOptions {
  std::string node;
  std::string directory;  ///< The node's: what its address and files are named after.
  std::string domain = "cluster.local";
  std::string resolv_conf = "/etc/resolv.conf";  ///< Whom names of the world are asked of; looked at every few seconds.
};

/// Lives on the client's loop, on whose thread it is made and goes; that thread must live as long as the process.
class ClusterDns {
 public:
  /// `cluster_ip`: the name service's address for pods. Null with an address in `cluster_ip`: the cluster has a name service of somebody
  /// else's under the Service kube-dns, and that is used. Errors say what this machine lacks, or which right.
  /// `blocking`: a client of the same server without a loop.
  static Result<std::unique_ptr<ClusterDns>> start(client::Client& client, client::Client& blocking, ClusterDnsOptions options,
                                                   std::string& cluster_ip);
  ~ClusterDns();
  ClusterDns(const ClusterDns&) = delete;

 private:
  struct Impl;
  explicit ClusterDns(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::node::dns
