// Webhooks between the versions of a custom kind: reads, lists, watches and writes in a version that is not stored, and webhooks that lie
// or are down.
#include "apiserver/webhook/conversion.h"

#include <filesystem>
#include <future>

#include "base/base64.h"
#include "net/server.h"
#include "security/pki.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

using json::Value;

/// v1 has spec.address "host:port", v2 has spec.host and spec.port.
Value convert_object(Value object, const std::string& wanted) {
  Value spec = *json::find(object, "spec");
  if (wanted.ends_with("v2")) {
    const std::string address(json::get_string(spec, {"address"}));
    const auto colon = address.find(':');
    spec = json::Object{{"host", address.substr(0, colon)}, {"port", address.substr(colon + 1)}};
  } else {
    spec = json::Object{{"address", fmt::format("{}:{}", json::get_string(spec, {"host"}), json::get_string(spec, {"port"}))}};
  }
  json::set(object, {"spec"}, std::move(spec));
  json::set(object, {"apiVersion"}, Value(wanted));
  return object;
}

class Converter final : public net::Handler {
 public:
  /// What it does to a review that it made; empty: nothing.
  std::function<void(json::Object& review)> lie;
  std::atomic<int> calls{0};

  /// What was asked for admission, in turn, and the patch that is answered (none: null).
  std::vector<Value> asked;
  Value patch;
  std::mutex mutex;

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    const auto review = json::parse(request.body);
    if (json::get_string(*review, {"kind"}) == "AdmissionReview") return admit(*review, *writer);
    ++calls;
    const std::string wanted(json::get_string(*review, {"request", "desiredAPIVersion"}));
    json::Array converted;
    for (const Value& one : json::get_array(*review, {"request", "objects"})) converted.push_back(convert_object(one, wanted));
    json::Object answer{{"apiVersion", "apiextensions.k8s.io/v1"},
                        {"kind", "ConversionReview"},
                        {"response", json::Object{{"uid", json::get_string(*review, {"request", "uid"})},
                                                  {"result", json::Object{{"status", "Success"}}},
                                                  {"convertedObjects", std::move(converted)}}}};
    if (lie) lie(answer);
    respond(*writer, std::move(answer));
  }

 private:
  void admit(const Value& review, net::ResponseWriter& writer) {
    const std::lock_guard lock(mutex);
    asked.push_back(*json::find(review, "request"));
    json::Object response{{"uid", json::get_string(review, {"request", "uid"})}, {"allowed", true}};
    if (!patch.is_null()) {
      response["patchType"] = "JSONPatch";
      response["patch"] = base64_encode(json::serialize(patch));
    }
    respond(writer, {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}});
  }
  static void respond(net::ResponseWriter& writer, json::Object answer) {
    net::HttpResponse response;
    response.headers.add("Content-Type", "application/json");
    response.body = json::serialize(Value(std::move(answer)));
    writer.respond(std::move(response));
  }
};

class Conversion : public ServerTest {
 protected:
  static constexpr const char* kV1 = "/apis/example.com/v1/namespaces/default/hosts";
  static constexpr const char* kV2 = "/apis/example.com/v2/namespaces/default/hosts";

  void SetUp() override {
    ServerTest::SetUp();
    directory_ = std::filesystem::temp_directory_path() / fmt::format("berth-conversion-test-{}", ::getpid());
    security::PkiOptions options;
    options.directory = directory_;
    auto pki = security::Pki::open(options, SystemClock().now());
    ASSERT_TRUE(pki) << pki.error().message;
    net::ServerConfig config;
    config.tls = {pki->server().certificate_pem, pki->server().private_key_pem, ""};
    config.io_threads = 1;
    ca_ = base64_encode(pki->ca_certificate_pem());
    auto server = net::Server::start(config, converter_);
    ASSERT_TRUE(server) << server.error().message;
    hook_ = std::move(*server);
    const auto schema = [](std::string_view fields) {
      return fmt::format(R"({{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{{}}}}}}}}}}})",
                         fields);
    };
    const auto body = fmt::format(
        R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"hosts.example.com"}},"spec":{{
          "group":"example.com","scope":"Namespaced","names":{{"plural":"hosts","kind":"Host"}},
          "conversion":{{"strategy":"Webhook","webhook":{{"conversionReviewVersions":["v1"],"clientConfig":{{"url":"https://127.0.0.1:{}/c","caBundle":"{}"}}}}}},
          "versions":[{{"name":"v1","served":true,"storage":true,"schema":{}}},
            {{"name":"v2","served":true,"storage":false,"schema":{},"selectableFields":[{{"jsonPath":".spec.host"}},{{"jsonPath":".spec.port"}}]}}]}}}})",
        hook_->port(), base64_encode(pki->ca_certificate_pem()), schema(R"("address":{"type":"string"})"),
        schema(R"("host":{"type":"string"},"port":{"type":"string"},"protocol":{"type":"string","default":"TCP"})"));
    create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body);
    loop_.run_for(std::chrono::seconds(1));
  }
  void TearDown() override {
    ServerTest::TearDown();
    hook_.reset();
    std::filesystem::remove_all(directory_);
  }
  /// The answer may come from the webhook client's thread.
  Response ask(const std::string& method, const std::string& path, const std::string& body = "",
               const std::string& type = "application/json") {
    net::HttpRequest request;
    request.method = method;
    const auto question = path.find('?');
    request.path = path.substr(0, question);
    if (question != std::string::npos) request.query = path.substr(question + 1);
    request.body = body;
    request.headers.add("Content-Type", type);
    auto response = std::make_shared<RecordedResponse>();
    auto answered = std::make_shared<std::promise<void>>();
    response->on_close([answered] { answered->set_value(); });
    server_->handle(std::move(request), response);
    EXPECT_EQ(answered->get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return response;
  }
  static std::string in_v1(const std::string& name) {
    return fmt::format(R"({{"apiVersion":"example.com/v1","kind":"Host","metadata":{{"name":"{}"}},"spec":{{"address":"here:80"}}}})",
                       name);
  }
  static std::string in_v2(const std::string& name) {
    return fmt::format(
        R"({{"apiVersion":"example.com/v2","kind":"Host","metadata":{{"name":"{}"}},"spec":{{"host":"there","port":"443","unknown":1}}}})",
        name);
  }

  /// A webhook for hosts of v1 as it is called in `resource`.
  void want_v1(std::string_view resource, std::string_view kind, std::string_view policy = "Equivalent") {
    const auto made = ask("POST", fmt::format("/apis/admissionregistration.k8s.io/v1/{}", resource),
                          fmt::format(fmt::runtime(kWebhook), kind, policy, hook_->port(), ca_));
    ASSERT_EQ(made->status, 201) << made->body;
    converter_.calls = 0;
  }
  static constexpr const char* kWebhook =
      R"x({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"{}","metadata":{{"name":"hosts"}},"webhooks":[{{"name":"hosts.example.com",
         "matchPolicy":"{}","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{{"url":"https://127.0.0.1:{}/a","caBundle":"{}"}},
         "matchConditions":[{{"name":"address","expression":"request.operation == 'DELETE' || has(object.spec.address)"}}],
         "rules":[{{"apiGroups":["example.com"],"apiVersions":["v1"],"resources":["hosts"],"operations":["*"]}}]}}]}})x";

  std::string ca_;
  std::filesystem::path directory_;
  Converter converter_;
  std::unique_ptr<net::Server> hook_;
};

TEST_F(Conversion, ReadsAndListsInTheVersionAskedFor) {
  ASSERT_EQ(ask("POST", kV1, in_v1("a"))->status, 201);
  ASSERT_EQ(ask("POST", kV1, in_v1("b"))->status, 201);
  EXPECT_EQ(converter_.calls, 0);  // The stored version needs nobody.
  const auto read = ask("GET", fmt::format("{}/a", kV2));
  ASSERT_EQ(read->status, 200) << read->body;
  EXPECT_EQ(text(read->document(), {"apiVersion"}), "example.com/v2");
  EXPECT_EQ(text(read->document(), {"spec", "host"}), "here");
  EXPECT_EQ(json::find(read->document(), {"spec", "protocol"}), nullptr);  // Defaults are filled in when something is written.
  const auto before = converter_.calls.load();
  const auto list = ask("GET", kV2);
  ASSERT_EQ(list->status, 200) << list->body;
  EXPECT_EQ(json::get_array(list->document(), {"items"}).size(), 2U);
  EXPECT_EQ(text(json::get_array(list->document(), {"items"})[1], {"spec", "port"}), "80");
  EXPECT_EQ(converter_.calls, before + 1);  // One review for all.
}

TEST_F(Conversion, StoresWhatIsWrittenInAnother) {
  const auto made = ask("POST", kV2, in_v2("a"));
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(text(made->document(), {"spec", "host"}), "there");
  EXPECT_EQ(converter_.calls, 2);  // What is stored, and the answer.
  EXPECT_EQ(json::find(made->document(), {"spec", "unknown"}), nullptr);
  const auto stored = ask("GET", fmt::format("{}/a", kV1));
  EXPECT_EQ(text(stored->document(), {"spec", "address"}), "there:443");
  const auto patched = ask("PATCH", fmt::format("{}/a", kV2), R"({"spec":{"port":"8443"}})", "application/merge-patch+json");
  ASSERT_EQ(patched->status, 200) << patched->body;
  EXPECT_EQ(text(ask("GET", fmt::format("{}/a", kV1))->document(), {"spec", "address"}), "there:8443");
  const auto gone = ask("DELETE", fmt::format("{}/a", kV2));
  EXPECT_EQ(gone->status, 200) << gone->body;
  EXPECT_EQ(ask("GET", fmt::format("{}/a", kV1))->status, 404);
}

TEST_F(Conversion, WatchesInTheVersionAskedFor) {
  ASSERT_EQ(ask("POST", kV1, in_v1("a"))->status, 201);
  auto watch = send("GET", fmt::format("{}?watch=true", kV2));
  ASSERT_EQ(ask("POST", kV1, in_v1("b"))->status, 201);
  for (int i = 0; i < 2000 && watch->events().size() < 2; ++i) {
    loop_.run_for(std::chrono::milliseconds(10));
    std::this_thread::yield();
    ask("GET", fmt::format("{}/a", kV2));  // Another round by the webhook's thread: the events were before it.
  }
  const auto events = watch->events();
  ASSERT_EQ(events.size(), 2U) << watch->body;
  EXPECT_EQ(text(events[0], {"object", "metadata", "name"}), "a");
  EXPECT_EQ(text(events[1], {"object", "metadata", "name"}), "b");
  for (const Value& event : events) EXPECT_EQ(text(event, {"object", "spec", "host"}), "here");
}

TEST_F(Conversion, ACollectionIsDeletedByTheVersionsFields) {
  ASSERT_EQ(ask("POST", kV2, in_v2("a"))->status, 201);
  ASSERT_EQ(ask("POST", kV1, in_v1("elsewhere"))->status, 201);
  ASSERT_EQ(ask("POST", kV2, in_v2("b"))->status, 201);
  const auto gone = ask("DELETE", fmt::format("{}?fieldSelector=spec.host%3Dthere", kV2));
  EXPECT_EQ(gone->status, 200) << gone->body;
  EXPECT_EQ(ask("GET", fmt::format("{}/a", kV1))->status, 404);
  EXPECT_EQ(ask("GET", fmt::format("{}/b", kV1))->status, 404);
  EXPECT_EQ(ask("GET", fmt::format("{}/elsewhere", kV1))->status, 200);
}

TEST_F(Conversion, WatchesTellWhatLeavesASelectionByTheVersionsFields) {
  auto watch = send("GET", fmt::format("{}?watch=true&fieldSelector=spec.host%3Dthere,spec.port%3D443", kV2));
  ASSERT_EQ(ask("POST", kV2, in_v2("a"))->status, 201);
  ASSERT_EQ(ask("POST", kV1, in_v1("elsewhere"))->status, 201);
  ASSERT_EQ(ask("POST", kV2, in_v2("b"))->status, 201);
  const auto change = [&](const char* patch) {
    EXPECT_EQ(ask("PATCH", fmt::format("{}/a", kV2), patch, "application/merge-patch+json")->status, 200);
  };
  change(R"({"metadata":{"labels":{"x":"y"}}})");
  change(R"({"spec":{"port":"80"}})");
  change(R"({"metadata":{"labels":{"x":"z"}}})");  // Nobody's matter.
  change(R"({"spec":{"port":"443"}})");
  ASSERT_EQ(ask("DELETE", fmt::format("{}/b", kV2))->status, 200);
  for (int i = 0; i < 2000 && watch->events().size() < 6; ++i) {
    loop_.run_for(std::chrono::milliseconds(10));
    std::this_thread::yield();
    ask("GET", fmt::format("{}/a", kV2));  // Another round by the webhook's thread: the events were before it.
  }
  std::vector<std::string> seen;
  for (const Value& event : watch->events())
    seen.push_back(fmt::format("{} {} {}", text(event, {"type"}), text(event, {"object", "metadata", "name"}),
                               text(event, {"object", "spec", "port"})));
  EXPECT_EQ(seen,
            (std::vector<std::string>{"ADDED a 443", "ADDED b 443", "MODIFIED a 443", "DELETED a 443", "ADDED a 443", "DELETED b 443"}));
}

TEST_F(Conversion, AWebhookThatLiesIsToldOf) {
  ASSERT_EQ(ask("POST", kV1, in_v1("a"))->status, 201);
  const auto expect = [&](std::function<void(json::Object&)> lie, std::string_view why) {
    converter_.lie = std::move(lie);
    const auto answer = ask("GET", fmt::format("{}/a", kV2));
    EXPECT_EQ(answer->status, 500);
    EXPECT_EQ(text(answer->document(), {"message"}), fmt::format("conversion webhook for example.com/v1, Kind=Host {}", why));
  };
  const auto object_of = [](json::Object& review) -> Value& { return review["response"].at("convertedObjects").at(0); };
  expect([](json::Object& review) { json::set(review["response"], {"convertedObjects"}, json::Array()); },
         "returned 0 objects, expected 1");
  expect(
      [](json::Object& review) {
        json::set(review["response"], {"result", "status"}, Value("Failed"));
      },
      "failed: response.result.status was 'Failed', not 'Success'");
  expect(
      [](json::Object& review) {
        json::set(review["response"], {"result"}, json::Object{{"status", "Failed"}, {"message", "no way"}});
      },
      "failed: no way");
  expect(
      [&](json::Object& review) {
        json::set(object_of(review), {"metadata", "name"}, Value("other"));
      },
      "returned invalid object: must have the same name: a != other");
  expect([&](json::Object& review) { json::set(object_of(review), {"apiVersion"}, Value("example.com/v1")); },
         "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)");
  expect([&](json::Object& review) { json::set(object_of(review), {"kind"}, Value("Guest")); },
         "returned invalid object at index 0: invalid kind (expected Host, received Guest)");
  expect([&](json::Object& review) { json::erase(object_of(review), {"metadata"}); },
         "returned invalid object: must have the same name: a != ");
  expect([](json::Object& review) { review.erase("response"); }, "failed: no response provided");
  expect([](json::Object& review) { review["apiVersion"] = "apiextensions.k8s.io/v1beta1"; },
         "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion");
  // What it says of labels counts, of everything else in metadata nothing does.
  converter_.lie = [&](json::Object& review) {
    json::set(object_of(review), {"metadata", "labels"}, json::Object{{"seen", "yes"}});
    json::set(object_of(review), {"metadata", "finalizers"}, json::Array{"example.com/stay"});
  };
  const auto labelled = ask("GET", fmt::format("{}/a", kV2));
  EXPECT_EQ(text(labelled->document(), {"metadata", "labels", "seen"}), "yes");
  EXPECT_EQ(json::find(labelled->document(), {"metadata", "finalizers"}), nullptr);
}

TEST_F(Conversion, AWebhookThatIsDownStoresNothing) {
  ASSERT_EQ(ask("POST", kV1, in_v1("a"))->status, 201);
  hook_.reset();
  const auto answer = ask("POST", kV2, in_v2("b"));
  EXPECT_EQ(answer->status, 500);
  EXPECT_TRUE(text(answer->document(), {"message"})
                  .starts_with("conversion webhook for example.com/v2, Kind=Host failed: Post \"https://127.0.0.1:"))
      << answer->body;
  EXPECT_EQ(ask("POST", fmt::format("{}?dryRun=All", kV2), in_v2("b"))->status, 500);
  EXPECT_EQ(ask("GET", fmt::format("{}/b", kV1))->status, 404);
  EXPECT_EQ(ask("GET", fmt::format("{}/a", kV2))->status, 500);
  EXPECT_EQ(ask("GET", kV2)->status, 500);
  EXPECT_EQ(ask("GET", fmt::format("{}/a", kV1))->status, 200);
}

/// A mutating policy for hosts as v1 has them; `more` of its spec.
class ConvertedPolicies : public Conversion {
 protected:
  void mutate_v1(const std::string& name, const std::string& mutation, const std::string& more = "") {
    const auto made = ask(
        "POST", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
        fmt::format(
            R"x({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicy","metadata":{{"name":"{}"}},"spec":{{"reinvocationPolicy":"Never",
            "matchConstraints":{{"resourceRules":[{{"apiGroups":["example.com"],"apiVersions":["v1"],"operations":["*"],"resources":["hosts"]}}]{}}},
            "mutations":[{}]}}}})x",
            name, more, mutation));
    ASSERT_EQ(made->status, 201) << made->body;
    const auto bound = ask(
        "POST", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
        fmt::format(
            R"({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding","metadata":{{"name":"{0}"}},"spec":{{"policyName":"{0}"}}}})",
            name));
    ASSERT_EQ(bound->status, 201) << bound->body;
    converter_.calls = 0;
  }
  static std::string applied(const std::string& expression) {
    return fmt::format(R"({{"patchType":"ApplyConfiguration","applyConfiguration":{{"expression":"{}"}}}})", expression);
  }
  static std::string patched(const std::string& expression) {
    return fmt::format(R"({{"patchType":"JSONPatch","jsonPatch":{{"expression":"{}"}}}})", expression);
  }
};

TEST_F(ConvertedPolicies, ChangeAnObjectInTheVersionThatTheyNamed) {
  mutate_v1("a", applied("Object{spec: Object.spec{address: object.spec.address.replace('there', 'elsewhere')}}"));
  mutate_v1("b", patched("[JSONPatch{op: 'replace', path: '/spec/address', value: object.spec.address + '0'}]"));
  const auto made = ask("POST", kV2, in_v2("a"));
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(text(made->document(), {"apiVersion"}), "example.com/v2");
  EXPECT_EQ(text(made->document(), {"spec", "host"}), "elsewhere");
  EXPECT_EQ(text(made->document(), {"spec", "port"}), "4430");
  EXPECT_EQ(text(ask("GET", fmt::format("{}/a", kV1))->document(), {"spec", "address"}), "elsewhere:4430");
  // An update too, and what was there is shown in that version as well.
  const auto changed = ask("PATCH", fmt::format("{}/a", kV2), R"({"spec":{"host":"there","port":"1"}})", "application/merge-patch+json");
  ASSERT_EQ(changed->status, 200) << changed->body;
  EXPECT_EQ(text(changed->document(), {"spec", "host"}), "elsewhere");
  EXPECT_EQ(text(changed->document(), {"spec", "port"}), "10");
}

TEST_F(ConvertedPolicies, LeaveOtherVersionsAloneWhereTheyAreExact) {
  mutate_v1("a", applied("Object{spec: Object.spec{address: 'elsewhere:1'}}"), R"(,"matchPolicy":"Exact")");
  EXPECT_EQ(text(ask("POST", kV2, in_v2("a"))->document(), {"spec", "host"}), "there");
  EXPECT_EQ(text(ask("POST", kV1, in_v1("b"))->document(), {"spec", "address"}), "elsewhere:1");
}

TEST_F(ConvertedPolicies, FailAWriteWhoseObjectCannotBeConverted) {
  mutate_v1("a", applied("Object{spec: Object.spec{address: 'elsewhere:1'}}"));
  converter_.lie = [](json::Object& review) { json::set(review["response"], {"result", "status"}, Value("Failed")); };
  const auto refused = ask("POST", kV2, in_v2("a"));
  EXPECT_EQ(refused->status, 500) << refused->body;
  converter_.lie = nullptr;
  EXPECT_EQ(ask("GET", fmt::format("{}/a", kV1))->status, 404);
}

TEST_F(Conversion, AWebhookThatNamedOneVersionIsAskedAboutAllInThatOne) {
  want_v1("validatingwebhookconfigurations", "ValidatingWebhookConfiguration");
  const auto made = ask("POST", kV2, in_v2("a"));
  ASSERT_EQ(made->status, 201) << made->body;
  ASSERT_EQ(converter_.asked.size(), 1U);
  const auto& creation = converter_.asked.front();
  EXPECT_EQ(text(creation, {"object", "apiVersion"}), "example.com/v1");
  EXPECT_EQ(text(creation, {"object", "spec", "address"}), "there:443");
  EXPECT_EQ(text(creation, {"kind", "version"}), "v1");
  EXPECT_EQ(text(creation, {"resource", "version"}), "v1");
  EXPECT_EQ(text(creation, {"requestKind", "version"}), "v2");
  EXPECT_EQ(text(creation, {"requestResource", "version"}), "v2");
  EXPECT_EQ(ask("PATCH", fmt::format("{}/a", kV2), R"({"spec":{"port":"80"}})", "application/merge-patch+json")->status, 200);
  ASSERT_EQ(converter_.asked.size(), 2U);
  EXPECT_EQ(text(converter_.asked[1], {"object", "spec", "address"}), "there:80");
  EXPECT_EQ(text(converter_.asked[1], {"oldObject", "spec", "address"}), "there:443");
  EXPECT_EQ(ask("DELETE", fmt::format("{}/a", kV2))->status, 200);
  ASSERT_EQ(converter_.asked.size(), 3U);
  EXPECT_EQ(text(converter_.asked[2], {"oldObject", "spec", "address"}), "there:80");
}

TEST_F(Conversion, WhatAWebhookChangesInItsVersionIsConvertedBack) {
  want_v1("mutatingwebhookconfigurations", "MutatingWebhookConfiguration");
  converter_.patch = json::Array{json::Object{{"op", "replace"}, {"path", "/spec/address"}, {"value", "elsewhere:1"}}};
  const auto made = ask("POST", kV2, in_v2("a"));
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(text(made->document(), {"spec", "host"}), "elsewhere");
  EXPECT_EQ(text(made->document(), {"spec", "port"}), "1");
  EXPECT_EQ(text(ask("GET", fmt::format("{}/a", kV1))->document(), {"spec", "address"}), "elsewhere:1");
}

TEST_F(Conversion, AWebhookThatWantsItsVersionExactlyIsNotAskedAboutOthers) {
  want_v1("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "Exact");
  ASSERT_EQ(ask("POST", kV2, in_v2("a"))->status, 201);
  EXPECT_TRUE(converter_.asked.empty());
  ASSERT_EQ(ask("POST", kV1, in_v1("b"))->status, 201);
  EXPECT_EQ(converter_.asked.size(), 1U);
}

TEST_F(Conversion, WhatCannotBeConvertedForAWebhookIsRefused) {
  want_v1("validatingwebhookconfigurations", "ValidatingWebhookConfiguration");
  // Only admission's conversion comes to an end here: the first one, of what is to be judged.
  converter_.lie = [](json::Object& review) {
    json::set(review["response"], {"result"}, json::Object{{"status", "Failed"}, {"message", "no way"}});
  };
  const auto refused = ask("POST", kV2, in_v2("a"));
  EXPECT_EQ(refused->status, 500);
  EXPECT_EQ(text(refused->document(), {"message"}),
            "Internal error occurred: conversion webhook for example.com/v2, Kind=Host failed: no way");
  EXPECT_TRUE(converter_.asked.empty());
}

TEST_F(Conversion, APolicyThatNamedOneVersionJudgesAllInThatOne) {
  const auto post = [&](std::string_view resource, const std::string& body) {
    const auto made = ask("POST", fmt::format("/apis/admissionregistration.k8s.io/v1/{}", resource), body);
    ASSERT_EQ(made->status, 201) << made->body;
  };
  post("validatingadmissionpolicies",
       R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"p"},"spec":{
          "matchConstraints":{"resourceRules":[{"apiGroups":["example.com"],"apiVersions":["v1"],"resources":["hosts"],"operations":["CREATE"]}]},
          "validations":[{"expression":"object.spec.address != 'there:443'","message":"not there"}]}})");
  post(
      "validatingadmissionpolicybindings",
      R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}})");
  loop_.run_for(std::chrono::seconds(1));
  const auto refused = ask("POST", kV2, in_v2("a"));
  EXPECT_EQ(refused->status, 422) << refused->body;
  EXPECT_NE(refused->body.find("not there"), std::string::npos) << refused->body;
}

}  // namespace
}  // namespace berth::apiserver::testing
