// adm kubeconfig, adm revoke, adm rotate: who gets in, for how long, and who no longer.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "apiserver/auth/revoked.h"
#include "base/base64.h"
#include "base/config_reader.h"
#include "cli/command/data_dir.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/adm.h"
#include "net/certificates.h"
#include "security/file_owner.h"
#include "security/rotation.h"

namespace berth::cli {
namespace {

namespace auth = apiserver::auth;

const model::Gvr kCertificateRequests{"certificates.k8s.io", "v1", "certificatesigningrequests"};
constexpr Duration kLeastLife = std::chrono::minutes(10);

std::string data_dir_of(const std::string& given) { return given.empty() ? default_data_dir() : given; }

/// Asks, approves and waits.
Result<std::string> certificate_for(client::Client& client, const std::string& request_pem, Duration life, const std::string& user) {
  const auto fail_of = [](const model::ApiStatus& status) { return fail(ErrorCode::kInvalid, status.message); };
  auto made = client.create_and_wait(
      kCertificateRequests, "",
      json::Object{{"apiVersion", "certificates.k8s.io/v1"},
                   {"kind", "CertificateSigningRequest"},
                   {"metadata", json::Object{{"generateName", "kubeconfig-"}}},
                   {"spec", json::Object{{"request", base64_encode(request_pem)},
                                         {"signerName", "kubernetes.io/kube-apiserver-client"},
                                         {"expirationSeconds", std::chrono::duration_cast<std::chrono::seconds>(life).count()},
                                         {"usages", json::Array{"client auth"}}}}});
  if (!made) return fail_of(made.error());
  const std::string name(json::get_string(*made, {"metadata", "name"}));
  json::set(*made, {"status", "conditions"},
            json::Array{json::Object{{"type", "Approved"},
                                     {"status", "True"},
                                     {"reason", "AdmKubeconfig"},
                                     {"message", fmt::format("asked for and approved by adm kubeconfig for {}", user)}}});
  client::Call approve{.verb = "update", .gvr = kCertificateRequests, .name = name, .subresource = "approval"};
  approve.body = json::serialize(*made);
  if (const auto approved = client.call_and_wait(std::move(approve)); !approved) return fail_of(approved.error());
  for (int look = 0; look < 60; ++look) {
    const auto seen = client.get_and_wait(kCertificateRequests, "", name);
    if (!seen) return fail_of(seen.error());
    for (const json::Value& condition : json::get_array(*seen, {"status", "conditions"}))
      if (json::get_string(condition, {"type"}) == "Failed") return invalid(std::string(json::get_string(condition, {"message"})));
    if (auto certificate = base64_decode(json::get_string(*seen, {"status", "certificate"})); certificate && !certificate->empty())
      return *certificate;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  return fail(ErrorCode::kUnavailable, fmt::format("nobody signed the certificate request {} within 30 s: do the controllers run, with the "
                                                   "cluster's authority (cluster-signing-cert-file)?",
                                                   name));
}

/// The serial that is meant: itself, or of a certificate or kubeconfig file.
Result<std::string> serial_of(const std::string& word) {
  if (::access(word.c_str(), F_OK) != 0) {
    const std::string serial = auth::normal_serial(word);
    if (serial.empty()) return invalid(fmt::format("\"{}\" is neither a file nor a serial of hexadecimal digits", word));
    return serial;
  }
  auto text = config::read_whole_file(word);
  if (!text) return std::unexpected(text.error());
  if (text->find("-----BEGIN CERTIFICATE") == std::string::npos) {
    const auto connection = client::load_kubeconfig(word);
    if (!connection) return invalid(fmt::format("{}: neither a certificate nor a kubeconfig: {}", word, connection.error().message));
    text = connection->http.certificate_pem;
    if (text->empty())
      return invalid(fmt::format("{}: this kubeconfig has no client certificate; delete its account or token instead", word));
  }
  const auto facts = net::read_certificate_facts(*text);
  if (!facts) return invalid(fmt::format("{}: {}", word, facts.error().message));
  return facts->serial;
}

}  // namespace

int run_adm_kubeconfig(const std::vector<std::string>& args) {
  CLI::App app(
      "Makes a kubeconfig for a user: a client certificate with that name and those groups, signed by the cluster. What the user may do is "
      "a "
      "matter of roles (adm policy add-role-to-user, add-cluster-role-to-user)",
      "berth adm kubeconfig");
  ConnectionFlags connection;
  connection.add_to(app);
  std::string user, ttl = "24h", output;
  std::vector<std::string> groups;
  app.add_option("user", user, "The user's name")->required();
  app.add_option("--group", groups, "A group of the user's; may be repeated");
  app.add_option("--ttl", ttl, "How long it is good for, at least 10m")->capture_default_str();
  app.add_option("-o,--output", output, "The file to write, readable by you alone; standard output when empty");
  if (const auto code = parse_args(app, args)) return *code;
  const auto life = parse_go_duration(ttl);
  if (!life || *life < kLeastLife)
    return report(invalid(fmt::format("--ttl: \"{}\" is not a duration of at least 10m (like \"8h\")", ttl)).error());
  if (std::ranges::find(groups, "system:masters") != groups.end())
    return report(invalid("--group: nobody is signed into system:masters, whose rights no rule can take away; berth:cluster-admins has the "
                          "same ones by a binding")
                      .error());
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  const auto request = net::make_certificate_request({user, groups, {}});
  if (!request) return report(request.error());
  const auto certificate = certificate_for((*session)->client(), request->request_pem, *life, user);
  if (!certificate) return report(certificate.error());
  const auto& http = (*session)->connection().http;
  const client::KubeconfigEntry entry{.user = user,
                                      .server = http.url,
                                      .ca_pem = http.ca_pem,
                                      .certificate_pem = *certificate,
                                      .private_key_pem = request->private_key_pem,
                                      .tls_server_name = http.server_name};
  if (output.empty()) {
    std::printf("%s", client::render_kubeconfig(entry).c_str());
    return 0;
  }
  if (const auto written = client::write_kubeconfig(output, entry); !written) return report(written.error());
  const auto facts = net::read_certificate_facts(*certificate);
  std::printf("%s: user %s%s, good until %s (serial %s)\n", output.c_str(), user.c_str(),
              groups.empty() ? "" : fmt::format(" in {}", fmt::join(groups, ", ")).c_str(),
              facts ? format_rfc3339(facts->not_after).c_str() : "?", facts ? facts->serial.c_str() : "?");
  return 0;
}

int run_adm_revoke(const std::vector<std::string>& args) {
  CLI::App app(
      "Refuses client certificates from now on, also on connections that are open. Run it where the API server runs: it adds to "
      "DATA_DIR/pki/revoked, which the server reads within a second",
      "berth adm revoke");
  std::vector<std::string> words;
  std::string data_dir, why;
  app.add_option("certificate", words, "Serials, certificates or kubeconfigs")->required();
  app.add_option("--data-dir", data_dir, "The server's; ~/.berth when empty");
  app.add_option("--reason", why, "For people who read the file");
  if (const auto code = parse_args(app, args)) return *code;
  const std::string path = data_dir_of(data_dir) + "/pki/revoked";
  const auto known = auth::read_revoked(path);
  if (!known) return report(known.error());
  struct stat info {};
  if (::stat((data_dir_of(data_dir) + "/pki").c_str(), &info) != 0)
    return report(invalid(fmt::format("{}/pki is not there: --data-dir names the server's data directory", data_dir_of(data_dir))).error());
  std::string text = config::read_whole_file(path).value_or("");
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  for (const std::string& word : words) {
    const auto serial = serial_of(word);
    if (!serial) return report(serial.error());
    if (known->contains(*serial)) {
      std::printf("%s is revoked already\n", serial->c_str());
      continue;
    }
    text += fmt::format("{} # {}{}{}\n", *serial, format_rfc3339(SystemClock().now()), why.empty() ? "" : " ", why);
    std::printf("%s is revoked\n", serial->c_str());
  }
  if (const auto written = security::write_file(path, text, 0600); !written) return report(written.error());
  return 0;
}

int run_adm_rotate(const std::vector<std::string>& args) {
  CLI::App app(
      "Exchanges the cluster's certificate authority (ca) or the key that signs service account tokens (signing-key), in three steps "
      "between which everybody follows. Run it where the API server runs; it may run meanwhile",
      "berth adm rotate");
  std::string what, step, data_dir;
  app.add_option("what", what, "ca or signing-key")->required()->check(CLI::IsMember({"ca", "signing-key"}));
  app.add_option("--step", step, "prepare, switch or finish")->required()->check(CLI::IsMember({"prepare", "switch", "finish"}));
  app.add_option("--data-dir", data_dir, "The server's; ~/.berth when empty");
  if (const auto code = parse_args(app, args)) return *code;
  const auto wanted = step == "prepare"  ? security::RotationStep::kPrepare
                      : step == "switch" ? security::RotationStep::kSwitch
                                         : security::RotationStep::kFinish;
  const std::string directory = data_dir_of(data_dir) + "/pki";
  const auto done =
      what == "ca" ? security::rotate_authority(directory, wanted, SystemClock().now()) : security::rotate_signing_key(directory, wanted);
  if (!done) return report(done.error());
  std::printf("%s\n", done->c_str());
  return 0;
}

}  // namespace berth::cli
