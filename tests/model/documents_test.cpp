// Discovery and OpenAPI: what clients learn of the API before they use it.
#include <gtest/gtest.h>

#include <set>

#include "model/kinds.h"
#include "model/published/discovery.h"
#include "model/published/openapi.h"

namespace berth::model {
namespace {

/// The API's own kinds, as a server without custom ones serves them.
Kinds own_kinds() {
  Kinds out;
  for (const KindInfo& kind : all_kinds()) out.push_back(&kind);
  return out;
}

using json::Value;

const Value& resource(const Value& list, std::string_view name) {
  static const Value none;
  for (const Value& one : json::get_array(list, {"resources"}))
    if (json::get_string(one, {"name"}) == name) return one;
  return none;
}

TEST(Discovery, CoreResources) {
  const Value list = discovery_resources(own_kinds(), "", "v1").value();
  EXPECT_EQ(json::get_string(list, {"groupVersion"}), "v1");
  const Value& pods = resource(list, "pods");
  EXPECT_EQ(json::serialize(*json::find(pods, "shortNames")), R"(["po"])");
  EXPECT_TRUE(json::get_bool(pods, {"namespaced"}));
  EXPECT_EQ(json::get_string(resource(list, "pods/eviction"), {"group"}), "policy");
  EXPECT_EQ(json::get_string(resource(list, "pods/eviction"), {"kind"}), "Eviction");
  EXPECT_EQ(json::get_string(resource(list, "replicationcontrollers/scale"), {"kind"}), "Scale");
  EXPECT_FALSE(json::get_bool(resource(list, "nodes"), {"namespaced"}, true));
}

TEST(Discovery, PreferredVersionsComeFirst) {
  const std::pair<const char*, const char*> expected[] = {
      {"autoscaling", "v2"}, {"batch", "v1"}, {"policy", "v1"}, {"scheduling.k8s.io", "v1"}};
  for (const auto& [group, version] : expected) {
    const Value document = discovery_group(own_kinds(), group).value();
    EXPECT_EQ(json::get_string(document, {"preferredVersion", "version"}), version) << group;
    EXPECT_GT(json::get_array(document, {"versions"}).size(), 1U) << group;
  }
}

TEST(Discovery, UnknownGroupsAreNone) {
  EXPECT_FALSE(discovery_group(own_kinds(), "nothing").has_value());
  EXPECT_FALSE(discovery_resources(own_kinds(), "apps", "v9").has_value());
}

TEST(Discovery, TheAggregatedFormSaysTheSame) {
  const Value list = discovery_aggregated(own_kinds(), false, "v2");
  EXPECT_EQ(json::get_string(list, {"apiVersion"}), "apidiscovery.k8s.io/v2");
  std::size_t resources = 0;
  for (const Value& group : json::get_array(list, {"items"}))
    for (const Value& version : json::get_array(group, {"versions"})) resources += json::get_array(version, {"resources"}).size();
  const auto& kinds = all_kinds();
  EXPECT_EQ(resources,
            static_cast<std::size_t>(std::count_if(kinds.begin(), kinds.end(), [](const KindInfo& kind) { return !kind.group.empty(); })));
}

/// Every reference of a document leads to one of its definitions.
void check_references(const Value& node, const json::Object& definitions, std::string_view prefix) {
  if (node.is_object()) {
    for (const auto& [key, value] : node.get_object()) {
      if (key == "$ref" && value.is_string()) {
        ASSERT_TRUE(json::as_view(value).starts_with(prefix)) << json::as_view(value);
        EXPECT_TRUE(definitions.contains(json::as_view(value).substr(prefix.size()))) << json::as_view(value);
      } else {
        check_references(value, definitions, prefix);
      }
    }
  } else if (node.is_array()) {
    for (const Value& item : node.get_array()) check_references(item, definitions, prefix);
  }
}

TEST(OpenApi, Version2IsClosed) {
  const Value document = json::parse(*openapi_v2()).value();
  EXPECT_EQ(json::get_string(document, {"swagger"}), "2.0");
  check_references(document, json::get_object(document, {"definitions"}), "#/definitions/");
}

TEST(OpenApi, StrategicMergeKnowsItsKeys) {
  const Value document = json::parse(*openapi_v2()).value();
  const Value* containers = json::find(document, {"definitions", "io.k8s.api.core.v1.PodSpec", "properties", "containers"});
  ASSERT_NE(containers, nullptr);
  EXPECT_EQ(json::get_string(*containers, {"x-kubernetes-patch-merge-key"}), "name");
  EXPECT_EQ(json::get_string(*containers, {"x-kubernetes-patch-strategy"}), "merge");
  EXPECT_EQ(json::get_string(*containers, {"x-kubernetes-list-type"}), "map");
  EXPECT_EQ(
      json::get_string(document, {"definitions", "io.k8s.api.core.v1.PodSpec", "properties", "volumes", "x-kubernetes-patch-strategy"}),
      "merge,retainKeys");
  EXPECT_EQ(json::serialize(*json::find(document, {"definitions", "io.k8s.api.core.v1.PodSpec", "required"})), R"(["containers"])");
}

TEST(OpenApi, EveryKindIsDefined) {
  const Value document = json::parse(*openapi_v2()).value();
  std::set<std::tuple<std::string, std::string, std::string>> defined;
  for (const auto& [name, schema] : json::get_object(document, {"definitions"}))
    for (const Value& gvk : json::get_array(schema, {"x-kubernetes-group-version-kind"}))
      defined.emplace(json::get_string(gvk, {"group"}), json::get_string(gvk, {"version"}), json::get_string(gvk, {"kind"}));
  for (const KindInfo& kind : all_kinds())
    EXPECT_TRUE(defined.contains({kind.group, kind.version, kind.kind})) << kind.group << " " << kind.kind;
}

TEST(OpenApi, Version3HasADocumentAGroupVersion) {
  const Value index = json::parse(*openapi_v3_index()).value();
  for (const KindInfo& kind : all_kinds()) {
    const std::string path = kind.group.empty() ? "api/" + kind.version : "apis/" + kind.group + "/" + kind.version;
    EXPECT_NE(json::find(index, {"paths", path, "serverRelativeURL"}), nullptr) << path;
    const Bytes text = openapi_v3(kind.group, kind.version);
    ASSERT_NE(text, nullptr) << path;
  }
  const Value apps = json::parse(*openapi_v3("apps", "v1")).value();
  check_references(apps, json::get_object(apps, {"components", "schemas"}), "#/components/schemas/");
  EXPECT_EQ(openapi_v3("apps", "v9"), nullptr);
}

/// What a generator of clients reads of a collection and of an object in it.
TEST(OpenApi, OperationsSayWhatTheyTakeAndAnswer) {
  const Value apps = json::parse(*openapi_v3("apps", "v1")).value();
  const Value& schemas = *json::find(apps, {"components", "schemas"});
  const Value& collection = *json::find(apps, {"paths", "/apis/apps/v1/namespaces/{namespace}/deployments"});
  const Value& object = *json::find(apps, {"paths", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"});
  const auto answer = [](const Value& operation) {
    return std::string(json::get_string(operation, {"responses", "200", "content", "application/json", "schema", "$ref"}));
  };
  const auto names = [](const Value& of) {
    std::set<std::string, std::less<>> out;
    for (const Value& one : json::get_array(of, {"parameters"})) out.emplace(json::get_string(one, {"name"}));
    return out;
  };
  EXPECT_EQ(answer(*json::find(collection, "get")), "#/components/schemas/io.k8s.api.apps.v1.DeploymentList");
  EXPECT_TRUE(schemas.as_object().contains("io.k8s.api.apps.v1.DeploymentList"));
  for (const char* of_lists : {"watch", "limit", "continue", "labelSelector", "sendInitialEvents"})
    EXPECT_TRUE(names(*json::find(collection, "get")).contains(of_lists)) << of_lists;
  EXPECT_EQ(names(collection), (std::set<std::string, std::less<>>{"namespace"}));
  EXPECT_EQ(names(object), (std::set<std::string, std::less<>>{"name", "namespace"}));
  EXPECT_EQ(json::find(object, {"get", "parameters"}), nullptr) << "it takes none";
  for (const Value* writes : {json::find(collection, "post"), json::find(object, "put")})
    EXPECT_EQ(json::get_string(*writes, {"requestBody", "content", "*/*", "schema", "$ref"}),
              "#/components/schemas/io.k8s.api.apps.v1.Deployment");
  EXPECT_TRUE(json::get_object(object, {"patch", "requestBody", "content"}).contains("application/apply-patch+yaml"));
  EXPECT_EQ(answer(*json::find(object, "delete")), "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Status");
  const Value old = json::parse(*openapi_v2()).value();
  const Value& post = *json::find(old, {"paths", "/apis/apps/v1/namespaces/{namespace}/deployments", "post"});
  EXPECT_TRUE(names(post).contains("body"));
}

/// What kubectl explain shows as a field's type and words.
TEST(OpenApi, FieldsThatTakeAnythingAndWordsOfLists) {
  const Value apps = json::parse(*openapi_v3("apps", "v1")).value();
  const Value* schemas = json::find(apps, {"components", "schemas"});
  ASSERT_NE(schemas, nullptr);
  const auto property = [&](const char* type, const char* field) {
    return json::serialize(*json::find(*schemas, {type, "properties", field}));
  };
  EXPECT_NE(property("io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry", "fieldsV1").find("meta.v1.FieldsV1"), std::string::npos);
  EXPECT_NE(property("io.k8s.api.apps.v1.ControllerRevision", "data").find("runtime.RawExtension"), std::string::npos);
  EXPECT_NE(json::find(*schemas, "io.k8s.apimachinery.pkg.runtime.RawExtension"), nullptr);
  EXPECT_NE(property("io.k8s.api.core.v1.PersistentVolumeClaimSpec", "accessModes")
                .find(R"("items":{"type":"string","enum":["ReadOnlyMany","ReadWriteMany","ReadWriteOnce","ReadWriteOncePod"]})"),
            std::string::npos);
  EXPECT_NE(property("io.k8s.api.core.v1.HostPathVolumeSource", "type").find(R"("enum":["","BlockDevice",)"), std::string::npos);
}

}  // namespace
}  // namespace berth::model
