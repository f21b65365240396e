// How machines join and stay: tokens, discovery, requests for certificates approved, signed, renewed and cleaned away. The real server with
// real rights, the real controllers, a virtual clock.
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <fstream>

#include "apiserver/auth/auth.h"
#include "apiserver/auth/revoked.h"
#include "apiserver/server.h"
#include "base/base64.h"
#include "cli/nodes/join_documents.h"
#include "cli/nodes/node_identity.h"
#include "cli/nodes/node_join.h"
#include "cli/nodes/serving_certificate.h"
#include "client/hooked_transport.h"
#include "controllers/manager.h"
#include "net/certificates.h"
#include "security/bootstrap_token.h"
#include "store/store.h"
#include "tests/store/store_fixture.h"

namespace berth::integration {
namespace {

namespace auth = apiserver::auth;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const model::Gvr kSigningRequests{"certificates.k8s.io", "v1", "certificatesigningrequests"};
const model::Gvr kSecrets{"", "v1", "secrets"};
const model::Gvr kMaps{"", "v1", "configmaps"};

std::string read_text(const store::TemporaryDirectory& directory, const char* name) {
  std::ifstream in(directory.file(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Whether the first certificate of one text signed that of the other.
bool is_signed_by(const std::string& certificate_pem, const std::string& authority_pem) {
  const auto read = [](const std::string& pem) {
    BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    X509* out = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    return std::unique_ptr<X509, decltype([](X509* x) { X509_free(x); })>(out);
  };
  const auto certificate = read(certificate_pem), authority = read(authority_pem);
  return certificate != nullptr && authority != nullptr && X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
}

class Joining : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pki = security::Pki::open({.directory = directory_.file("pki")}, loop_.now());
    ASSERT_TRUE(pki) << pki.error().message;
    pki_.emplace(std::move(*pki));
    auto cache = apiserver::open_object_cache(store::make_memory_store(), loop_, {}, true);
    ASSERT_TRUE(cache) << cache.error().message;
    auto parts = auth::make_auth({.cache = cache->get(),
                                  .clock = &loop_,
                                  .service_account_key_pem = pki_->service_account_key_pem(),
                                  .revoked_file = directory_.file("revoked")});
    ASSERT_TRUE(parts) << parts.error().message;
    parts_ = std::move(*parts);
    apiserver::ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = &loop_;
    options.authenticator = parts_.authenticator;
    options.authorizer = parts_.authorizer;
    options.seed = 7;
    options.single_threaded = true;
    auto api = apiserver::ApiServer::create(std::move(options));
    ASSERT_TRUE(api) << api.error().message;
    api_ = std::move(*api);
    admin_.emplace(as("admin", {"system:masters"}), nullptr, "test");
    ASSERT_TRUE(cli::publish_join_documents(*admin_, {"https://cluster:6443", pki_->ca_certificate_pem(), "10.96.0.0/12"}));
    controllers::ManagerOptions manager;
    manager.enabled_only = {"certificatesigningrequest-signing-controller", "certificatesigningrequest-approving-controller",
                            "certificatesigningrequest-cleaner-controller", "token-cleaner-controller", "bootstrap-signer-controller"};
    manager.signing.authority = [this]() -> Result<net::SigningAuthority> {
      return net::SigningAuthority{pki_->ca_certificate_pem(), read_text(directory_, "pki/ca.key")};
    };
    adjust(manager.signing);
    manager_ = controllers::make_controller_manager(as("system:kube-controller-manager", {}), loop_, manager, &metrics_);
    manager_->start();
    loop_.run_for(seconds(1));
  }
  virtual void adjust(controllers::SigningOptions&) {}
  void TearDown() override {
    manager_.reset();
    parts_.aggregation.reset();
    api_.reset();
  }

  std::shared_ptr<client::Transport> as(std::string user, std::vector<std::string> groups) {
    return client::make_in_process_transport(*api_, {std::move(user), std::move(groups)});
  }
  client::Client with_token(const std::string& token) {
    client::TransportHooks hooks;
    hooks.before = [token](net::HttpRequest& request) { request.headers.set("Authorization", "Bearer " + token); };
    return {client::with_hooks(as("", {}), hooks), nullptr, "test"};
  }
  client::Client node(const std::string& name) { return {as("system:node:" + name, {"system:nodes"}), nullptr, "test"}; }

  void put_token(std::optional<TimePoint> end, bool authenticates = true) {
    security::BootstrapToken token;
    token.id = "abcdef";
    token.secret = "0123456789abcdef";
    token.expiration = end;
    token.authenticates = authenticates;
    token.signs = true;
    token.extra_groups = {std::string(security::kNodeTokenGroup)};
    const auto made = admin_->create_and_wait(kSecrets, "kube-system", security::make_bootstrap_secret(token));
    ASSERT_TRUE(made) << made.error().message;
    loop_.run_for(seconds(1));
  }
  /// Waits under the virtual clock.
  std::function<bool()> patience(int turns = 60) {
    return [this, left = std::make_shared<int>(turns)] {
      loop_.run_for(seconds(1));
      return --*left > 0;
    };
  }
  /// What a stranger gets.
  cli::Fetch fetch() {
    return [this](const std::string& url, const std::string& path, const std::string&) {
      if (url != "https://cluster:6443") return net::HttpResponse{0, {}, "connection refused"};
      net::HttpRequest request;
      request.method = "GET";
      request.path = path;
      net::HttpResponse answer;
      as("", {})->send(std::move(request), [&](net::HttpResponse response) { answer = std::move(response); });
      return answer;
    };
  }
  cli::JoinRequest join(std::string token = "abcdef.0123456789abcdef") {
    return {"https://cluster:6443", std::move(token), {net::public_key_hash(pki_->ca_certificate_pem()).value_or("")}};
  }
  json::Value request_named(const std::string& name) {
    const auto found = admin_->get_and_wait(kSigningRequests, "", name);
    return found ? *found : json::Value();
  }
  /// Creates a request by hand; its name or the refusal.
  model::ApiResult<json::Value> ask(client::Client client, const std::string& signer, const net::RequestSubject& subject,
                                    std::vector<std::string> usages, json::Object more = {}) {
    const auto made = net::make_certificate_request(subject);
    json::Object spec{
        {"request", base64_encode(made->request_pem)}, {"signerName", signer}, {"usages", json::Array(usages.begin(), usages.end())}};
    for (const auto& [key, value] : more) spec[key] = value;
    return client.create_and_wait(kSigningRequests, "",
                                  json::Object{{"apiVersion", "certificates.k8s.io/v1"},
                                               {"kind", "CertificateSigningRequest"},
                                               {"metadata", json::Object{{"generateName", "r-"}}},
                                               {"spec", std::move(spec)}});
  }
  static std::string name_of(const json::Value& object) { return std::string(json::get_string(object, {"metadata", "name"})); }
  /// PUT of a subresource with one condition more.
  model::ApiResult<json::Value> condition(client::Client client, const std::string& name, const char* type, const char* sub = "approval") {
    json::Value request = request_named(name);
    json::Array conditions = json::get_array(request, {"status", "conditions"});
    conditions.push_back(json::Object{{"type", type}, {"status", "True"}, {"reason", "Test"}, {"message", "by hand"}});
    json::set(request, {"status", "conditions"}, std::move(conditions));
    client::Call put{.verb = "update", .gvr = kSigningRequests, .name = name, .subresource = sub};
    put.body = json::serialize(request);
    return client.call_and_wait(std::move(put));
  }

  VirtualLoop loop_{*parse_rfc3339("2026-01-02T03:04:05Z")};
  store::TemporaryDirectory directory_;
  std::optional<security::Pki> pki_;
  auth::AuthParts parts_;
  metrics::Registry metrics_;
  std::unique_ptr<apiserver::ApiServer> api_;
  std::optional<client::Client> admin_;
  std::unique_ptr<controllers::ControllerManager> manager_;
};

TEST_F(Joining, AMachineWithATokenBecomesANodeAndNothingElse) {
  put_token(loop_.now() + hours(1));
  const auto facts = cli::discover_cluster(join(), fetch());
  ASSERT_TRUE(facts) << facts.error().message;
  auto client = with_token("abcdef.0123456789abcdef");
  const auto identity = cli::order_certificate(client, cli::client_order("n1", patience()));
  ASSERT_TRUE(identity) << identity.error().message;
  const auto certificate = net::read_certificate_facts(identity->certificate_pem);
  ASSERT_TRUE(certificate);
  EXPECT_EQ(certificate->common_name, "system:node:n1");
  EXPECT_EQ(certificate->organizations, std::vector<std::string>{"system:nodes"});
  EXPECT_LE(certificate->not_after, loop_.now() + hours(24 * 365));
  // The token itself reads and writes nothing.
  EXPECT_EQ(client.list_and_wait(kSecrets, "kube-system").error().code, 403);
  EXPECT_EQ(client.list_and_wait({"", "v1", "pods"}, "default").error().code, 403);
}

TEST_F(Joining, EveryMistakeOfDiscoveryIsNamed) {
  put_token(loop_.now() + hours(1));
  const auto told = [&](cli::JoinRequest request) {
    const auto facts = cli::discover_cluster(request, fetch());
    return facts ? std::string("joined") : facts.error().message;
  };
  auto wrong_hash = join();
  wrong_hash.ca_hashes = {"sha256:" + std::string(64, '0')};
  EXPECT_NE(told(wrong_hash).find("certificate authority has the hash sha256:"), std::string::npos) << told(wrong_hash);
  EXPECT_NE(told(join("fedcba.0123456789abcdef")).find("knows no token fedcba"), std::string::npos);
  EXPECT_NE(told(join("abcdef.0000000000000000")).find("token abcdef.… is not the cluster's"), std::string::npos);
  auto elsewhere = join();
  elsewhere.server = "https://elsewhere:6443";
  EXPECT_NE(told(elsewhere).find("https://elsewhere:6443 does not answer (connection refused)"), std::string::npos);
  EXPECT_EQ(told(join()), "joined");

  loop_.run_for(hours(2));
  EXPECT_NE(told(join()).find("it has expired"), std::string::npos) << told(join());
  EXPECT_EQ(admin_->get_and_wait(kSecrets, "kube-system", "bootstrap-token-abcdef").error().code, 404) << "expired tokens are cleaned away";
  auto client = with_token("abcdef.0123456789abcdef");
  EXPECT_EQ(client.get_and_wait(kMaps, "kube-public", "cluster-info").error().code, 401);
}

TEST_F(Joining, TheFormOfWhatIsTypedIsCheckedBeforeAnythingIsSent) {
  cli::JoinRequest request{"10.0.0.1", "abcdef.0123456789abcdef", {"SHA256:" + std::string(64, 'A')}};
  ASSERT_TRUE(cli::check_join_request(request));
  EXPECT_EQ(request.server, "https://10.0.0.1:6443");
  EXPECT_EQ(request.ca_hashes[0], "sha256:" + std::string(64, 'a'));
  cli::JoinRequest bad{"http://x/", "abc.def", {"md5:00"}};
  const auto checked = cli::check_join_request(bad);
  ASSERT_FALSE(checked);
  for (const char* part : {"begins with https://", "--token: \"abc.def\"", "--ca-hash: \"md5:00\""})
    EXPECT_NE(checked.error().message.find(part), std::string::npos) << checked.error().message;
}

TEST_F(Joining, ATokenThatDoesNotAuthenticateOnlyVouches) {
  put_token(std::nullopt, false);
  EXPECT_TRUE(cli::discover_cluster(join(), fetch()));
  auto client = with_token("abcdef.0123456789abcdef");
  EXPECT_EQ(client.get_and_wait(kMaps, "kube-public", "cluster-info").error().code, 401);
}

TEST_F(Joining, ANodeRenewsItselfAndOnlyItself) {
  auto n1 = node("n1");
  const auto again = cli::order_certificate(n1, cli::client_order("n1", patience()));
  EXPECT_TRUE(again) << again.error().message;
  const auto other = cli::order_certificate(n1, cli::client_order("n2", patience(5)));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("was not approved in time"), std::string::npos) << other.error().message;
}

TEST_F(Joining, AKubeconfigIsRenewedBeforeItsCertificateEnds) {
  auto n1 = node("n1");
  const auto identity = cli::order_certificate(n1, cli::client_order("n1", patience()));
  ASSERT_TRUE(identity);
  cli::IdentityKeeper::Options options;
  options.node = "n1";
  options.path = directory_.file("kubelet.kubeconfig");
  options.entry = {.user = "system:node:n1",
                   .server = "https://cluster:6443",
                   .ca_pem = pki_->ca_certificate_pem(),
                   .certificate_pem = identity->certificate_pem,
                   .private_key_pem = identity->private_key_pem};
  options.wait = patience();
  auto keeper = cli::IdentityKeeper::create(std::move(options));
  ASSERT_TRUE(keeper);
  const TimePoint end = keeper->end();
  EXPECT_EQ(keeper->keep(n1, loop_.now()).value_or(true), false) << "nothing is due";
  loop_.run_until(keeper->due() - minutes(1));
  EXPECT_EQ(keeper->keep(n1, loop_.now()).value_or(true), false);
  loop_.run_until(keeper->due());
  EXPECT_LT(loop_.now(), end);
  EXPECT_EQ(keeper->keep(n1, loop_.now()).value_or(false), true);
  EXPECT_GT(keeper->end(), end);
  EXPECT_EQ(read_text(directory_, "kubelet.kubeconfig").find(base64_encode(identity->private_key_pem)), std::string::npos)
      << "the key is new";
}

/// Certificates live an hour.
class JoiningShortly : public Joining {
 protected:
  void adjust(controllers::SigningOptions& signing) override { signing.duration = hours(1); }
};

/// Kubernetes approves no serving certificate by itself; an administrator does, and then it is kept alive.
TEST_F(JoiningShortly, AServingCertificateWaitsForAnAdministratorAndIsRenewed) {
  auto n1 = node("n1");
  std::vector<std::string> shown;
  cli::ServingKeeper::Options options{.node = "n1", .names = {"n1", "192.0.2.7"}, .directory = directory_.file(""), .wait = patience(5)};
  options.use = [&](const cli::NodeIdentity& identity) -> Result<void> {
    shown.push_back(identity.certificate_pem);
    return {};
  };
  cli::ServingKeeper keeper(options);
  EXPECT_EQ(keeper.reuse(loop_.now()).value_or(true), false);
  const auto alone = keeper.keep(n1, loop_.now());
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().message.find("was not approved in time"), std::string::npos) << alone.error().message;
  EXPECT_TRUE(shown.empty());
  const auto approving = [this, turns = patience(20)] {
    const auto all = admin_->list_and_wait(kSigningRequests, "");
    for (json::Value request : all->items) {
      if (json::find(request, {"status", "conditions"}) != nullptr) continue;
      json::set(request, {"status", "conditions"},
                json::Array{json::Object{{"type", "Approved"}, {"status", "True"}, {"reason", "Me"}, {"message", "fine"}}});
      const std::string name(json::get_string(request, {"metadata", "name"}));
      client::Call call{.verb = "update", .gvr = kSigningRequests, .name = name, .subresource = "approval"};
      call.body = json::serialize(request);
      EXPECT_TRUE(admin_->call_and_wait(std::move(call)));
    }
    return turns();
  };
  keeper.set_wait(approving);
  const auto got = keeper.keep(n1, loop_.now());
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(shown.size(), 1U);
  const auto facts = net::read_certificate_facts(shown[0]);
  EXPECT_EQ(facts->common_name, "system:node:n1");
  EXPECT_EQ(facts->names, (std::vector<std::string>{"n1", "192.0.2.7"}));
  EXPECT_EQ(keeper.keep(n1, loop_.now()).value_or(true), false) << "nothing is due";
  cli::ServingKeeper again(options);
  EXPECT_EQ(again.reuse(loop_.now()).value_or(false), true) << "a restart finds it";
  EXPECT_EQ(shown.back(), shown.front());
  auto moved = options;
  moved.names = {"n1", "192.0.2.8"};
  EXPECT_EQ(cli::ServingKeeper(moved).reuse(loop_.now()).value_or(true), false) << "another address is another certificate";
  loop_.run_for(minutes(57));
  ASSERT_EQ(keeper.keep(n1, loop_.now()).value_or(false), true) << "renewed before its end";
  EXPECT_NE(shown.back(), shown.front());
}

class JoiningOwnAddresses : public Joining {
 protected:
  void adjust(controllers::SigningOptions& signing) override {
    signing.approves_kubelet_serving = true;
    kubelets_ = std::make_unique<security::Pki>(std::move(*security::Pki::open({.directory = directory_.file("kubelets")}, loop_.now())));
    signing.own_authorities["kubelet-serving"].source = [this]() -> Result<net::SigningAuthority> {
      return net::SigningAuthority{kubelets_->ca_certificate_pem(), read_text(directory_, "kubelets/ca.key")};
    };
  }
  void put_node(const std::string& name, const std::string& address) {
    const auto made = admin_->create_and_wait({"", "v1", "nodes"}, "", json::Object{{"metadata", json::Object{{"name", name}}}});
    ASSERT_TRUE(made);
    json::Value document = *made;
    json::set(
        document, {"status", "addresses"},
        json::Array{json::Object{{"type", "InternalIP"}, {"address", address}}, json::Object{{"type", "Hostname"}, {"address", name}}});
    client::Call call{.verb = "update", .gvr = {"", "v1", "nodes"}, .name = name, .subresource = "status"};
    call.body = json::serialize(document);
    ASSERT_TRUE(admin_->call_and_wait(std::move(call)));
    loop_.run_for(seconds(1));
  }
  std::string order(const std::string& as_node, const std::string& for_node, std::vector<std::string> names) {
    auto client = node(as_node);
    const auto got = cli::order_certificate(client, cli::serving_order(for_node, std::move(names), patience(30)));
    if (!got) return got.error().message.find("was not approved in time") != std::string::npos ? "waits" : got.error().message;
    return net::read_certificate_facts(got->certificate_pem)->common_name;
  }
  std::unique_ptr<security::Pki> kubelets_;
};

TEST_F(JoiningOwnAddresses, ANodeGetsWhatIsItsOwnAndNothingElse) {
  put_node("n1", "192.0.2.1");
  put_node("n2", "192.0.2.2");
  put_node("n3", "192.0.2.2");
  EXPECT_EQ(order("n1", "n1", {"n1", "192.0.2.1"}), "system:node:n1");
  EXPECT_EQ(order("n1", "n1", {"n1", "192.0.2.9"}), "waits") << "an address that it does not have";
  EXPECT_EQ(order("n1", "n1", {"kubernetes.default.svc"}), "waits");
  EXPECT_EQ(order("n1", "n2", {"n2"}), "waits") << "another node's name";
  EXPECT_EQ(order("n2", "n2", {"192.0.2.2"}), "waits") << "two say that it is theirs";
  EXPECT_EQ(order("n2", "n2", {"n2"}), "system:node:n2");
}

/// What nodes show is vouched for by an authority that nothing else is signed with.
TEST_F(JoiningOwnAddresses, ASignerMayHaveAnAuthorityOfItsOwn) {
  put_node("n1", "192.0.2.1");
  auto n1 = node("n1");
  const auto serving = cli::order_certificate(n1, cli::serving_order("n1", {"n1"}, patience(30)));
  ASSERT_TRUE(serving) << serving.error().message;
  const auto client = cli::order_certificate(n1, cli::client_order("n1", patience(30)));
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_TRUE(is_signed_by(serving->certificate_pem, kubelets_->ca_certificate_pem()));
  EXPECT_FALSE(is_signed_by(serving->certificate_pem, pki_->ca_certificate_pem()));
  EXPECT_TRUE(is_signed_by(client->certificate_pem, pki_->ca_certificate_pem()));
}

TEST_F(Joining, WhoAsksIsWhatTheServerSaysHeIs) {
  const auto made = ask({as("jane", {"dev"}), nullptr, "test"}, "example.com/own", {"jane", {}, {}}, {"client auth"},
                        {{"username", "root"}, {"groups", json::Array{"system:masters"}}, {"uid", "0"}});
  // Without the right to create requests he gets none.
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, 403);
  const auto own = ask(*admin_, "example.com/own", {"jane", {}, {}}, {"client auth"},
                       {{"username", "root"}, {"groups", json::Array{"nobody"}}, {"uid", "0"}});
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(json::get_string(*own, {"spec", "username"}), "admin");
  EXPECT_EQ(json::serialize(*json::find(*own, {"spec", "groups"})), R"(["system:masters","system:authenticated"])");
  EXPECT_EQ(json::find(*own, {"spec", "uid"}), nullptr);
}

TEST_F(Joining, EachSignerKeepsItsRules) {
  const auto reason = [&](const std::string& signer, const net::RequestSubject& subject, std::vector<std::string> usages) {
    const auto made = ask(*admin_, signer, subject, std::move(usages));
    if (!made) return made.error().message;
    const std::string name = name_of(*made);
    const auto approved = condition(*admin_, name, "Approved");
    if (!approved) return approved.error().message;
    loop_.run_for(seconds(2));
    const json::Value now = request_named(name);
    for (const json::Value& one : json::get_array(now, {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == "Failed") return std::string(json::get_string(one, {"message"}));
    return std::string(json::get_string(now, {"status", "certificate"}).empty() ? "nobody signed" : "signed");
  };
  const std::string client = "kubernetes.io/kube-apiserver-client", kubelet = "kubernetes.io/kube-apiserver-client-kubelet",
                    serving = "kubernetes.io/kubelet-serving";
  const std::vector<std::string> as_client{"client auth"}, as_kubelet{"digital signature", "client auth"},
      as_server{"digital signature", "key encipherment", "server auth"};
  EXPECT_EQ(reason(client, {"jane", {"dev"}, {}}, as_client), "signed");
  EXPECT_EQ(reason(client, {"jane", {"dev"}, {}}, {"server auth", "client auth"}), "invalid usage for client certificate: server auth");
  EXPECT_NE(reason(client, {"eve", {"system:masters"}, {}}, as_client).find("system:masters group is not allowed"), std::string::npos);
  EXPECT_EQ(reason(kubelet, {"system:node:n", {"system:nodes"}, {}}, as_kubelet), "signed");
  EXPECT_EQ(reason(kubelet, {"system:node:n", {"system:masters"}, {}}, as_kubelet), "subject organization is not system:nodes");
  EXPECT_EQ(reason(kubelet, {"system:node:n", {"system:nodes"}, {"n.example.com"}}, as_kubelet), "DNS subjectAltNames are not allowed");
  EXPECT_EQ(reason(kubelet, {"jane", {"system:nodes"}, {}}, as_kubelet), "subject common name does not begin with system:node:");
  EXPECT_EQ(reason(serving, {"system:node:n", {"system:nodes"}, {"n", "10.0.0.7"}}, as_server), "signed");
  EXPECT_EQ(reason(serving, {"system:node:n", {"system:nodes"}, {}}, as_server), "DNS or IP subjectAltName is required");
  EXPECT_EQ(reason("example.com/own", {"jane", {}, {}}, as_client), "nobody signed");
}

TEST_F(Joining, ApprovingAndSigningAreRightsByTheSignersName) {
  const auto made = ask(*admin_, "kubernetes.io/kube-apiserver-client", {"jane", {}, {}}, {"client auth"});
  ASSERT_TRUE(made);
  const std::string name = name_of(*made);
  const auto grant = [&](const char* role, json::Array rules, const char* user) {
    const json::Object meta{{"name", role}};
    ASSERT_TRUE(admin_->create_and_wait(
        {"rbac.authorization.k8s.io", "v1", "clusterroles"}, "",
        json::Object{
            {"apiVersion", "rbac.authorization.k8s.io/v1"}, {"kind", "ClusterRole"}, {"metadata", meta}, {"rules", std::move(rules)}}));
    ASSERT_TRUE(admin_->create_and_wait(
        {"rbac.authorization.k8s.io", "v1", "clusterrolebindings"}, "",
        json::Object{
            {"apiVersion", "rbac.authorization.k8s.io/v1"},
            {"kind", "ClusterRoleBinding"},
            {"metadata", meta},
            {"roleRef", json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", role}}},
            {"subjects", json::Array{json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", user}}}}}));
  };
  const json::Array groups{"certificates.k8s.io"};
  const json::Object updates{{"apiGroups", groups},
                             {"resources", json::Array{"certificatesigningrequests/approval", "certificatesigningrequests/status"}},
                             {"verbs", json::Array{"update"}}};
  grant("half", {updates}, "half");
  grant("whole",
        {updates, json::Object{{"apiGroups", groups},
                               {"resources", json::Array{"signers"}},
                               {"resourceNames", json::Array{"kubernetes.io/*"}},
                               {"verbs", json::Array{"approve"}}}},
        "whole");
  const auto half = condition({as("half", {}), nullptr, "test"}, name, "Approved");
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().message.find("user not permitted to approve requests with signerName \"kubernetes.io/kube-apiserver-client\""),
            std::string::npos)
      << half.error().message;
  const auto failed = condition({as("whole", {}), nullptr, "test"}, name, "Failed", "status");
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("not permitted to sign"), std::string::npos) << failed.error().message;
  EXPECT_TRUE(condition({as("whole", {}), nullptr, "test"}, name, "Approved"));
}

TEST_F(Joining, ARequestDoesNotChangeButByItsSubresources) {
  const auto made = ask(*admin_, "example.com/own", {"jane", {}, {}}, {"client auth"});
  ASSERT_TRUE(made);
  const std::string name = name_of(*made);
  json::Value changed = request_named(name);
  json::set(changed, {"spec", "signerName"}, "kubernetes.io/kube-apiserver-client");
  json::set(changed, {"status"}, json::Object{{"conditions", json::Array{json::Object{{"type", "Approved"}, {"status", "True"}}}}});
  client::Call put{.verb = "update", .gvr = kSigningRequests, .name = name};
  put.body = json::serialize(changed);
  const auto answered = admin_->call_and_wait(std::move(put));
  ASSERT_TRUE(answered) << answered.error().message;
  EXPECT_EQ(json::get_string(*answered, {"spec", "signerName"}), "example.com/own");
  EXPECT_TRUE(json::get_array(*answered, {"status", "conditions"}).empty());
  // Approval is not status' to give, and is not taken back.
  const auto by_status = condition(*admin_, name, "Approved", "status");
  ASSERT_FALSE(by_status);
  EXPECT_NE(by_status.error().message.find("updates may not add a condition of type \"Approved\""), std::string::npos);
  const auto approved = condition(*admin_, name, "Approved");
  ASSERT_TRUE(approved) << approved.error().message;
  EXPECT_EQ(json::get_string(json::get_array(*approved, {"status", "conditions"})[0], {"lastUpdateTime"}), format_rfc3339(loop_.now()));
  const auto denied = condition(*admin_, name, "Denied");
  ASSERT_FALSE(denied);
  EXPECT_NE(denied.error().message.find("mutually exclusive"), std::string::npos);
}

TEST_F(Joining, WhatIsNoRequestIsRefused) {
  const auto refused = [&](json::Object spec) {
    const auto made = admin_->create_and_wait(kSigningRequests, "",
                                              json::Object{{"apiVersion", "certificates.k8s.io/v1"},
                                                           {"kind", "CertificateSigningRequest"},
                                                           {"metadata", json::Object{{"name", "r"}}},
                                                           {"spec", std::move(spec)}});
    return made ? std::string("taken") : made.error().message;
  };
  const auto good = net::make_certificate_request({"jane", {}, {}});
  const std::string request = base64_encode(good->request_pem);
  const json::Array usages{"client auth"};
  EXPECT_NE(refused({{"request", base64_encode("no PEM")}, {"signerName", "a.b/c"}, {"usages", usages}})
                .find("PEM block type must be CERTIFICATE REQUEST"),
            std::string::npos);
  EXPECT_NE(refused({{"request", request}, {"signerName", "a.b/c"}}).find("spec.usages: Required value"), std::string::npos);
  EXPECT_NE(refused({{"request", request}, {"signerName", "nodomain/c"}, {"usages", usages}})
                .find("should be a domain with at least two segments separated by dots"),
            std::string::npos);
  EXPECT_NE(refused({{"request", request}, {"signerName", "a.b/c"}, {"usages", json::Array{"client auth", "client auth"}}})
                .find("spec.usages[1]: Duplicate value: \"client auth\""),
            std::string::npos);
  EXPECT_NE(refused({{"request", request}, {"signerName", "kubernetes.io/legacy-unknown"}, {"usages", usages}})
                .find("the legacy signerName is not allowed via this API version"),
            std::string::npos);
  EXPECT_NE(refused({{"request", request}, {"signerName", "a.b/c"}, {"usages", usages}, {"expirationSeconds", 599}})
                .find("may not specify a duration less than 600 seconds (10 minutes)"),
            std::string::npos);
}

TEST_F(Joining, RequestsAreCleanedAway) {
  const auto pending = ask(*admin_, "example.com/own", {"jane", {}, {}}, {"client auth"});
  const auto denied = ask(*admin_, "example.com/own", {"jane", {}, {}}, {"client auth"});
  const auto signed_one =
      ask(*admin_, "kubernetes.io/kube-apiserver-client", {"jane", {}, {}}, {"client auth"}, {{"expirationSeconds", 600}});
  ASSERT_TRUE(pending && denied && signed_one);
  ASSERT_TRUE(condition(*admin_, name_of(*denied), "Denied"));
  ASSERT_TRUE(condition(*admin_, name_of(*signed_one), "Approved"));
  loop_.run_for(minutes(5));
  const json::Value issued = request_named(name_of(*signed_one));
  const auto facts = net::read_certificate_facts(base64_decode(json::get_string(issued, {"status", "certificate"})).value_or(""));
  ASSERT_TRUE(facts);
  EXPECT_LE(facts->not_after, loop_.now() + minutes(6)) << "what was asked for is what is given";
  loop_.run_for(minutes(10));
  EXPECT_TRUE(request_named(name_of(*signed_one)).is_null()) << "its certificate has ended";
  EXPECT_FALSE(request_named(name_of(*denied)).is_null());
  loop_.run_for(hours(1));
  EXPECT_TRUE(request_named(name_of(*denied)).is_null());
  EXPECT_FALSE(request_named(name_of(*pending)).is_null());
  loop_.run_for(hours(24));
  EXPECT_TRUE(request_named(name_of(*pending)).is_null());
}

TEST_F(Joining, ARevokedCertificateIsRefusedWhileItsHolderIsConnected) {
  const auto pair = pki_->issue_client("jane", {"system:masters"}, loop_.now(), hours(1));
  ASSERT_TRUE(pair);
  const auto facts = net::read_certificate_facts(pair->certificate_pem);
  ASSERT_TRUE(facts);
  auth::RevokedCertificates revoked(directory_.file("revoked"));
  EXPECT_FALSE(revoked.contains(facts->serial));
  std::string shown;  // As openssl prints it: capitals, with the leading zero that an even number of digits needs.
  for (const char c : (facts->serial.size() % 2 == 1 ? "0" : "") + facts->serial) shown += static_cast<char>(std::toupper(c));
  write_text(directory_.file("revoked"), "# laptops that were lost\n" + shown + " jane's\n");
  revoked.refresh();
  EXPECT_TRUE(revoked.contains(facts->serial));
  write_text(directory_.file("revoked"), "not a serial\n");
  revoked.refresh();
  EXPECT_TRUE(revoked.contains(facts->serial)) << "a slip in the file gives nobody his rights back";
}

}  // namespace
}  // namespace berth::integration
