// Keys and bytes that kube-apiserver shares with us (docs/etcd.md).
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "apiserver/etcd/stored_form.h"
#include "model/protobuf/protobuf.h"
#include "model/protobuf/reader.h"

namespace berth::apiserver::etcd {
namespace {

EncodedObject object_of(const char* text) { return encode_object(*json::parse(text)); }

TEST(EtcdKeys, AreKubernetesOwn) {
  const StoredForm form({});
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {make_key("", "pods", "default", "web"), "/registry/pods/default/web"},
      {make_key("", "nodes", "", "n1"), "/registry/minions/n1"},
      {make_key("", "services", "default", "web"), "/registry/services/specs/default/web"},
      {make_key("", "endpoints", "default", "web"), "/registry/services/endpoints/default/web"},
      {make_key("", "replicationcontrollers", "default", "rc"), "/registry/controllers/default/rc"},
      {make_key("", "namespaces", "", "default"), "/registry/namespaces/default"},
      {make_key("apps", "deployments", "default", "web"), "/registry/deployments/default/web"},
      {make_key("networking.k8s.io", "ingresses", "default", "i"), "/registry/ingress/default/i"},
      {make_key("rbac.authorization.k8s.io", "clusterroles", "", "system:node"), "/registry/clusterroles/system:node"},
      {make_key("coordination.k8s.io", "leases", "kube-system", "l"), "/registry/leases/kube-system/l"},
      {make_key("apiregistration.k8s.io", "apiservices", "", "v1."), "/registry/apiregistration.k8s.io/apiservices/v1."},
      {make_key("machine.openshift.io", "machines", "m", "a"), "/registry/machine.openshift.io/machines/m/a"},
      {make_key("example.com", "widgets", "default", "w"), "/registry/example.com/widgets/default/w"},
      {make_key("example.com", "planets", "", "mars"), "/registry/example.com/planets/mars"}};
  for (const auto& [cache, stored] : pairs) {
    EXPECT_EQ(form.stored_key(cache), stored);
    EXPECT_EQ(form.cache_key(stored), std::optional(cache)) << stored;
  }
}

TEST(EtcdKeys, OfNobodyAreLeftAlone) {
  const StoredForm form({});
  for (const char* key : {"/registry/unknown/default/x", "/registry/pods/default", "/registry/pods/a/b/c", "/registry/minions/a/b",
                          "/registry/ranges/serviceips", "/registry/masterleases/10.0.0.1", "/registry/berth.dev/cluster",
                          "/registry/berth.dev/fence/1", "/other/pods/a/b", "/registry", "compact_rev_key"})
    EXPECT_EQ(form.cache_key(key), std::nullopt) << key;
}

TEST(EtcdBytes, ProtobufAndBack) {
  const StoredForm form({});
  const auto key = make_key("", "configmaps", "default", "c");
  const auto object =
      object_of(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default","uid":"u"},"data":{"a":"b"}})");
  const auto stored = form.to_stored(key, "/registry/configmaps/default/c", object);
  ASSERT_TRUE(stored.has_value());
  EXPECT_TRUE((*stored)->starts_with(std::string_view("k8s\0", 4)));
  const auto text = form.to_text(key, "/registry/configmaps/default/c", **stored);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(text->value, object.value);
  EXPECT_EQ(text->revision_offset, object.revision_offset);
}

TEST(EtcdBytes, JsonCarriesNoRevision) {
  FormOptions options;
  options.writes_protobuf = false;
  const StoredForm form(options);
  const auto key = make_key("", "configmaps", "default", "c");
  for (const char* text : {R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"a":"b"}})",
                           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"a":"b"}}})",
                           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{}})"}) {
    const auto object = object_of(text);
    const auto stored = form.to_stored(key, "/registry/configmaps/default/c", object);
    ASSERT_TRUE(stored.has_value());
    const auto plain = json::serialize(*json::parse(text));
    EXPECT_TRUE((*stored)->starts_with(plain)) << **stored;
    EXPECT_EQ((*stored)->find_first_not_of(" \t\r\n", plain.size()), std::string::npos);
    const auto back = form.to_text(key, "/registry/configmaps/default/c", **stored);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->value, object.value);
  }
}

TEST(EtcdBytes, NoTwoWritesAreAlike) {
  for (const bool writes_protobuf : {true, false}) {
    FormOptions options;
    options.writes_protobuf = writes_protobuf;
    const StoredForm one(options), other(options);
    const auto key = make_key("", "configmaps", "default", "c");
    const auto object =
        object_of(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"n":"7"}})");
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i)
      for (const StoredForm* form : {&one, &other}) {
        const auto stored = form->to_stored(key, "/registry/configmaps/default/c", object);
        ASSERT_TRUE(stored.has_value());
        EXPECT_TRUE(seen.insert(**stored).second);
        EXPECT_EQ(form->to_text(key, "/registry/configmaps/default/c", **stored)->value, object.value);
      }
  }
}

TEST(EtcdBytes, OlderTwinsAreReadOthersAreNot) {
  const StoredForm form({});
  const auto budget = [](std::string_view version) {
    std::string body = *model::encode_protobuf(*json::parse(
        R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"default"},"spec":{"minAvailable":1}})"));
    std::string type, out("k8s\0", 4), inner(body.substr(4));
    wire::append_field(type, 1, version);
    wire::append_field(type, 2, "PodDisruptionBudget");
    wire::append_field(out, 1, type);
    // Behind the first field, the type, of two bytes of head.
    out += inner.substr(2 + static_cast<unsigned char>(inner[1]));
    return out;
  };
  const auto key = make_key("policy", "poddisruptionbudgets", "default", "b");
  const auto read = form.to_text(key, "/registry/poddisruptionbudgets/default/b", budget("policy/v1beta1"));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_NE(read->value.find(R"("apiVersion":"policy/v1",)"), std::string::npos) << read->value;
  EXPECT_NE(read->value.find(R"("minAvailable":1)"), std::string::npos) << read->value;
  const auto unknown = form.to_text(key, "/registry/poddisruptionbudgets/default/b", budget("policy/v9"));
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
}

TEST(EtcdBytes, GarbageIsAnError) {
  const StoredForm form({});
  const auto key = make_key("", "pods", "default", "p");
  for (std::string_view garbage :
       {std::string_view("x"), std::string_view("k8s\0\xff\xff\xff", 7), std::string_view("[]"), std::string_view("k8s:enc:aesgcm:v1:k:…")})
    EXPECT_FALSE(form.to_text(key, "/registry/pods/default/p", garbage).has_value());
}

/// A body with a field added to its object's message, or (`path`) to a message in it.
std::string with_field(std::string_view body, std::vector<int> path, int number, std::string_view value) {
  const std::function<std::string(std::string_view, std::size_t)> rewrite = [&](std::string_view message, std::size_t level) {
    std::string out;
    if (level == path.size()) {
      out = std::string(message);
      wire::append_field(out, number, value);
      return out;
    }
    model::wire::Field field;
    for (model::wire::Reader reader(message); reader.next(field);) {
      if (field.number == path[level])
        wire::append_field(out, field.number, rewrite(field.bytes, level + 1));
      else
        out += field.whole;
    }
    return out;
  };
  path.insert(path.begin(), 2);
  return std::string(body.substr(0, 4)) + rewrite(body.substr(4), 0);
}

TEST(EtcdBytes, FieldsOfNewerServersSurviveAnUpdate) {
  const StoredForm form({});
  const std::string stored_key = "/registry/pods/default/p", key = make_key("", "pods", "default", "p");
  const std::string body = *model::encode_protobuf(*json::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","labels":{"a":"1"}},"spec":{"containers":[{"name":"one","image":"i"}],"volumes":[{"name":"v"}]}})"));
  // Of the pod, its spec, its container, and the volume's source, which JSON spreads into the volume.
  std::string newer = with_field(with_field(body, {}, 900, "pod"), {2}, 901, "spec");
  newer = with_field(newer, {2, 2}, 902, "container");
  std::string source;
  wire::append_field(source, 903, "source");
  newer = with_field(newer, {2, 1}, 2, source);
  Bytes foreign;
  const auto text = form.to_text(key, stored_key, newer, &foreign);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  ASSERT_NE(foreign, nullptr);
  auto document = *json::parse(text->value);
  document.at("metadata").at("labels").get_object()["a"] = "2";
  // Another container before the first one.
  auto& containers = document.at("spec").at("containers").get_array();
  containers.insert(containers.begin(), json::Value(json::Object{{"name", "zero"}, {"image", "j"}}));
  const auto written = form.to_stored(key, stored_key, encode_object(document), &foreign);
  ASSERT_TRUE(written.has_value());
  for (const char* kept : {"pod", "spec", "container", "source"}) EXPECT_NE((*written)->find(kept), std::string::npos) << kept;
  EXPECT_TRUE((*written)->starts_with(*foreign));
  const auto again = form.to_text(key, stored_key, **written);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  const auto seen = *json::parse(again->value);
  EXPECT_EQ(json::get_string(seen, {"metadata", "labels", "a"}), "2");
  EXPECT_EQ(json::get_array(seen, {"spec", "containers"}).size(), 2U);
  // With the container itself goes what was in it, and nothing else.
  containers.erase(containers.begin() + 1);
  const auto less = form.to_stored(key, stored_key, encode_object(document), &foreign);
  ASSERT_TRUE(less.has_value());
  EXPECT_EQ((*less)->find("container"), std::string::npos);
  EXPECT_NE((*less)->find("source"), std::string::npos);
}

TEST(EtcdBytes, WhatIsKnownWholeIsNotKeptBeside) {
  const StoredForm form({});
  Bytes foreign;
  const auto body =
      *model::encode_protobuf(*json::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}})"));
  ASSERT_TRUE(form.to_text(make_key("", "configmaps", "default", "c"), "/registry/configmaps/default/c", body, &foreign).has_value());
  EXPECT_EQ(foreign, nullptr);
}

TEST(EtcdBytes, DefinitionsOfV1beta1AreThoseOfV1) {
  const StoredForm form({});
  const auto text = form.to_text(
      make_key("apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.com"),
      "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
      R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","version":"v1","names":{"plural":"widgets","kind":"Widget"},"scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":[{"name":"Size","type":"integer","JSONPath":".spec.size"}],"versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://c"},"conversionReviewVersions":["v1"]},"preserveUnknownFields":false}})");
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const auto spec = json::parse(text->value)->at("spec");
  const auto& version = spec.at("versions").at(0);
  EXPECT_EQ(json::serialize(version.at("schema")), R"({"openAPIV3Schema":{"type":"object"}})");
  EXPECT_EQ(json::get_string(version.at("additionalPrinterColumns").at(0), {"jsonPath"}), ".spec.size");
  EXPECT_EQ(json::get_string(spec, {"conversion", "webhook", "clientConfig", "url"}), "https://c");
  for (const char* gone : {"version", "validation", "additionalPrinterColumns"}) EXPECT_FALSE(spec.get_object().contains(gone)) << gone;
}

}  // namespace
}  // namespace berth::apiserver::etcd
