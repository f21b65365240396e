// A part of a stored object as a document: what else there is stays as it stands, byte for byte.
#include "apiserver/cache/object_part.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::apiserver {
namespace {

ObjectPtr stored(std::string text) {
  const auto meta = extract_meta("//pods/default/p", text, std::chrono::hours(1));
  return std::make_shared<const StoredObject>("//pods/default/p", make_bytes(std::move(text)), 7, 7, meta);
}

Take some(std::string_view parent, std::string_view key) {
  if (parent.empty()) return key == "metadata" || key == "spec" || key == "status" ? Take::kMembers : Take::kNot;
  return key == "labels" || key == "nodeName" || key == "phase" ? Take::kWhole : Take::kNot;
}

constexpr const char* kText =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u","resourceVersion":"7","labels":{"a":"b"},"managedFields":[{"x":"}\""}]},)"
    R"("spec":{"args":["\u00e4 , }"],"n\u0061me":1,"nodeName":"n"},"status":{"phase":"Pending"},"more":[1.50]})";

TEST(ObjectPart, IsWhatWasChosen) {
  const ObjectPart part(stored(kText), some);
  EXPECT_EQ(json::serialize(part.document()), R"({"metadata":{"labels":{"a":"b"}},"spec":{"nodeName":"n"},"status":{"phase":"Pending"}})");
  EXPECT_EQ(part.rest("", "more"), "[1.50]");
  EXPECT_EQ(part.rest("spec", "args"), R"(["\u00e4 , }"])");
  EXPECT_EQ(part.rest("spec", "nodeName"), "") << "which was taken";
  EXPECT_EQ(part.rest("nothing", "args"), "");
  EXPECT_EQ(part.owners(), R"([{"x":"}\""}])");
}

TEST(ObjectPart, WhatIsWrittenStandsInItsPlaceBetweenTheOldBytes) {
  ObjectPart part(stored(kText), some);
  auto document = part.document();
  json::set(document, {"spec", "nodeName"}, json::Value("m"));
  json::set(document, {"spec", "new"}, json::Value(true));
  json::erase(document, {"status", "phase"});
  json::set(document, {"other", "x"}, json::Value(1));
  auto written = part.encode(document);
  EXPECT_EQ(
      written.value,
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u","resourceVersion":"","labels":{"a":"b"},"managedFields":[{"x":"}\""}]},)"
      R"("spec":{"args":["\u00e4 , }"],"n\u0061me":1,"nodeName":"m","new":true},"status":{},"more":[1.50],"other":{"x":1}})");
  written.value.insert(written.revision_offset, "8");
  EXPECT_NE(written.value.find(R"("resourceVersion":"8",)"), std::string::npos);
  part.set_owners("");
  EXPECT_EQ(part.encode(document).value.find("managedFields"), std::string::npos);
}

TEST(ObjectPart, AnObjectWithoutRevisionOrOwnersGetsThem) {
  ObjectPart part(stored(R"({"metadata":{"name":"p"}})"), some);
  part.set_owners("[1]");
  EXPECT_EQ(part.encode(part.document()).value, R"({"metadata":{"name":"p","resourceVersion":"","managedFields":[1]}})");
}

TEST(ObjectPart, LeavesOutWhatIsNotOfIt) {
  const ObjectPart part(stored(kText), some);
  json::Value document =
      *json::parse(R"({"kind":"Pod","metadata":{"labels":{},"name":"q"},"spec":{"args":[],"nodeName":"n"},"status":"odd"})");
  part.leave(document);
  EXPECT_EQ(json::serialize(document), R"({"metadata":{"labels":{}},"spec":{"nodeName":"n"},"status":"odd"})");
}

TEST(ObjectPart, SelectorsSeeTheRestAsItWas) {
  const auto& pods = *model::find_kind("", "v1", "Pod");
  const std::string text =
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","uid":"u","resourceVersion":"7","labels":{"a":"b"}},"spec":{"nodeName":"n","restartPolicy":"Never","schedulerName":"s"},"status":{"phase":"Pending","podIP":"10.0.0.1"}})";
  const auto object = stored(text);
  const ObjectPart part(object, [](std::string_view parent, std::string_view key) {
    if (parent.empty()) return Take::kMembers;
    return key == "nodeName" || key == "phase" ? Take::kWhole : Take::kNot;
  });
  auto document = part.document();
  json::set(document, {"spec", "nodeName"}, json::Value("m"));
  json::erase(document, {"status", "phase"});
  const auto meta = part.meta(pods, document);
  const auto field = [&](std::string_view path) {
    for (const auto& [name, value] : meta.fields)
      if (name == path) return value;
    return std::string();
  };
  EXPECT_EQ(meta.name + meta.ns + meta.uid, "pdefaultu");
  EXPECT_EQ(meta.labels, object->meta.labels());
  EXPECT_EQ(field("spec.nodeName"), "m");
  EXPECT_EQ(field("spec.restartPolicy"), "Never");
  EXPECT_EQ(field("spec.schedulerName"), "s");
  EXPECT_EQ(field("status.podIP"), "10.0.0.1");
  EXPECT_EQ(field("status.phase"), "") << "which was of the part, and is gone";
}

}  // namespace
}  // namespace berth::apiserver
