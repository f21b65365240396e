#include <regex>

#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class Subresource : public ServerTest {
 protected:
  Response bind(const std::string& name, const std::string& node) {
    return post(
        fmt::format("{}/{}/binding", kPods, name),
        fmt::format(
            R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{}"}},"target":{{"apiVersion":"v1","kind":"Node","name":"{}"}}}})",
            name, node));
  }
  Response evict(const std::string& name, const std::string& more = "") {
    return post(fmt::format("{}/{}/eviction", kPods, name),
                fmt::format(R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{}"}}{}}})", name, more));
  }
  void run(const std::string& name) {
    create(kPods, pod(name));
    EXPECT_EQ(bind(name, "n1")->status, 201);
    patch(fmt::format("{}/{}/status", kPods, name), R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})",
          "strategic");
  }
};

TEST_F(Subresource, BindingHappensOnce) {
  create(kPods, pod("p"));
  auto bound = bind("p", "n1");
  EXPECT_EQ(bound->status, 201) << bound->body;
  EXPECT_EQ(text(bound->document(), {"status"}), "Success");
  const auto document = read(std::string(kPods) + "/p");
  EXPECT_EQ(text(document, {"spec", "nodeName"}), "n1");
  EXPECT_EQ(text(json::get_array(document, {"status", "conditions"})[0], {"status"}), "True");
  auto again = bind("p", "n2");
  EXPECT_STATUS(again, 409, "Conflict");
  EXPECT_EQ(text(again->document(), {"message"}),
            "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"");
  EXPECT_EQ(bind("none", "n1")->status, 404);
  create(kPods, pod("q"));
  EXPECT_STATUS(bind("q", ""), 500, "");
  create(kPods, pod("g", R"("schedulingGates":[{"name":"x.io/wait"}])"));
  EXPECT_STATUS(bind("g", "n1"), 409, "Conflict");
  EXPECT_EQ(post("/api/v1/namespaces/default/bindings", R"({"metadata":{"name":"q"},"target":{"kind":"Node","name":"n3"}})")->status, 201);
}

// A binding has to do with a part of the pod: the rest is as it was, whatever stands in it.
TEST_F(Subresource, ABindingBringsWhatItNamesAndLeavesTheRest) {
  struct Case {
    std::string metadata, status, binding, node = "n1";
  };
  const std::string odd = R"("annotations":{"x":"\"spec\":{}","y":"}\u00e4ä"},"labels":{"app":"a","k":"v"})";
  const std::vector<Case> cases = {
      {"", "", "", R"(n1 \"quoted\" ä)"},
      {odd, "", ""},
      {"", "", R"("uid":"UID")"},
      {"", "", R"("uid":"UID","resourceVersion":"REVISION")"},
      {"", "", R"("labels":{"zone":"a"})"},
      {"", "", R"("annotations":{"device":"\"0\""},"labels":{"zone":"a"})"},
      {odd, "", R"("uid":"UID","annotations":{"x":"other","z":"new"},"labels":{"zone":"a","app":"b"})"},
      {R"("labels":{"a":"b"})", "", R"("annotations":{"device":"1"})"},
      {R"("annotations":{"a":"b"})", "", R"("labels":{"zone":"a"})"},
      {"", R"("conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1","observedGeneration":1}])",
       ""},
      {"", R"("conditions":[{"type":"x.io/Gate","status":"True"}])", R"("labels":{"zone":"a"})"},
      {"", R"("conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"False"}])", R"("uid":"UID")"},
      {"", R"("reason":"\"conditions\":[]")", R"("labels":{})"},
  };
  const auto is_bound = [this](const Case& one, const std::string& name, bool is_promised) {
    const std::string path = std::string(kPods) + "/" + name, status = path + "/status";
    create(kPods, fmt::format(R"({{"metadata":{{"name":"{}"{}{}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}})", name,
                              one.metadata.empty() ? "" : ",", one.metadata));
    if (!one.status.empty()) patch(status, fmt::format(R"({{"status":{{{}}}}})", one.status), "strategic");
    if (is_promised) patch(status, R"({"status":{"nominatedNodeName":"n9"}})");
    auto before = read(path);
    auto metadata = std::regex_replace(one.binding, std::regex("UID"), text(before, {"metadata", "uid"}));
    metadata = std::regex_replace(metadata, std::regex("REVISION"), text(before, {"metadata", "resourceVersion"}));
    const auto binding = fmt::format(R"({{"metadata":{{"name":"{}"{}{}}},"target":{{"kind":"Node","name":"{}"}}}})", name,
                                     metadata.empty() ? "" : ",", metadata, one.node);
    const auto answer = post(path + "/binding", binding);
    EXPECT_EQ(answer->status, 201) << answer->body;
    auto after = read(path);
    EXPECT_GT(std::stoll(text(after, {"metadata", "resourceVersion"})), std::stoll(text(before, {"metadata", "resourceVersion"})));
    EXPECT_EQ(text(after, {"spec", "nodeName"}), one.node == "n1" ? "n1" : R"(n1 "quoted" ä)");
    EXPECT_EQ(json::find(after, {"status", "nominatedNodeName"}), nullptr);
    std::string conditions;
    for (const auto& condition : json::get_array(after, {"status", "conditions"}))
      conditions += text(condition, {"type"}) + text(condition, {"status"}) + text(condition, {"reason"}) + " ";
    EXPECT_NE(conditions.find("PodScheduledTrue "), std::string::npos) << conditions;
    const json::Value sent = *json::parse(binding);
    for (const std::string_view field : {"annotations", "labels"})
      for (const auto& [key, value] : json::get_object(sent, {"metadata", field}))
        json::ensure_object(before, {"metadata", field})[key] = value;
    for (auto* pod : {&before, &after}) {
      json::erase(*pod, {"metadata", "resourceVersion"});
      json::erase(*pod, {"spec", "nodeName"});
      json::erase(*pod, {"status", "conditions"});
      json::erase(*pod, {"status", "nominatedNodeName"});
    }
    EXPECT_TRUE(json::equal(before, after)) << json::serialize(before) << "\n" << json::serialize(after);
  };
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const bool is_promised : {false, true}) is_bound(cases[i], fmt::format("p-{}-{}", i, is_promised), is_promised);
  const auto count = [this](const std::string& query) {
    return json::get_array(get(std::string(kPods) + "?" + query)->document(), {"items"}).size();
  };
  const auto zoned = std::ranges::count_if(cases, [](const Case& one) { return one.binding.contains("zone"); });
  EXPECT_EQ(count("labelSelector=zone%3Da"), static_cast<std::size_t>(2 * zoned)) << "selectors see what a Binding brings";
  EXPECT_EQ(count("fieldSelector=spec.nodeName%3Dn1"), 2 * (cases.size() - 1));
}

// Who binds names the pod that it means; another of that name stays unbound.
TEST_F(Subresource, ABindingMeansThePodThatItNames) {
  create(kPods, pod("p"));
  for (const char* other : {R"("uid":"other")", R"("resourceVersion":"1")"})
    EXPECT_EQ(post(std::string(kPods) + "/p/binding",
                   fmt::format(R"({{"metadata":{{"name":"p",{}}},"target":{{"kind":"Node","name":"n1"}}}})", other))
                  ->status,
              409)
        << other;
  EXPECT_EQ(text(read(std::string(kPods) + "/p"), {"spec", "nodeName"}), "");
}

TEST_F(Subresource, ScaleReadsAndWritesReplicas) {
  const std::string path = "/apis/apps/v1/namespaces/default/deployments";
  create(
      path,
      R"({"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  auto scale = read(path + "/d/scale");
  EXPECT_EQ(text(scale, {"kind"}), "Scale");
  EXPECT_EQ(text(scale, {"status", "selector"}), "app=d");
  const auto stale = scale;
  json::set(scale, {"spec", "replicas"}, 2);
  EXPECT_EQ(json::get_int(put(path + "/d/scale", scale)->document(), {"spec", "replicas"}), 2);
  EXPECT_STATUS(put(path + "/d/scale", stale), 409, "Conflict");
  json::erase(scale, {"metadata", "resourceVersion"});
  json::set(scale, {"spec", "replicas"}, -1);
  auto negative = put(path + "/d/scale", scale);
  EXPECT_STATUS(negative, 422, "Invalid");
  EXPECT_NE(negative->body.find("spec.replicas"), std::string::npos);
  EXPECT_EQ(json::get_int(patch(path + "/d/scale", R"([{"op":"replace","path":"/spec/replicas","value":7}])", "json")->document(),
                          {"spec", "replicas"}),
            7);
  EXPECT_EQ(json::get_int(read(path + "/d"), {"metadata", "generation"}), 3);
}

TEST_F(Subresource, WhoConflictsAboutAScaleIsNamedInItsTerms) {
  const std::string deployment = "/apis/apps/v1/namespaces/default/deployments/d";
  const auto apply = [&](const std::string& path, const std::string& body) {
    return send("PATCH", path, body, "application/apply-patch+yaml");
  };
  ASSERT_EQ(apply(deployment + "?fieldManager=a",
                  R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"app":"d"}},
                  "template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})")
                ->status,
            201);
  ASSERT_EQ(patch(deployment + "?fieldManager=b", R"({"spec":{"replicas":2}})")->status, 200);
  const auto refused = apply(deployment + "/scale?fieldManager=c",
                             R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":5}})");
  EXPECT_STATUS(refused, 409, "Conflict");
  EXPECT_EQ(text(refused->document(), {"message"}),
            "Apply failed with 1 conflict: conflict with \"b\" using autoscaling/v1: .spec.replicas");
}

/// What is asked of an object is judged by fieldValidation as an object is.
TEST_F(Subresource, WhatIsAskedIsReadStrictlyToo) {
  create("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"web"}})");
  create("/apis/apps/v1/namespaces/default/deployments",
         R"({"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
             "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  create(kPods, pod("p"));
  const std::string scale = "/apis/apps/v1/namespaces/default/deployments/d/scale";
  struct Case {
    const char *method, *type;
    std::string path, body, unknown, duplicate;
    int strict_code = 400, plain_code = 201;
  };
  const std::vector<Case> cases = {
      {"PUT", "application/json", scale,
       R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"d"},"spec":{"replica":5,"replicas":2,"replicas":3}})",
       "spec.replica", "spec.replicas", 400, 200},
      {"PATCH", "application/merge-patch+json", scale, R"({"spec":{"replica":5,"replicas":2,"replicas":3}})", "spec.replica",
       "spec.replicas", 422, 200},
      {"PATCH", "application/json-patch+json", scale, R"([{"op":"add","path":"/spec/replica","value":5}])", "spec.replica", "", 422, 200},
      {"POST", "application/json", std::string(kPods) + "/p/binding",
       R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"p"},"target":{"kind":"Node","name":"n1","names":"n2"},"target":{"kind":"Node","name":"n1","names":"n2"}})",
       "target.names", "target"},
      {"POST", "application/json", std::string(kPods) + "/p/eviction?dryRun=All",
       R"({"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p"},"deleteOptions":{"gracePeriod":5,"gracePeriodSeconds":1,"gracePeriodSeconds":2}})",
       "deleteOptions.gracePeriod", "deleteOptions.gracePeriodSeconds"},
      {"POST", "application/json", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
       R"({"spec":{"resourceAttributes":{"verb":"get","resource":"pods","resources":"nodes","verb":"list"}}})",
       "spec.resourceAttributes.resources", "spec.resourceAttributes.verb"}};
  for (const Case& one : cases) {
    const std::string path = one.path + (one.path.contains('?') ? "&" : "?") + "fieldValidation=";
    const auto strict = send(one.method, path + "Strict", one.body, one.type);
    EXPECT_EQ(strict->status, one.strict_code) << one.path << strict->body;
    EXPECT_NE(text(strict->document(), {"message"}).find(fmt::format("strict decoding error: ")), std::string::npos) << strict->body;
    EXPECT_NE(text(strict->document(), {"message"}).find(fmt::format("unknown field \"{}\"", one.unknown)), std::string::npos)
        << strict->body;
    if (!one.duplicate.empty()) {
      EXPECT_NE(text(strict->document(), {"message"}).find(fmt::format("duplicate field \"{}\"", one.duplicate)), std::string::npos)
          << strict->body;
    }
    if (one.path.contains("/binding")) continue;  // Bound once.
    const auto warned = send(one.method, path + "Warn", one.body, one.type);
    EXPECT_EQ(warned->status, one.plain_code) << warned->body;
    std::string warnings;
    for (const auto& [name, value] : warned->headers.fields())
      if (name == "Warning") warnings += value + "\n";
    EXPECT_NE(warnings.find("unknown field"), std::string::npos) << one.path << warnings;
    EXPECT_NE(warnings.find(one.unknown), std::string::npos) << one.path << warnings;
    EXPECT_EQ(warnings.find("duplicate field") == std::string::npos, one.duplicate.empty()) << one.path << warnings;
    const auto ignored = send(one.method, path + "Ignore", one.body, one.type);
    EXPECT_EQ(ignored->status, one.plain_code) << ignored->body;
    for (const auto& [name, value] : ignored->headers.fields()) EXPECT_NE(name, "Warning") << value;
  }
  // An apply that names no field of a Scale would change nothing in silence.
  const auto applied = send("PATCH", scale + "?fieldManager=m",
                            R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"d"},"spec":{"replica":5}})",
                            "application/apply-patch+yaml");
  EXPECT_EQ(applied->status, 500) << applied->body;
  EXPECT_NE(applied->body.find(".spec.replica: field not declared in schema"), std::string::npos) << applied->body;
  // Options of a deletion are read as they are there: leniently.
  EXPECT_EQ(remove(std::string(kPods) + "/p?fieldValidation=Strict", R"({"gracePeriod":5})")->status, 200);
}

TEST_F(Subresource, EvictionHonoursBudgets) {
  run("p");
  create("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
         R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"p"}}}})");
  auto unprocessed = evict("p");
  EXPECT_STATUS(unprocessed, 429, "TooManyRequests");
  EXPECT_NE(unprocessed->body.find("is still being processed by the server"), std::string::npos);
  EXPECT_EQ(unprocessed->headers.get("Retry-After"), "10");
  const std::string budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b";
  const auto set_allowed = [&](int allowed) {
    auto response = patch(
        budget + "/status",
        fmt::format(
            R"({{"status":{{"observedGeneration":1,"disruptionsAllowed":{},"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}}})",
            allowed));
    EXPECT_EQ(response->status, 200) << response->body;
  };
  set_allowed(0);
  auto refused = evict("p");
  EXPECT_STATUS(refused, 429, "TooManyRequests");
  EXPECT_EQ(text(refused->document(), {"message"}), "Cannot evict pod as it would violate the pod's disruption budget.");
  const auto cause = json::get_array(refused->document(), {"details", "causes"})[0];
  EXPECT_EQ(text(cause, {"reason"}), "DisruptionBudget");
  EXPECT_EQ(text(cause, {"message"}), "The disruption budget b needs 1 healthy pods and has 1 currently");
  set_allowed(1);
  auto dry = evict("p", R"(,"deleteOptions":{"dryRun":["All"]})");
  EXPECT_EQ(dry->status, 201) << dry->body;
  EXPECT_EQ(json::get_int(read(budget), {"status", "disruptionsAllowed"}), 1);
  auto evicted = evict("p");
  EXPECT_EQ(evicted->status, 201) << evicted->body;
  const auto after = read(budget);
  EXPECT_EQ(json::get_int(after, {"status", "disruptionsAllowed"}), 0);
  EXPECT_NE(json::find(after, {"status", "disruptedPods", "p"}), nullptr);
  const auto leaving = read(std::string(kPods) + "/p");
  EXPECT_FALSE(text(leaving, {"metadata", "deletionTimestamp"}).empty());
  EXPECT_NE(json::serialize(leaving).find("DisruptionTarget"), std::string::npos);
}

TEST_F(Subresource, PodsThatKeepNothingUpAskNoBudget) {
  create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{}}})");
  for (const std::string phase : {"Pending", "Succeeded", "Failed"}) {
    const std::string name = "p-" + std::string(1, static_cast<char>(std::tolower(phase.front())));
    run(name);
    EXPECT_STATUS(evict(name), 429, "TooManyRequests");
    patch(fmt::format("{}/{}/status", kPods, name), fmt::format(R"({{"status":{{"phase":"{}"}}}})", phase), "strategic");
    EXPECT_EQ(evict(name)->status, 201) << phase;
  }
}

/// The old version's body means the same; what is no eviction is refused.
TEST_F(Subresource, AnEvictionOfEitherVersionIsOne) {
  const auto with = [&](const std::string& version) {
    create(kPods, pod("q"));
    const auto answer = post(std::string(kPods) + "/q/eviction",
                             fmt::format(R"({{"apiVersion":"{}","kind":"Eviction","metadata":{{"name":"q"}}}})", version));
    if (answer->status != 201) remove(std::string(kPods) + "/q");
    return answer->status;
  };
  EXPECT_EQ(with("policy/v1"), 201);
  EXPECT_EQ(with("policy/v1beta1"), 201);
  EXPECT_EQ(with("policy/v2"), 400);
  EXPECT_EQ(with("v1beta1/policy"), 400);
}

TEST_F(Subresource, TheLastEvictionThatABudgetAllowsIsSaidInItsConditions) {
  run("p");
  create("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
         R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"p"}}}})");
  const std::string budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b";
  patch(
      budget + "/status",
      R"({"status":{"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2,"conditions":[)"
      R"({"type":"Other","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},)"
      R"({"type":"DisruptionAllowed","status":"True","reason":"SufficientPods","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(evict("p")->status, 201);
  const auto after = read(budget);
  EXPECT_EQ(json::get_int(after, {"status", "disruptionsAllowed"}), 0);
  for (const json::Value& one : json::get_array(after, {"status", "conditions"})) {
    const bool is_told = text(one, {"type"}) == "DisruptionAllowed";
    EXPECT_EQ(text(one, {"status"}), is_told ? "False" : "True");
    EXPECT_EQ(json::get_int(one, {"observedGeneration"}), is_told ? 1 : 0) << json::serialize(one);
  }
}

TEST_F(Subresource, EvictionWithoutBudgetDeletes) {
  create(kPods, pod("p"));
  EXPECT_EQ(evict("p")->status, 201);
  EXPECT_EQ(get(std::string(kPods) + "/p")->status, 404);
  EXPECT_STATUS(evict("p"), 404, "NotFound");
}

/// Two lengths, or a body where a node expects none, would be read there as a second request, of this server's.
TEST_F(Subresource, WhatGoesOnToANodeHasNothingOfTheConnection) {
  net::HttpRequest onward;
  ServerOptions options;
  options.node_backend = [&](const std::string&, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
    onward = request;
    writer->respond({});
    return true;
  };
  start(std::move(options));
  create(kPods, pod("p"));
  bind("p", "n1");
  const std::string smuggled = "POST /run/default/p/c?cmd=id HTTP/1.1\r\n\r\n";
  const std::vector<std::pair<std::string, std::string>> fields = {{"Transfer-Encoding", "chunked"},
                                                                   {"Content-Length", "4"},
                                                                   {"Connection", "X-Mine"},
                                                                   {"X-Mine", "1"},
                                                                   {"Cookie", "c"},
                                                                   {"Accept", "*/*"}};
  for (const char* sub : {"log", "exec?command=id", "attach?stdin=1", "portforward"}) {
    ASSERT_EQ(send("GET", fmt::format("{}/p/{}", kPods, sub), smuggled, "text/plain", fields)->status, 200) << sub;
    EXPECT_EQ(onward.body, "") << sub;
    EXPECT_EQ(onward.headers.fields(), (std::vector<std::pair<std::string, std::string>>{{"Accept", "*/*"}})) << sub;
  }
  send("GET", fmt::format("{}/p/portforward?ports=80&ports=443,8080", kPods));
  EXPECT_EQ(onward.query, "port=80,443,8080") << "a WebSocket's ports, as the kubelet calls them";
  send("POST", "/api/v1/nodes/n1/proxy/x", "hello", "text/plain", fields);
  EXPECT_EQ(onward.body, "hello");
  EXPECT_EQ(onward.headers.fields(), (std::vector<std::pair<std::string, std::string>>{{"Content-Type", "text/plain"}, {"Accept", "*/*"}}));
}

/// What is behind a proxy may know more methods than the API does.
TEST_F(Subresource, ProxiesPassEveryMethod) {
  std::string asked;
  ServerOptions options;
  options.node_backend = [&](const std::string&, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
    asked = request.method;
    writer->respond({});
    return true;
  };
  start(std::move(options));
  create(kPods, pod("p"));
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    EXPECT_EQ(send(method, "/api/v1/nodes/n1/proxy/x")->status, 200) << method;
    EXPECT_EQ(asked, method);
  }
  EXPECT_STATUS(send("OPTIONS", std::string(kPods) + "/p/exec"), 405, "MethodNotAllowed");
  EXPECT_STATUS(send("OPTIONS", std::string(kPods) + "/p"), 405, "MethodNotAllowed");
}

TEST_F(Subresource, LogsComeFromTheNode) {
  ServerOptions options;
  options.node_backend = [](const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
    net::HttpResponse response;
    response.body = node + " " + request.path + "?" + request.query;
    writer->respond(std::move(response));
    return true;
  };
  start(std::move(options));
  create(kPods, pod("p"));
  EXPECT_EQ(get(std::string(kPods) + "/p/log")->body, "");
  bind("p", "n1");
  EXPECT_EQ(get(std::string(kPods) + "/p/log?tailLines=5")->body, "n1 /containerLogs/default/p/c?tailLines=5");
  EXPECT_STATUS(get(std::string(kPods) + "/p/log?container=x"), 400, "BadRequest");
  EXPECT_EQ(get("/api/v1/nodes/n1/proxy/stats/summary")->body, "n1 /stats/summary?");
  EXPECT_EQ(get("/api/v1/nodes/n1/proxy/logs/")->body, "n1 /logs/?") << "a folder stays one";
}

TEST_F(Subresource, HealthVersionDiscovery) {
  EXPECT_EQ(get("/readyz")->body, "ok");
  EXPECT_NE(get("/readyz?verbose")->body.find("[+]ping ok"), std::string::npos);
  server_->add_ready_check("extra", [] { return false; });
  EXPECT_EQ(get("/readyz")->status, 500);
  EXPECT_EQ(get("/livez")->status, 200);
  EXPECT_EQ(text(read("/version"), {"major"}), "1");
  EXPECT_EQ(text(read("/apis/apps/v1"), {"kind"}), "APIResourceList");
  EXPECT_NE(get("/metrics")->body.find("apiserver_request_total"), std::string::npos);
  EXPECT_EQ(get("/openapi/v3")->status, 200);
  EXPECT_EQ(get("/nope")->status, 404);
}

TEST_F(Subresource, ServicesGetAddressesAndPorts) {
  const std::string path = "/api/v1/namespaces/default/services";
  EXPECT_EQ(text(read(path + "/kubernetes"), {"spec", "clusterIP"}), "10.96.0.1");
  const auto service = create(path, R"({"metadata":{"name":"s"},"spec":{"type":"NodePort","selector":{"a":"b"},"ports":[{"port":80}]}})");
  const auto address = text(service, {"spec", "clusterIP"});
  EXPECT_TRUE(address.starts_with("10.")) << address;
  const auto node_port = json::get_int(json::get_array(service, {"spec", "ports"})[0], {"nodePort"});
  EXPECT_GE(node_port, 30000);
  auto taken = post(path, fmt::format(R"({{"metadata":{{"name":"t"}},"spec":{{"clusterIP":"{}","ports":[{{"port":80}}]}}}})", address));
  EXPECT_STATUS(taken, 422, "Invalid");
  EXPECT_NE(taken->body.find("provided IP is already allocated"), std::string::npos);
  auto port_taken = post(
      path, fmt::format(R"({{"metadata":{{"name":"t"}},"spec":{{"type":"NodePort","ports":[{{"port":80,"nodePort":{}}}]}}}})", node_port));
  EXPECT_NE(port_taken->body.find("provided port is already allocated"), std::string::npos);
  remove(path + "/s");
  EXPECT_EQ(
      post(path, fmt::format(R"({{"metadata":{{"name":"t"}},"spec":{{"clusterIP":"{}","ports":[{{"port":80}}]}}}})", address))->status,
      201);
}

/// A Service that changes its type keeps what the new type has and loses the rest, unless the same write asks for it.
TEST_F(Subresource, ServicesChangeTheirType) {
  const std::string path = "/api/v1/namespaces/default/services";
  const auto before = create(path, R"({"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local",
    "selector":{"a":"b"},"ports":[{"name":"x","port":80},{"name":"y","port":81}]}})");
  const auto node_port = [](const json::Value& service, std::size_t i) {
    return json::get_int(json::get_array(service, {"spec", "ports"})[i], {"nodePort"});
  };
  EXPECT_GE(json::get_int(before, {"spec", "healthCheckNodePort"}), 30000);

  // A replacement that names no port of the node keeps the old ones, by the ports' names.
  const auto replaced = send("PUT", path + "/s", R"({"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local",
    "selector":{"a":"b"},"ports":[{"name":"y","port":82},{"name":"x","port":80}]}})");
  ASSERT_EQ(replaced->status, 200) << replaced->body;
  auto now = read(path + "/s");
  EXPECT_EQ(node_port(now, 0), node_port(before, 1));
  EXPECT_EQ(node_port(now, 1), node_port(before, 0));
  EXPECT_EQ(json::get_int(now, {"spec", "healthCheckNodePort"}), json::get_int(before, {"spec", "healthCheckNodePort"}));

  ASSERT_EQ(patch(path + "/s", R"({"spec":{"type":"ClusterIP"}})")->status, 200);
  now = read(path + "/s");
  EXPECT_EQ(node_port(now, 0), 0);
  for (const char* field : {"externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"})
    EXPECT_EQ(json::find(now, {"spec", field}), nullptr) << field;
  EXPECT_EQ(text(now, {"spec", "clusterIP"}), text(before, {"spec", "clusterIP"}));

  // What went is free for others.
  EXPECT_EQ(post(path, fmt::format(R"({{"metadata":{{"name":"t"}},"spec":{{"type":"NodePort","ports":[{{"port":80,"nodePort":{}}}]}}}})",
                                   node_port(before, 0)))
                ->status,
            201);
  // A field that this write sets as well is the user's mistake to see.
  EXPECT_STATUS(patch(path + "/t", R"({"spec":{"type":"ClusterIP","externalTrafficPolicy":"Local"}})"), 422, "Invalid");
  ASSERT_EQ(patch(path + "/s", R"({"spec":{"type":"ExternalName","externalName":"example.org","ports":null}})")->status, 200);
  EXPECT_EQ(json::find(read(path + "/s"), {"spec", "clusterIP"}), nullptr);
}

/// Only what can be told without a pod network: loopback addresses are never proxied to.
TEST_F(Subresource, ProxiesOnlyToPods) {
  create(kPods, pod("p"));
  const std::string path = std::string(kPods) + "/p";
  EXPECT_STATUS(get(path + "/proxy/"), 400, "BadRequest");
  for (const char* ip : {"127.0.0.1", "169.254.169.254", "::1", "0.0.0.0", "::ffff:127.0.0.1"}) {
    EXPECT_EQ(patch(path + "/status", fmt::format(R"({{"status":{{"podIP":"{}"}}}})", ip))->status, 200);
    EXPECT_STATUS(get(std::string(kPods) + "/http:p:8080/proxy/x"), 400, "BadRequest");
  }
  EXPECT_STATUS(get(std::string(kPods) + "/ftp:p:8080/proxy/x"), 400, "BadRequest");
  EXPECT_STATUS(get(std::string(kPods) + "/none/proxy/x"), 404, "NotFound");
  create("/api/v1/namespaces/default/services", R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})");
  create("/api/v1/namespaces/default/endpoints", R"({"metadata":{"name":"s"}})");
  auto nobody = get("/api/v1/namespaces/default/services/s:80/proxy/");
  EXPECT_STATUS(nobody, 503, "ServiceUnavailable");
  EXPECT_EQ(text(nobody->document(), {"message"}), "no endpoints available for service \"s\"");
  EXPECT_EQ(text(get("/api/v1/namespaces/default/services/s:81/proxy/")->document(), {"message"}),
            "no service port 81 found for service \"s\"");
}

/// What a subresource does not take is refused before anybody asks for the right to it: `watch` on pods/exec must not become a way in.
TEST_F(Subresource, TakesItsVerbsAlone) {
  std::vector<std::string> asked;
  ServerOptions options;
  options.authorizer = std::make_shared<PickyAuthorizer>([&](const UserInfo&, const Attributes& attributes) {
    asked.push_back(attributes.verb + " " + attributes.resource + "/" + attributes.subresource);
    return attributes.subresource.empty() || attributes.verb != "create";
  });
  start(std::move(options));
  create(kPods, pod("p"));
  const std::string path = std::string(kPods) + "/p";
  const std::map<std::string, std::set<std::string>> methods = {{"exec", {"GET", "POST"}},
                                                                {"attach", {"GET", "POST"}},
                                                                {"portforward", {"GET", "POST"}},
                                                                {"log", {"GET"}},
                                                                {"binding", {"POST"}},
                                                                {"eviction", {"POST"}},
                                                                {"status", {"GET", "PUT", "PATCH"}},
                                                                {"ephemeralcontainers", {"GET", "PUT", "PATCH"}},
                                                                {"resize", {"GET", "PUT", "PATCH"}}};
  for (const auto& [sub, taken] : methods) {
    for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"}) {
      if (taken.contains(method)) continue;
      asked.clear();
      EXPECT_STATUS(send(method, path + "/" + sub), 405, "MethodNotAllowed");
      EXPECT_TRUE(asked.empty()) << method << " " << sub;
    }
    asked.clear();
    for (const char* watch : {"/api/v1/watch/namespaces/default/pods/p/", "/api/v1/watch/namespaces/default/pods/p/"})
      EXPECT_STATUS(get(watch + sub), 405, "MethodNotAllowed");
    EXPECT_TRUE(asked.empty()) << sub;
  }
  EXPECT_STATUS(get("/api/v1/watch/nodes/n/proxy"), 405, "MethodNotAllowed");
  EXPECT_STATUS(get("/api/v1/watch/namespaces/default/services/s/proxy"), 405, "MethodNotAllowed");
}

/// A session by WebSocket starts with a GET: the right to read is not enough for it.
TEST_F(Subresource, SessionsNeedTheRightToCreateThem) {
  for (const char* missing : {"get", "create"}) {
    ServerOptions options;
    options.authorizer = std::make_shared<PickyAuthorizer>(
        [missing](const UserInfo&, const Attributes& attributes) { return attributes.subresource.empty() || attributes.verb != missing; });
    start(std::move(options));
    create(kPods, pod("p"));
    for (const char* sub : {"exec", "attach", "portforward"}) {
      auto refused = get(std::string(kPods) + "/p/" + sub + "?command=ls");
      EXPECT_STATUS(refused, 403, "Forbidden");
      EXPECT_NE(text(refused->document(), {"message"}).find(fmt::format("cannot {} resource \"pods/{}\"", missing, sub)), std::string::npos)
          << refused->body;
    }
    EXPECT_EQ(get(std::string(kPods) + "/p/log")->status == 403, missing == std::string_view("get"));
  }
}

}  // namespace berth::apiserver::testing
