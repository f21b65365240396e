// The control plane's own certificate authority, certificates and signing key, in a directory (SPEC A6).
//
//   ca.crt ca.key            signs everything below; ca.crt may be a bundle: the first is the key's, all are trusted
//   server.crt server.key    what the API server shows
//   NAME.crt NAME.key        client certificates made by client_certificate (admin, scheduler, controller-manager, node-…)
//   front-proxy-ca.crt .key  signs what the server shows to servers that were aggregated, and nothing else
//   service-account.key      signs service account tokens; of several keys in it the first signs and all verify
//   revoked                  serials of client certificates that are refused (revoked.h)
//
// All keys are ECDSA P-256: a handshake costs a tenth of RSA's. Made on first use, reused afterwards, renewed by open and
// client_certificate when less than a fifth of the life is left, or when the names they must have changed.
#pragma once
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::security {

struct KeyPair {
  std::string certificate_pem, private_key_pem;
};

struct PkiOptions {
  std::string directory;                 ///< Made with mode 0700 when missing; private keys in it have mode 0600.
  std::vector<std::string> names;        ///< Host names and IP addresses the server is reached at, besides the standard ones.
  std::string service_ip = "10.96.0.1";  ///< The kubernetes Service's address.
};

/// Not thread-safe. Times are passed in.
class Pki {
 public:
  /// Reads or makes the authority, the server's certificate and the signing key. Errors: kCorrupt a file that cannot be read as what it
  /// should be (never replaced by itself), kInvalid the directory cannot be used.
  static Result<Pki> open(PkiOptions options, TimePoint now);

  [[nodiscard]] const std::string& ca_certificate_pem() const { return ca_.certificate_pem; }
  [[nodiscard]] const KeyPair& server() const { return server_; }
  [[nodiscard]] const std::string& service_account_key_pem() const { return service_account_key_pem_; }
  /// A client certificate kept in files of that name: CN is the user, each O a group.
  Result<KeyPair> client_certificate(const std::string& file_name, const std::string& common_name,
                                     const std::vector<std::string>& organizations, TimePoint now);
  /// As client_certificate, in memory only.
  /// A pair that the file of that name keeps, for `names`, signed for a server's use.
  Result<KeyPair> server_certificate(const std::string& file_name, const std::string& common_name,
                                     const std::vector<std::string>& organizations, const std::vector<std::string>& names, TimePoint now);
  [[nodiscard]] Result<KeyPair> issue_client(const std::string& common_name, const std::vector<std::string>& organizations, TimePoint now,
                                             Duration life) const;

  /// A server certificate signed by its own key, in memory only, for `names` besides localhost: what a component shows until it is given
  /// one.
  static Result<KeyPair> self_signed_server(const std::string& common_name, const std::vector<std::string>& names, TimePoint now);

  // The users of a cluster, by Kubernetes' names.
  /// In a group of its own, which a binding makes cluster-admin: rights that can be taken away, where those of system:masters cannot.
  Result<KeyPair> admin(TimePoint now) { return client_certificate("admin", "kubernetes-admin", {"berth:cluster-admins"}, now); }
  /// For the day on which the bindings are gone: no rule applies to it.
  Result<KeyPair> super_admin(TimePoint now) {
    return client_certificate("super-admin", "kubernetes-super-admin", {"system:masters"}, now);
  }
  Result<KeyPair> scheduler(TimePoint now) { return client_certificate("scheduler", "system:kube-scheduler", {}, now); }
  Result<KeyPair> controller_manager(TimePoint now) {
    return client_certificate("controller-manager", "system:kube-controller-manager", {}, now);
  }
  /// The server towards nodes: its group has system:kubelet-api-admin and nothing else.
  Result<KeyPair> kubelet_client(TimePoint now) {
    return client_certificate("apiserver-kubelet-client", "kube-apiserver-kubelet-client", {"berth:kubelet-clients"}, now);
  }
  /// The server towards aggregated servers, by an authority of its own: who trusts that one believes what headers say of the user.
  struct FrontProxy {
    std::string ca_pem;
    KeyPair client;
  };
  [[nodiscard]] Result<FrontProxy> front_proxy(TimePoint now) const;
  Result<KeyPair> node(const std::string& name, TimePoint now) {
    return client_certificate("node-" + name, "system:node:" + name, {"system:nodes"}, now);
  }

 private:
  PkiOptions options_;
  KeyPair ca_, server_;
  std::string service_account_key_pem_;
};

}  // namespace berth::security
