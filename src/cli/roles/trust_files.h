// The certificates that `berth server` was given as files, by kube-apiserver's names: what it shows, whom it believes, who it is to nodes
// and to aggregated servers. They are read again when they change, without a restart.
#pragma once
#include <string>
#include <vector>

#include "apiserver/auth/authenticator.h"
#include "base/error.h"
#include "net/client.h"
#include "security/pki.h"

namespace CLI {
class App;
}

namespace berth::cli {

/// What the files hold now; empty where no file was given.
struct TrustFiles {
  security::KeyPair serving, kubelet_client, proxy_client;
  std::string client_ca_pem, kubelet_ca_pem, request_header_ca_pem;
};

struct TrustFlags {
  std::string tls_certificate, tls_key, client_ca;
  std::string kubelet_client_certificate, kubelet_client_key, kubelet_ca;
  std::string request_header_ca, proxy_client_certificate, proxy_client_key;
  std::vector<std::string> allowed_names;
  std::vector<std::string> username_headers{"X-Remote-User"}, uid_headers{"X-Remote-Uid"}, group_headers{"X-Remote-Group"};
  std::vector<std::string> extra_prefixes{"X-Remote-Extra-"};
  void add_to(CLI::App& app);
  /// The error names flag and file.
  [[nodiscard]] Result<TrustFiles> read() const;
  /// kInvalid: what is no good at `now` and not `in_use` already; else a sentence for each authority of a bundle that is past its time.
  [[nodiscard]] Result<std::vector<std::string>> check(const TrustFiles& files, TimePoint now, const TrustFiles& in_use = {}) const;
  /// Which headers of a front proxy count; with the server's own front proxy its name alone, unless names were given.
  [[nodiscard]] apiserver::auth::FrontProxyRules rules() const;
};

/// All of it, from the files and, where there are none, from the server's own directory.
struct Trust {
  security::KeyPair serving, kubelet_client, proxy_client;
  std::string client_ca_pem;       ///< Whose client certificates are users.
  std::string kubelet_ca_pem;      ///< Empty: nodes' serving certificates are not verified.
  std::string front_proxy_ca_pem;  ///< Whose client certificates may speak for others.
  std::string kubeconfig_ca_pem;   ///< What verifies `serving`.
  TrustFiles files;                ///< What of this is from files.
};
/// Makes in `pki` what is missing there; for the rest see check.
Result<Trust> trust_of(security::Pki& pki, const TrustFlags& flags, TimePoint now, const TrustFiles& in_use = {});

/// What other servers are told of it (ConfigMap extension-apiserver-authentication).
std::map<std::string, std::string> published_trust(const Trust& trust, const apiserver::auth::FrontProxyRules& rules);

/// Who the server is to node agents, which take what its own authority signed. Where somebody leads it elsewhere, it is worth no more.
net::ClientConfig node_client_of(const Trust& trust);

}  // namespace berth::cli
