// How a machine becomes a node of a cluster that it knows by an address, a token and a hash alone (kubeadm's discovery, the kubelet's TLS
// bootstrap).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/nodes/join_documents.h"
#include "client/kubeconfig.h"

namespace berth::cli {

/// Sends one GET and answers with status and body; status 0: nothing answered, and the body says why. An empty `ca_pem`: whoever answers
/// is not verified.
using Fetch = std::function<net::HttpResponse(const std::string& url, const std::string& path, const std::string& ca_pem)>;
Fetch network_fetch();

struct JoinRequest {
  std::string server;  ///< https://HOST:PORT, or HOST[:PORT]
  std::string token;
  std::vector<std::string> ca_hashes;  ///< "sha256:…"; any of them.
};
/// The form of server, token and hashes; all that is wrong, a line each.
Result<void> check_join_request(JoinRequest& request);
/// The cluster's address and authority, vouched for by the token's signature and the hash. Errors are for people.
Result<JoinFacts> discover_cluster(const JoinRequest& request, const Fetch& fetch);

}  // namespace berth::cli
