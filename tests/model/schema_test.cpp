#include "model/schema.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

const KindInfo& kind(const char* group, const char* version, const char* name) { return *find_kind(group, version, name); }

TEST(Schema, EveryKindHasItsType) {
  for (const KindInfo& info : all_kinds()) {
    const TypeDef* type = type_of(info);
    ASSERT_NE(type, nullptr) << info.kind;
    EXPECT_NE(type->field("metadata"), nullptr) << info.group << " " << info.kind;
  }
}

TEST(Schema, EveryReferencedTypeHasFields) {
  for (const TypeDef* type : all_types())
    EXPECT_FALSE(type->fields.empty() && !type->is_atomic && type->name.find("VolumeSource") == std::string::npos &&
                 type->name != "apiextensions.v1.CustomResourceSubresourceStatus" &&
                 type->name != "scheduling.v1alpha2.BasicSchedulingPolicy")
        << type->name;
}

TEST(Schema, MergeKeysOfPodSpec) {
  const TypeDef* spec = find_type("core.v1.PodSpec");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(spec->field("containers")->patch_merge_key, "name");
  EXPECT_EQ(spec->field("containers")->list_type, FieldDef::ListType::kMap);
  EXPECT_TRUE(spec->field("volumes")->patch_retain_keys);
  EXPECT_FALSE(spec->field("tolerations")->patch_merge);
  EXPECT_EQ(find_type("core.v1.Container")->field("ports")->list_keys, (std::vector<std::string>{"containerPort", "protocol"}));
}

TEST(Decode, ReportsUnknownFieldsAndKeepsThem) {
  json::Value doc = json::parse(R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","foo":1}],"bar":{}},"extra":true})").value();
  DecodeReport report;
  ASSERT_TRUE(decode(kind("", "v1", "Pod"), doc, report).has_value());
  EXPECT_EQ(report.unknown_fields, (std::vector<std::string>{"spec.containers[0].foo", "spec.bar", "extra"}));
  EXPECT_EQ(json::get_int(doc, {"extra"}), 0);
  EXPECT_TRUE(json::get_bool(doc, {"extra"}));
}

TEST(Decode, TypeErrorsNameTheField) {
  DecodeReport report;
  json::Value doc = json::parse(R"({"spec":{"containers":[{"name":"c","image":5}]}})").value();
  const auto result = decode(kind("", "v1", "Pod"), doc, report);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().path, "spec.containers.image");
  EXPECT_EQ(result.error().found, "number");
  EXPECT_EQ(result.error().wanted, "string");
  const auto status = result.error().status(kind("", "v1", "Pod"));
  EXPECT_EQ(status.code, 400);
  EXPECT_EQ(status.message,
            "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field "
            "Container.spec.containers.image of type string");
}

TEST(Decode, CanonicalisesQuantitiesAndTimesAndDropsNulls) {
  DecodeReport report;
  json::Value doc = json::parse(R"({"metadata":{"creationTimestamp":null,"deletionTimestamp":"2026-01-01T01:00:00+01:00"},)"
                                R"("spec":{"containers":[{"resources":{"requests":{"cpu":0.5,"memory":"1024Mi"}}}]}})")
                        .value();
  ASSERT_TRUE(decode(kind("", "v1", "Pod"), doc, report).has_value());
  EXPECT_EQ(
      json::serialize(doc),
      R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"resources":{"requests":{"cpu":"500m","memory":"1Gi"}},"name":""}]},"status":{}})");
}

TEST(Decode, SurvivesWrongTypesEverywhere) {
  for (const char* text : {"[]", "1", "null", R"({"spec":1})", R"({"spec":[]})", R"({"metadata":"x"})", R"({"spec":{"containers":{}}})",
                           R"({"spec":{"containers":[[]]}})", R"({"spec":{"containers":[{"resources":{"limits":{"cpu":{}}}}]}})"}) {
    DecodeReport report;
    json::Value doc = json::parse(text).value();
    EXPECT_FALSE(decode(kind("", "v1", "Pod"), doc, report).has_value()) << text;
  }
}

TEST(Decode, WritesWhatKubernetesAlwaysWrites) {
  DecodeReport report;
  json::Value event = json::parse(R"({"metadata":{"name":"e"},"involvedObject":{"kind":""}})").value();
  ASSERT_TRUE(decode(*find_kind("", "v1", "Event"), event, report));
  EXPECT_TRUE(event.as_object().at("firstTimestamp").is_null());
  EXPECT_EQ(*json::find(event, "source"), json::Value(json::Object()));
  EXPECT_EQ(*json::find(event, "reportingComponent"), "");
  EXPECT_EQ(json::find(event, {"involvedObject", "kind"}), nullptr) << "an empty kind of a reference says nothing";
  json::Value applied = json::parse(R"({"metadata":{"name":"e"}})").value();
  ASSERT_TRUE(decode(*find_kind("", "v1", "Event"), applied, report, false));
  EXPECT_EQ(json::find(applied, "source"), nullptr) << "who applies owns only what he names";
}

TEST(Prepare, DropsWhatBelongsToFeaturesThatAreOff) {
  DecodeReport report;
  json::Value pod = json::parse(R"({"spec":{"schedulingGroup":{"podGroupName":"g"},
                                    "containers":[{"name":"c","lifecycle":{"stopSignal":"SIGINT"}}]}})")
                        .value();
  ASSERT_TRUE(decode(*find_kind("", "v1", "Pod"), pod, report));
  EXPECT_NE(json::find(pod, {"spec", "schedulingGroup"}), nullptr) << "its writer owns it all the same";
  prepare_for_create(*find_kind("", "v1", "Pod"), pod);
  EXPECT_EQ(json::find(pod, {"spec", "schedulingGroup"}), nullptr);
  EXPECT_EQ(json::find(json::get_array(pod, {"spec", "containers"})[0], "lifecycle"), nullptr) << "nothing was left of it";
  EXPECT_TRUE(report.unknown_fields.empty());
}

TEST(Decode, MicroTimesHaveSixDigits) {
  DecodeReport report;
  json::Value lease = json::parse(R"({"spec":{"renewTime":"2026-01-01T00:00:00Z"}})").value();
  const auto decoded = decode(*find_kind("coordination.k8s.io", "v1", "Lease"), lease, report);
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().said.find("cannot parse \"Z\" as \".000000\""), std::string::npos) << decoded.error().said;
}

}  // namespace
}  // namespace berth::model
