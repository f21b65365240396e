// What is published of custom kinds: the schemas by which kubectl checks and explains (apiextensions' controller/openapi/builder).
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

using json::find;
using json::Value;

class CustomOpenApi : public ServerTest {
 protected:
  /// The definition in the document of either version of OpenAPI of a kind with this schema.
  Value published(const std::string& schema, bool v3, const std::string& more = "") {
    create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           fmt::format(R"({{"metadata":{{"name":"hosts.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
             "names":{{"plural":"hosts","kind":"Host"}},"versions":[{{"name":"v1","served":true,"storage":true{},
             "schema":{{"openAPIV3Schema":{}}}}}]}}}})",
                       more, schema));
    loop_.run_for(std::chrono::seconds(1));
    const auto document = get(v3 ? "/openapi/v3/apis/example.com/v1" : "/openapi/v2")->document();
    const auto* found =
        v3 ? find(document, {"components", "schemas", "com.example.v1.Host"}) : find(document, {"definitions", "com.example.v1.Host"});
    return found == nullptr ? Value() : *found;
  }
};

constexpr const char* kOpenRoot =
    R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object"}}})";

/// Of properties kubectl would conclude that there are no others.
TEST_F(CustomOpenApi, AKindOfUnknownFieldsIsAnObjectAndNoMoreInSwagger) {
  const auto schema = published(kOpenRoot, false);
  EXPECT_EQ(json::get_string(schema, {"type"}), "object");
  EXPECT_EQ(find(schema, {"properties"}), nullptr);
  EXPECT_EQ(find(schema, {"x-kubernetes-preserve-unknown-fields"}), nullptr);
  EXPECT_NE(find(schema, {"x-kubernetes-group-version-kind"}), nullptr);
}

TEST_F(CustomOpenApi, AKindOfUnknownFieldsIsToldWholeInVersion3) {
  const auto schema = published(kOpenRoot, true);
  EXPECT_NE(find(schema, {"properties", "spec"}), nullptr);
  EXPECT_NE(find(schema, {"properties", "metadata"}), nullptr);
  EXPECT_NE(find(schema, {"x-kubernetes-preserve-unknown-fields"}), nullptr);
}

TEST_F(CustomOpenApi, SwaggerSaysOfFieldsWhatKubectlUnderstands) {
  const auto schema = published(
      R"({"type":"object","properties":{"spec":{"type":"object","required":["may","must"],"properties":{
        "may":{"type":"string","nullable":true},"must":{"type":"string"},
        "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}},
        "port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
        "template":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}}}})",
      false);
  const Value* spec = find(schema, {"properties", "spec"});
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(json::serialize(Value(json::get_array(*spec, {"required"}))), R"(["must"])");
  EXPECT_EQ(find(*spec, {"properties", "may", "type"}), nullptr);
  EXPECT_EQ(find(*spec, {"properties", "any", "type"}), nullptr);
  EXPECT_EQ(find(*spec, {"properties", "any", "properties"}), nullptr);
  EXPECT_EQ(find(*spec, {"properties", "port", "anyOf"}), nullptr);
  for (const char* field : {"apiVersion", "kind", "metadata", "spec"})
    EXPECT_NE(find(*spec, {"properties", "template", "properties", field}), nullptr) << field;
}

TEST_F(CustomOpenApi, FieldsThatSelectAreNamed) {
  const auto schema = published(R"({"type":"object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string"}}}}})",
                                true, R"(,"selectableFields":[{"jsonPath":".spec.color"}])");
  EXPECT_EQ(json::serialize(Value(json::get_array(schema, {"x-kubernetes-selectable-fields"}))), R"([{"fieldPath":"spec.color"}])");
}

TEST_F(CustomOpenApi, WhoHasADocumentIsToldWhetherItIsTheSame) {
  const auto ask = [&](const std::string& path, const std::string& tag) { return send("GET", path, "", "", {{"If-None-Match", tag}}); };
  for (const char* path : {"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"}) {
    const std::string tag(get(path)->headers.get("ETag"));
    ASSERT_TRUE(tag.size() > 2 && tag.front() == '"') << path;
    const auto same = ask(path, tag);
    EXPECT_EQ(same->status, 304) << path;
    EXPECT_EQ(same->body, "") << path;
    EXPECT_EQ(ask(path, "\"other\"")->status, 200) << path;
  }
  const std::string before(get("/openapi/v2")->headers.get("ETag"));
  published(kOpenRoot, false);
  EXPECT_EQ(ask("/openapi/v2", before)->status, 200);
}

}  // namespace
}  // namespace berth::apiserver::testing
