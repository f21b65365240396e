// pods/ephemeralcontainers and pods/resize change their part and nothing else.
#include <gtest/gtest.h>

#include "model/schema.h"

namespace berth::model {
namespace {

using json::Value;

const KindInfo& pod() { return *find_kind("", "v1", "Pod"); }

Value running() {
  Value pod_of_text =
      json::parse(
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"d","uid":"u"},"spec":{"nodeName":"n1","priority":0,
      "containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"}}}]},"status":{"phase":"Running","qosClass":"Burstable"}})")
          .value();
  apply_defaults(pod(), pod_of_text);
  return pod_of_text;
}

FieldErrors update(const Value& old, Value& doc, std::string_view subresource) {
  apply_defaults(pod(), doc);
  prepare_for_update(pod(), old, doc, subresource);
  return validate_update(pod(), old, doc, subresource);
}

std::string texts(const FieldErrors& errors) {
  std::string out;
  for (const FieldError& error : errors) out += error.render() + "\n";
  return out;
}

TEST(PodResize, MovesResourcesOnly) {
  const Value old = running();
  Value doc = old;
  json::set(doc, {"spec", "nodeName"}, "elsewhere");
  json::set(doc, {"spec", "priority"}, 7);
  json::set(doc, {"metadata", "labels"}, json::Object{{"a", "b"}});
  json::set(doc, {"metadata", "resourceVersion"}, "5");
  doc.at("spec").at("containers").at(0).get_object()["image"] = "other";
  json::set(doc.at("spec").at("containers").at(0), {"resources", "requests", "cpu"}, "200m");
  EXPECT_EQ(texts(update(old, doc, "resize")), "");
  Value expected = old;
  json::set(expected.at("spec").at("containers").at(0), {"resources", "requests", "cpu"}, "200m");
  json::set(expected, {"metadata", "resourceVersion"}, "5");
  json::set(expected, {"metadata", "generation"}, 2);
  EXPECT_TRUE(json::equal(doc, expected)) << json::serialize(doc);
}

TEST(PodResize, KeepsTheClassAndOtherResources) {
  Value old = running();
  json::set(old, {"status", "qosClass"}, "Burstable");
  Value doc = old;
  doc.at("spec").at("containers").at(0).get_object()["resources"] = json::Object();
  EXPECT_EQ(texts(update(old, doc, "resize")),
            "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing\n"
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed\n");
  doc = old;
  json::set(doc.at("spec").at("containers").at(0), {"resources", "requests", "ephemeral-storage"}, "1Gi");
  EXPECT_EQ(texts(update(old, doc, "resize")), "spec: Forbidden: only cpu and memory resources are mutable\n");
}

TEST(PodResize, IsRefusedWhereNobodyCanDoIt) {
  Value old = running();
  json::set(old, {"metadata", "annotations"}, json::Object{{"kubernetes.io/config.mirror", "x"}});
  Value doc = old;
  EXPECT_NE(texts(update(old, doc, "resize")).find("static pods cannot be resized"), std::string::npos);
  old = running();
  json::set(old, {"status", "containerStatuses"},
            json::Array{json::Object{{"name", "c"}, {"state", json::Object{{"running", json::Object()}}}}});
  doc = old;
  EXPECT_EQ(texts(update(old, doc, "resize")), "spec: Forbidden: Pod running on node without support for resize\n");
}

/// Whatever init containers are, and the pod as a whole: what a node can do is for it to declare.
TEST(PodResize, MovesInitContainersAndThePodsOwnResources) {
  Value old = running();
  json::set(old, {"spec", "initContainers"}, json::Array{json::Object{{"name", "i"}, {"image", "i"}}});
  Value doc = old;
  json::set(doc.at("spec").at("initContainers").at(0), {"resources", "requests", "cpu"}, "1");
  EXPECT_EQ(texts(update(old, doc, "resize")).find("Forbidden"), std::string::npos) << texts(update(old, doc, "resize"));
  old = running();
  json::set(old, {"spec", "resources"},
            *json::parse(R"({"requests":{"cpu":"1","memory":"1Gi","hugepages-2Mi":"4Mi"},"limits":{"cpu":"2","hugepages-2Mi":"4Mi"}})"));
  doc = old;
  json::set(doc, {"spec", "resources", "limits", "cpu"}, "3");
  EXPECT_EQ(texts(update(old, doc, "resize")).find("Forbidden"), std::string::npos) << texts(update(old, doc, "resize"));
  EXPECT_EQ(json::get_string(doc, {"spec", "resources", "limits", "cpu"}), "3") << "it is taken over";
  doc = old;
  json::set(doc, {"spec", "resources"},
            *json::parse(R"({"requests":{"cpu":"1","hugepages-2Mi":"8Mi"},"limits":{"cpu":"2","hugepages-2Mi":"8Mi"}})"));
  const std::string refused = texts(update(old, doc, "resize"));
  EXPECT_NE(refused.find("spec.resources.requests: Forbidden: resource requests cannot be removed\n"), std::string::npos) << refused;
  EXPECT_NE(refused.find("spec: Forbidden: only cpu and memory resources are mutable\n"), std::string::npos) << refused;
}

TEST(PodEphemeralContainers, AreOnlyAdded) {
  const Value old = running();
  Value doc = old;
  json::set(doc, {"spec", "hostNetwork"}, true);
  json::set(doc, {"spec", "ephemeralContainers"},
            json::Array{json::Object{{"name", "debug"}, {"image", "busybox"}, {"targetContainerName", "c"}}});
  EXPECT_EQ(texts(update(old, doc, "ephemeralcontainers")), "");
  EXPECT_EQ(json::find(doc, {"spec", "hostNetwork"}), nullptr) << "only the list moves";
  const Value with_debugger = doc;
  json::erase(doc, {"spec", "ephemeralContainers"});
  EXPECT_EQ(texts(update(with_debugger, doc, "ephemeralcontainers")),
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"debug\" may not be removed\n\n");
  doc = with_debugger;
  doc.at("spec").at("ephemeralContainers").at(0).get_object()["image"] = "other";
  EXPECT_EQ(texts(update(with_debugger, doc, "ephemeralcontainers")),
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"debug\" may not be changed\n\n");
}

TEST(PodEphemeralContainers, HaveNoPortsProbesOrResources) {
  const Value old = running();
  Value doc = old;
  json::set(
      doc, {"spec", "ephemeralContainers"},
      json::Array{json::Object{{"name", "c"}, {"ports", json::Array{json::Object{{"containerPort", 1}}}}, {"targetContainerName", "x"}}});
  EXPECT_EQ(texts(update(old, doc, "ephemeralcontainers")),
            "spec.ephemeralContainers[0].image: Required value\n"
            "spec.ephemeralContainers[0].name: Duplicate value: \"c\"\n"
            "spec.ephemeralContainers[0].targetContainerName: Not found: \"x\"\n"
            "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container\n");
}

}  // namespace
}  // namespace berth::model
