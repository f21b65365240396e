#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class Patch : public ServerTest {
 protected:
  static constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";
  void make_deployment() {
    create(
        kDeployments,
        R"({"metadata":{"name":"d"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[
      {"name":"a","image":"a:1","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]},{"name":"b","image":"b:1"}]}}}})");
  }
  json::Array containers(const std::string& change) {
    auto response =
        patch(std::string(kDeployments) + "/d", fmt::format(R"({{"spec":{{"template":{{"spec":{{{}}}}}}}}})", change), "strategic");
    EXPECT_EQ(response->status, 200) << response->body;
    return json::get_array(response->document(), {"spec", "template", "spec", "containers"});
  }
};

TEST_F(Patch, StrategicMergesListsByTheirKeys) {
  make_deployment();
  auto list = containers(R"("containers":[{"name":"a","image":"a:2","env":[{"name":"Y","value":"3"},{"name":"Z","value":"4"}]}])");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(text(list[0], {"image"}), "a:2");
  EXPECT_EQ(text(list[1], {"image"}), "b:1");
  ASSERT_EQ(json::get_array(list[0], {"env"}).size(), 3u);
  EXPECT_EQ(text(json::get_array(list[0], {"env"})[1], {"value"}), "3");
  list = containers(R"("containers":[{"name":"b","$patch":"delete"},{"name":"a","env":[{"name":"X","$patch":"delete"}]}])");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(json::get_array(list[0], {"env"}).size(), 2u);
  list = containers(R"("containers":[{"$patch":"replace"},{"name":"n","image":"n:1"}])");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(text(list[0], {"name"}), "n");
}

TEST_F(Patch, StrategicDirectives) {
  make_deployment();
  auto list =
      containers(R"("$setElementOrder/containers":[{"name":"c"},{"name":"b"},{"name":"a"}],"containers":[{"name":"c","image":"c:1"}])");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(text(list[0], {"name"}) + text(list[1], {"name"}) + text(list[2], {"name"}), "cba");
  auto strategy =
      patch(std::string(kDeployments) + "/d", R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})", "strategic");
  EXPECT_EQ(strategy->status, 200) << strategy->body;
  EXPECT_EQ(json::find(strategy->document(), {"spec", "strategy", "rollingUpdate"}), nullptr);
  create(kMaps, R"({"metadata":{"name":"f","finalizers":["x/a","x/b"]}})");
  auto fewer = patch(std::string(kMaps) + "/f", R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["x/a"]}})", "strategic");
  EXPECT_EQ(json::get_array(fewer->document(), {"metadata", "finalizers"}).size(), 1u) << fewer->body;
}

TEST_F(Patch, BodiesThatAreNoPatch) {
  create(kMaps, config_map("a"));
  const std::string path = std::string(kMaps) + "/a";
  struct Case {
    std::string type, body, message;
  };
  for (const auto& [type, body, message] : std::vector<Case>{
           {"merge", "[]", "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"},
           {"merge", "\"x\"", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"},
           {"strategic", "[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"},
           {"strategic", "{", "unexpected end of JSON input"},
           {"json", "{", "error decoding patch: unexpected end of JSON input"}}) {
    auto refused = patch(path, body, type);
    EXPECT_STATUS(refused, 400, "BadRequest");
    EXPECT_EQ(text(refused->document(), {"message"}), message);
  }
  auto wrong_type = patch(path, R"({"metadata":{"labels":{"a":1}}})");
  EXPECT_STATUS(wrong_type, 422, "Invalid");
  EXPECT_EQ(text(json::get_array(wrong_type->document(), {"details", "causes"})[0], {"field"}), "patch");
  EXPECT_NE(wrong_type->body.find(": json: cannot unmarshal number into Go struct field"), std::string::npos) << wrong_type->body;
}

TEST_F(Patch, WhatWasMergedIsShownByNameAndTheRestInItsOrder) {
  create("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"m","labels":{"b":"1","a":"2"}},"data":{"z":"1","y":"2"}})");
  const auto answer = send("PATCH", "/api/v1/namespaces/default/configmaps/m?fieldValidation=Strict", R"({"data":{"x":"3"},"more":1})",
                           "application/merge-patch+json");
  EXPECT_EQ(answer->status, 422);
  const auto said = text(answer->document(), {"message"});
  EXPECT_NE(said.find(R"(\"data\":{\"x\":\"3\",\"y\":\"2\",\"z\":\"1\"})"), std::string::npos) << said;
  EXPECT_NE(said.find(R"(\"metadata\":{\"name\":\"m\",\"namespace\":\"default\",\"uid\":)"), std::string::npos) << said;
  EXPECT_NE(said.find(R"(\"labels\":{\"a\":\"2\",\"b\":\"1\"})"), std::string::npos) << said;
}

TEST_F(Patch, AScaleIsAppliedLikeAnyObject) {
  make_deployment();
  const std::string scale = std::string(kDeployments) + "/d/scale";
  auto applied = patch(scale + "?fieldManager=autoscaler&force=true",
                       R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":3}})", "apply");
  ASSERT_EQ(applied->status, 200) << applied->body;
  EXPECT_EQ(json::get_int(applied->document(), {"spec", "replicas"}), 3);
  EXPECT_EQ(json::get_int(read(std::string(kDeployments) + "/d"), {"spec", "replicas"}), 3);
  auto contested = patch(scale + "?fieldManager=other",
                         R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":4}})", "apply");
  EXPECT_STATUS(contested, 409, "Conflict");
  EXPECT_NE(contested->body.find("autoscaler\\\" with subresource \\\"scale"), std::string::npos) << contested->body;
}

TEST_F(Patch, JsonPatchIsAllOrNothing) {
  create(kMaps, config_map("a", R"({"x":"1","y":"2"})"));
  const std::string path = std::string(kMaps) + "/a";
  auto done = patch(
      path,
      R"([{"op":"test","path":"/data/x","value":"1"},{"op":"replace","path":"/data/x","value":"9"},{"op":"add","path":"/data/n","value":"new"},{"op":"remove","path":"/data/y"}])",
      "json");
  EXPECT_EQ(json::serialize(*json::find(done->document(), "data")), R"({"x":"9","n":"new"})");
  for (const std::string bad : {R"([{"op":"add","path":"/data/q","value":"1"},{"op":"test","path":"/data/x","value":"no"}])",
                                R"([{"op":"remove","path":"/data/none"}])", R"([{"op":"replace","path":"/nope/x","value":1}])",
                                R"([{"op":"move","from":"/data","path":"/data/x"}])", R"([{"op":"add","path":"/data/-/x","value":"1"}])"})
    EXPECT_STATUS(patch(path, bad, "json"), 422, "Invalid");
  EXPECT_STATUS(patch(path, "{}", "json"), 400, "BadRequest");
  EXPECT_STATUS(patch(path, R"([{"op":"nope","path":"/data"}])", "json"), 422, "Invalid");
  EXPECT_EQ(text(read(path), {"data", "x"}), "9");
  EXPECT_EQ(json::find(read(path), {"data", "q"}), nullptr);
}

TEST_F(Patch, MergePatch) {
  create(kMaps, config_map("a", R"({"x":"1","y":"2"})"));
  auto merged = patch(std::string(kMaps) + "/a", R"({"data":{"x":null,"z":"3"}})");
  EXPECT_EQ(json::serialize(*json::find(merged->document(), "data")), R"({"y":"2","z":"3"})");
  EXPECT_STATUS(patch(std::string(kMaps) + "/a", R"({"data":{"x":5}})"), 422, "Invalid");
  EXPECT_STATUS(patch(std::string(kMaps) + "/a", "{"), 400, "BadRequest");
  EXPECT_STATUS(send("PATCH", std::string(kMaps) + "/a", "{}", "application/json"), 415, "UnsupportedMediaType");
  EXPECT_STATUS(patch(std::string(kMaps) + "/a", R"({"metadata":{"name":"b"}})"), 400, "BadRequest");
}

class Apply : public ServerTest {
 protected:
  Response apply(const std::string& manager, const std::string& data, const std::string& more = "") {
    return patch(fmt::format("{}/a?fieldManager={}{}", kMaps, manager, more), config_map_yaml(data), "apply");
  }
  static std::string config_map_yaml(const std::string& data) {
    return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{}}})", data);
  }
  static std::map<std::string, json::Value> managers(const json::Value& object) {
    std::map<std::string, json::Value> out;
    for (const auto& entry : json::get_array(object, {"metadata", "managedFields"}))
      out[text(entry, {"manager"}) + "/" + text(entry, {"operation"})] = entry;
    return out;
  }
};

TEST_F(Apply, CreatesAndOwns) {
  auto made = apply("m1", R"({"x":"1"})");
  EXPECT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(json::serialize(*json::find(managers(made->document())["m1/Apply"], "fieldsV1")), R"({"f:data":{"f:x":{}}})");
  EXPECT_EQ(apply("m1", R"({"x":"1"})")->status, 200);
}

TEST_F(Apply, ARevisionsDataIsOwnedAsAWhole) {
  const auto made = create("/apis/apps/v1/namespaces/default/controllerrevisions?fieldManager=m",
                           R"({"metadata":{"name":"r"},"revision":1,"data":{"spec":{"template":{"a":1}}}})");
  EXPECT_EQ(json::serialize(*json::find(managers(made)["m/Update"], "fieldsV1")), R"({"f:data":{},"f:revision":{}})");
}

TEST_F(Apply, ConflictsNameManagerAndField) {
  apply("m1", R"({"x":"1"})");
  auto refused = apply("m2", R"({"x":"2"})");
  EXPECT_STATUS(refused, 409, "Conflict");
  EXPECT_EQ(text(refused->document(), {"message"}), "Apply failed with 1 conflict: conflict with \"m1\": .data.x");
  const auto cause = json::get_array(refused->document(), {"details", "causes"})[0];
  EXPECT_EQ(text(cause, {"reason"}), "FieldManagerConflict");
  EXPECT_EQ(text(cause, {"field"}), ".data.x");
  EXPECT_EQ(apply("m2", R"({"x":"1"})")->status, 200) << "the same value is no conflict: it is shared";
  auto forced = apply("m2", R"({"x":"2"})", "&force=true");
  EXPECT_EQ(forced->status, 200);
  EXPECT_EQ(managers(forced->document()).count("m1/Apply"), 0u);
  EXPECT_EQ(text(forced->document(), {"data", "x"}), "2");
}

TEST_F(Apply, ConflictsAreToldLevelByLevel) {
  const auto body = [](const char* hard, const char* label) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Endpoints","metadata":{{"name":"e","labels":{{"a":"{}"}}}},"subsets":[{{"addresses":[{{"ip":"{}"}}]}}]}})",
        label, hard);
  };
  const std::string path = "/api/v1/namespaces/default/endpoints/e?fieldManager=";
  ASSERT_EQ(patch(path + "m1", body("10.1.1.1", "b"), "apply")->status, 201);
  EXPECT_EQ(text(patch(path + "m2", body("10.1.1.2", "c"), "apply")->document(), {"message"}),
            "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .subsets\n- .metadata.labels.a");
}

TEST_F(Apply, NewElementsComeAfterThoseOfOthers) {
  const auto body = [](const char* list) {
    return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"f","finalizers":{}}}}})", list);
  };
  const std::string path = "/api/v1/namespaces/default/configmaps/f?fieldManager=";
  ASSERT_EQ(patch(path + "m1", body(R"(["x.y/a","x.y/b"])"), "apply")->status, 201);
  EXPECT_EQ(json::serialize(*json::find(patch(path + "m2", body(R"(["x.y/c"])"), "apply")->document(), {"metadata", "finalizers"})),
            R"(["x.y/a","x.y/b","x.y/c"])");
  EXPECT_EQ(json::serialize(*json::find(patch(path + "m3", body(R"(["x.y/c","x.y/a"])"), "apply")->document(), {"metadata", "finalizers"})),
            R"(["x.y/b","x.y/c","x.y/a"])")
      << "the applied order counts";
}

TEST_F(Apply, ANewElementIsOwnedWithAllThatIsAlwaysThere) {
  auto made = post("/api/v1/namespaces/default/pods?fieldManager=m",
                   R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})");
  ASSERT_EQ(made->status, 201) << made->body;
  const auto owned = json::serialize(*json::find(managers(made->document())["m/Update"], "fieldsV1"));
  EXPECT_NE(owned.find(R"("f:resources":{".":{},"f:requests":{".":{},"f:cpu":{}}})"), std::string::npos) << owned;
}

TEST_F(Apply, AtomicStructsHaveOneOwner) {
  const auto body = [](const char* uid, bool controller) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"o","ownerReferences":[{{"apiVersion":"v1","kind":"K","name":"n","uid":"{}","controller":{}}}]}}}})",
        uid, controller);
  };
  const std::string path = "/api/v1/namespaces/default/configmaps/o?fieldManager=m1";
  const auto made = patch(path, body("u", true), "apply");
  ASSERT_EQ(made->status, 201) << made->body;
  EXPECT_EQ(json::serialize(*json::find(managers(made->document())["m1/Apply"], "fieldsV1")),
            R"({"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}})");
}

TEST_F(Apply, FieldsGoWithTheirLastOwner) {
  apply("m1", R"({"x":"1","y":"1"})");
  apply("m2", R"({"z":"1","y":"1"})");
  auto less = apply("m1", R"({"x":"1"})");
  EXPECT_EQ(json::get_object(less->document(), {"data"}).size(), 3u) << less->body;
  less = apply("m2", R"({"z":"1"})");
  EXPECT_EQ(json::find(less->document(), {"data", "y"}), nullptr);
  EXPECT_EQ(json::get_object(less->document(), {"data"}).size(), 2u);
}

TEST_F(Apply, UpdatesTakeOverWhatTheyChange) {
  apply("m1", R"({"x":"1","y":"1"})");
  auto changed = patch(std::string(kMaps) + "/a?fieldManager=editor", R"({"data":{"x":"5"}})");
  auto entries = managers(changed->document());
  EXPECT_EQ(json::serialize(*json::find(entries["m1/Apply"], "fieldsV1")), R"({"f:data":{"f:y":{}}})");
  EXPECT_EQ(json::serialize(*json::find(entries["editor/Update"], "fieldsV1")), R"({"f:data":{"f:x":{}}})");
  auto refused = apply("m1", R"({"x":"1","y":"1"})");
  EXPECT_STATUS(refused, 409, "Conflict");
  EXPECT_EQ(text(refused->document(), {"message"}), "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.x");
}

TEST_F(Apply, NothingNewKeepsTheRevision) {
  const auto first = apply("m1", R"({"x":"1"})")->document();
  loop_.run_for(std::chrono::seconds(100));
  const auto second = apply("m1", R"({"x":"1"})")->document();
  EXPECT_TRUE(json::equal(first, second)) << json::serialize(second);
}

TEST_F(Apply, NeedsAManagerAndRefusesManagedFields) {
  EXPECT_STATUS(patch(std::string(kMaps) + "/a", config_map_yaml("{}"), "apply"), 422, "Invalid");
  EXPECT_STATUS(patch(std::string(kMaps) + "/a?fieldManager=m",
                      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{}]}})", "apply"),
                400, "BadRequest");
  EXPECT_STATUS(patch(std::string(kMaps) + "/a?force=true", "{}"), 422, "Invalid");
}

TEST_F(Apply, ListsByKeyAndDefaults) {
  const std::string path = "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=";
  const auto config = [](const std::string& containers) {
    return fmt::format(
        R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"d"}},"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"containers":[{}]}}}}}}}})",
        containers);
  };
  const std::string side = R"({"name":"side","image":"s:1"})";
  const std::string main_container = R"({"name":"main","image":"m:1","ports":[{"containerPort":80}]})";
  auto made = patch(path + "m1", config(main_container + "," + side), "apply");
  ASSERT_EQ(made->status, 201) << made->body;
  auto fewer = patch(path + "m1", config(main_container), "apply");
  ASSERT_EQ(fewer->status, 200) << fewer->body;
  ASSERT_EQ(json::get_array(fewer->document(), {"spec", "template", "spec", "containers"}).size(), 1u);
  const auto fields = json::serialize(*json::find(managers(fewer->document())["m1/Apply"], "fieldsV1"));
  EXPECT_NE(fields.find(R"("k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}})"), std::string::npos) << fields;
  auto scaled = patch("/apis/apps/v1/namespaces/default/deployments/d/scale?fieldManager=hpa", R"({"spec":{"replicas":4}})");
  EXPECT_EQ(json::get_int(scaled->document(), {"spec", "replicas"}), 4) << scaled->body;
  auto entries = managers(read("/apis/apps/v1/namespaces/default/deployments/d"));
  EXPECT_EQ(text(entries["hpa/Update"], {"subresource"}), "scale");
  EXPECT_EQ(json::serialize(*json::find(entries["hpa/Update"], "fieldsV1")), R"({"f:spec":{"f:replicas":{}}})");
}

TEST_F(Apply, OwnersAreForgottenOnRequest) {
  apply("m1", R"({"x":"1"})");
  auto reset = patch(std::string(kMaps) + "/a", R"({"metadata":{"managedFields":[{}]}})");
  EXPECT_EQ(reset->status, 200);
  EXPECT_EQ(json::find(reset->document(), {"metadata", "managedFields"}), nullptr);
  EXPECT_EQ(json::find(patch(std::string(kMaps) + "/a", R"({"data":{"x":"2"}})")->document(), {"metadata", "managedFields"}), nullptr);
  auto applied = apply("m2", R"({"y":"1"})");
  EXPECT_EQ(managers(applied->document()).count("before-first-apply/Update"), 1u) << applied->body;
}

}  // namespace berth::apiserver::testing
