// Creations by pattern: to the last byte what the long way makes of them, whatever lies between two that are alike.
#include "apiserver/writes/stencil.h"

#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

constexpr const char* kPodsPath = "/api/v1/namespaces/default/pods";
constexpr const char* kCoreEvents = "/api/v1/namespaces/default/events";
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
  [[nodiscard]] int followed() const {
    return static_cast<int>(server_->metrics().counter("berth_apiserver_creations_by_pattern_total", "").value());
  }
  void act_as(std::optional<net::PeerCertificate> who) { peer_ = std::move(who); }

  std::vector<std::string> answers;

 private:
  std::string type_;
};

/// Plays the requests both ways. Gives how many creations followed a pattern.
int play(const std::function<void(Played&)>& requests) {
  Played fast("application/json"), plain("application/json; charset=utf-8");
  for (Played* one : {&fast, &plain}) {
    requests(*one);
    for (const char* path : {kPodsPath, kCoreEvents, kEvents}) one->other("GET", path);
  }
  EXPECT_EQ(plain.followed(), 0);
  EXPECT_EQ(fast.answers.size(), plain.answers.size());
  for (std::size_t i = 0; i < std::min(fast.answers.size(), plain.answers.size()); ++i) EXPECT_EQ(fast.answers[i], plain.answers[i]) << i;
  return fast.followed();
}

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

TEST(Stencil, PlacesAreFilledInTheirOrder) {
  const std::string text = "abcdef";
  const std::string_view view = text;
  const auto stencil = Stencil::cut(view, {{view.substr(4, 1), Stencil::Blank::kRevision}, {view.substr(1, 2), Stencil::Blank::kText, 1}});
  ASSERT_TRUE(stencil);
  const std::vector<std::string_view> texts = {"no", "1234"};
  Stencil::Values values;
  values.texts = texts;
  const auto filled = stencil->fill(values);
  EXPECT_EQ(filled.text, "a1234df");
  EXPECT_EQ(filled.revision_offset, 6U);
  EXPECT_FALSE(Stencil::cut(view, {{view.substr(1, 3)}, {view.substr(2, 1)}}));
}

}  // namespace
}  // namespace berth::apiserver::testing
