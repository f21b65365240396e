// What one request may cost the server, in work and in memory.
#include "apiserver/apply/field_set.h"
#include "apiserver/cache/object_codec.h"
#include "apiserver/patch/json_patch.h"
#include "apiserver/request/element_limit.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class Limits : public ServerTest {};

TEST_F(Limits, CopiesOfAPatchAreCounted) {
  create(kMaps, config_map("a", R"({"k":")" + std::string(1000, 'x') + "\"}"));
  // Each copies what the one before it has doubled.
  std::string doubling;
  for (int i = 0; i < 40; ++i) doubling += fmt::format(R"({}{{"op":"copy","from":"/data","path":"/data/k{}"}})", i == 0 ? "[" : ",", i);
  EXPECT_STATUS(patch(std::string(kMaps) + "/a", doubling + "]", "json"), 422, "Invalid");
  EXPECT_STATUS(patch(std::string(kMaps) + "/a", R"([{"op":"copy","from":"/data/k","path":"/data/l"}])", "json"), 200, "");
}

TEST_F(Limits, OperationsOfAPatchAreCountedEverywhere) {
  create("/apis/apps/v1/namespaces/default/deployments",
         R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
             "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  std::string many = "[";
  for (int i = 0; i < 10'001; ++i) many += R"({"op":"test","path":"/spec/replicas","value":1},)";
  many.back() = ']';
  for (const char* path : {"/apis/apps/v1/namespaces/default/deployments/d", "/apis/apps/v1/namespaces/default/deployments/d/scale"})
    EXPECT_STATUS(patch(path, many, "json"), 413, "RequestEntityTooLarge");
}

TEST(JsonPatchLimits, ElementsThatMoveAndNestingAreCounted) {
  json::Value document = json::Object{{"list", json::Array()}};
  for (int i = 0; i < 100; ++i) document.at("list").get_array().push_back(i);
  json::Array inserts;
  for (int i = 0; i < 50; ++i) inserts.push_back(json::Object{{"op", "add"}, {"path", "/list/0"}, {"value", 1}});
  const auto operations = patch::parse_json_patch(inserts);
  ASSERT_TRUE(operations);
  patch::JsonPatchLimits limits;
  auto copy = document;
  EXPECT_TRUE(patch::apply_json_patch(copy, *operations, limits));
  limits.moved_elements = 3000;
  copy = document;
  EXPECT_FALSE(patch::apply_json_patch(copy, *operations, limits));

  json::Array deeper;
  std::string path;
  for (int i = 0; i < 600; ++i) {
    path += "/d";
    deeper.push_back(json::Object{{"op", "add"}, {"path", path}, {"value", json::Object()}});
  }
  copy = document;
  EXPECT_FALSE(patch::apply_json_patch(copy, *patch::parse_json_patch(deeper)));
  deeper.erase(deeper.begin() + 400, deeper.end());
  copy = document;
  EXPECT_TRUE(patch::apply_json_patch(copy, *patch::parse_json_patch(deeper)));
}

/// A body of `count` elements that say nothing, at a list's place.
std::string nothing(std::size_t count, std::string_view before, std::string_view after, std::string_view element = "{}") {
  std::string out(before);
  for (std::size_t i = 0; i < count; ++i) out.append(i == 0 ? "" : ",").append(element);
  return out.append(after);
}

TEST_F(Limits, ElementsOfListsAreCountedBeforeTheyBecomeMore) {
  constexpr std::size_t kMany = kMostElements + 1;
  create(kMaps, config_map("a"));
  const std::string map = std::string(kMaps) + "/a", owners = R"({"metadata":{"name":"b","ownerReferences":[)";
  for (const std::string_view element : {"{}", "null"}) {
    const auto refused = post(kMaps, nothing(kMany, owners, "]}}", element));
    EXPECT_STATUS(refused, 413, "RequestEntityTooLarge");
    EXPECT_NE(
        refused->body.find("limit is 65536 objects in lists: there are 65537, and 65537 of them in one list, metadata.ownerReferences"),
        std::string::npos)
        << refused->body.substr(0, 500);
  }
  EXPECT_STATUS(post(kMaps, nothing(kMany - 1, owners, "]}}")), 422, "Invalid");  // Judged one by one.
  // Whatever way they come.
  EXPECT_STATUS(send("PUT", map, nothing(kMany, R"({"metadata":{"name":"a","ownerReferences":[)", "]}}")), 413, "RequestEntityTooLarge");
  for (const char* type : {"merge", "strategic"})
    EXPECT_STATUS(patch(map, nothing(kMany, owners, "]}}"), type), 413, "RequestEntityTooLarge");
  EXPECT_STATUS(patch(map, nothing(kMany, R"([{"op":"add","path":"/metadata/ownerReferences","value":[)", "]}]"), "json"), 413,
                "RequestEntityTooLarge");
  const auto half = nothing(kMany / 2 + 1, R"([{"op":"add","path":"/x","value":[)", R"(]},{"op":"copy","from":"/x","path":"/y"}])");
  EXPECT_STATUS(patch(map, half, "json"), 413, "RequestEntityTooLarge");  // What is copied counts again.
  // Several lists count together, and aliases as what they stand for.
  std::string yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\nx: &x [" + nothing(1000, "", "") + "]\ny: [";
  for (int i = 0; i < 70; ++i) yaml += i == 0 ? "*x" : ",*x";
  EXPECT_STATUS(send("POST", kMaps, yaml + "]\n", "application/yaml"), 413, "RequestEntityTooLarge");
  EXPECT_STATUS(post(kMaps, config_map("c")), 201, "");
}

/// Each is judged by itself, and told if it is wrong.
TEST_F(Limits, WordsOfListsAndOfMetadataAreCountedToo) {
  const std::string finalizers = R"({"metadata":{"name":"b","finalizers":[)";
  const auto refused = post(kMaps, nothing(kMostMetadata + 1, finalizers, "]}}", "\"\""));
  EXPECT_STATUS(refused, 413, "RequestEntityTooLarge");
  EXPECT_NE(refused->body.find("limit is 65536 values in the lists and maps of metadata: there are 65537, and 65537 of them in one list or "
                               "map, metadata.finalizers"),
            std::string::npos)
      << refused->body.substr(0, 500);
  const auto judged = post(kMaps, nothing(kMostMetadata, finalizers, "]}}", "\"\""));
  EXPECT_STATUS(judged, 422, "Invalid");
  EXPECT_NE(judged->body.find(" more]"), std::string::npos) << judged->body.substr(0, 500);
  EXPECT_LT(judged->body.size(), 500'000U);
  std::string labels = R"({"metadata":{"name":"b","labels":{)";
  for (std::size_t i = 0; i <= kMostMetadata; ++i) labels += fmt::format(R"({}"k{}":"")", i == 0 ? "" : ",", i);
  EXPECT_STATUS(post(kMaps, labels + "}}}"), 413, "RequestEntityTooLarge");
  create(kMaps, config_map("a"));
  const std::string map = std::string(kMaps) + "/a";
  for (const char* type : {"merge", "strategic"})
    EXPECT_STATUS(patch(map, nothing(kMostMetadata + 1, finalizers, "]}}", "\"\""), type), 413, "RequestEntityTooLarge");
  EXPECT_STATUS(patch(map, nothing(kMostMetadata + 1, R"([{"op":"add","path":"/metadata/finalizers","value":[)", "]}]", "\"\""), "json"),
                413, "RequestEntityTooLarge");
  const auto apply =
      nothing(kMostMetadata + 1, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","finalizers":[)", "]}}", "\"\"");
  EXPECT_STATUS(patch(map + "?fieldManager=m", apply, "apply"), 413, "RequestEntityTooLarge");
  EXPECT_STATUS(send("POST", kMaps, apply, "application/yaml"), 413, "RequestEntityTooLarge");
  // In lists anywhere, of words as of objects.
  const auto args =
      nothing(kMostWords + 1, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","args":[)", "]}]}}", "\"\"");
  const auto many = post(kPods, args);
  EXPECT_STATUS(many, 413, "RequestEntityTooLarge");
  EXPECT_NE(many->body.find("limit is 131072 values in lists: there are 131073, and 131073 of them in one list, spec.containers.args"),
            std::string::npos)
      << many->body.substr(0, 500);
}

/// Of a custom kind its definition says what may stand in it, but its metadata is as everybody's.
TEST_F(Limits, TheMetadataOfCustomKindsIsCounted) {
  create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         R"({"metadata":{"name":"boxes.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
             "names":{"plural":"boxes","singular":"box","kind":"Box"},"versions":[{"name":"v1","served":true,"storage":true,
             "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})");
  loop_.run_for(std::chrono::seconds(1));
  const std::string boxes = "/apis/example.com/v1/namespaces/default/boxes";
  const std::string head = R"({"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"b","finalizers":[)";
  const auto refused = post(boxes, nothing(kMostMetadata + 1, head, "]}}", "\"\""));
  EXPECT_STATUS(refused, 413, "RequestEntityTooLarge");
  EXPECT_NE(refused->body.find("metadata.finalizers"), std::string::npos) << refused->body.substr(0, 500);
  const auto own =
      nothing(kMostWords + 1, R"({"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"b"},"words":[)", "]}", "\"\"");
  EXPECT_EQ(post(boxes, own)->status, 201);
}

/// A series is kept for ever: what a client makes up is none.
TEST_F(Limits, NobodysWordsBecomeSeries) {
  for (int i = 0; i < 3; ++i) {
    const auto word = fmt::format("zzz{}", i);
    get("/api/v1/namespaces/default/pods/p/" + word);
    get("/api/v1/namespaces/default/pods/p/status?" + word);
    get("/apis/" + word + "/v1/" + word);
    send("ZZZ" + std::to_string(i), "/api/v1/namespaces/default/pods");
    send("ZZZ" + std::to_string(i), "/" + word);
  }
  const std::string text(get("/metrics")->body);
  EXPECT_EQ(text.find("zzz"), std::string::npos);
  EXPECT_EQ(text.find("ZZZ"), std::string::npos);
  EXPECT_NE(text.find(R"(subresource="status")"), std::string::npos);
  EXPECT_NE(text.find(R"(verb="other")"), std::string::npos);
}

TEST_F(Limits, ReviewsAreNotTracked) {
  auto review = post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                     R"({"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}},"zzz":1,"aaa":2})");
  EXPECT_EQ(review->status, 201);
  EXPECT_EQ(json::find(review->document(), {"metadata", "managedFields"}), nullptr) << review->body;
}

TEST_F(Limits, FindingsAreToldUpToAHundred) {
  std::string body = R"({"metadata":{"name":"a"})";
  for (int i = 0; i < 300; ++i) body += fmt::format(R"(,"u{0}":1,"u{0}":2)", i);
  auto refused = send("POST", std::string(kMaps) + "?fieldValidation=Strict", body + "}");
  EXPECT_STATUS(refused, 400, "BadRequest");
  std::size_t told = 0;
  for (auto at = refused->body.find("unknown field"); at != std::string::npos; at = refused->body.find("unknown field", at + 1)) ++told;
  EXPECT_EQ(told, 100U);
  // What is not told goes all the same.
  auto warned = send("POST", std::string(kMaps) + "?fieldValidation=Warn", body + "}");
  EXPECT_EQ(warned->status, 201);
  EXPECT_EQ(warned->document().get_object().if_contains("u299"), nullptr);
}

TEST(FieldSetOrder, IsTheSameHoweverASetWasMade) {
  json::Object up, down;
  for (int i = 0; i < 100; ++i) up[fmt::format("f:k{:03}", i)] = json::Object{{"f:x", json::Object()}};
  for (int i = 99; i >= 0; --i) down[fmt::format("f:k{:03}", i)] = json::Object{{"f:x", json::Object()}};
  const auto a = apply::FieldSet::from_json(up), b = apply::FieldSet::from_json(down);
  EXPECT_EQ(a, b);
  auto both = a;
  both.unite(b);
  EXPECT_EQ(both, a);
  both.subtract(b);
  EXPECT_TRUE(both.empty());
  apply::FieldSet::Children repeated;
  repeated.emplace_back("f:b", apply::FieldSet::of(true, {}));
  repeated.emplace_back("f:a", apply::FieldSet::of(true, {}));
  repeated.emplace_back("f:b", apply::FieldSet::from_json(json::Object{{"f:x", json::Object()}}));
  EXPECT_EQ(json::serialize(apply::FieldSet::of(false, std::move(repeated)).to_json()), R"({"f:a":{},"f:b":{".":{},"f:x":{}}})");
}

TEST_F(Limits, ACronJobThatWouldNeverRunIsNotStored) {
  const auto make = [&](const std::string& name, const std::string& schedule) {
    return post("/apis/batch/v1/namespaces/default/cronjobs",
                fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"schedule":"{}","jobTemplate":{{"spec":{{"template":{{"spec":{{
                  "restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}}}}}}}}}})",
                            name, schedule));
  };
  auto refused = make("a", "@every nans");
  EXPECT_STATUS(refused, 422, "Invalid");
  EXPECT_NE(text(refused->document(), {"message"}).find("failed to parse duration @every nans: time: invalid duration"), std::string::npos);
  EXPECT_STATUS(make("b", "@every 1"), 422, "Invalid");
  EXPECT_EQ(make("c", "@every 90m")->status, 201);
  EXPECT_EQ(make("d", "@every 10ms")->status, 201);  // Every second.
}

/// Events that are there at the start go after the time that was configured, not after an hour.
TEST(EventTtl, HoldsForEventsThatWereThereAtTheStart) {
  VirtualLoop loop(*parse_rfc3339("2026-01-02T03:04:05Z"));
  const auto meta =
      extract_meta("//events/default/e", R"({"metadata":{"name":"e","namespace":"default","creationTimestamp":"2026-01-02T03:00:00Z"}})",
                   std::chrono::minutes(10));
  EXPECT_EQ(meta.expires_at, *parse_rfc3339("2026-01-02T03:10:00Z"));
  store::Record record;
  record.revision = record.create_revision = 1;
  record.key = "//events/default/e";
  record.value = make_bytes(R"({"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"default","resourceVersion":"1",
    "creationTimestamp":"2026-01-02T03:00:00Z"}})");
  const auto still_there = [&](Duration ttl) {
    auto store = store::make_memory_store();
    EXPECT_TRUE(store->commit(std::vector<store::Record>{record}, true));
    auto cache = open_object_cache(std::move(store), loop, {}, true, ttl);
    EXPECT_TRUE(cache);
    // Anything that is written makes the writer look at what has had its time.
    Proposal other;
    other.key = "//configmaps/default/x";
    other.value = R"({"metadata":{"name":"x","namespace":"default","resourceVersion":""}})";
    other.revision_offset = other.value.find("resourceVersion\":\"") + 18;
    (*cache)->propose(std::move(other), [](ProposeResult) {});
    return (*cache)->get("//events/default/e") != nullptr;
  };
  EXPECT_FALSE(still_there(std::chrono::minutes(2)));
  EXPECT_TRUE(still_there(std::chrono::hours(1)));
}

}  // namespace berth::apiserver::testing
