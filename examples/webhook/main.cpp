// A mutating admission webhook that steers pods, as the dedicated-node and special-hardware use cases of the documents ask their readers to
// write one. It is an example to start from: two rules, no state, about what an operator would deploy.
//
//   dedicated nodes    pods of a user in GROUP tolerate dedicated=VALUE and are bound to nodes with that label
//   special hardware   pods whose nodeSelector asks for KEY=VALUE tolerate the taint of those nodes
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "apiserver/auth/pki.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/process.h"
#include "net/server.h"

namespace {

using namespace berth;
using json::Array;
using json::Object;
using json::Value;

struct Rule {
  std::string key, value;
};

struct Rules {
  std::vector<Rule> groups;    ///< key: a user's group; value: what its nodes are dedicated to.
  std::vector<Rule> hardware;  ///< key=value: the label and the taint of the nodes.
};

void tolerate(Array& tolerations, const std::string& key, const std::string& value, const char* effect) {
  const Value wanted = Object{{"key", key}, {"operator", "Equal"}, {"value", value}, {"effect", effect}};
  if (std::ranges::none_of(tolerations, [&](const Value& one) { return json::equal(one, wanted); })) tolerations.push_back(wanted);
}

/// Every alternative of the required node affinity asks for the label as well.
void require_label(Value& affinity, const std::string& key, const std::string& value) {
  const Value expression = Object{{"key", key}, {"operator", "In"}, {"values", Array{value}}};
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  Array terms = json::get_array(affinity, {"nodeAffinity", kRequired, "nodeSelectorTerms"});
  if (terms.empty()) terms.push_back(Object());
  for (Value& term : terms) {
    Array expressions = json::get_array(term, {"matchExpressions"});
    expressions.push_back(expression);
    json::set(term, {"matchExpressions"}, std::move(expressions));
  }
  json::set(affinity, {"nodeAffinity", kRequired, "nodeSelectorTerms"}, std::move(terms));
}

/// The JSON patch for one AdmissionReview of a pod; empty when no rule touches it.
Array patch_for(const Rules& rules, const Value& review) {
  const Value pod = json::get_object(review, {"request", "object"});
  const Array before = json::get_array(pod, {"spec", "tolerations"});
  Array tolerations = before;
  Value affinity = json::get_object(pod, {"spec", "affinity"});
  bool bound = false;
  for (const Rule& rule : rules.groups) {
    const Array& groups = json::get_array(review, {"request", "userInfo", "groups"});
    if (std::ranges::find(groups, Value(rule.key)) == groups.end()) continue;
    tolerate(tolerations, "dedicated", rule.value, "NoSchedule");
    require_label(affinity, "dedicated", rule.value);
    bound = true;
  }
  for (const Rule& rule : rules.hardware) {
    if (json::get_string(pod, {"spec", "nodeSelector", rule.key}) != rule.value) continue;
    for (const char* effect : {"NoSchedule", "PreferNoSchedule"}) tolerate(tolerations, rule.key, rule.value, effect);
  }
  Array patch;
  if (tolerations.size() != before.size())
    patch.push_back(Object{{"op", "add"}, {"path", "/spec/tolerations"}, {"value", std::move(tolerations)}});
  if (bound) patch.push_back(Object{{"op", "add"}, {"path", "/spec/affinity"}, {"value", std::move(affinity)}});
  return patch;
}

std::string base64(std::string_view bytes) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

class Webhook final : public net::Handler {
 public:
  explicit Webhook(Rules rules) : rules_(std::move(rules)) {}

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    net::HttpResponse answer;
    answer.headers.add("Content-Type", "application/json");
    const auto review = json::parse(request.body);
    if (request.method != "POST" || request.path != "/mutate") {
      answer.status = 404;
      answer.body = R"({"error": "POST an AdmissionReview to /mutate"})";
    } else if (!review || json::find(*review, "request") == nullptr) {
      answer.status = 400;
      answer.body = R"({"error": "the body is no AdmissionReview"})";
    } else {
      Object response{{"uid", json::get_string(*review, {"request", "uid"})}, {"allowed", true}};
      if (const Array patch = patch_for(rules_, *review); !patch.empty()) {
        response["patchType"] = "JSONPatch";
        response["patch"] = base64(json::serialize(patch));
      }
      answer.body =
          json::serialize(Object{{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}});
    }
    writer->respond(std::move(answer));
  }

 private:
  Rules rules_;
};

/// What the cluster needs to know of this webhook. Namespaces of the system are left alone, so that a webhook that is down stops nobody
/// there.
Value configuration(const std::string& url, const std::string& certificate_pem) {
  const Value others = Object{
      {"matchExpressions", Array{Object{{"key", "kubernetes.io/metadata.name"}, {"operator", "NotIn"}, {"values", Array{"kube-system"}}}}}};
  const Value rule = Object{{"operations", Array{"CREATE"}},
                            {"apiGroups", Array{""}},
                            {"apiVersions", Array{"v1"}},
                            {"resources", Array{"pods"}},
                            {"scope", "Namespaced"}};
  const Value hook = Object{{"name", "steering.examples.berth.dev"},
                            {"clientConfig", Object{{"url", url}, {"caBundle", base64(certificate_pem)}}},
                            {"rules", Array{rule}},
                            {"namespaceSelector", others},
                            {"admissionReviewVersions", Array{"v1"}},
                            {"sideEffects", "None"},
                            {"failurePolicy", "Fail"},
                            {"timeoutSeconds", 5}};
  return Object{{"apiVersion", "admissionregistration.k8s.io/v1"},
                {"kind", "MutatingWebhookConfiguration"},
                {"metadata", Object{{"name", "steering"}}},
                {"webhooks", Array{hook}}};
}

Result<std::vector<Rule>> parse_rules(const std::vector<std::string>& texts) {
  std::vector<Rule> rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return invalid(fmt::format("\"{}\" is not NAME=VALUE", text));
    rules.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return rules;
}

int fail_with(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A mutating webhook that steers pods to dedicated nodes and special hardware", "steering-webhook");
  std::string listen = "127.0.0.1:0", file;
  std::vector<std::string> groups, hardware;
  app.add_option("--listen", listen, "HOST:PORT; the API server has to reach it");
  app.add_option("--configuration", file, "Where to write the MutatingWebhookConfiguration to apply")->required();
  app.add_option("--group", groups,
                 "GROUP=VALUE: pods of its users tolerate dedicated=VALUE and are bound to nodes with that label; may be repeated");
  app.add_option("--hardware", hardware, "KEY=VALUE: pods whose nodeSelector asks for it tolerate that taint; may be repeated");
  CLI11_PARSE(app, argc, argv);

  cli::block_signals();
  auto group_rules = parse_rules(groups), hardware_rules = parse_rules(hardware);
  if (!group_rules) return fail_with(group_rules.error());
  if (!hardware_rules) return fail_with(hardware_rules.error());
  const auto address = cli::parse_listen(listen, 0);
  if (!address) return fail_with(address.error());
  const auto keys = apiserver::auth::Pki::self_signed_server("steering-webhook", {address->host}, SystemClock().now());
  if (!keys) return fail_with(keys.error());
  Webhook webhook({std::move(*group_rules), std::move(*hardware_rules)});
  net::ServerConfig config{
      .address = address->host, .port = address->port, .tls = net::TlsServerConfig{keys->certificate_pem, keys->private_key_pem, {}}};
  auto server = net::Server::start(std::move(config), webhook);
  if (!server) return fail_with(server.error());
  const std::string url = fmt::format("https://{}:{}/mutate", address->host, (*server)->port());
  std::ofstream(file) << json::to_yaml(configuration(url, keys->certificate_pem));
  std::printf("listening on %s; apply %s\n", url.c_str(), file.c_str());
  std::fflush(stdout);
  cli::wait_for_signal();
  (*server)->stop(1000);
  return 0;
}
