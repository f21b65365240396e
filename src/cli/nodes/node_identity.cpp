#include "cli/nodes/node_identity.h"

#include "base/base64.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cli/command/parse.h"

namespace berth::cli {
namespace {

const model::Gvr kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests"};

/// What became of a request: empty while it waits, the certificate, or why there will be none.
Result<std::string> look_at(const json::Value& request, bool& is_approved) {
  const std::string name(json::get_string(request, {"metadata", "name"}));
  for (const json::Value& condition : json::get_array(request, {"status", "conditions"})) {
    const std::string_view type = json::get_string(condition, {"type"}), message = json::get_string(condition, {"message"});
    if (type == "Denied") return invalid(fmt::format("the certificate request {} was denied: {}", name, message));
    if (type == "Failed") return invalid(fmt::format("the certificate request {} failed: {}", name, message));
    is_approved = is_approved || type == "Approved";
  }
  return base64_decode(json::get_string(request, {"status", "certificate"})).value_or("");
}

}  // namespace

CertificateOrder client_order(const std::string& node, std::function<bool()> wait) {
  return {"kubernetes.io/kube-apiserver-client-kubelet",
          {"system:node:" + node, {"system:nodes"}, {}},
          {"digital signature", "client auth"},
          std::move(wait),
          {}};
}

CertificateOrder serving_order(const std::string& node, std::vector<std::string> names, std::function<bool()> wait) {
  return {"kubernetes.io/kubelet-serving",
          {"system:node:" + node, {"system:nodes"}, std::move(names)},
          {"digital signature", "server auth"},
          std::move(wait),
          {}};
}

Result<NodeIdentity> order_certificate(client::Client& client, const CertificateOrder& order) {
  const auto made = net::make_certificate_request(order.subject);
  if (!made) return std::unexpected(made.error());
  json::Array usages(order.usages.begin(), order.usages.end());
  const auto request = client.create_and_wait(kRequests, "",
                                              json::Object{{"apiVersion", "certificates.k8s.io/v1"},
                                                           {"kind", "CertificateSigningRequest"},
                                                           {"metadata", json::Object{{"generateName", "node-csr-"}}},
                                                           {"spec", json::Object{{"request", base64_encode(made->request_pem)},
                                                                                 {"signerName", order.signer},
                                                                                 {"usages", std::move(usages)}}}});
  if (!request) {
    if (request.error().code == 401 && !order.unknown_user.empty()) return invalid(order.unknown_user);
    const bool is_refused = request.error().code == 401 || request.error().code == 403;
    return fail(is_refused ? ErrorCode::kInvalid : ErrorCode::kUnavailable,
                fmt::format("the certificate could not be asked for: {}", request.error().message));
  }
  const std::string name(json::get_string(*request, {"metadata", "name"}));
  if (order.ordered) order.ordered(name);
  bool is_approved = false;
  do {
    const auto seen = client.get_and_wait(kRequests, "", name);
    if (!seen && seen.error().code == 404)
      return fail(ErrorCode::kNotFound, fmt::format("the certificate request {} is gone: somebody deleted it", name));
    if (!seen) continue;  // The server may be restarting; the wait ends it.
    const auto certificate = look_at(*seen, is_approved);
    if (!certificate) return std::unexpected(certificate.error());
    if (!certificate->empty()) return NodeIdentity{*certificate, made->private_key_pem};
  } while (order.wait());
  if (is_approved)
    return fail(ErrorCode::kUnavailable,
                fmt::format("the certificate request {} is approved, but nobody signs for {}: do the controllers run, with "
                            "--controller-arg cluster-signing-cert-file=… and cluster-signing-key-file=…?",
                            name, order.signer));
  return fail(
      ErrorCode::kUnavailable,
      fmt::format("the certificate request {0} was not approved in time; an administrator does so with `kubectl certificate approve "
                  "{0}`, then run this again",
                  name));
}

Result<IdentityKeeper> IdentityKeeper::create(Options options) {
  IdentityKeeper keeper(std::move(options));
  if (auto read = keeper.read(); !read) return std::unexpected(read.error());
  return keeper;
}

Result<void> IdentityKeeper::read() {
  const auto facts = net::read_certificate_facts(options_.entry.certificate_pem);
  if (!facts) return invalid(fmt::format("{}: {}", options_.path, facts.error().message));
  due_ = net::renewal_time(facts->not_before, facts->not_after, options_.share);
  end_ = facts->not_after;
  return {};
}

Result<bool> IdentityKeeper::keep(client::Client& client, TimePoint now) {
  if (now < due_) return false;
  auto identity = order_certificate(client, client_order(options_.node, options_.wait));
  if (!identity) return std::unexpected(identity.error());
  client::KubeconfigEntry entry = options_.entry;
  entry.certificate_pem = std::move(identity->certificate_pem);
  entry.private_key_pem = std::move(identity->private_key_pem);
  if (auto written = client::write_kubeconfig(options_.path, entry); !written) return std::unexpected(written.error());
  options_.entry = std::move(entry);
  if (auto read_it = read(); !read_it) return std::unexpected(read_it.error());
  if (options_.transport == nullptr) return true;
  net::ClientConfig http;
  http.url = options_.entry.server;
  http.ca_pem = options_.entry.ca_pem;
  http.certificate_pem = options_.entry.certificate_pem;
  http.private_key_pem = options_.entry.private_key_pem;
  http.server_name = options_.entry.tls_server_name;
  auto next = client::make_https_transport(std::move(http), std::string());
  if (!next) return std::unexpected(next.error());
  options_.transport->replace(std::move(*next));
  return true;
}

std::string node_of_certificate(const std::string& certificate_pem) {
  constexpr std::string_view kPrefix = "system:node:";
  const auto facts = net::read_certificate_facts(certificate_pem);
  if (!facts || !facts->common_name.starts_with(kPrefix)) return {};
  return facts->common_name.substr(kPrefix.size());
}

IdentityThread::IdentityThread(IdentityKeeper keeper, std::shared_ptr<client::ReplaceableTransport> transport)
    : transport_(std::move(transport)),
      client_(transport_, nullptr, "berth-node"),
      keeper_(std::move(keeper)),
      thread_([this] { run(); }) {}

IdentityThread::~IdentityThread() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool IdentityThread::wait_for(std::chrono::milliseconds pause) {
  MutexLock lock(mutex_);
  return !wake_.wait_for(mutex_, pause, [this]() BERTH_REQUIRES(mutex_) { return stopping_; });
}

void IdentityThread::run() {
  constexpr std::chrono::milliseconds kLook = std::chrono::seconds(30), kAfterTrouble = std::chrono::minutes(5);
  const SystemClock clock;
  int looks = 0;
  keeper_.set_wait([&] { return ++looks < 300 && wait_for(std::chrono::seconds(1)); });
  for (std::chrono::milliseconds pause = std::chrono::seconds(1); wait_for(pause);) {
    looks = 0;
    const auto kept = keeper_.keep(client_, clock.now());
    pause = kept ? kLook : kAfterTrouble;
    if (!kept)
      log::error("node", "the client certificate (until {}) could not be renewed: {}", format_rfc3339(keeper_.end()), kept.error().message);
    else if (*kept)
      log::info("node", "the client certificate was renewed; it is good until {}", format_rfc3339(keeper_.end()));
  }
}

}  // namespace berth::cli
