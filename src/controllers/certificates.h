// The controllers of certificates and of joining: requests approved, signed and cleaned away, bootstrap tokens ended, cluster-info signed.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>

#include "controllers/controller.h"
#include "net/certificates.h"

namespace berth::controllers {

/// Who signs, asked at every signature: what it reads may have been replaced meanwhile.
using AuthoritySource = std::function<Result<net::SigningAuthority>()>;

/// One authority: who signs, and the files that the source reads.
struct Authority {
  AuthoritySource source;
  std::string certificate_file, key_file;
};

struct SigningOptions {
  AuthoritySource authority;               ///< Null: nothing is signed but what has an authority of its own.
  std::string certificate_file, key_file;  ///< --cluster-signing-cert-file, --cluster-signing-key-file: what `authority` reads.
  /// Of single signers: --cluster-signing-kubelet-serving-cert-file and the like, by "kubelet-serving", "kubelet-client",
  /// "kube-apiserver-client".
  std::map<std::string, Authority, std::less<>> own_authorities;
  /// --approve-kubelet-serving=own-addresses: Kubernetes approves none by itself.
  bool approves_kubelet_serving = false;
  Duration duration = std::chrono::hours(24 * 365);  ///< --cluster-signing-duration: the most a certificate lives.
};

/// What the signer asks of a request; empty: it signs it (pkg/apis/certificates/helpers.go, pkg/controller/certificates/signer).
std::string check_kubelet_client_request(const net::CertificateRequestFacts& request, const std::vector<std::string>& usages);
std::string check_kubelet_serving_request(const net::CertificateRequestFacts& request, const std::vector<std::string>& usages);
std::string check_client_request(const std::vector<std::string>& usages);

/// pkg/controller/certificates/signer: kubernetes.io/kube-apiserver-client, kube-apiserver-client-kubelet, kubelet-serving. (v1 takes no
/// new request for legacy-unknown.)
ControllerPtr make_certificate_signing_controller(SigningOptions options);
/// Why a node's request for a serving certificate is not approved by itself; empty: it is. Every name and address must be one of the
/// node's own status, and nobody else's: not another node's, not the API server's (`taken`).
std::string check_own_addresses(const net::CertificateRequestFacts& request, const json::Value& node, const std::set<std::string>& taken);

/// pkg/controller/certificates/approver: kubelets' client certificates, whose requestor may create nodeclient or selfnodeclient. With
/// `kubelet_serving` also nodes' serving certificates (check_own_addresses).
ControllerPtr make_certificate_approving_controller(bool kubelet_serving = false);
/// pkg/controller/certificates/cleaner.
ControllerPtr make_certificate_cleaner_controller();
/// pkg/controller/bootstrap: expired bootstrap tokens go.
ControllerPtr make_token_cleaner_controller();
/// pkg/controller/bootstrap: kube-public/cluster-info is signed with every token that may.
ControllerPtr make_bootstrap_signer_controller();

}  // namespace berth::controllers
