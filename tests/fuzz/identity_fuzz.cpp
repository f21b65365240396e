// Fuzz target: who asks. Sequences of requests of three users with few rights to an API server with Kubernetes' default roles.
//
// An input is a list of requests (tests/fuzz/requests.h); every input meets a fresh server. TYPE may end in "@NAME": the request
// impersonates NAME. Each request is sent by everybody: an editor of namespace "mine", a pod's account of that namespace, and node n1. What
// must hold, whatever the sequence:
//   - no answer shows what is kept from the user: Secrets, settings and pods elsewhere carry a word that must never come out;
//   - no object changes that is not theirs: outside "mine", or, for the node, but what a node writes of itself and its pods.
#include <unistd.h>

#include <filesystem>
#include <map>

#include "apiserver/auth/auth.h"
#include "apiserver/server.h"
#include "tests/fuzz/request_mutators.h"
#include "tests/fuzz/requests.h"

namespace {

using namespace berth;
using fuzz::FuzzRequest;
using fuzz::Recorded;

constexpr std::string_view kKept = "kept-from-you";

struct Person {
  std::string name;
  std::vector<std::string> groups;
  /// Whether the object is the person's to change.
  bool (*owns)(const apiserver::StoredObject& object);
};

bool is_in_mine(const apiserver::StoredObject& object) {
  return object.meta.ns == "mine" || object.key == apiserver::make_key("", "namespaces", "", "mine");
}

bool is_of_node(const apiserver::StoredObject& object) {
  const std::string_view key = object.key;
  if (key == "//nodes//n1" || key == "/coordination.k8s.io/leases/kube-node-lease/n1" || key == "/storage.k8s.io/csinodes//n1") return true;
  if (key.starts_with("//pods/")) return object.meta.field("spec.nodeName") == "n1";
  // Of events and device slices a node may write any, of certificates it may ask for.
  return key.starts_with("//events/") || key.starts_with("/events.k8s.io/events/") || key.starts_with("/resource.k8s.io/resourceslices/") ||
         key.starts_with("/certificates.k8s.io/certificatesigningrequests/");
}

const std::vector<Person>& people() {
  static const std::vector<Person> all = {
      {"mallory", {"devs", "system:authenticated"}, is_in_mine},
      {"system:serviceaccount:mine:default", {"system:serviceaccounts", "system:serviceaccounts:mine", "system:authenticated"}, is_in_mine},
      {"system:node:n1", {"system:nodes", "system:authenticated"}, is_of_node}};
  return all;
}

const std::vector<std::pair<std::string, std::string>>& furniture() {
  static const std::string pod =
      R"({"metadata":{"name":"%N"},"spec":{"nodeName":"%M","serviceAccountName":"default","containers":[{"name":"c","image":"i","env":[{"name":"A","value":"%V"}]}]}})";
  const auto with = [](std::string text, std::string_view name, std::string_view node, std::string_view value) {
    text.replace(text.find("%N"), 2, name);
    text.replace(text.find("%M"), 2, node);
    text.replace(text.find("%V"), 2, value);
    return text;
  };
  const std::string kept(kKept);
  static const std::vector<std::pair<std::string, std::string>> all = {
      {"/api/v1/namespaces", R"({"metadata":{"name":"mine"}})"},
      {"/api/v1/namespaces", R"({"metadata":{"name":"other"}})"},
      {"/api/v1/nodes", R"({"metadata":{"name":"n1"}})"},
      {"/api/v1/nodes", R"({"metadata":{"name":"n2"}})"},
      {"/api/v1/namespaces/mine/serviceaccounts", R"({"metadata":{"name":"default"}})"},
      {"/api/v1/namespaces/other/serviceaccounts", R"({"metadata":{"name":"default"}})"},
      {"/api/v1/namespaces/mine/pods", with(pod, "p", "n1", "x")},
      {"/api/v1/namespaces/other/pods", with(pod, "p", "n2", kept)},
      {"/api/v1/namespaces/other/secrets", R"({"metadata":{"name":"s"},"stringData":{"a":")" + kept + R"("}})"},
      {"/api/v1/namespaces/kube-system/secrets", R"({"metadata":{"name":"s","labels":{"a":"b"}},"data":{"a":"a2VwdC1mcm9tLXlvdQ=="}})"},
      {"/api/v1/namespaces/other/configmaps",
       R"({"metadata":{"name":"c","annotations":{"a":")" + kept + R"("}},"data":{"a":")" + kept + R"("}})"},
      {"/api/v1/namespaces/mine/configmaps", R"({"metadata":{"name":"c"},"data":{"a":"b"}})"},
      {"/apis/apps/v1/namespaces/other/deployments",
       R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})"},
      {"/apis/rbac.authorization.k8s.io/v1/namespaces/mine/rolebindings",
       R"({"metadata":{"name":"edit"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"mallory"},{"kind":"ServiceAccount","name":"default","namespace":"mine"}]})"},
      {"/apis/scheduling.k8s.io/v1/priorityclasses", R"({"metadata":{"name":"high"},"value":1000})"}};
  return all;
}

class GuardedWorld {
 public:
  GuardedWorld() {
    auto cache = apiserver::open_object_cache(store::make_memory_store(), loop_, {}, true);
    static const std::string key = [] {
      const auto directory = fmt::format("/tmp/berth-fuzz-identity.{}", ::getpid());
      const auto pki = security::Pki::open({.directory = directory}, TimePoint(std::chrono::seconds(1'767'322'800)));
      if (!pki) fuzz::broken(pki.error().message, {}, {});
      auto pem = pki->service_account_key_pem();
      std::filesystem::remove_all(directory);
      return pem;
    }();
    apiserver::ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = &loop_;
    auto parts = apiserver::auth::make_auth({.cache = options.cache.get(), .clock = &loop_, .service_account_key_pem = key});
    if (!parts) fuzz::broken(parts.error().message, {}, {});
    aggregation_ = std::move(parts->aggregation);
    options.authenticator = parts->authenticator;
    options.authorizer = parts->authorizer;
    options.token_issuer = parts->tokens;
    options.seed = 42;
    options.single_threaded = true;
    auto server = apiserver::ApiServer::create(std::move(options));
    if (!server) fuzz::broken(server.error().message, {}, {});
    server_ = std::move(*server);
    for (const auto& [path, body] : furniture()) {
      const auto made = send({"POST", path, "json", body}, "admin", {"system:masters"});
      if (made == nullptr || made->status != 201)
        fuzz::broken("the furniture is refused", {"POST", path, "json", body}, made ? made->body : "");
    }
  }
  ~GuardedWorld() { aggregation_.reset(); }

  void run(const FuzzRequest& request, const Person& person) {
    const auto before = foreign(person);
    const auto revision = server_->cache().revision();
    const auto answer = send(request, person.name, person.groups);
    if (answer == nullptr) return;
    if (answer->body.find(kKept) != std::string::npos || answer->body.find("a2VwdC1mcm9tLXlvd") != std::string::npos)
      fuzz::broken(person.name + " was shown what is kept from them", request, answer->body);
    if (server_->cache().revision() == revision) return;
    const auto after = foreign(person);
    for (const auto& [key, at] : after)
      if (const auto found = before.find(key); found == before.end() || found->second != at)
        fuzz::broken(fmt::format("{} wrote {}", person.name, key), request, answer->body);
    for (const auto& [key, at] : before)
      if (!after.contains(key) && server_->cache().get(key) == nullptr)
        fuzz::broken(fmt::format("{} removed {}", person.name, key), request, answer->body);
  }

 private:
  /// Key and revision of everything that is not the person's.
  std::map<std::string, store::Revision> foreign(const Person& person) {
    std::map<std::string, store::Revision> out;
    for (const auto& [prefix, count] : server_->cache().counts()) {
      apiserver::WatchFilter filter;
      filter.prefix = prefix + "/";
      for (const auto& object : server_->cache().list(filter, {}, 0).items)
        if (!person.owns(*object)) out.emplace(object->key, object->revision);
    }
    return out;
  }

  std::shared_ptr<Recorded> send(FuzzRequest request, const std::string& name, const std::vector<std::string>& groups) {
    std::string acting;
    if (const auto at = request.type.find('@'); at != std::string::npos) {
      acting = request.type.substr(at + 1);
      request.type.resize(at);
    }
    auto http = fuzz::to_http(request);
    if (!http) return nullptr;
    http->peer = net::PeerCertificate{name, groups};
    if (!acting.empty()) http->headers.add("Impersonate-User", acting);
    auto answer = std::make_shared<Recorded>();
    server_->handle(std::move(*http), answer);
    loop_.run_ready();
    if (!answer->is_finished && !answer->is_stream) loop_.run_for(std::chrono::seconds(61));
    if (!answer->is_finished && !answer->is_stream) fuzz::broken("no answer", request, {});
    if (!answer->is_finished) answer->end();
    return answer;
  }

  VirtualLoop loop_{TimePoint(std::chrono::seconds(1'767'322'800))};
  std::unique_ptr<apiserver::Watch> aggregation_;
  std::unique_ptr<apiserver::ApiServer> server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto requests = fuzz::parse_requests({reinterpret_cast<const char*>(data), size});
  if (requests.empty()) return 0;
  GuardedWorld world;
  for (const auto& person : people())
    for (const auto& request : requests) world.run(request, person);
  return 0;
}
