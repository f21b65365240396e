#include "model/protobuf/protobuf.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;
using namespace std::string_view_literals;

json::Value sample(const TypeRef& ref, int salt, int depth);

/// A document with every field of the type, down to a depth where types that hold themselves end.
json::Value sample_object(const TypeDef& type, int salt, int depth) {
  json::Object out;
  for (const FieldDef& field : type.fields) {
    if (field.proto.empty() || (depth > 7 && !field.required && field.ref.kind != Kind::kString)) continue;
    out[field.name] = sample(field.ref, ++salt, depth + 1);
  }
  return out;
}

json::Value sample(const TypeRef& ref, int salt, int depth) {
  switch (ref.kind) {
    case Kind::kString:
      return json::Value(fmt::format("text {} \"\\\n\u00e9", salt));
    case Kind::kInt32:
    case Kind::kInt64:
      return salt % 3 == 0 ? -salt : salt * 1000;
    case Kind::kDouble:
      return 0.5 + salt;
    case Kind::kBool:
      return true;
    case Kind::kQuantity:
      return json::Value(fmt::format("{}m", salt));
    case Kind::kTime:
      return "2026-01-02T03:04:05Z";
    case Kind::kMicroTime:
      return "2026-01-02T03:04:05.000678Z";
    case Kind::kBytes:
      return json::Value(base64_encode(fmt::format("bytes {}", salt)));
    case Kind::kIntOrString:
      return salt % 2 == 0 ? json::Value(salt) : json::Value("50%");
    case Kind::kStruct:
      return sample_object(*ref.type, salt, depth);
    case Kind::kAny:
      if (ref.type != nullptr) return json::Object{{"type", fmt::format("text {}", salt)}};
      return json::Object{{"f:a", json::Object{{"b", salt}}}};
    case Kind::kList:
      return json::Array{sample(*ref.element, salt, depth), sample(*ref.element, salt + 1, depth)};
    case Kind::kMap:
      return json::Object{{"z", sample(*ref.element, salt, depth)}, {"a/b", sample(*ref.element, salt + 1, depth)}};
  }
  return nullptr;
}

TEST(Protobuf, EveryKindComesBackAsItWent) {
  int kinds = 0;
  for (const KindInfo& info : all_kinds()) {
    if (!has_protobuf(info)) continue;
    ++kinds;
    json::Value document = sample_object(*type_of(info), 0, 0);
    document.get_object()["apiVersion"] = info.api_version();
    document.get_object()["kind"] = info.kind;
    const auto body = encode_protobuf(document);
    ASSERT_TRUE(body.has_value()) << info.kind;
    const auto back = decode_protobuf(*body);
    ASSERT_TRUE(back.has_value()) << info.kind << ": " << back.error().message;
    EXPECT_TRUE(json::equal(document, *back)) << info.kind << "\n" << json::serialize(document) << "\n" << json::serialize(*back);
  }
  EXPECT_GT(kinds, 60);
}

TEST(Protobuf, KindsWithoutNumbersHaveNone) {
  EXPECT_FALSE(has_protobuf(*find_kind("machine.openshift.io", "v1beta1", "MachineSet")));
  EXPECT_TRUE(has_protobuf(*find_kind("apiregistration.k8s.io", "v1", "APIService")));
  EXPECT_EQ(encode_protobuf(json::parse(R"({"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineSet"})").value()), std::nullopt);
  EXPECT_EQ(encode_protobuf(json::parse(R"({"apiVersion":"meta.k8s.io/v1","kind":"Table"})").value()), std::nullopt);
}

TEST(Protobuf, ZerosThatSayNothingGoAndOthersStay) {
  const auto document =
      json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","generation":0,"deletionGracePeriodSeconds":0},)"
                  R"("spec":{"nodeName":"","automountServiceAccountToken":false,"hostNetwork":false,"terminationGracePeriodSeconds":0,)"
                  R"("containers":[{"name":"","stdin":false,"securityContext":{"privileged":false,"runAsUser":0}}]}})")
          .value();
  const auto back = decode_protobuf(encode_protobuf(document).value());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(json::serialize(*back),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","deletionGracePeriodSeconds":0},)"
            R"("spec":{"containers":[{"name":"","securityContext":{"privileged":false,"runAsUser":0}}],"terminationGracePeriodSeconds":0,)"
            R"("automountServiceAccountToken":false}})");
}

TEST(Protobuf, UnknownFieldsNullsAndWrongTypesAreLeftOut) {
  const auto document =
      json::parse(
          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5,"namespace":"b","creationTimestamp":null,"x":[1,{"y":"}"}]},)"
          R"("data":["no"],"more":{"deep":[{}]}})")
          .value();
  const auto back = decode_protobuf(encode_protobuf(document).value());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(json::serialize(*back), R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"b"}})");
}

TEST(Protobuf, BytesAreThoseOfGo) {
  const auto body = encode_protobuf(
      json::parse(R"({"apiVersion":"v1","kind":"ConfigMap","data":{"b":"2","a":"1"},"metadata":{"uid":"u","name":"n"}})").value());
  ASSERT_TRUE(body.has_value());
  // Ascending field numbers, maps by key, the envelope's empty texts at the end.
  EXPECT_EQ(*body,
            "k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
            "ConfigMap\x12\x18\x0a\x06\x0a\x01n\x2a\x01u\x12\x06\x0a\x01"
            "a\x12\x01"
            "1\x12\x06\x0a\x01"
            "b\x12\x01"
            "2\x1a\0\x22\0"sv);
}

TEST(Protobuf, LongMessagesHaveLongLengths) {
  const std::string text(70'000, 'x');
  const json::Value document = json::Object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", json::Object{{text, text}, {"a", text}}}};
  const auto back = decode_protobuf(encode_protobuf(document).value());
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(json::equal(document, *back));
}

TEST(Protobuf, AWatchFrameHasItsLengthBeforeIt) {
  std::string out;
  append_watch_frame(out, "ADDED", "body");
  EXPECT_EQ(out,
            "\0\0\0\x0f\x0a\x05"
            "ADDED\x12\x06\x0a\x04"
            "body"sv);
}

TEST(Protobuf, MalformedTextIsRefused) {
  const TypeDef& type = *find_type("core.v1.Pod");
  for (const std::string_view text :
       {"", "{", "[]", R"({"metadata")", R"({"metadata":{"name":"a)", R"({"metadata":{}} x)", R"({"spec":{"containers":[}})"}) {
    std::string out;
    EXPECT_FALSE(encode_message(type, text, out)) << text;
  }
}

/// client-go sends CustomResourceDefinitions in protobuf: where JSON has a schema, a boolean or a list, the message says which.
TEST(Protobuf, CustomResourceDefinitionsComeBackAsTheyWere) {
  const auto document =
      json::parse(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},
    "spec":{"group":"example.com","names":{"kind":"Foo","plural":"foos"},"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,
    "subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},
    "b":{"type":"object","additionalProperties":{"type":"integer","minimum":0.5,"default":3}},"c":{"type":"object","additionalProperties":true},
    "d":{"enum":["x",1,null,{"y":[2]}]},"e":{"type":"array","items":[{"type":"string"},{"type":"boolean"}]},"f":{"additionalItems":false},
    "g":{"x-kubernetes-preserve-unknown-fields":true,"maxLength":0}}}}}]}})");
  ASSERT_TRUE(document);
  const auto encoded = encode_protobuf(*document);
  ASSERT_TRUE(encoded);
  const auto decoded = decode_protobuf(*encoded);
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto schema = [](const json::Value& from) {
    return json::find(json::get_array(from, {"spec", "versions"})[0], {"schema", "openAPIV3Schema", "properties"});
  };
  ASSERT_NE(schema(*decoded), nullptr);
  EXPECT_TRUE(json::equal(*schema(*decoded), *schema(*document))) << json::serialize(*schema(*decoded));
  EXPECT_NE(json::find(json::get_array(*decoded, {"spec", "versions"})[0], {"subresources", "status"}), nullptr);
}

}  // namespace
}  // namespace berth::model
