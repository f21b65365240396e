#include "cli/roles/trust_files.h"

#include <CLI/CLI.hpp>

#include "base/config_reader.h"
#include "net/server.h"
#include "net/tls.h"
#include "security/validity.h"

namespace berth::cli {
namespace {

using security::KeyPair;

Result<void> read_bundle(const char* flag, const std::string& path, std::string& out) {
  if (path.empty()) return {};
  auto pem = config::read_whole_file(path);
  if (!pem) return invalid(fmt::format("{}: {}", flag, pem.error().message));
  if (const auto usable = net::check_authority(*pem); !usable)
    return invalid(fmt::format("{}: {}: {}", flag, path, usable.error().message));
  out = std::move(*pem);
  return {};
}

Result<void> read_pair(const char* certificate_flag, const std::string& certificate, const char* key_flag, const std::string& key,
                       KeyPair& out) {
  if (certificate.empty() && key.empty()) return {};
  if (certificate.empty() || key.empty()) return invalid(fmt::format("{} and {}: give both of them", certificate_flag, key_flag));
  auto certificate_pem = config::read_whole_file(certificate), key_pem = config::read_whole_file(key);
  if (!certificate_pem) return invalid(fmt::format("{}: {}", certificate_flag, certificate_pem.error().message));
  if (!key_pem) return invalid(fmt::format("{}: {}", key_flag, key_pem.error().message));
  // Also that they belong together: a half-written exchange is not put into use.
  net::TlsServerConfig pair;
  pair.certificate_pem = *certificate_pem;
  pair.private_key_pem = *key_pem;
  if (const auto usable = net::make_server_tls(pair); !usable)
    return invalid(fmt::format("{} {} and {} {}: {}", certificate_flag, certificate, key_flag, key, usable.error().message));
  out = {std::move(*certificate_pem), std::move(*key_pem)};
  return {};
}

std::string joined(const std::string& a, const std::string& b) { return a.empty() || a.ends_with('\n') ? a + b : a + "\n" + b; }

std::string list_text(const std::vector<std::string>& names) { return json::serialize(json::Array(names.begin(), names.end())); }

}  // namespace

void TrustFlags::add_to(CLI::App& app) {
  app.add_option("--tls-cert-file", tls_certificate,
                 "The certificate to show, with its chain; the data directory's own when empty. This file and all that follow are read "
                 "again when they change");
  app.add_option("--tls-private-key-file", tls_key, "Its key");
  app.add_option("--client-ca-file", client_ca, "Further authorities whose client certificates are users (CN) and groups (O)");
  app.add_option("--kubelet-client-certificate", kubelet_client_certificate,
                 "The client certificate towards nodes; the data directory's own when empty");
  app.add_option("--kubelet-client-key", kubelet_client_key, "Its key");
  app.add_option(
      "--kubelet-certificate-authority", kubelet_ca,
      "File of the authority that signs nodes' serving certificates: they are verified then, for logs, exec and the like. Without "
      "it only the real node of berth up is");
  app.add_option("--requestheader-client-ca-file", request_header_ca,
                 "Authorities of front proxies, which say in headers for whom they ask; the data directory's own when empty");
  app.add_option("--requestheader-allowed-names", allowed_names,
                 "Common names that a front proxy's certificate may have, comma separated; any when empty and a file is given")
      ->delimiter(',');
  app.add_option("--requestheader-username-headers", username_headers, "Headers with the user's name")
      ->delimiter(',')
      ->default_str("X-Remote-User");
  app.add_option("--requestheader-uid-headers", uid_headers, "Headers with the user's uid")->delimiter(',')->default_str("X-Remote-Uid");
  app.add_option("--requestheader-group-headers", group_headers, "Headers with the user's groups, one each")
      ->delimiter(',')
      ->default_str("X-Remote-Group");
  app.add_option("--requestheader-extra-headers-prefix", extra_prefixes, "What headers with more about the user begin with")
      ->delimiter(',')
      ->default_str("X-Remote-Extra-");
  app.add_option("--proxy-client-cert-file", proxy_client_certificate,
                 "The client certificate towards aggregated API servers; the data directory's own (front-proxy-client) when empty");
  app.add_option("--proxy-client-key-file", proxy_client_key, "Its key");
}

Result<TrustFiles> TrustFlags::read() const {
  TrustFiles out;
  for (const auto& done :
       {read_pair("--tls-cert-file", tls_certificate, "--tls-private-key-file", tls_key, out.serving),
        read_pair("--kubelet-client-certificate", kubelet_client_certificate, "--kubelet-client-key", kubelet_client_key,
                  out.kubelet_client),
        read_pair("--proxy-client-cert-file", proxy_client_certificate, "--proxy-client-key-file", proxy_client_key, out.proxy_client),
        read_bundle("--client-ca-file", client_ca, out.client_ca_pem),
        read_bundle("--kubelet-certificate-authority", kubelet_ca, out.kubelet_ca_pem),
        read_bundle("--requestheader-client-ca-file", request_header_ca, out.request_header_ca_pem)})
    if (!done) return std::unexpected(done.error());
  if (!proxy_client_certificate.empty() && request_header_ca.empty())
    return invalid(
        "--proxy-client-cert-file: give --requestheader-client-ca-file, too: aggregated servers are told by it whose headers to believe");
  if (!request_header_ca.empty() && proxy_client_certificate.empty())
    return invalid(
        "--requestheader-client-ca-file: give --proxy-client-cert-file and --proxy-client-key-file, too: a certificate of that authority, "
        "or aggregated servers would not believe this one");
  return out;
}

Result<std::vector<std::string>> TrustFlags::check(const TrustFiles& files, TimePoint now, const TrustFiles& in_use) const {
  for (const auto& [flag, path, pair, known] :
       {std::tuple("--tls-cert-file", &tls_certificate, &files.serving, &in_use.serving),
        std::tuple("--kubelet-client-certificate", &kubelet_client_certificate, &files.kubelet_client, &in_use.kubelet_client),
        std::tuple("--proxy-client-cert-file", &proxy_client_certificate, &files.proxy_client, &in_use.proxy_client)})
    if (pair->certificate_pem != known->certificate_pem)
      if (const auto good = security::check_dates(pair->certificate_pem, now); !good)
        return invalid(fmt::format("{} {}: {}", flag, *path, good.error().message));
  std::vector<std::string> out;
  for (const auto& [flag, path, bundle, known] :
       {std::tuple("--client-ca-file", &client_ca, &files.client_ca_pem, &in_use.client_ca_pem),
        std::tuple("--kubelet-certificate-authority", &kubelet_ca, &files.kubelet_ca_pem, &in_use.kubelet_ca_pem),
        std::tuple("--requestheader-client-ca-file", &request_header_ca, &files.request_header_ca_pem, &in_use.request_header_ca_pem)}) {
    if (*bundle == *known) continue;
    const auto good = security::check_authorities(*bundle, now);
    if (!good) return invalid(fmt::format("{} {}: {}", flag, *path, good.error().message));
    for (const std::string& one : *good) out.push_back(fmt::format("{} {}: {}", flag, *path, one));
  }
  return out;
}

apiserver::auth::FrontProxyRules TrustFlags::rules() const {
  auto names = allowed_names;
  if (names.empty() && request_header_ca.empty()) names = {"front-proxy-client"};
  return {std::move(names), username_headers, uid_headers, group_headers, extra_prefixes};
}

Result<Trust> trust_of(security::Pki& pki, const TrustFlags& flags, TimePoint now, const TrustFiles& in_use) {
  auto files = flags.read();
  if (!files) return std::unexpected(files.error());
  if (const auto good = flags.check(*files, now, in_use); !good) return std::unexpected(good.error());
  Trust out;
  out.files = *files;
  out.serving = files->serving.certificate_pem.empty() ? pki.server() : files->serving;
  out.kubeconfig_ca_pem =
      files->serving.certificate_pem.empty() ? pki.ca_certificate_pem() : joined(pki.ca_certificate_pem(), files->serving.certificate_pem);
  out.client_ca_pem = files->client_ca_pem.empty() ? pki.ca_certificate_pem() : joined(pki.ca_certificate_pem(), files->client_ca_pem);
  out.kubelet_ca_pem = files->kubelet_ca_pem;
  out.kubelet_client = files->kubelet_client;
  if (out.kubelet_client.certificate_pem.empty()) {
    auto own = pki.kubelet_client(now);
    if (!own) return std::unexpected(own.error());
    out.kubelet_client = std::move(*own);
  }
  out.front_proxy_ca_pem = files->request_header_ca_pem;
  out.proxy_client = files->proxy_client;
  if (out.front_proxy_ca_pem.empty()) {
    auto own = pki.front_proxy(now);
    if (!own) return std::unexpected(own.error());
    out.front_proxy_ca_pem = own->ca_pem;
    out.proxy_client = std::move(own->client);
  }
  return out;
}

std::map<std::string, std::string> published_trust(const Trust& trust, const apiserver::auth::FrontProxyRules& rules) {
  return {{"client-ca-file", trust.client_ca_pem},
          {"requestheader-client-ca-file", trust.front_proxy_ca_pem},
          {"requestheader-allowed-names", list_text(rules.allowed_names)},
          {"requestheader-username-headers", list_text(rules.username_headers)},
          {"requestheader-uid-headers", list_text(rules.uid_headers)},
          {"requestheader-group-headers", list_text(rules.group_headers)},
          {"requestheader-extra-headers-prefix", list_text(rules.extra_prefixes)}};
}

net::ClientConfig node_client_of(const Trust& trust) {
  net::ClientConfig out;
  out.certificate_pem = trust.kubelet_client.certificate_pem;
  out.private_key_pem = trust.kubelet_client.private_key_pem;
  out.ca_pem = trust.kubelet_ca_pem;
  return out;
}

}  // namespace berth::cli
