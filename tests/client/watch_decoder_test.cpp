#include "client/watch_decoder.h"

#include <gtest/gtest.h>

namespace berth::client::test {
namespace {

using Type = WatchEvent::Type;

const std::string kPod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"web","uid":"u","resourceVersion":"42","labels":{"app":"x","b":"\"}"},"deletionTimestamp":"2026-01-02T03:04:05Z","ownerReferences":[{"kind":"Job","name":"j","uid":"u0"},{"controller":true,"kind":"ReplicaSet","name":"rs","uid":"u1"}]},"spec":{"x":"]}"}})";

TEST(Object, ReadsItsMetadata) {
  const Object object{kPod};
  EXPECT_EQ(object.key(), "web/a");
  EXPECT_EQ(object.uid(), "u");
  EXPECT_EQ(object.revision(), 42);
  EXPECT_TRUE(object.is_deleting());
  EXPECT_EQ(object.controller_kind(), "ReplicaSet");
  EXPECT_EQ(object.controller_name(), "rs");
  EXPECT_EQ(object.controller_uid(), "u1");
  EXPECT_EQ(*object.labels().get("b"), "\"}");
  EXPECT_EQ(json::get_string(object.document(), {"spec", "x"}), "]}");
}

TEST(Object, IsReadWithoutTheOwnersOfItsFields) {
  for (const std::string owners : {"", R"(,"managedFields":[])", R"(,"managedFields":[{"fieldsV1":{"f:spec":{"f:\"}]":{}}}}])"}) {
    const Object object{R"({"metadata":{"name":"a")" + owners + R"(,"uid":"u"},"spec":{"managedFields":[1]}})"};
    EXPECT_EQ(json::serialize(*object.parsed()), R"({"metadata":{"name":"a","uid":"u"},"spec":{"managedFields":[1]}})");
    EXPECT_EQ(json::serialize(object.document()), object.text().here()) << "to be written it is whole";
    EXPECT_EQ(object.parsed(), object.parsed());
  }
  EXPECT_TRUE(Object{std::string("{\"metadata\":")}.parsed()->is_null());
}

TEST(Object, NullsAndOddTypesAreAbsent) {
  const Object object{std::string(
      R"({"metadata":{"name":"a","namespace":null,"labels":null,"ownerReferences":null,"deletionTimestamp":null,"resourceVersion":"abc"}})")};
  EXPECT_EQ(object.key(), "a");
  EXPECT_FALSE(object.is_deleting());
  EXPECT_EQ(object.revision(), 0);
  EXPECT_TRUE(object.labels().empty());
  EXPECT_TRUE(Object{std::string("{\"metadata\":")}.name().empty());
}

TEST(WatchDecoder, TakesLinesHoweverTheyArrive) {
  const auto stream = R"({"type":"ADDED","object":)" + kPod + "}\n" + R"( { "object" : )" + kPod + R"( , "type" : "DELETED" } )" +
                      "\r\n\n" + R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"50"}}})" + "\n" +
                      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})" + "\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    WatchDecoder decoder;
    std::deque<WatchEvent> events;
    for (std::size_t at = 0; at < stream.size(); at += step) ASSERT_TRUE(decoder.feed(std::string_view(stream).substr(at, step), events));
    ASSERT_EQ(events.size(), 4U);
    EXPECT_EQ(events[0].type, Type::kAdded);
    EXPECT_EQ(events[0].object->text().here(), kPod);
    EXPECT_EQ(events[1].type, Type::kDeleted);
    EXPECT_EQ(events[1].object->name(), "a");
    EXPECT_EQ(events[2].type, Type::kBookmark);
    EXPECT_EQ(events[2].object->revision(), 50);
    EXPECT_EQ(events[3].status.code, 410);
    EXPECT_EQ(events[3].status.reason, "Expired");
  }
}

TEST(WatchDecoder, EventsThatTwoWatchesTakeInGroupsAreOneObjectEach) {
  std::vector<KeptTextRef> stored;
  for (int i = 0; i < 100; ++i)
    stored.push_back(std::make_shared<const KeptText>(fmt::format(R"({{"metadata":{{"name":"p{}","resourceVersion":"{}"}}}})", i, i + 1)));
  std::deque<WatchEvent> one, other;
  for (const KeptTextRef& object : stored) ASSERT_TRUE(WatchDecoder::take("ADDED", object, one));
  for (const KeptTextRef& object : stored) ASSERT_TRUE(WatchDecoder::take("MODIFIED", object, other));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    EXPECT_EQ(one[i].object, other[i].object) << i;
    EXPECT_EQ(one[i].object->kept(), stored[i]) << "the server's text, not a copy";
    EXPECT_EQ(one[i].object->name(), fmt::format("p{}", i));
  }
  EXPECT_EQ(other[0].type, Type::kModified);
  EXPECT_FALSE(WatchDecoder::take("LOST", stored[0], other));
}

TEST(WatchDecoder, AnObjectIsTheSameForAWatchThatComesLongAfter) {
  const auto stored = std::make_shared<const KeptText>(std::string(R"({"metadata":{"name":"a","resourceVersion":"1"}})"));
  std::deque<WatchEvent> one, others, late;
  ASSERT_TRUE(WatchDecoder::take("ADDED", stored, one));
  for (int i = 0; i < 10'000; ++i)
    ASSERT_TRUE(WatchDecoder::take("ADDED", std::make_shared<const KeptText>(std::string(R"({"metadata":{"name":"b"}})")), others));
  ASSERT_TRUE(WatchDecoder::take("ADDED", stored, late));
  EXPECT_EQ(one[0].object, late[0].object);
}

TEST(WatchDecoder, AnObjectThatNobodyKeepsIsMadeAnewAndHeldByNoText) {
  const auto stored = std::make_shared<const KeptText>(std::string(R"({"metadata":{"name":"a","resourceVersion":"1"}})"));
  std::weak_ptr<const Object> first = share_object(stored);
  EXPECT_TRUE(first.expired());
  const ObjectRef second = share_object(stored);
  EXPECT_EQ(second->name(), "a");
  EXPECT_EQ(share_object(stored), second);
  EXPECT_EQ(stored.use_count(), 2) << "the text's and the object's; no circle";
}

TEST(WatchDecoder, WhatObjectsOfAWorkloadHaveAlikeIsThereOnce) {
  const auto pod = [](std::string_view name, std::string_view owner, std::string_view app) {
    return Object(fmt::format(R"({{"metadata":{{"name":"{}","namespace":"web","uid":"u-{}","labels":{{"app":"{}"}},)"
                              R"("ownerReferences":[{{"kind":"ReplicaSet","name":"rs","uid":"{}","controller":true}}]}}}})",
                              name, name, app, owner));
  };
  const Object a = pod("a", "rs-1", "x"), b = pod("b", "rs-1", "x"), other = pod("c", "rs-2", "x"), relabelled = pod("d", "rs-1", "y");
  EXPECT_EQ(&a.labels(), &b.labels());
  EXPECT_NE(&a.labels(), &other.labels());
  EXPECT_EQ(a.labels(), other.labels());
  EXPECT_EQ(b.key(), "web/b");
  EXPECT_EQ(b.uid(), "u-b");
  EXPECT_EQ(b.controller_uid(), "rs-1");
  EXPECT_EQ(other.controller_uid(), "rs-2");
  EXPECT_EQ(other.controller_name(), "rs");
  EXPECT_EQ(*relabelled.labels().get("app"), "y");
  EXPECT_TRUE(Object(std::string("no object")).labels().empty());
}

TEST(WatchDecoder, WhatIsNoWatchIsRefused) {
  for (const std::string_view line : {"garbage\n", "{}\n", "[]\n",
                                      R"({"type":"ADDED"})"
                                      "\n",
                                      R"({"type":"ADDED","object":7})"
                                      "\n",
                                      R"({"type":"NEW","object":{"metadata":{"name":"a"}}})"
                                      "\n",
                                      R"({"type":"ADDED","object":{"metadata":{}}})"
                                      "\n"}) {
    WatchDecoder decoder;
    std::deque<WatchEvent> events;
    EXPECT_FALSE(decoder.feed(line, events)) << line;
  }
}

TEST(ListDecoder, ItemsGetTheListsKind) {
  const auto page = decode_list(
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"t"},"items":[{"metadata":{"name":"a"}},{"kind":"Odd","metadata":{"name":"b"}}]})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0]->text().here(), R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}})");
  EXPECT_EQ(page->objects[1]->text().here(), R"({"kind":"Odd","metadata":{"name":"b"}})");
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->continue_token, "t");
  EXPECT_TRUE(decode_list(R"({"kind":"PodList","items":null,"metadata":{}})")->objects.empty());
  EXPECT_FALSE(decode_list("nonsense"));
  EXPECT_FALSE(decode_list(R"({"items":{}})"));
}

}  // namespace
}  // namespace berth::client::test
