// berth webhook: a mutating admission webhook by rules, for this or any Kubernetes API server. Registers itself, and takes its registration
// back when it is stopped, so that it never stands in the way of pods when it is not there.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/base64.h"
#include "base/config_reader.h"
#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/nodes/pod_rules.h"
#include "cli/roles/roles.h"
#include "net/server.h"
#include "security/pki.h"

namespace berth::cli {
namespace {

const client::Gvr kWebhooks{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"};

class ReviewHandler final : public net::Handler {
 public:
  explicit ReviewHandler(std::vector<PodRule> rules) : rules_(std::move(rules)) {}
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    net::HttpResponse response;
    response.headers.add("Content-Type", "application/json");
    auto review = json::parse(request.body);
    auto answer = review ? review_pod(rules_, *review) : Result<json::Value>(std::unexpected(review.error()));
    if (request.method != "POST" || !answer) {
      response.status = request.method != "POST" ? 405 : 400;
      response.body = answer ? "" : json::serialize(json::Object{{"error", answer.error().message}});
    } else {
      response.body = json::serialize(*answer);
    }
    writer->respond(std::move(response));
  }

 private:
  const std::vector<PodRule> rules_;
};

json::Value registration(const std::string& name, const std::string& url, const std::string& ca_bundle, const std::string& failure_policy) {
  json::Object client{{"url", url}, {"caBundle", ca_bundle}};
  json::Object rule{{"apiGroups", json::Array{""}},
                    {"apiVersions", json::Array{"v1"}},
                    {"operations", json::Array{"CREATE"}},
                    {"resources", json::Array{"pods"}},
                    {"scope", "Namespaced"}};
  json::Object webhook{{"name", name},
                       {"clientConfig", std::move(client)},
                       {"rules", json::Array{std::move(rule)}},
                       {"admissionReviewVersions", json::Array{"v1"}},
                       {"sideEffects", "None"},
                       {"failurePolicy", failure_policy},
                       {"timeoutSeconds", 5},
                       {"reinvocationPolicy", "IfNeeded"}};
  return json::Object{{"apiVersion", "admissionregistration.k8s.io/v1"},
                      {"kind", "MutatingWebhookConfiguration"},
                      {"metadata", json::Object{{"name", name}}},
                      {"webhooks", json::Array{std::move(webhook)}}};
}

/// Creates the configuration, or replaces one that a former run left.
client::ApiResult<json::Value> register_webhook(client::Client& client, const json::Value& configuration) {
  auto created = client.create_and_wait(kWebhooks, "", configuration);
  if (created || created.error().code != 409) return created;
  const std::string name(json::get_string(configuration, {"metadata", "name"}));
  if (auto removed = client.call_and_wait({.verb = "delete", .gvr = kWebhooks, .name = name}); !removed && removed.error().code != 404)
    return removed;
  return client.create_and_wait(kWebhooks, "", configuration);
}

}  // namespace

int run_webhook(const std::vector<std::string>& args) {
  CLI::App app{
      "A mutating admission webhook that gives pods tolerations and node affinity by rules: for nodes dedicated to a group, and nodes with "
      "special hardware.\n"
      "Registers itself with the API server (a certificate of its own, made at each start) and takes the registration back when it stops.",
      "berth webhook"};
  ConnectionFlags connection;
  connection.add_to(app);
  std::string rules_file, listen = "127.0.0.1:0", name = "pod-rules.berth.dev", host, failure_policy = "Fail";
  app.add_option("--rules", rules_file, "The rules (examples/pod-rules/rules.yaml)")->required();
  app.add_option("--listen", listen, "HOST:PORT to serve on; port 0 takes a free one")->capture_default_str();
  app.add_option("--host", host, "Name or address at which the API server reaches this process; default: the address of --listen");
  app.add_option("--name", name, "Name of the MutatingWebhookConfiguration")->capture_default_str();
  app.add_option("--failure-policy", failure_policy, "What happens to pods when this process cannot be reached")
      ->capture_default_str()
      ->check(CLI::IsMember({"Fail", "Ignore"}));
  bool validate_only = false;
  add_validate_flag(app, validate_only);
  if (const auto code = parse_args(app, args)) return *code;
  Findings findings;
  std::optional<std::vector<PodRule>> rules;
  if (const auto text = findings.take(config::read_whole_file(rules_file))) rules = findings.take(parse_pod_rules(*text, rules_file));
  const auto address = findings.take(parse_listen(listen, 0));
  check_connection(connection.kubeconfig, connection.context, findings);
  if (validate_only) return findings.print_validation(fmt::format("the rules are valid: {}", rules ? rules->size() : 0));
  if (!findings.may_start("webhook")) return 1;
  block_signals();
  if (host.empty()) host = address->host;
  auto pair = security::Pki::self_signed_server(name, {host}, SystemClock().now());
  if (!pair) return report(pair.error());

  const std::size_t rule_count = rules->size();
  ReviewHandler handler(std::move(*rules));
  net::ServerConfig config;
  config.address = address->host;
  config.port = address->port;
  config.tls = net::TlsServerConfig{pair->certificate_pem, pair->private_key_pem, ""};
  auto server = net::Server::start(std::move(config), handler);
  if (!server) return report(server.error());

  auto session = Session::open(connection);
  if (!session) return report(session.error());
  const std::string url =
      fmt::format("https://{}:{}/mutate", host.find(':') == std::string::npos ? host : "[" + host + "]", (*server)->port());
  if (auto done = register_webhook((*session)->client(), registration(name, url, base64_encode(pair->certificate_pem), failure_policy));
      !done)
    return report(done.error());
  std::printf("webhook %s: %zu rules, registered at %s\n", name.c_str(), rule_count, url.c_str());
  std::fflush(stdout);
  wait_for_signal();
  if (auto removed = (*session)->client().call_and_wait({.verb = "delete", .gvr = kWebhooks, .name = name});
      !removed && removed.error().code != 404)
    return report(removed.error());
  (*server)->stop(1000);
  return 0;
}

}  // namespace berth::cli
