// What creation, updates and conversions do to objects.
#include <gtest/gtest.h>

#include "model/schema.h"

namespace berth::model {
namespace {

using json::Value;

const KindInfo& kind(const char* group, const char* version, const char* name) { return *find_kind(group, version, name); }
Value parse(std::string_view text) { return json::parse(text).value(); }

TEST(Strategy, AClientsStatusIsDroppedAtCreation) {
  Value doc = parse(R"({"metadata":{"name":"d"},"spec":{"replicas":1},"status":{"replicas":9}})");
  prepare_for_create(kind("apps", "v1", "Deployment"), doc);
  EXPECT_EQ(json::get_int(doc, {"status", "replicas"}, 0), 0);
  EXPECT_EQ(json::get_int(doc, {"metadata", "generation"}), 1);
}

TEST(Strategy, ANodeKeepsTheStatusItRegistersWith) {
  Value doc = parse(R"({"metadata":{"name":"n"},"status":{"capacity":{"cpu":"4"}}})");
  prepare_for_create(kind("", "v1", "Node"), doc);
  EXPECT_EQ(json::get_string(doc, {"status", "capacity", "cpu"}), "4");
}

TEST(Strategy, APodStartsPendingWithItsClass) {
  const auto class_of = [](std::string_view resources) {
    Value doc = parse(fmt::format(R"({{"spec":{{"containers":[{{"name":"c","resources":{}}}]}}}})", resources));
    prepare_for_create(kind("", "v1", "Pod"), doc);
    EXPECT_EQ(json::get_string(doc, {"status", "phase"}), "Pending");
    return std::string(json::get_string(doc, {"status", "qosClass"}));
  };
  EXPECT_EQ(class_of("{}"), "BestEffort");
  EXPECT_EQ(class_of(R"({"requests":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(class_of(R"({"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(class_of(R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(class_of(R"({"requests":{"cpu":"500m","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}})"), "Burstable");
  EXPECT_EQ(class_of(R"({"requests":{"example.com/gpu":"1"},"limits":{"example.com/gpu":"1"}})"), "BestEffort");
}

TEST(Strategy, APodsOwnLabelsNarrowTheSelectorsBesideTheirKeys) {
  Value doc = parse(R"({"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"affinity":{"podAntiAffinity":{
    "requiredDuringSchedulingIgnoredDuringExecution":[{"matchLabelKeys":["a","absent"],"mismatchLabelKeys":["c"],"labelSelector":{}}],
    "preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":{"matchLabelKeys":["a"]}}]}}}})");
  prepare_for_create(kind("", "v1", "Pod"), doc);
  const Value& anti = doc.at("spec").at("affinity").at("podAntiAffinity");
  EXPECT_EQ(json::serialize(anti.at("requiredDuringSchedulingIgnoredDuringExecution").at(0).at("labelSelector")),
            R"({"matchExpressions":[{"key":"a","operator":"In","values":["b"]},{"key":"c","operator":"NotIn","values":["d"]}]})");
  EXPECT_EQ(json::find(anti.at("preferredDuringSchedulingIgnoredDuringExecution").at(0), {"podAffinityTerm", "labelSelector"}), nullptr)
      << "no selector stays no selector";
}

TEST(Strategy, AJobSelectsItsPodsByItsUid) {
  Value doc = parse(R"({"metadata":{"name":"j","uid":"u-1"},"spec":{"template":{"spec":{}}}})");
  prepare_for_create(kind("batch", "v1", "Job"), doc);
  EXPECT_EQ(json::get_string(doc, {"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}), "u-1");
  EXPECT_EQ(json::get_string(doc, {"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"}), "u-1");
  EXPECT_EQ(json::get_string(doc, {"spec", "template", "metadata", "labels", "job-name"}), "j");
}

TEST(Strategy, AJobThatBringsAnothersLabelsKeepsThemToBeRefused) {
  Value doc =
      parse(R"({"metadata":{"name":"j","uid":"u-1"},"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"old"}},)"
            R"("template":{"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"old"}},"spec":{}}}})");
  prepare_for_create(kind("batch", "v1", "Job"), doc);
  EXPECT_EQ(json::get_string(doc, {"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}), "old");
  EXPECT_EQ(json::get_string(doc, {"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"}), "old");
}

TEST(Strategy, AManualSelectorIsLeftAlone) {
  Value doc = parse(
      R"({"metadata":{"name":"j","uid":"u-1"},"spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{}}}})");
  prepare_for_create(kind("batch", "v1", "Job"), doc);
  EXPECT_EQ(json::serialize(*json::find(doc, {"spec", "selector"})), R"({"matchLabels":{"a":"b"}})");
}

TEST(Strategy, GenerationCountsChangesOfTheSpecOnly) {
  const KindInfo& deployment = kind("apps", "v1", "Deployment");
  const Value old = parse(R"({"metadata":{"generation":3},"spec":{"replicas":1},"status":{"replicas":1}})");
  Value doc = parse(R"({"metadata":{"labels":{"a":"b"}},"spec":{"replicas":1}})");
  prepare_for_update(deployment, old, doc, "");
  EXPECT_EQ(json::get_int(doc, {"metadata", "generation"}), 3);
  doc = parse(R"({"metadata":{"annotations":{"a":"b"}},"spec":{"replicas":1}})");
  prepare_for_update(deployment, old, doc, "");
  EXPECT_EQ(json::get_int(doc, {"metadata", "generation"}), 4) << "a Deployment's sets take its annotations over";
  prepare_for_update(kind("apps", "v1", "ReplicaSet"), old, doc = parse(R"({"metadata":{"annotations":{"a":"b"}},"spec":{"replicas":1}})"),
                     "");
  EXPECT_EQ(json::get_int(doc, {"metadata", "generation"}), 3);
  doc = parse(R"({"spec":{"replicas":2},"status":{"replicas":7}})");
  prepare_for_update(deployment, old, doc, "");
  EXPECT_EQ(json::get_int(doc, {"metadata", "generation"}), 4);
  EXPECT_EQ(json::get_int(doc, {"status", "replicas"}), 1) << "the main resource does not write status";
  doc = parse(R"({"spec":{"replicas":5},"status":{"replicas":2}})");
  prepare_for_update(deployment, old, doc, "status");
  EXPECT_EQ(json::get_int(doc, {"spec", "replicas"}), 1) << "status does not write the spec";
  EXPECT_EQ(json::get_int(doc, {"status", "replicas"}), 2);
  doc = parse(R"({"metadata":{"labels":{"l":"new"},"annotations":{"deployment.kubernetes.io/revision":"2"}},"status":{"replicas":2}})");
  prepare_for_update(deployment, old, doc, "status");
  EXPECT_EQ(json::get_string(doc, {"metadata", "annotations", "deployment.kubernetes.io/revision"}), "2")
      << "kube-controller-manager writes it so";
  EXPECT_EQ(json::find(doc, {"metadata", "labels"}), nullptr) << "a Deployment's labels are not status";
  EXPECT_EQ(json::get_int(doc, {"metadata", "generation"}), 3);
}

TEST(Strategy, StringDataIsFoldedIntoData) {
  Value doc = parse(R"({"data":{"a":"eA=="},"stringData":{"b":"hello","c":"","d":"ab","e":"abc"}})");
  apply_defaults(kind("", "v1", "Secret"), doc);
  EXPECT_EQ(json::find(doc, "stringData"), nullptr);
  EXPECT_EQ(json::get_string(doc, {"data", "a"}), "eA==");
  EXPECT_EQ(json::get_string(doc, {"data", "b"}), "aGVsbG8=");
  EXPECT_EQ(json::get_string(doc, {"data", "c"}, "?"), "");
  EXPECT_EQ(json::get_string(doc, {"data", "d"}), "YWI=");
  EXPECT_EQ(json::get_string(doc, {"data", "e"}), "YWJj");
}

TEST(Strategy, AJobWithoutLabelsShowsItsPods) {
  Value doc = parse(R"({"metadata":{"name":"j","uid":"u"},"spec":{"template":{"metadata":{"labels":{"app":"a"}}}}})");
  prepare_for_create(kind("batch", "v1", "Job"), doc);
  EXPECT_EQ(json::get_string(doc, {"metadata", "labels", "app"}), "a");
  EXPECT_EQ(json::get_string(doc, {"metadata", "labels", "batch.kubernetes.io/job-name"}), "j");
  doc = parse(R"({"metadata":{"name":"j","uid":"u","labels":{"own":"x"}},"spec":{"template":{}}})");
  prepare_for_create(kind("batch", "v1", "Job"), doc);
  EXPECT_EQ(json::get_object(doc, {"metadata", "labels"}).size(), 1u);
}

TEST(Strategy, AddressesOfAPodAgree) {
  const Value old = parse(R"({"metadata":{"name":"p"},"spec":{},"status":{"podIP":"1.1.1.1","podIPs":[{"ip":"1.1.1.1"}]}})");
  for (const char* status :
       {R"({"podIP":"2.2.2.2"})", R"({"podIP":"2.2.2.2","podIPs":[{"ip":"1.1.1.1"}]})", R"({"podIPs":[{"ip":"2.2.2.2"}]})"}) {
    Value doc = parse(fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{}},"status":{}}})", status));
    prepare_for_update(kind("", "v1", "Pod"), old, doc, "status");
    EXPECT_EQ(json::get_string(doc, {"status", "podIP"}), "2.2.2.2") << status;
    ASSERT_EQ(json::get_array(doc, {"status", "podIPs"}).size(), 1u);
    EXPECT_EQ(json::get_string(json::get_array(doc, {"status", "podIPs"})[0], {"ip"}), "2.2.2.2") << status;
  }
}

TEST(Strategy, ANamespaceHasItsFinalizer) {
  Value doc = parse(R"({"metadata":{"name":"n"}})");
  prepare_for_create(kind("", "v1", "Namespace"), doc);
  EXPECT_EQ(json::serialize(*json::find(doc, {"spec", "finalizers"})), R"(["kubernetes"])");
  EXPECT_EQ(json::get_string(doc, {"status", "phase"}), "Active");
}

// The namespace's name is short enough to live inside its value, which moves when the labels are added.
TEST(Strategy, AClaimsSourceHasTwoNames) {
  const auto made = [](std::string_view spec) {
    Value doc = parse(fmt::format(R"({{"spec":{}}})", spec));
    prepare_for_create(kind("", "v1", "PersistentVolumeClaim"), doc);
    return json::serialize(doc.at("spec"));
  };
  EXPECT_EQ(made(R"({"dataSource":{"kind":"PersistentVolumeClaim","name":"a"}})"),
            R"({"dataSource":{"kind":"PersistentVolumeClaim","name":"a"},"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"a"}})");
  EXPECT_EQ(made(R"({"dataSource":{"kind":"Thing","name":"a"}})"), "{}") << "the old name takes claims and snapshots only";
  EXPECT_EQ(made(R"({"dataSourceRef":{"apiGroup":"a.b","kind":"Thing","name":"a"}})"),
            R"({"dataSourceRef":{"apiGroup":"a.b","kind":"Thing","name":"a"},"dataSource":{"apiGroup":"a.b","kind":"Thing","name":"a"}})");
  EXPECT_EQ(made(R"({"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"a","namespace":"other"}})"), "{}")
      << "from another namespace nothing comes";
}

TEST(Defaults, ANamespacesLabelIsItsName) {
  for (const char* name : {"a", "team", "a-somewhat-longer-namespace-name"}) {
    Value doc = parse(fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
    apply_defaults(kind("", "v1", "Namespace"), doc);
    EXPECT_EQ(json::get_string(doc, {"metadata", "labels", "kubernetes.io/metadata.name"}), name);
  }
}

TEST(Convert, AnAutoscalerSurvivesBothWays) {
  const KindInfo& v1 = kind("autoscaling", "v1", "HorizontalPodAutoscaler");
  const KindInfo& v2 = kind("autoscaling", "v2", "HorizontalPodAutoscaler");
  const Value original =
      parse(R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"maxReplicas":3,"metrics":[
      {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}},
      {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}}],
      "behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}}})");
  Value doc = original;
  convert(v2, v1, doc);
  EXPECT_EQ(json::get_string(doc, {"apiVersion"}), "autoscaling/v1");
  EXPECT_EQ(json::get_int(doc, {"spec", "targetCPUUtilizationPercentage"}), 60);
  EXPECT_EQ(json::find(doc, {"spec", "metrics"}), nullptr);
  convert(v1, v2, doc);
  json::erase(doc, {"metadata", "annotations"});
  EXPECT_TRUE(json::equal(doc, original)) << json::serialize(doc);
}

TEST(Convert, BetasAreTheSameUnderAnotherName) {
  Value doc = parse(R"({"apiVersion":"autoscaling/v2beta2","kind":"HorizontalPodAutoscaler","spec":{"maxReplicas":3,"metrics":[]}})");
  convert(kind("autoscaling", "v2beta2", "HorizontalPodAutoscaler"), kind("autoscaling", "v2", "HorizontalPodAutoscaler"), doc);
  EXPECT_EQ(json::serialize(doc),
            R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","spec":{"maxReplicas":3,"metrics":[]}})");
  convert(kind("autoscaling", "v2", "HorizontalPodAutoscaler"), kind("autoscaling", "v2beta2", "HorizontalPodAutoscaler"), doc);
  EXPECT_NE(json::find(doc, {"spec", "metrics"}), nullptr);
  Value budget = parse(R"({"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","spec":{"minAvailable":1}})");
  convert(kind("policy", "v1beta1", "PodDisruptionBudget"), kind("policy", "v1", "PodDisruptionBudget"), budget);
  EXPECT_EQ(json::get_string(budget, {"apiVersion"}), "policy/v1");
}

TEST(Convert, OldEndpointSlicesTellZoneAndNodeAsLabels) {
  const KindInfo &v1 = kind("discovery.k8s.io", "v1", "EndpointSlice"), &beta = kind("discovery.k8s.io", "v1beta1", "EndpointSlice");
  Value doc = parse(
      R"({"endpoints":[{"addresses":["10.0.0.1"],"topology":{"kubernetes.io/hostname":"n","topology.kubernetes.io/zone":"z","rack":"7"}}]})");
  convert(beta, v1, doc);
  EXPECT_EQ(json::serialize(doc.at("endpoints")),
            R"([{"addresses":["10.0.0.1"],"zone":"z","nodeName":"n","deprecatedTopology":{"rack":"7"}}])");
  convert(v1, beta, doc);
  EXPECT_EQ(json::get_string(doc.at("endpoints").at(0), {"topology", "topology.kubernetes.io/zone"}), "z");
  EXPECT_EQ(json::get_string(doc.at("endpoints").at(0), {"topology", "rack"}), "7");
  EXPECT_EQ(json::get_string(doc.at("endpoints").at(0), {"nodeName"}), "n");
}

TEST(Convert, AnEventIsTheSameInBothGroups) {
  const KindInfo& core = kind("", "v1", "Event");
  const KindInfo& events = kind("events.k8s.io", "v1", "Event");
  const Value original = parse(
      R"({"apiVersion":"v1","kind":"Event","involvedObject":{"name":"p"},"message":"m","reason":"R","source":{"component":"c"},"count":2,"reportingComponent":"c"})");
  Value doc = original;
  convert(core, events, doc);
  EXPECT_EQ(json::get_string(doc, {"regarding", "name"}), "p");
  EXPECT_EQ(json::get_string(doc, {"note"}), "m");
  EXPECT_EQ(json::get_int(doc, {"deprecatedCount"}), 2);
  convert(events, core, doc);
  EXPECT_TRUE(json::equal(doc, original)) << json::serialize(doc);
}

}  // namespace
}  // namespace berth::model
