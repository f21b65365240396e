// Rules of Kubernetes' API machinery that clients and scripts notice, each found beside a real kube-apiserver.
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class Contract : public ServerTest {
 protected:
  static constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";
  static std::string message(const Response& response) { return text(response->document(), {"message"}); }
  Response accept(const std::string& path, const std::string& types) { return send("GET", path, "", "", {{"Accept", types}}); }
  std::string names(const json::Value& document, json::Path list) {
    std::string out;
    for (const auto& item : json::get_array(document, list)) out += text(item, {"name"}) + " ";
    return out;
  }
};

TEST_F(Contract, BodiesThatAreSomethingElse) {
  const auto said = [&](const std::string& body) { return message(post(kMaps, body)); };
  EXPECT_EQ(said(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}})"),
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion");
  EXPECT_EQ(
      said(R"({"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}})"),
      "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme "
      "\"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"");
  const std::string unread =
      "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ";
  EXPECT_EQ(said("{"), unread + "unexpected end of JSON input ({)");
  EXPECT_EQ(said(R"({"a":1,})"), unread + R"(invalid character '}' looking for beginning of object key string ({"a":1,}))");
  EXPECT_EQ(said(R"({"a":1} x)"), unread + R"(invalid character 'x' after top-level value ({"a":1} x))");
  EXPECT_EQ(said(R"({"kind":5})"), unread + R"(json: cannot unmarshal number into Go struct field .kind of type string ({"kind":5}))");
  EXPECT_EQ(said("null"), "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required");
  EXPECT_EQ(message(send("POST", kMaps, "{}", "text/yaml")),
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf");
}

TEST_F(Contract, YamlBodiesAreReadByTheirFirstDocument) {
  auto made = send("POST", kMaps, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: first\n---\nkind: Secret\n", "application/yaml");
  EXPECT_EQ(made->status, 201) << made->body;
}

TEST_F(Contract, StrictDecodingNamesMistakesInTheOrderOfTheText) {
  auto refused = post(std::string(kMaps) + "?fieldValidation=Strict",
                      R"({"metadata":{"name":"a","nope":1,"name":"a"},"data":{"x":"1","x":"2"},"foo":1,"foo":2})");
  EXPECT_EQ(
      message(refused),
      "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"metadata.nope\", duplicate "
      "field \"metadata.name\", duplicate field \"data.x\", unknown field \"foo\"");
}

TEST_F(Contract, KeysThatStandTwiceInYamlAreTold) {
  const std::string text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: one\n  x: two\n";
  const std::string said = "line 7: key \"x\" already set in map";
  const auto created = [&](std::string_view validation) {
    return send("POST", fmt::format("{}?fieldValidation={}", kMaps, validation), text, "application/yaml");
  };
  EXPECT_EQ(message(created("Strict")),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n  " + said);
  const auto warned = created("Warn");
  EXPECT_EQ(warned->status, 201) << warned->body;
  EXPECT_EQ(warned->headers.get("Warning"), "299 - \"line 7: key \\\"x\\\" already set in map\"");
  const auto applied = [&](std::string_view validation) {
    return patch(fmt::format("{}/a?fieldManager=m&force=true&fieldValidation={}", kMaps, validation), text, "apply");
  };
  EXPECT_EQ(message(applied("Strict")), "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  " + said);
  EXPECT_EQ(applied("Warn")->headers.get("Warning"), warned->headers.get("Warning"));
  EXPECT_EQ(applied("Ignore")->headers.get("Warning"), "");
}

TEST_F(Contract, ParametersOfWrites) {
  const auto said = [&](const std::string& query) { return message(post(std::string(kMaps) + "?" + query, config_map("q"))); };
  EXPECT_EQ(said("dryRun=All&dryRun=x"),
            R"(CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["All","x"]: supported values: "All")");
  EXPECT_NE(said("dryRun=").find(R"(Unsupported value: [""])"), std::string::npos);
  EXPECT_NE(said("fieldValidation=strict").find(R"(supported values: "", "Ignore", "Strict", "Warn")"), std::string::npos);
  EXPECT_NE(said("fieldManager=a%01").find("invalid character U+0001 (at position 1)"), std::string::npos);
  EXPECT_EQ(said("timeout=abc"), "invalid timeout specified in the request URL - time: invalid duration \"abc\"");
  EXPECT_EQ(post(std::string(kMaps) + "?timeout=1m30.5s", config_map("q"))->status, 201);
}

TEST_F(Contract, WhatCannotBeAccepted) {
  create(kMaps, config_map("a"));
  const std::string one = std::string(kMaps) + "/a";
  auto refused = accept(one, "text/plain");
  EXPECT_EQ(refused->status, 406);
  EXPECT_EQ(message(refused),
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf");
  EXPECT_NE(message(accept(kMaps, "application/*")).find("application/json;stream=watch"), std::string::npos);
  EXPECT_EQ(message(accept(one, "application/json;as=Nope;v=v1;g=meta.k8s.io")),
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf");
  EXPECT_EQ(message(accept(kMaps, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")),
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)");
  EXPECT_EQ(message(accept(one, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")),
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)");
  auto in_yaml = accept(std::string(kMaps) + "/none", "application/yaml");
  EXPECT_EQ(in_yaml->headers.get("Content-Type"), "application/yaml");
  EXPECT_NE(in_yaml->body.find("\nreason: NotFound\n"), std::string::npos) << in_yaml->body;
  EXPECT_FALSE(get(one)->headers.get("Audit-Id").empty());
}

/// Says 503 to everybody.
class Busy final : public net::Handler {
  void handle(net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) override { writer->respond({503, {}, "busy"}); }
};

TEST_F(Contract, AMountedPageIsItsPathAloneAndIsCountedByWhatItAnswers) {
  server_->mount("/page", std::make_shared<Busy>(), false);
  EXPECT_EQ(get("/page")->status, 503);
  EXPECT_EQ(get("/page/of/it")->status, 503);
  EXPECT_EQ(get("/pages")->status, 404);
  const auto metrics = get("/metrics")->body;
  const auto series = [](const char* code) { return fmt::format(R"(component="apiserver",dry_run="",code="{}"}} )", code); };
  EXPECT_NE(metrics.find(series("503") + "2"), std::string::npos) << metrics.substr(metrics.find("apiserver_request_total"), 600);
  EXPECT_EQ(metrics.find(series("200")), std::string::npos);
}

TEST_F(Contract, AnswersHaveIdsThatASeedGivesAgain) {
  const auto ids = [&] {
    start({});
    std::vector<std::string> out;
    for (int i = 0; i < 3; ++i) out.emplace_back(get("/version")->headers.get("Audit-Id"));
    return out;
  };
  const auto first = ids();
  EXPECT_EQ(first, ids());
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[1], first[2]);
  EXPECT_EQ(first[0].size(), 36U);
}

TEST_F(Contract, PathsThatLeadNowhere) {
  EXPECT_EQ(get("/nope")->body, "404 page not found\n");
  EXPECT_EQ(get("/apis/nope.io/v1")->body, "404 page not found\n");
  EXPECT_STATUS(get("/apis/apps/v2"), 404, "NotFound");
  EXPECT_STATUS(get("/api/v1/namespaces/default/finalize"), 405, "MethodNotAllowed");
}

TEST_F(Contract, NewListItemsComeFirstInAStrategicMerge) {
  create(
      kDeployments,
      R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"old","image":"i"}]}}}})");
  const std::string path = std::string(kDeployments) + "/d";
  const auto change = [&](const std::string& spec) {
    return patch(path, fmt::format(R"({{"spec":{{"template":{{"spec":{{{}}}}}}}}})", spec), "strategic");
  };
  EXPECT_EQ(names(change(R"("containers":[{"name":"new","image":"x"}])")->document(), {"spec", "template", "spec", "containers"}),
            "new old ");
  auto unordered = change(R"("$setElementOrder/containers":[{"name":"old"}],"containers":[{"name":"z","image":"x"}])");
  EXPECT_EQ(unordered->status, 500);
  EXPECT_EQ(message(unordered),
            "The order in patch list:\n[map[image:x name:z]]\n doesn't match $setElementOrder list:\n[map[name:old]]\n");
  EXPECT_EQ(message(change(R"("containers":[{"image":"x"}])")), "map: map[image:x] does not contain declared merge key: name");
  EXPECT_EQ(message(change(R"("containers":[{"name":"a","$patch":"bad"}])")), "unknown patch type: bad in map: map[$patch:bad name:a]");
  EXPECT_STATUS(patch(path, R"({"spec":{"strategy":{"$retainKeys":["nope"],"type":"Recreate"}}})", "strategic"), 400, "BadRequest");
  EXPECT_EQ(message(patch(path, R"({"spec":{"replicas":"x"}})", "strategic")),
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicas:x]]\": unrecognized type: int32");
  EXPECT_EQ(patch(path, R"({"spec":{"replicas":2e0}})", "strategic")->status, 200);
}

TEST_F(Contract, ABudgetsSelectorIsReplacedWhole) {
  const std::string budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  create(budgets, R"({"metadata":{"name":"p"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})");
  auto changed = patch(budgets + "/p", R"({"spec":{"selector":{"matchLabels":{"c":"d"}}}})", "strategic");
  EXPECT_EQ(json::serialize(*json::find(changed->document(), {"spec", "selector", "matchLabels"})), R"({"c":"d"})");
}

TEST_F(Contract, JsonPatchesAsTheirLibraryReadsThem) {
  create(kMaps, R"({"metadata":{"name":"a","finalizers":["x/a","x/b"]},"data":{"x":"1"}})");
  const std::string path = std::string(kMaps) + "/a?dryRun=All";
  const auto status = [&](const std::string& body) { return patch(path, body, "json")->status; };
  EXPECT_EQ(status("null"), 200);
  EXPECT_EQ(status(R"([{"op":"add","path":"/data/z"}])"), 200) << "no value is null";
  EXPECT_EQ(status(R"([{"op":"add","path":"/metadata/finalizers/-1","value":"x/c"}])"), 200) << "counted from the end";
  EXPECT_EQ(status(R"([{"op":"add","path":"","value":{}}])"), 422);
  EXPECT_EQ(status(R"([{"op":"copy","path":"/data/w"}])"), 422);
  EXPECT_EQ(status(R"([{"op":"test","path":"/nope/a","value":null}])"), 422);
  EXPECT_EQ(message(patch(path, R"([{"op":5,"path":"/data/x"}])", "json")),
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string");
}

TEST_F(Contract, AppliedConfigurationsMustFitTheSchema) {
  const auto said = [&](const std::string& more) {
    auto refused = patch(std::string(kDeployments) + "/d?fieldManager=m",
                         R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{)" + more + "}}", "apply");
    EXPECT_EQ(refused->status, 500) << refused->body;
    return message(refused);
  };
  const std::string begin = "failed to create typed patch object (/d; apps/v1, Kind=Deployment): ";
  EXPECT_EQ(said(R"("nope":1)"), begin + ".spec.nope: field not declared in schema");
  EXPECT_EQ(said(R"("replicas":"x")"), begin + ".spec.replicas: expected numeric (int or float), got string");
  EXPECT_EQ(said(R"("template":{"spec":{"containers":[{"name":"c"},{"name":"c"}]}})"),
            begin + ".spec.template.spec.containers: duplicate entries for key [name=\"c\"]");
  EXPECT_EQ(said(R"("template":{"spec":{"containers":{"name":"c"}}})"),
            begin + ".spec.template.spec.containers: expected list, got &{map[name:c]}");
  EXPECT_EQ(message(patch(std::string(kDeployments) + "/d?fieldManager=m", R"({"apiVersion":"v1","kind":"Pod"})", "apply")),
            "invalid object type: /v1, Kind=Pod");
}

TEST_F(Contract, KubectlsApplyKeepsItsAnnotation) {
  constexpr std::string_view kAnnotation = "kubectl.kubernetes.io/last-applied-configuration";
  post(std::string(kMaps) + "?fieldManager=kubectl-client-side-apply",
       R"({"metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"data":{"x":"1"}})");
  auto applied = patch(std::string(kMaps) + "/a?fieldManager=kubectl",
                       R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"x":"1"}})", "apply");
  EXPECT_EQ(text(applied->document(), {"metadata", "annotations", kAnnotation}),
            "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"1\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n");
}

TEST_F(Contract, UpdatesAndTheirPreconditions) {
  create(kMaps, config_map("a"));
  const std::string path = std::string(kMaps) + "/a";
  EXPECT_EQ(message(send("PUT", path, R"({"metadata":{}})")),
            "the name of the object (a based on URL) was undeterminable: name must be provided");
  EXPECT_EQ(send("PUT", path, R"({"metadata":{"name":"a","resourceVersion":"abc"}})")->status, 500);
  EXPECT_EQ(send("PUT", path, R"({"metadata":{"name":"a","creationTimestamp":"2001-01-01T00:00:00Z"}})")->status, 200);
  const std::string classes = "/apis/node.k8s.io/v1/runtimeclasses";
  create(classes, R"({"metadata":{"name":"r"},"handler":"x"})");
  EXPECT_EQ(message(send("PUT", classes + "/r", R"({"metadata":{"name":"r"},"handler":"x"})")),
            "runtimeclasses.node.k8s.io \"r\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update");
}

TEST_F(Contract, StatusUpdatesCarryMetadata) {
  const std::string nodes = "/api/v1/nodes";
  create(nodes, R"({"metadata":{"name":"n","labels":{"a":"b"}}})");
  auto updated = send("PUT", nodes + "/n/status", R"({"metadata":{"name":"n"},"status":{"phase":"Running"}})");
  EXPECT_EQ(json::find(updated->document(), {"metadata", "labels"}), nullptr) << updated->body;
}

TEST_F(Contract, DeletionsOfStorageAnswerTheObject) {
  const std::string classes = "/apis/storage.k8s.io/v1/storageclasses";
  create(classes, R"({"metadata":{"name":"s"},"provisioner":"x.y/z"})");
  EXPECT_EQ(text(remove(classes + "/s")->document(), {"kind"}), "StorageClass");
}

TEST_F(Contract, TheEndOfGraceIsSeenBeforeTheEnd) {
  create(kPods, pod("p"));
  post(std::string(kPods) + "/p/binding", R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}})");
  remove(std::string(kPods) + "/p");
  auto watch = get(std::string(kPods) + "?watch=1");
  send("DELETE", std::string(kPods) + "/p", R"({"gracePeriodSeconds":0})");
  const auto events = watch->events();
  ASSERT_EQ(events.size(), 3u) << watch->body;
  EXPECT_EQ(text(events[1], {"type"}), "MODIFIED");
  EXPECT_EQ(json::get_int(events[1], {"object", "metadata", "deletionGracePeriodSeconds"}, 9), 0);
  EXPECT_EQ(text(events[2], {"type"}), "DELETED");
  watch->disconnect();
}

TEST_F(Contract, EvictionsAreChecked) {
  create(kPods, pod("p"));
  const std::string path = std::string(kPods) + "/p/eviction";
  EXPECT_STATUS(
      post(path, R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":{"propagationPolicy":"Zz"}})"), 422,
      "Invalid");
  EXPECT_STATUS(post(path, R"({"apiVersion":"v1","kind":"Eviction","metadata":{"name":"p"}})"), 400, "BadRequest");
  EXPECT_STATUS(post(path, "{}"), 400, "BadRequest");
  EXPECT_EQ(get(std::string(kPods) + "/p")->status, 200);
}

TEST_F(Contract, BindingsBringLabelsAlong) {
  create(kPods, pod("p"));
  post(std::string(kPods) + "/p/binding", R"({"metadata":{"name":"p","labels":{"zone":"a"}},"target":{"kind":"Node","name":"n"}})");
  EXPECT_EQ(text(read(std::string(kPods) + "/p"), {"metadata", "labels", "zone"}), "a");
}

TEST_F(Contract, AWatchFromThePresentTellsWhereThatEnds) {
  create(kMaps, config_map("a"));
  const auto events = get(std::string(kMaps) + "?watch=1&resourceVersion=0&allowWatchBookmarks=true")->events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(text(events[1], {"object", "metadata", "annotations", "k8s.io/initial-events-end"}), "true");
  EXPECT_NE(message(get(std::string(kMaps) + "?watch=1&continue=abc")).find("resourceVersionMatch is forbidden when continue is provided"),
            std::string::npos);
}

TEST_F(Contract, ContinueTokensLeadNowhereElse) {
  const auto said = [&](const std::string& token) { return message(get(std::string(kMaps) + "?limit=1&continue=" + token)); };
  // {"v":"meta.k8s.io/v1","rv":1,"start":"../x"}, and a revision that is a text.
  EXPECT_EQ(said("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi94In0"), "invalid continue token: continue key is not valid: ../x");
  EXPECT_EQ(
      said("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6IngiLCJzdGFydCI6ImMifQ"),
      "invalid continue token: continue key is not valid: json: cannot unmarshal string into Go struct field continueToken.rv of type "
      "int64");
}

}  // namespace berth::apiserver::testing
