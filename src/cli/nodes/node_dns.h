// The name service of a real node, on a thread of its own.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "client/client.h"
#include "node/dns/cluster_dns.h"

namespace berth::cli {

class NodeDns {
 public:
  /// For the node that keeps its things in `directory`. Who may write the Service and the EndpointSlice of kube-system/kube-dns starts it.
  /// What stands in the way is in the log: pods then get the machine's own name servers.
  NodeDns(std::shared_ptr<client::Transport> transport, const std::string& node, const std::string& directory, const std::string& domain);
  ~NodeDns();
  NodeDns(const NodeDns&) = delete;
  /// The name servers for pods; empty: none.
  [[nodiscard]] std::vector<std::string> servers() const;
  /// Why there are none of the cluster; empty: there are.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  /// Where the name service itself answers on this node; empty: it does not.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }

 private:
  ThreadLoop& loop_;
  client::Client client_, blocking_;
  std::string cluster_ip_, own_address_, trouble_;
  std::unique_ptr<node::dns::ClusterDns> dns_;
};

/// Takes the address away that a name service left which was killed; a line for people, empty where there was none.
std::string remove_dns_address(const std::string& directory);

}  // namespace berth::cli
