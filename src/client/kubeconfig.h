// Kubeconfig files: where the API server is and who we are (client-go's tools/clientcmd).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "client/transport.h"

namespace berth::client {

/// One context of the merged kubeconfig, with the contents of the files it names.
struct Connection {
  net::ClientConfig http;
  std::string bearer_token;
  std::string token_file;  ///< Read anew from time to time (transport_for does); its present content is bearer_token.
  std::string as_user;     ///< Whom every request acts as (`as`), or empty.
  std::vector<std::string> as_groups;
  std::string ns;  ///< The context's namespace; empty when it names none.
  std::string context, cluster, user;
  std::string trouble;  ///< Why its certificates are good for nothing today, with file and field; empty: they are good.
};

/// What the process's surroundings say; read from the real ones by Surroundings::of_process.
struct Surroundings {
  std::string kubeconfig;  ///< $KUBECONFIG
  std::string home;        ///< $HOME
  std::string service_host, service_port;
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  static Surroundings of_process();
};

/// `path` empty: the files of $KUBECONFIG merged (the first to say something wins, missing files are skipped), otherwise ~/.kube/config,
/// otherwise the pod's service account. `context` empty: the current one. Errors name the file and the field. Not supported, and refused
/// in words: exec and auth-provider plugins, passwords, as-uid and as-user-extra, proxies.
Result<Connection> load_kubeconfig(const std::string& path, const std::string& context = {},
                                   const Surroundings& surroundings = Surroundings::of_process());

/// Refuses a connection with trouble; who only wants to know whose it is does not ask here.
Result<std::shared_ptr<Transport>> transport_for(const Connection& connection);
Result<std::shared_ptr<Transport>> transport_from_kubeconfig(const std::string& path, const std::string& context = {});

/// The file that a change goes to, as kubectl chooses it: `path`, or $KUBECONFIG's first file, or ~/.kube/config; empty when there is none.
std::string kubeconfig_to_change(const std::string& path, const Surroundings& surroundings = Surroundings::of_process());

/// A kubeconfig with one cluster, user and context, for write_kubeconfig.
struct KubeconfigEntry {
  std::string name = "berth";  ///< Of the context and the cluster.
  std::string user = "admin";
  std::string server;
  std::string ca_pem;
  std::string certificate_pem, private_key_pem;  ///< Or empty.
  std::string token;                             ///< Or empty.
  std::string ns;
  std::string tls_server_name;
};
std::string render_kubeconfig(const KubeconfigEntry& entry);
/// Writes it whole or not at all, readable by the owner only (0600), replacing what is there.
Result<void> write_kubeconfig(const std::string& path, const KubeconfigEntry& entry);

}  // namespace berth::client
