// Requests that are played twice, once where writes may follow patterns and once where none does.
#pragma once
#include <fstream>

#include "apiserver/audit/log.h"
#include "apiserver/audit/policy.h"
#include "base/text_packer.h"
#include "model/protobuf/protobuf.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver::testing {

inline constexpr const char* kPodsPath = "/api/v1/namespaces/default/pods";
inline constexpr const char* kNodes = "/api/v1/nodes";
inline constexpr const char* kCoreEvents = "/api/v1/namespaces/default/events";
inline constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
inline constexpr const char* kReplicaSets = "/apis/apps/v1/namespaces/default/replicasets";
inline constexpr const char* kEvents = "/apis/events.k8s.io/v1/namespaces/default/events";
/// A server of its own, with everything that it answered. The same requests in the same order give the same answers, names and uids
/// included, whichever way creations go.
class Played : public ServerTest {
 public:
  /// `type`: of creations. With a parameter it is the same type, and goes the long way.
  explicit Played(std::string type) : type_(std::move(type)) { SetUp(); }
  ~Played() override { TearDown(); }
  void TestBody() override {}

  void take(const Response& response) {
    std::string warnings;
    for (const auto& [name, value] : response->headers.fields())
      if (name == "Warning") warnings += " " + value;
    answers.push_back(fmt::format("{}{} {}", response->status, warnings, response->body));
    loop_.run_for(std::chrono::milliseconds(700));
  }
  void create(const std::string& path, const std::string& body) { take(send("POST", path, body, type_)); }
  /// Of what is not to be made by a pattern.
  void other(const std::string& method, const std::string& path, const std::string& body = {},
             const std::string& type = "application/json") {
    take(send(method, path, body, type));
  }
  /// A patch of a language, or a PUT ("json").
  void update(const std::string& path, const std::string& body, const std::string& language = "strategic-merge-patch+json") {
    take(send(language == "json" ? "PUT" : "PATCH", path, body,
              "application/" + language + type_.substr(std::string("application/json").size())));
  }
  /// As Go's clients send and want it.
  void send_protobuf(const std::string& method, const std::string& path, const std::string& body) {
    constexpr const char* kProtobuf = "application/vnd.kubernetes.protobuf";
    take(send(method, path, *model::encode_protobuf(*json::parse(body)), kProtobuf + type_.substr(std::string("application/json").size()),
              {{"Accept", fmt::format("{},application/json", kProtobuf)}}));
  }
  /// All pods are stored as if nobody had changed them for long.
  void pack_pods() {
    TextPacker packer;
    WatchFilter pods;
    pods.prefix = make_prefix("", "pods", "default");
    for (const ObjectPtr& pod : server_->cache().list(pods, {}, 0).items) packer.pack("pods", pod->meta.name, *pod->kept);
  }
  [[nodiscard]] std::string revision() const { return std::to_string(server_->cache().revision()); }
  [[nodiscard]] int followed() const { return count("creations"); }
  [[nodiscard]] int updates_followed() const { return count("updates"); }
  void act_as(std::optional<net::PeerCertificate> who) { peer_ = std::move(who); }
  /// Starts anew, with everything written down, bodies too.
  void listen() {
    audit::LogOptions options;
    options.policy = std::make_shared<const audit::Policy>(
        *audit::parse_policy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]", "p.yaml"));
    options.file.path = directory_.file("audit.log");
    log_ = std::move(*audit::Log::start(std::move(options), metrics_));
    ServerOptions server;
    server.audit = log_;
    start(std::move(server));
  }
  /// What was written down becomes answers, but for what is numbered at random.
  void tell_audit() {
    log_->flush();
    std::ifstream in(directory_.file("audit.log"));
    for (std::string line; std::getline(in, line);) {
      auto event = *json::parse(line);
      event.get_object().erase("auditID");
      answers.push_back(json::serialize(event));
    }
  }

  std::vector<std::string> answers;

 private:
  store::TemporaryDirectory directory_;
  metrics::Registry metrics_;
  std::shared_ptr<audit::Log> log_;
  [[nodiscard]] int count(const std::string& what) const {
    return static_cast<int>(server_->metrics().counter(fmt::format("berth_apiserver_{}_by_pattern_total", what), "").value());
  }
  std::string type_;
};

struct Followed {
  int creations = 0, updates = 0;
};

/// Plays the requests both ways. Gives how many writes followed a pattern.
inline Followed play_both(const std::function<void(Played&)>& requests) {
  Played fast("application/json"), plain("application/json; charset=utf-8");
  for (Played* one : {&fast, &plain}) {
    requests(*one);
    for (const char* path : {kPodsPath, kCoreEvents, kEvents, kLeases, kNodes, kReplicaSets}) one->other("GET", path);
    one->other("GET", std::string(kReplicaSets) + "?fieldSelector=status.replicas%3D3");
    for (const char* selector : {"app%3Dother", "job-name%3Dj2", "kubernetes.io/hostname%3Dn3", "zone%3Da", "zone"})
      for (const char* path : {kPodsPath, kNodes}) one->other("GET", fmt::format("{}?labelSelector={}", path, selector));
    one->other("GET", std::string(kPodsPath) + "?fieldSelector=status.phase%3DRunning,status.podIP%3D10.0.0.3,spec.nodeName%3Dn0");
  }
  EXPECT_EQ(plain.followed() + plain.updates_followed(), 0);
  EXPECT_EQ(fast.answers.size(), plain.answers.size());
  for (std::size_t i = 0; i < std::min(fast.answers.size(), plain.answers.size()); ++i) EXPECT_EQ(fast.answers[i], plain.answers[i]) << i;
  return {fast.followed(), fast.updates_followed()};
}

inline int play(const std::function<void(Played&)>& requests) { return play_both(requests).creations; }
inline int play_updates(const std::function<void(Played&)>& requests) { return play_both(requests).updates; }

/// As a ReplicaSet's controller posts them.
inline std::string replica(const std::string& metadata = "", const std::string& spec = "") {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"generateName":"web-","namespace":"default","labels":{{"app":"web"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true,"blockOwnerDeletion":true}}]{}}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"0.1","memory":"1Gi"}}}}}}]{}}}}})",
      metadata, spec);
}

inline std::string named(const std::string& name) { return replica(fmt::format(R"(,"name":"{}")", name)); }

struct Report {
  std::string ip = "10.0.0.1", host = "172.16.0.1", since = "2026-01-02T03:04:05Z", started = "2026-01-02T03:04:06Z",
              container = "containerd://a", volume = "kube-api-access-a", more = {};
};

/// As a kubelet reports that a pod runs.
inline std::string report(const std::string& uid, const Report& of = {}) {
  return fmt::format(
      R"({{"metadata":{{"uid":"{0}"}},"status":{{"$setElementOrder/conditions":[{{"type":"Ready"}},{{"type":"PodScheduled"}}],"$setElementOrder/podIPs":[{{"ip":"{1}"}}],"observedGeneration":1,"phase":"Running","conditions":[{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"{3}"}},{{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"{3}"}}],"hostIP":"{2}","hostIPs":[{{"ip":"{2}"}}],"podIP":"{1}","podIPs":[{{"ip":"{1}"}}],"startTime":"{3}","containerStatuses":[{{"name":"c","state":{{"running":{{"startedAt":"{4}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"i","imageID":"i@x","containerID":"{5}","started":true,"volumeMounts":[{{"name":"{6}","mountPath":"/x","readOnly":true}}]}}]{7}}}}})",
      uid, of.ip, of.host, of.since, of.started, of.container, of.volume, of.more);
}

/// Pods p0, p1 and so on, bound to n0, n1, n0 …; their uids.
inline std::vector<std::string> run_pods(Played& at, int count, int from = 0) {
  std::vector<std::string> uids;
  for (int i = from; i < from + count; ++i) {
    const auto name = fmt::format("p{}", i);
    at.create(kPodsPath, named(name));
    const auto& answer = at.answers.back();
    const auto from = answer.find(R"("uid":")", answer.find(R"("namespace":)")) + 7;
    uids.push_back(answer.substr(from, 36));
    at.other("POST", fmt::format("{}/{}/binding", kPodsPath, name),
             fmt::format(R"({{"metadata":{{"name":"{}"}},"target":{{"kind":"Node","name":"n{}"}}}})", name, i % 2));
  }
  return uids;
}

inline std::string status_of(int pod) { return fmt::format("{}/p{}/status", kPodsPath, pod); }

}  // namespace berth::apiserver::testing
