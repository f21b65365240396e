// Creations by pattern: to the last byte what the long way makes of them, whatever lies between two that are alike.
#include "apiserver/writes/stencil.h"

#include "net/tracing/tracer.h"
#include "tests/apiserver/played.h"
#include "tests/support/span_collector.h"

namespace berth::apiserver::testing {
namespace {

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

TEST(Stencil, WhatIsWrittenDownIsTheSame) {
  EXPECT_GE(play([](Played& at) {
              at.listen();
              at.other("PATCH", "/api/v1/namespaces/default",
                       R"({"metadata":{"labels":{"pod-security.kubernetes.io/audit":"restricted"}}})", "application/merge-patch+json");
              for (int i = 0; i < 5; ++i) at.create(kPodsPath, replica());
              const auto uids = run_pods(at, 5);
              for (int i = 0; i < 5; ++i) at.update(status_of(i), report(uids[i]));
              at.tell_audit();
            }),
            5);
}

TEST(Stencil, WhatComesInProtobufFollowsAsWell) {
  const auto followed = play_both([](Played& at) {
    for (int i = 0; i < 5; ++i) at.send_protobuf("POST", kPodsPath, replica());
    for (int i = 0; i < 5; ++i) at.create(kPodsPath, replica());
    for (const char* name : {"a", "b", "Wrong", "c", "a"}) at.send_protobuf("POST", kPodsPath, named(name));
    for (const char* name : {"a1", "b22", "c.333", "c.333"}) {
      at.send_protobuf("POST", kEvents, event(name, std::string("Assigned ") + name));
      at.send_protobuf("POST", kCoreEvents, core_event(std::string("x") + name, "Started"));
    }
    at.create(kEvents, event("e5", "Assigned e5"));
    for (int i = 0; i < 8; ++i)
      for (const char* method : {"POST", "PUT"})
        at.send_protobuf(
            method, method[1] == 'U' ? fmt::format("{}/n{}", kLeases, i) : kLeases,
            fmt::format(
                R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"n{0}","namespace":"default","resourceVersion":"{2}"}},"spec":{{"holderIdentity":"n{0}","leaseDurationSeconds":40,"renewTime":"2026-01-02T03:04:0{1}.000001Z"}}}})",
                i, method[1] == 'U' ? i + 1 : 0, method[1] == 'U' ? at.revision() : ""));
  });
  EXPECT_EQ(followed.creations, 12);
  EXPECT_EQ(followed.updates, 4);
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
