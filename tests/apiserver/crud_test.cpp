#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class Crud : public ServerTest {};

TEST_F(Crud, CreateFillsTheSystemsFieldsAndReadsBack) {
  const auto created = create(kMaps, config_map("a", R"({"x":"1"})"));
  EXPECT_EQ(text(created, {"metadata", "namespace"}), "default");
  EXPECT_EQ(text(created, {"metadata", "uid"}).size(), 36u);
  EXPECT_EQ(text(created, {"metadata", "creationTimestamp"}), "2026-01-02T03:04:05Z");
  EXPECT_FALSE(text(created, {"metadata", "resourceVersion"}).empty());
  EXPECT_TRUE(json::equal(created, read(std::string(kMaps) + "/a")));
}

TEST_F(Crud, ErrorsHaveKubernetesWords) {
  create(kMaps, config_map("a"));
  auto again = post(kMaps, config_map("a"));
  EXPECT_STATUS(again, 409, "AlreadyExists");
  EXPECT_EQ(text(again->document(), {"message"}), "configmaps \"a\" already exists");
  auto missing = get(std::string(kMaps) + "/zzz");
  EXPECT_STATUS(missing, 404, "NotFound");
  EXPECT_EQ(text(missing->document(), {"message"}), "configmaps \"zzz\" not found");
  EXPECT_EQ(text(missing->document(), {"details", "kind"}), "configmaps");
  auto no_namespace = post("/api/v1/namespaces/none/configmaps", config_map("a"));
  EXPECT_STATUS(no_namespace, 404, "NotFound");
  EXPECT_EQ(text(no_namespace->document(), {"message"}), "namespaces \"none\" not found");
  auto mismatch = post(kMaps, R"({"metadata":{"name":"b","namespace":"other"}})");
  EXPECT_STATUS(mismatch, 400, "BadRequest");
  EXPECT_NE(mismatch->body.find("does not match the namespace"), std::string::npos);
  EXPECT_STATUS(get("/apis/apps/v9/deployments"), 404, "NotFound");
  auto no_group = get("/apis/nope.io/v1/deployments");
  EXPECT_EQ(no_group->status, 404);
  EXPECT_EQ(no_group->body, "404 page not found\n") << "where no group is, there is no Status";
  auto no_resource = get("/apis/apps/v1/widgets");
  EXPECT_STATUS(no_resource, 404, "NotFound");
  EXPECT_NE(json::find(no_resource->document(), "details"), nullptr);
  EXPECT_STATUS(post("/api/v1/pods", pod("p")), 405, "MethodNotAllowed");
  EXPECT_STATUS(post(kMaps, R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})"), 400, "BadRequest");
  EXPECT_STATUS(post(kMaps, R"({"metadata":{}})"), 422, "Invalid");
}

TEST_F(Crud, MalformedBodiesAreBadRequests) {
  for (const std::string body :
       {"{", "[]", "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",", "\xff\xfe", "{\"data\":{\"k\":5},\"metadata\":{\"name\":\"a\"}}"})
    EXPECT_STATUS(post(kMaps, body), 400, "BadRequest");
  std::string deep(100'000, '[');
  EXPECT_STATUS(post(kMaps, deep), 400, "BadRequest");
  EXPECT_STATUS(send("POST", kMaps, "a: [b", "application/yaml"), 400, "BadRequest");
  EXPECT_STATUS(send("POST", kMaps, "x", "text/html"), 415, "UnsupportedMediaType");
  EXPECT_STATUS(send("POST", kMaps, std::string(4 << 20, ' ')), 413, "RequestEntityTooLarge");
  auto yaml = send("POST", kMaps, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fromyaml\ndata:\n  a: \"1\"\n", "application/yaml");
  EXPECT_EQ(yaml->status, 201) << yaml->body;
  EXPECT_EQ(text(yaml->document(), {"data", "a"}), "1");
}

TEST_F(Crud, GenerateNameIsDistinctAndReadable) {
  std::set<std::string> names;
  for (int i = 0; i < 20; ++i) names.insert(text(create(kMaps, R"({"metadata":{"generateName":"pre-"}})"), {"metadata", "name"}));
  EXPECT_EQ(names.size(), 20u);
  for (const auto& name : names) EXPECT_EQ(name.size(), 9u) << name;
}

TEST_F(Crud, StaleUpdatesConflictAndUnconditionalOnesPass) {
  auto map = create(kMaps, config_map("a", R"({"k":"1"})"));
  auto newer = map;
  json::set(newer, {"data", "k"}, "2");
  EXPECT_EQ(put(std::string(kMaps) + "/a", newer)->status, 200);
  json::set(map, {"data", "k"}, "3");
  auto stale = put(std::string(kMaps) + "/a", map);
  EXPECT_STATUS(stale, 409, "Conflict");
  EXPECT_NE(stale->body.find("the object has been modified; please apply your changes to the latest version and try again"),
            std::string::npos);
  EXPECT_STATUS(patch(std::string(kMaps) + "/a", fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"data":{{"k":"4"}}}})",
                                                             text(map, {"metadata", "resourceVersion"}))),
                409, "Conflict");
  json::erase(map, {"metadata", "resourceVersion"});
  EXPECT_EQ(text(put(std::string(kMaps) + "/a", map)->document(), {"data", "k"}), "3");
}

TEST_F(Crud, WritesThatChangeNothingKeepTheRevision) {
  const auto map = create(kMaps, config_map("a", R"({"k":"1"})"));
  loop_.run_for(std::chrono::seconds(10));
  for (const auto& response : {put(std::string(kMaps) + "/a", map), patch(std::string(kMaps) + "/a", "{}"),
                               patch(std::string(kMaps) + "/a", R"({"data":{"k":"1"}})"), patch(std::string(kMaps) + "/a", "[]", "json"),
                               patch(std::string(kMaps) + "/a", "{}", "strategic")}) {
    EXPECT_EQ(response->status, 200) << response->body;
    EXPECT_EQ(text(response->document(), {"metadata", "resourceVersion"}), text(map, {"metadata", "resourceVersion"}));
  }
}

TEST_F(Crud, PutCreatesWhereTheKindSaysSo) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  const auto lease = json::parse(R"({"metadata":{"name":"l","resourceVersion":"5"},"spec":{"holderIdentity":"me"}})").value();
  auto made = put(leases + "/l", lease);
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(text(read(leases + "/l"), {"spec", "holderIdentity"}), "me");
  auto another = lease;
  json::set(another, {"metadata"}, json::parse(R"({"name":"m","uid":"0b5d"})").value());
  EXPECT_STATUS(put(leases + "/m", another), 409, "Conflict");
  EXPECT_STATUS(put(std::string(kMaps) + "/none", json::parse(config_map("none")).value()), 404, "NotFound");
}

TEST_F(Crud, TheSystemsMetadataIsNotTheClients) {
  const auto map = create(kMaps, config_map("a"));
  const std::string path = std::string(kMaps) + "/a";
  for (const std::string metadata :
       {R"("uid":"other")", R"("deletionTimestamp":"2020-01-01T00:00:00Z")", R"("deletionGracePeriodSeconds":5)"}) {
    auto refused = patch(path, fmt::format(R"({{"metadata":{{{}}}}})", metadata));
    EXPECT_STATUS(refused, 422, "Invalid");
    EXPECT_NE(refused->body.find("field is immutable"), std::string::npos) << refused->body;
  }
  auto same = map;
  json::set(same, {"metadata", "creationTimestamp"}, "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(put(path, same)->status, 200) << "clients write the same second in several ways";
  EXPECT_EQ(
      text(patch(path, R"({"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}})")->document(), {"metadata", "creationTimestamp"}),
      text(map, {"metadata", "creationTimestamp"}))
      << "another time is passed over in silence";
  json::set(same, {"metadata", "uid"}, "other");
  EXPECT_STATUS(put(path, same), 409, "Conflict");
}

TEST_F(Crud, WhoTakesTheLastFinalizerSeesTheObjectWithoutIt) {
  create(kMaps, R"({"metadata":{"name":"f","finalizers":["x.io/hold"]}})");
  remove(std::string(kMaps) + "/f");
  auto last = patch(std::string(kMaps) + "/f", R"({"metadata":{"finalizers":null}})");
  ASSERT_EQ(last->status, 200) << last->body;
  EXPECT_TRUE(json::get_array(last->document(), {"metadata", "finalizers"}).empty()) << last->body;
  EXPECT_EQ(get(std::string(kMaps) + "/f")->status, 404);
}

TEST_F(Crud, TheRoutersRefusalsBelongToNoResource) {
  create(kMaps, config_map("a"));
  for (const auto& refused : {put(kMaps, json::Object()), post(std::string(kMaps) + "/a", "{}"), send("PATCH", kMaps, "{}")}) {
    EXPECT_STATUS(refused, 405, "MethodNotAllowed");
    EXPECT_EQ(text(refused->document(), {"message"}), "the server does not allow this method on the requested resource");
  }
  auto one = remove(std::string(kMaps) + "/a", R"({"preconditions":{"uid":"x"}})");
  EXPECT_STATUS(one, 409, "Conflict");
  EXPECT_NE(one->body.find("Operation cannot be fulfilled on ConfigMap"), std::string::npos) << one->body;
}

TEST_F(Crud, DryRunStoresNothing) {
  auto made = send("POST", std::string(kMaps) + "?dryRun=All", config_map("a"));
  EXPECT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(get(std::string(kMaps) + "/a")->status, 404);
  const auto map = create(kMaps, config_map("a", R"({"k":"1"})"));
  auto patched = patch(std::string(kMaps) + "/a?dryRun=All", R"({"data":{"k":"w"}})");
  EXPECT_EQ(text(patched->document(), {"data", "k"}), "w");
  EXPECT_EQ(remove(std::string(kMaps) + "/a?dryRun=All")->status, 200);
  EXPECT_TRUE(json::equal(read(std::string(kMaps) + "/a"), map));
  EXPECT_STATUS(post(std::string(kMaps) + "?dryRun=Some", config_map("b")), 422, "Invalid");
}

TEST_F(Crud, UnknownFieldsByValidationMode) {
  const std::string body =
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicasx":3,"replicas":0,"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  const std::string path = "/apis/apps/v1/namespaces/default/deployments";
  auto strict = post(path + "?fieldValidation=Strict", body);
  EXPECT_STATUS(strict, 400, "BadRequest");
  EXPECT_NE(strict->body.find("strict decoding error: unknown field \\\"spec.replicasx\\\""), std::string::npos) << strict->body;
  auto warned = post(path + "?fieldValidation=Warn", body);
  EXPECT_EQ(warned->status, 201);
  EXPECT_EQ(warned->headers.get("Warning"), "299 - \"unknown field \\\"spec.replicasx\\\"\"");
  EXPECT_EQ(json::find(warned->document(), {"spec", "replicasx"}), nullptr);
  remove(path + "/d");
  auto silent = post(path + "?fieldValidation=Ignore", body);
  EXPECT_EQ(silent->status, 201);
  EXPECT_TRUE(silent->headers.get("Warning").empty());
  EXPECT_EQ(json::find(read(path + "/d"), {"spec", "replicasx"}), nullptr);
  remove(path + "/d");
  // Without the parameter what this server does not know survives (SPEC A3), and is no mistake of who sends it back.
  EXPECT_EQ(post(path, body)->headers.get("Warning"), "299 - \"unknown field \\\"spec.replicasx\\\"\"");
  auto kept = read(path + "/d");
  EXPECT_EQ(json::get_int(kept, {"spec", "replicasx"}), 3);
  EXPECT_EQ(put(path + "/d?fieldValidation=Strict", kept)->status, 200);
  EXPECT_EQ(json::get_int(read(path + "/d"), {"spec", "replicasx"}), 3);
  const auto patched = patch(path + "/d", R"({"spec":{"typo":1}})");
  EXPECT_EQ(patched->headers.get("Warning"), "299 - \"unknown field \\\"spec.typo\\\"\"");
  EXPECT_EQ(json::find(patched->document(), {"spec", "typo"}), nullptr);
  EXPECT_EQ(json::get_int(patched->document(), {"spec", "replicasx"}), 3);
  json::set(kept, {"spec", "other"}, 1);
  EXPECT_STATUS(put(path + "/d?fieldValidation=Strict", kept), 400, "BadRequest");
}

TEST_F(Crud, StatusOnlyThroughItsSubresource) {
  create(kPods, pod("p"));
  const std::string path = std::string(kPods) + "/p";
  auto document = read(path);
  EXPECT_EQ(text(document, {"status", "phase"}), "Pending");
  json::set(document, {"status", "phase"}, "Running");
  json::set(document, {"metadata", "labels", "m"}, "1");
  auto response = put(path, document);
  ASSERT_EQ(response->status, 200) << response->body;
  auto updated = response->document();
  EXPECT_EQ(text(updated, {"status", "phase"}), "Pending");
  EXPECT_EQ(text(updated, {"metadata", "labels", "m"}), "1");
  json::set(updated, {"status", "message"}, "hello");
  json::set(updated, {"spec", "schedulerName"}, "x");
  auto status = put(path + "/status", updated);
  EXPECT_EQ(status->status, 200) << status->body;
  EXPECT_EQ(text(status->document(), {"status", "message"}), "hello");
  EXPECT_EQ(text(status->document(), {"spec", "schedulerName"}), "default-scheduler");
  EXPECT_EQ(text(patch(path + "/status", R"({"status":{"reason":"R"}})", "strategic")->document(), {"status", "reason"}), "R");
}

TEST_F(Crud, FormsByAcceptHeader) {
  create(kMaps, config_map("a", R"({"x":"1","y":"2"})"));
  auto table = send("GET", kMaps, "", "", {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}});
  EXPECT_EQ(text(table->document(), {"kind"}), "Table");
  EXPECT_EQ(json::get_array(table->document(), {"rows"}).size(), 1u);
  const auto strange = get(std::string(kMaps) + "/\xff");
  EXPECT_EQ(text(strange->document(), {"details", "name"}), "\xef\xbf\xbd") << "answers are UTF-8 whatever was asked";
  auto partial = send("GET", std::string(kMaps) + "/a", "", "",
                      {{"Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"}});
  EXPECT_EQ(text(partial->document(), {"kind"}), "PartialObjectMetadata");
  EXPECT_EQ(json::find(partial->document(), "data"), nullptr);
  EXPECT_STATUS(send("GET", kMaps, "", "", {{"Accept", "image/png"}}), 406, "NotAcceptable");
  auto yaml = send("GET", std::string(kMaps) + "/a", "", "", {{"Accept", "application/yaml"}});
  EXPECT_TRUE(yaml->body.starts_with("apiVersion: v1\n")) << yaml->body;
}

// Tables go out row by row, whatever they are written in.
TEST_F(Crud, TablesAreTheSameInEveryFormat) {
  for (const char* name : {"a", "b", "c"}) create(kMaps, config_map(name, R"({"x":"1","y":"two\nlines"})"));
  const auto as = [&](const std::string& type, const std::string& query) {
    return send("GET", std::string(kMaps) + query, "", "", {{"Accept", type + ";as=Table;v=v1;g=meta.k8s.io"}});
  };
  const auto plain = as("application/json", "")->document();
  ASSERT_EQ(json::get_array(plain, {"rows"}).size(), 3u);
  const auto indented = as("application/json", "?pretty=true");
  EXPECT_TRUE(json::equal(plain, indented->document())) << indented->body;
  EXPECT_NE(indented->body.find("\n  \"rows\": [\n    {"), std::string::npos) << indented->body;
  const auto yaml = as("application/yaml", "");
  EXPECT_TRUE(yaml->body.starts_with("apiVersion: meta.k8s.io/v1\ncolumnDefinitions:\n")) << yaml->body;
  const auto parsed = json::parse_yaml(yaml->body);
  ASSERT_TRUE(parsed) << yaml->body;
  EXPECT_TRUE(json::equal(plain, *parsed)) << yaml->body;
  const auto empty = as("application/yaml", "?labelSelector=no%3Dbody");
  EXPECT_NE(empty->body.find("rows: []"), std::string::npos) << empty->body;
}

TEST_F(Crud, WarningsFitIntoTheHeaders) {
  const auto warnings_of = [&](int fields, std::size_t length) {
    std::string body = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"w-"})";
    for (int i = 0; i < fields; ++i) body += fmt::format(",\"{}{}\":1", std::string(length, 'x'), i);
    const auto answer = send("POST", std::string(kMaps) + "?fieldValidation=Warn", body + "}");
    EXPECT_EQ(answer->status, 201) << answer->body;
    std::vector<std::size_t> lengths;
    for (const auto& [name, value] : answer->headers.fields())
      if (name == "Warning") lengths.push_back(value.size());
    return lengths;
  };
  EXPECT_EQ(warnings_of(3, 400).size(), 3U);
  EXPECT_GT(warnings_of(3, 400)[0], 400U) << "few are shown whole";
  // Each has 256 letters then, and together they have 4,096 at least.
  EXPECT_EQ(warnings_of(100, 400).size(), 16U);
  EXPECT_LT(warnings_of(100, 400)[0], 280U);
  EXPECT_EQ(warnings_of(1, 5000).size(), 1U);
  EXPECT_LT(warnings_of(1000, 10).size(), 200U);
}

TEST_F(Crud, VersionsShareOneStore) {
  create(
      "/apis/events.k8s.io/v1/namespaces/default/events",
      R"({"metadata":{"name":"e"},"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"c","reportingInstance":"i","action":"A","reason":"R","type":"Normal","note":"n",
             "regarding":{"kind":"Pod","namespace":"default","name":"p"}})");
  const auto core = read("/api/v1/namespaces/default/events/e");
  EXPECT_EQ(text(core, {"involvedObject", "name"}), "p");
  EXPECT_EQ(text(core, {"message"}), "n");
  EXPECT_EQ(json::get_array(read("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=p,reason=R"), {"items"}).size(), 1u);
  EXPECT_EQ(json::get_array(read("/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name=q"), {"items"}).size(), 0u);
}

}  // namespace berth::apiserver::testing
