// Creations and updates by pattern: to the last byte what the long way makes of them, whatever lies between two that are alike.
#include "apiserver/writes/stencil.h"

#include <malloc.h>

#include "base/text_packer.h"
#include "net/tracing/tracer.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/support/span_collector.h"

namespace berth::apiserver::testing {
namespace {

constexpr const char* kPodsPath = "/api/v1/namespaces/default/pods";
constexpr const char* kCoreEvents = "/api/v1/namespaces/default/events";
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
constexpr const char* kEvents = "/apis/events.k8s.io/v1/namespaces/default/events";

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
  /// All pods are stored as if nobody had changed them for long.
  void pack_pods() {
    TextPacker packer;
    WatchFilter pods;
    pods.prefix = make_prefix("", "pods", "default");
    for (const ObjectPtr& pod : server_->cache().list(pods, {}, 0).items) packer.pack("pods", pod->meta.name, *pod->kept);
  }
  [[nodiscard]] int followed() const { return count("creations"); }
  [[nodiscard]] int updates_followed() const { return count("updates"); }
  void act_as(std::optional<net::PeerCertificate> who) { peer_ = std::move(who); }

  std::vector<std::string> answers;

 private:
  [[nodiscard]] int count(const std::string& what) const {
    return static_cast<int>(server_->metrics().counter(fmt::format("berth_apiserver_{}_by_pattern_total", what), "").value());
  }
  std::string type_;
};

struct Followed {
  int creations = 0, updates = 0;
};

/// Plays the requests both ways. Gives how many writes followed a pattern.
Followed play_both(const std::function<void(Played&)>& requests) {
  Played fast("application/json"), plain("application/json; charset=utf-8");
  for (Played* one : {&fast, &plain}) {
    requests(*one);
    for (const char* path : {kPodsPath, kCoreEvents, kEvents, kLeases}) one->other("GET", path);
    one->other("GET", std::string(kPodsPath) + "?fieldSelector=status.phase%3DRunning,status.podIP%3D10.0.0.3,spec.nodeName%3Dn0");
  }
  EXPECT_EQ(plain.followed() + plain.updates_followed(), 0);
  EXPECT_EQ(fast.answers.size(), plain.answers.size());
  for (std::size_t i = 0; i < std::min(fast.answers.size(), plain.answers.size()); ++i) EXPECT_EQ(fast.answers[i], plain.answers[i]) << i;
  return {fast.followed(), fast.updates_followed()};
}

int play(const std::function<void(Played&)>& requests) { return play_both(requests).creations; }
int play_updates(const std::function<void(Played&)>& requests) { return play_both(requests).updates; }

/// As a ReplicaSet's controller posts them.
std::string replica(const std::string& metadata = "", const std::string& spec = "") {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"generateName":"web-","namespace":"default","labels":{{"app":"web"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true,"blockOwnerDeletion":true}}]{}}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"0.1","memory":"1Gi"}}}}}}]{}}}}})",
      metadata, spec);
}

std::string named(const std::string& name) { return replica(fmt::format(R"(,"name":"{}")", name)); }

std::string core_event(const std::string& name, const std::string& message, const std::string& time = "2026-01-02T03:04:05Z") {
  return fmt::format(
      R"({{"kind":"Event","apiVersion":"v1","metadata":{{"name":"{0}","namespace":"default"}},"involvedObject":{{"kind":"Pod","namespace":"default","name":"p-{0}","uid":"uid-{0}","apiVersion":"v1","resourceVersion":"7{0}"}},"reason":"Started","message":"{1}","source":{{"component":"kubelet","host":"n-{0}"}},"firstTimestamp":"{2}","lastTimestamp":"{2}","count":1,"type":"Normal","eventTime":null,"reportingComponent":"kubelet","reportingInstance":"n-{0}"}})",
      name, message, time);
}

std::string event(const std::string& name, const std::string& note, const std::string& time = "2026-01-02T03:04:05.123456Z") {
  return fmt::format(
      R"({{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{{"name":"{0}","namespace":"default"}},"eventTime":"{2}","reportingController":"default-scheduler","reportingInstance":"default-scheduler-h","action":"Binding","reason":"Scheduled","regarding":{{"kind":"Pod","namespace":"default","name":"p-{0}","uid":"uid-{0}","apiVersion":"v1","resourceVersion":"7{0}"}},"note":"{1}","type":"Normal"}})",
      name, note, time);
}

TEST(Stencil, PodsAreTheSameAsPlainOnes) {
  EXPECT_EQ(play([](Played& at) {
              for (int i = 0; i < 6; ++i) at.create(kPodsPath, replica());
            }),
            4)
      << "the first is the first, the second leaves the pattern";
  EXPECT_EQ(play([](Played& at) {
              for (const char* name : {"a", "b", "c-1", "name", "default", "web", "Wrong", "a.b", "", "x\\u0041y", "c-1", "d"})
                at.create(kPodsPath, named(name));
              at.create(kPodsPath, named(std::string(63, 'x')));
              at.create(kPodsPath, named(std::string(64, 'x')));
              at.create(kPodsPath, named(std::string(254, 'x')));
            }),
            7)
      << "what is wrong, warned of or written oddly goes the long way; a name that is taken is refused by either";
}

TEST(Stencil, EventsAreTheSameAsPlainOnes) {
  EXPECT_EQ(play([](Played& at) {
              for (const char* name : {"a1", "b22", "c.333"}) at.create(kCoreEvents, core_event(name, std::string("Started ") + name));
              at.create(kCoreEvents, core_event("c.333", "again"));
              at.create(kCoreEvents, core_event("d4", R"(a \"quoted\" one)"));
              at.create(kCoreEvents, core_event("e5", "of long ago", "2001-01-02T03:04:05+01:00"));
              at.create(kCoreEvents, core_event("f6", "never", "0001-01-01T00:00:00Z"));
              at.create(kCoreEvents, core_event("g7", "at no time", "yesterday"));
              at.create(kCoreEvents, core_event("Ä", "badly named"));
              at.create(kCoreEvents, core_event("h8", "now", "2026-01-02T03:04:10Z"));
              for (const char* field : {"name%3Dp-c.333", "uid%3Duid-h8", "resourceVersion%3D7h8"})
                at.other("GET", std::string(kCoreEvents) + "?fieldSelector=involvedObject." + field);
            }),
            3);
  EXPECT_EQ(play([](Played& at) {
              for (const char* name : {"a1", "b22", "c.333"}) at.create(kEvents, event(name, std::string("Assigned ") + name));
              at.create(kEvents, event("c.333", "again"));
              at.create(kEvents, event("d4", std::string(1025, 'x')));
              at.create(kEvents, event("e5", "when?", "2026-01-02T03:04:05Z"));
              at.create(kEvents, event("f6", "later", "2026-01-02T03:04:06.000001Z"));
              for (const char* field : {"name%3Dp-c.333", "uid%3Duid-f6"})
                at.other("GET", std::string(kEvents) + "?fieldSelector=regarding." + field);
            }),
            3);
}

// Everything that admission looks at besides the request may change between two that are alike.
TEST(Stencil, WhatAdmissionLooksAtIsLookedAtAgain) {
  const std::string core = "/api/v1/namespaces/default/", admission = "/apis/admissionregistration.k8s.io/v1/";
  struct Change {
    std::string path, name, body;
  };
  const std::vector<Change> changes = {
      {core + "limitranges", "l",
       R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"cpu":"3"},"defaultRequest":{"memory":"2Gi"}}]}})"},
      {core + "resourcequotas", "q", R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"1"}}})"},
      {"/apis/scheduling.k8s.io/v1/priorityclasses", "high", R"({"metadata":{"name":"high"},"value":7,"globalDefault":true})"},
      {core + "serviceaccounts", "default", R"({"metadata":{"name":"default"},"imagePullSecrets":[{"name":"s"}]})"},
      {admission + "mutatingwebhookconfigurations", "w",
       R"({"metadata":{"name":"w"},"webhooks":[{"name":"w.x.io","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Fail","timeoutSeconds":1,"clientConfig":{"url":"https://127.0.0.1:1/"},"matchConditions":[{"name":"never","expression":"false"}],"objectSelector":{"matchLabels":{"app":"web"}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}]}]})"},
      {admission + "validatingadmissionpolicybindings", "b",
       R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny","Warn"]}})"},
  };
  const int followed = play([&](Played& at) {
    at.other(
        "POST", admission + "validatingadmissionpolicies",
        R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"object.spec.containers[0].image != 'i'"}]}})");
    for (int i = 0; i < 3; ++i) at.create(kPodsPath, replica());
    for (const auto& [path, name, body] : changes) {
      at.other("POST", path, body);
      for (int i = 0; i < 3; ++i) at.create(kPodsPath, replica());
      at.other("DELETE", path + "/" + name);
      for (int i = 0; i < 3; ++i) at.create(kPodsPath, replica());
    }
    at.other(
        "PATCH", "/api/v1/namespaces/default",
        R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"},"annotations":{"openshift.io/node-selector":"a=b"}}})",
        "application/merge-patch+json");
    for (int i = 0; i < 3; ++i) at.create(kPodsPath, replica());
  });
  EXPECT_GE(followed, 12);
}

TEST(Stencil, APolicyThatNamesObjectsIsAsked) {
  const std::string admission = "/apis/admissionregistration.k8s.io/v1/";
  play([&](Played& at) {
    at.other(
        "POST", admission + "validatingadmissionpolicies",
        R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"],"resourceNames":["d"]}]},"validations":[{"expression":"false"}]}})");
    at.other("POST", admission + "validatingadmissionpolicybindings",
             R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})");
    for (const char* name : {"a", "b", "c", "d", "e"}) at.create(kPodsPath, named(name));
  });
}

TEST(Stencil, WhoAsksAndHowIsPartOfIt) {
  net::PeerCertificate other;
  other.common_name = "somebody";
  EXPECT_EQ(play([&](Played& at) {
              const std::string path = kPodsPath;
              for (int i = 0; i < 3; ++i) {
                at.create(path, replica());
                at.create(path + "?fieldManager=me", replica());
                at.create(path + "?dryRun=All", replica());
                at.create(path + "?fieldValidation=Strict", replica());
                at.create(path + "?fieldValidation=Strict", replica(R"(,"lables":{})"));
                at.create(path + "?fieldValidation=Warn", replica(R"(,"lables":{},"labels":{"app":"other"})"));
                at.create(path, replica(R"(,"resourceVersion":"7")"));
                at.create(path, replica(R"(,"uid":"u","creationTimestamp":"2001-01-02T03:04:05Z","managedFields":[])"));
                at.create(path, replica("", R"(,"serviceAccountName":"nobody")"));
                at.create(path, replica("", R"(,"nodeName":"n1")"));
                at.create(path, replica("", R"(,"automountServiceAccountToken":false)"));
                at.create(path, replica(R"(,"labels":{"app":"kube-api-access-"})", R"(,"volumes":[{"name":"kube-api-access-x"}])"));
                at.create("/api/v1/namespaces/none/pods", replica());
                at.act_as(other);
                at.create(path, replica());
                at.act_as(std::nullopt);
              }
            }),
            6);
}

struct Report {
  std::string ip = "10.0.0.1", host = "172.16.0.1", since = "2026-01-02T03:04:05Z", started = "2026-01-02T03:04:06Z",
              container = "containerd://a", volume = "kube-api-access-a", more = {};
};

/// As a kubelet reports that a pod runs.
std::string report(const std::string& uid, const Report& of = {}) {
  return fmt::format(
      R"({{"metadata":{{"uid":"{0}"}},"status":{{"$setElementOrder/conditions":[{{"type":"Ready"}},{{"type":"PodScheduled"}}],"$setElementOrder/podIPs":[{{"ip":"{1}"}}],"observedGeneration":1,"phase":"Running","conditions":[{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"{3}"}},{{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"{3}"}}],"hostIP":"{2}","hostIPs":[{{"ip":"{2}"}}],"podIP":"{1}","podIPs":[{{"ip":"{1}"}}],"startTime":"{3}","containerStatuses":[{{"name":"c","state":{{"running":{{"startedAt":"{4}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"i","imageID":"i@x","containerID":"{5}","started":true,"volumeMounts":[{{"name":"{6}","mountPath":"/x","readOnly":true}}]}}]{7}}}}})",
      uid, of.ip, of.host, of.since, of.started, of.container, of.volume, of.more);
}

/// Pods p0, p1 and so on, bound to n0, n1, n0 …; their uids.
std::vector<std::string> run_pods(Played& at, int count, int from = 0) {
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

std::string status_of(int pod) { return fmt::format("{}/p{}/status", kPodsPath, pod); }

TEST(Stencil, ReportsOfPodsAreTheSameAsPlainOnes) {
  EXPECT_EQ(play_updates([](Played& at) {
              const auto uids = run_pods(at, 8);
              for (int i = 0; i < 8; ++i)
                at.update(status_of(i),
                          report(uids[i], {.ip = fmt::format("10.0.0.{}", i), .container = fmt::format("containerd://{}", i)}));
            }),
            5)
      << "the first was bound at the very time that is reported, the second is the first of the others, the third leaves the pattern";
  // Whatever differs in another way, and whatever is the same by accident.
  EXPECT_GE(
      play_updates([](Played& at) {
        const std::vector<Report> reports = {
            {},
            {.ip = "10.0.0.2"},
            {.ip = "10.0.0.3", .host = "10.0.0.3"},
            {.ip = "10.0.0.10", .started = "2026-01-02T03:04:05Z"},
            {.ip = "fd00::1"},
            {.ip = "fd00::2", .since = "2026-02-29T03:04:05Z"},
            {.ip = "10.0.0.256"},
            {.ip = "::ffff:10.0.0.1"},
            {.since = "2026-01-02T03:04:05+01:00"},
            {.since = "2026-01-02T03:04:05.5Z"},
            {.started = "yesterday"},
            {.container = ""},
            {.container = "\\u0041"},
            {.volume = "10.0.0.1"},
            {.more = R"(,"reason":"R","podIP":"10.0.0.9")"},
            {.more = R"(,"unheardOf":1)"},
            {.more = R"(,"qosClass":"BestEffort")"},
            {.more = R"(,"nominatedNodeName":"n")"},
            {.more = R"(,"pod\u0049P":"10.0.0.9")"},
            {.more =
                 R"(,"initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:06Z","containerID":"containerd://b"}},"restartCount":0,"image":"i","imageID":"i","ready":true}])"},
        };
        int from = 0;
        for (const auto& one : reports) {
          const auto uids = run_pods(at, 5, from);
          for (int i = 0; i < 5; ++i) at.update(status_of(from + i), report(uids[i], one));
          for (int i = 0; i < 5; ++i) at.update(status_of(from + i), report(uids[i], {.ip = one.ip, .started = "2026-01-02T03:04:07Z"}));
          from += 5;
        }
      }),
      40);
}

TEST(Stencil, ReportsOfPodsWhoseTextsWerePackedAreTheSame) {
  ::mallopt(M_PERTURB, 0x5a);  // What is read after its end shows.
  EXPECT_GE(play_updates([](Played& at) {
              const auto uids = run_pods(at, 8);
              for (const char* started : {"2026-01-02T03:04:05Z", "2026-01-02T03:04:07Z", "2026-01-02T03:04:09Z"}) {
                at.pack_pods();
                for (int i = 0; i < 8; ++i)
                  at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.0.{}", i), .started = started}));
              }
            }),
            12);
  ::mallopt(M_PERTURB, 0);
}

TEST(Stencil, WhatAReportChangesDependsOnWhatIsThere) {
  EXPECT_GE(play_updates([](Played& at) {
              const auto uids = run_pods(at, 10);
              const auto all = [&](const std::function<void(int)>& does) {
                for (int i = 0; i < 10; ++i) does(i);
              };
              const auto say = [&](Report what) {
                all([&](int i) {
                  what.ip = fmt::format("10.0.0.{}", i);
                  at.update(status_of(i), report(uids[i], what));
                });
              };
              say({});
              say({});  // Nothing changes.
              say({.since = "2026-01-02T03:05:05Z"});
              all([&](int i) { at.update(status_of(i), report(uids[(i + 1) % 10])); });  // Another's uid.
              all([&](int i) { at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.1.{}", i % 3)})); });
              all([&](int i) {
                at.update(status_of(i),
                          R"({"status":{"podIPs":[{"$patch":"delete","ip":"10.0.1.1"},{"ip":"10.0.1.0"}],"podIP":"10.0.1.0"}})");
              });
              all([&](int i) { at.update(status_of(i), R"({"status":{"phase":"Succeeded"}})", "merge-patch+json"); });
              all([&](int i) { at.update(status_of(i), R"({"status":{"conditions":null}})", "merge-patch+json"); });
              all([&](int i) { at.update(status_of(i), R"({"metadata":{"labels":{"a":"b"}},"status":{"phase":"Running"}})"); });
              all([&](int i) { at.update(status_of(i) + "?fieldManager=other", report(uids[i])); });
              all([&](int i) { at.update(status_of(i) + "?dryRun=All", report(uids[i], {.ip = "10.9.9.9"})); });
              all([&](int i) {
                at.other("PATCH", fmt::format("{}/p{}", kPodsPath, i),
                         fmt::format(R"({{"metadata":{{"annotations":{{"a":"{}","b":"x\"y"}},"finalizers":["x.io/f"]}}}})",
                                     i % 3 == 0 ? "x" : uids[i]),
                         "application/merge-patch+json");
              });
              say({.started = "2026-01-02T03:06:05Z"});
              all([&](int i) { at.other("DELETE", fmt::format("{}/p{}", kPodsPath, i)); });
              say({.started = "2026-01-02T03:07:05Z"});
              all([&](int i) { at.update(status_of(i), R"({"metadata":{"finalizers":null}})", "merge-patch+json"); });
              say({.started = "2026-01-02T03:08:05Z"});
            }),
            50);
}

TEST(Stencil, NodesReportTheirOwnPods) {
  net::PeerCertificate node;
  node.organizations = {"system:nodes"};
  EXPECT_GE(play_updates([&](Played& at) {
              const auto uids = run_pods(at, 8);
              for (const char* name : {"system:node:n0", "system:node:n1", "system:node:none"}) {
                node.common_name = name;
                at.act_as(node);
                for (int i = 0; i < 8; ++i) at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.0.{}", i)}));
              }
              at.act_as(std::nullopt);
            }),
            3);
}

TEST(Stencil, WhoeverJudgesReportsIsAsked) {
  const std::string admission = "/apis/admissionregistration.k8s.io/v1/";
  play_updates([&](Played& at) {
    const auto uids = run_pods(at, 8);
    const auto say = [&](const std::string& since) {
      for (int i = 0; i < 8; ++i) at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.0.{}", i), .since = since}));
    };
    say("2026-01-02T03:04:01Z");
    at.other(
        "POST", admission + "validatingadmissionpolicies",
        R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["pods/status"],"resourceNames":["p5"]}]},"validations":[{"expression":"false"}]}})");
    say("2026-01-02T03:04:02Z");
    at.other("POST", admission + "validatingadmissionpolicybindings",
             R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})");
    say("2026-01-02T03:04:03Z");
    at.other("DELETE", admission + "validatingadmissionpolicybindings/b");
    say("2026-01-02T03:04:04Z");
  });
}

TEST(Stencil, LeasesAreRenewedAsByPlainWrites) {
  const auto lease = [](int i, const std::string& renewed, const std::string& metadata = "") {
    return fmt::format(
        R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"n{0}","namespace":"default","ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"n{0}","uid":"u-{0}"}}]{2}}},"spec":{{"holderIdentity":"n{0}","leaseDurationSeconds":40,"renewTime":"{1}"}}}})",
        i, renewed, metadata);
  };
  EXPECT_GE(play_updates([&](Played& at) {
              for (int i = 0; i < 6; ++i) at.other("POST", kLeases, lease(i, "2026-01-02T03:04:05.000001Z"));
              for (const char* time : {"2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:15.000001Z", "2026-01-02T03:04:25.000001Z", "soon"})
                for (int i = 0; i < 6; ++i) {
                  const auto path = fmt::format("{}/n{}", kLeases, i);
                  at.update(path, fmt::format(R"({{"spec":{{"renewTime":"{}"}}}})", time), "merge-patch+json");
                  at.other("GET", path);
                  const auto& stored = at.answers.back();
                  const auto from = stored.find(R"("resourceVersion":")") + 19;
                  const auto revision = stored.substr(from, stored.find('"', from) - from);
                  for (const std::string& named : {revision, std::string("1"), std::string()})
                    at.update(
                        path,
                        lease(i, "2026-01-02T03:05:05.00000" + std::to_string(i) + "Z", fmt::format(R"(,"resourceVersion":"{}")", named)),
                        "json");
                  at.update(path, lease(i + 1, "2026-01-02T03:05:05.000009Z"), "json");
                }
            }),
            20);
}

TEST(Stencil, PlacesAreFilledInTheirOrder) {
  const std::string text = "abcdef";
  const std::string_view view = text;
  const auto stencil = Stencil::cut(view, {{view.substr(4, 1), Stencil::kRevision}, {view.substr(1, 2), 1}});
  ASSERT_TRUE(stencil);
  const std::vector<std::string_view> texts = {"no", "1234"};
  const auto filled = stencil->fill(texts);
  EXPECT_EQ(filled.value, "a1234df");
  EXPECT_EQ(filled.revision_offset, 6U);
  EXPECT_FALSE(Stencil::cut(view, {{view.substr(1, 3)}, {view.substr(2, 1)}}));
}

class TracedCreations : public ServerTest {};

TEST_F(TracedCreations, OfAPatternBeginTheWayOfTheirPodAsOthersDo) {
  berth::testing::SpanCollector collector;
  if (!collector.runs()) GTEST_SKIP() << "built without gRPC";
  auto tracer = *net::tracing::Tracer::start({.service = "s", .endpoint = collector.endpoint(), .sampling_rate_per_million = 1'000'000});
  ServerOptions options;
  options.tracer = tracer;
  start(std::move(options));
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.emplace_back(json::get_string(send("POST", kPodsPath, replica())->document(), {"metadata", "name"}));
  EXPECT_GT(server_->metrics().counter("berth_apiserver_creations_by_pattern_total", "").value(), 0);
  server_.reset();
  tracer.reset();
  const auto taken = collector.taken();
  for (const auto& name : names) EXPECT_NE(taken.find("Pod default/" + name), std::string::npos) << name;
}

}  // namespace
}  // namespace berth::apiserver::testing
