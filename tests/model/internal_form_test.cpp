// Objects as Kubernetes' messages show them, and how they differ.
#include "model/internal_form.h"

#include <gtest/gtest.h>

#include "model/validation/validation.h"

namespace berth::model {
namespace {

json::Value parse(std::string_view text) { return json::parse(text).value(); }
std::string shown(std::string_view type, std::string_view text, std::string_view shape = {}) {
  const json::Value value = parse(text);
  return json::serialize(internal_form(type, &value, shape));
}

TEST(InternalForm, StructsHaveGoNamesAndZeros) {
  EXPECT_EQ(shown("core.v1.NodeSelectorTerm", R"({"matchExpressions":[{"values":["v"],"key":"k"}]})"),
            R"({"MatchExpressions":[{"Key":"k","Operator":"","Values":["v"]}],"MatchFields":null})");
  EXPECT_EQ(shown("policy.v1.PodDisruptionBudgetSpec", R"({"maxUnavailable":1,"selector":{"matchLabels":{"b":"1","a":"2"}}})"),
            R"({"MinAvailable":null,"Selector":{"matchLabels":{"a":"2","b":"1"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null})");
  EXPECT_EQ(json::serialize(internal_form("core.v1.PodSpec", nullptr)), "null");
}

TEST(InternalForm, MetadataStandsBesideTheOthers) {
  const std::string text = shown("core.v1.PodTemplateSpec", R"({"metadata":{"labels":{"a":"b"},"name":"n"},"spec":{}})");
  EXPECT_TRUE(text.starts_with(R"({"name":"n","labels":{"a":"b"},"Spec":{"Volumes":null,"InitContainers":null,)")) << text;
}

TEST(InternalForm, WhatThePodSharesWithItsHostIsItsSecurity) {
  const std::string text =
      shown("core.v1.PodSpec", R"({"hostNetwork":true,"containers":[{"name":"c"}],"securityContext":{"runAsUser":5}})");
  EXPECT_NE(
      text.find(R"("SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,)"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("RunAsUser":5)"), std::string::npos);
  EXPECT_NE(text.find(R"("Stdin":false,"StdinOnce":false,"TTY":false)"), std::string::npos);
  EXPECT_EQ(text.find("hostNetwork"), std::string::npos);
}

TEST(InternalForm, AVolumesSourceAlone) {
  const std::string text = shown("core.v1.PersistentVolumeSpec", R"({"capacity":{"storage":"1"},"nfs":{"path":"/","server":"s"}})",
                                 "core.v1.PersistentVolumeSource");
  EXPECT_TRUE(text.starts_with(R"({"GCEPersistentDisk":null,)")) << text;
  EXPECT_NE(text.find(R"("NFS":{"Server":"s","Path":"/","ReadOnly":false})"), std::string::npos) << text;
  EXPECT_EQ(text.find("apacity"), std::string::npos);
}

TEST(Difference, ShowsThreeLinesAroundAChange) {
  const auto text = validation::difference(parse(R"({"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":[1,2],"h":{}})"),
                                           parse(R"({"a":1,"b":2,"c":3,"d":9,"e":5,"f":6,"g":[1,2],"h":{}})"));
  EXPECT_EQ(text,
            "@@ -2,7 +2,7 @@\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n- \"d\": 4,\n+ \"d\": 9,\n  \"e\": 5,\n  \"f\": 6,\n  \"g\": [\n");
  EXPECT_EQ(validation::difference(parse("{}"), parse("{}")), "");
  EXPECT_EQ(validation::difference(parse("{}"), parse(R"({"a":"<"})")), "@@ -1 +1,3 @@\n-{}\n+{\n+ \"a\": \"\\u003c\"\n+}\n");
}

TEST(Difference, DistantChangesStandApart) {
  json::Array a;
  for (int i = 0; i < 40; ++i) a.emplace_back(i);
  json::Array b = a;
  b[3] = 100, b[30] = 200;
  const auto text = validation::difference(json::Value(a), json::Value(b));
  EXPECT_NE(text.find("@@ -2,7 +2,7 @@\n"), std::string::npos) << text;
  EXPECT_NE(text.find("@@ -29,7 +29,7 @@\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::model
