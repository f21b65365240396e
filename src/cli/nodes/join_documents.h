// What a machine that wants to join finds in the cluster: kube-public/cluster-info for everybody, and what kubeadm reads next.
#pragma once
#include <string>

#include "base/error.h"
#include "client/client.h"

namespace berth::cli {

struct JoinFacts {
  std::string url;     ///< Where machines reach the API server.
  std::string ca_pem;  ///< Who signed it; a bundle while it is exchanged.
  std::string service_cidr;
};

/// The kubeconfig of cluster-info: a cluster and nobody's credentials.
std::string cluster_info_kubeconfig(const JoinFacts& facts);
/// Its address and authority; the error says what is missing.
Result<JoinFacts> read_cluster_info(std::string_view kubeconfig);

/// Makes the ConfigMaps cluster-info, kubeadm-config and kubelet-config; cluster-info is changed when the address or the authority moved,
/// the others are the administrator's once they are there.
Result<void> publish_join_documents(client::Client& client, const JoinFacts& facts);

}  // namespace berth::cli
