#include "cli/nodes/node_join.h"

#include <future>

#include "cli/command/parse.h"
#include "net/certificates.h"
#include "net/client.h"
#include "security/bootstrap_token.h"

namespace berth::cli {
namespace {

constexpr const char* kInfoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
constexpr std::string_view kHashPrefix = "sha256:";
constexpr std::size_t kHashDigits = 64;

std::string make_new_token() {
  return fmt::format("`{} token create --print-join-command` on the cluster makes a new one", program_name());
}

/// The data of cluster-info, as somebody says who is perhaps not the cluster.
Result<json::Value> fetch_info(const std::string& server, const std::string& ca_pem, const Fetch& fetch) {
  const auto answer = fetch(server, kInfoPath, ca_pem);
  if (answer.status == 0)
    return fail(ErrorCode::kUnavailable,
                fmt::format("{} does not answer ({}). Is the address right, does the API server listen there (berth up --listen "
                            "0.0.0.0:6443), does a firewall stand between?",
                            server, answer.body));
  if (answer.status == 401 || answer.status == 403)
    return invalid(
        fmt::format("{} tells strangers nothing about the cluster (HTTP {}): it has no ConfigMap kube-public/cluster-info that "
                    "everybody may read",
                    server, answer.status));
  if (answer.status != 200)
    return invalid(
        fmt::format("{} answers HTTP {} where a cluster's kube-public/cluster-info would be: is it an API server?", server, answer.status));
  auto document = json::parse(answer.body);
  if (!document || json::find(*document, {"data", "kubeconfig"}) == nullptr)
    return invalid(fmt::format("{} does not answer as an API server with a ConfigMap kube-public/cluster-info does", server));
  return std::move(*document);
}

Result<void> check_signature(const json::Value& info, const security::TokenParts& token) {
  const std::string key = "jws-kubeconfig-" + token.id;
  const std::string_view given = json::get_string(info, {"data", key});
  if (given.empty())
    return invalid(fmt::format("the cluster knows no token {}: it has expired, was deleted, was mistyped, or is not for signing; {}",
                               token.id, make_new_token()));
  if (given != security::detached_signature(json::get_string(info, {"data", "kubeconfig"}), token))
    return invalid(fmt::format("the token {}.… is not the cluster's: its second half was mistyped, or this is another cluster", token.id));
  return {};
}

Result<void> check_hashes(const std::string& ca_pem, const std::vector<std::string>& wanted) {
  const auto hashes = net::public_key_hashes(ca_pem);
  for (const std::string& hash : hashes)
    if (std::ranges::find(wanted, hash) != wanted.end()) return {};
  return invalid(
      fmt::format("the cluster's certificate authority has the hash {}, not {}: the hash was mistyped, or who answers is not your "
                  "cluster",
                  fmt::join(hashes, " or "), fmt::join(wanted, " or ")));
}

}  // namespace

Fetch network_fetch() {
  return [](const std::string& url, const std::string& path, const std::string& ca_pem) {
    net::ClientConfig config;
    config.url = url;
    config.ca_pem = ca_pem;
    config.insecure_skip_verify = ca_pem.empty();
    config.timeout_ms = 15'000;
    const auto client = net::HttpClient::create(std::move(config));
    if (!client) return net::HttpResponse{0, {}, client.error().message};
    net::HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.headers.set("Accept", "application/json");
    auto done = std::make_shared<std::promise<net::HttpResponse>>();
    auto answer = done->get_future();
    (*client)->send(std::move(request), [done](net::HttpResponse response) { done->set_value(std::move(response)); });
    return answer.get();
  };
}

Result<void> check_join_request(JoinRequest& request) {
  std::vector<std::string> problems;
  if (request.server.starts_with("http://"))
    problems.push_back("the server's address begins with https://, not http://");
  else if (!request.server.starts_with("https://"))
    request.server = "https://" + request.server;
  while (request.server.ends_with('/')) request.server.pop_back();
  const std::string address = request.server.substr(std::min(request.server.size(), std::string_view("https://").size()));
  if (address.empty() || address.find('/') != std::string::npos || address.find('@') != std::string::npos)
    problems.push_back(fmt::format("\"{}\" is not an API server's address (HOST:PORT)", address));
  else if (address.rfind(':') == std::string::npos || address.ends_with(']'))
    request.server += ":6443";
  if (!security::split_bootstrap_token(request.token))
    problems.push_back(
        fmt::format("--token: \"{}\" is not of a token's form: six characters, a dot and sixteen more, of a-z and 0-9", request.token));
  if (request.ca_hashes.empty())
    problems.push_back("--ca-hash: missing; it says which cluster is meant (`berth token create --print-join-command` prints it)");
  for (std::string& hash : request.ca_hashes) {
    std::ranges::transform(hash, hash.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string_view digits = std::string_view(hash).substr(std::min(hash.size(), kHashPrefix.size()));
    if (!hash.starts_with(kHashPrefix) || digits.size() != kHashDigits || digits.find_first_not_of("0123456789abcdef") != digits.npos)
      problems.push_back(fmt::format("--ca-hash: \"{}\" is not \"sha256:\" and 64 hexadecimal digits", hash));
  }
  if (!problems.empty()) return invalid(fmt::format("{}", fmt::join(problems, "\n")));
  return {};
}

Result<JoinFacts> discover_cluster(const JoinRequest& request, const Fetch& fetch) {
  const auto token = security::split_bootstrap_token(request.token);
  if (!token) return invalid("the token is not of a token's form");
  const auto info = fetch_info(request.server, "", fetch);
  if (!info) return std::unexpected(info.error());
  // The authority first: of another cluster no token helps.
  auto facts = read_cluster_info(json::get_string(*info, {"data", "kubeconfig"}));
  if (!facts) return invalid(fmt::format("{}: kube-public/cluster-info: {}", request.server, facts.error().message));
  if (auto pinned = check_hashes(facts->ca_pem, request.ca_hashes); !pinned) return std::unexpected(pinned.error());
  if (auto vouched = check_signature(*info, *token); !vouched) return std::unexpected(vouched.error());
  // Once more, from somebody who holds a certificate of that authority.
  const auto again = fetch_info(request.server, facts->ca_pem, fetch);
  if (!again)
    return again.error().code == ErrorCode::kUnavailable
               ? fail(ErrorCode::kInvalid, fmt::format("{} is not the cluster that the hash names: it shows a certificate of somebody else "
                                                       "({})",
                                                       request.server, again.error().message))
               : std::unexpected(again.error());
  if (json::get_string(*again, {"data", "kubeconfig"}) != json::get_string(*info, {"data", "kubeconfig"}))
    return invalid(fmt::format("{} says something else to who verifies it than to who does not: somebody stands between", request.server));
  facts->url = request.server;
  return facts;
}

}  // namespace berth::cli
