// What the dashboard keeps of an object: its identity and its row.
#include "dashboard/slim.h"

#include <gtest/gtest.h>

#include "client/watch_decoder.h"

namespace berth::dashboard::testing {
namespace {

std::string pod(std::string_view name) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"shop","uid":"u-1","resourceVersion":"7","managedFields":[{{"manager":"m","fieldsV1":{{"f:spec":{{}}}}}}]}},"spec":{{"nodeName":"n1","containers":[{{"name":"c","image":"i","env":[{{"name":"A","value":"B"}}]}}]}},"status":{{"phase":"Running"}}}})",
      name);
}

/// Answers every list with `body` and every watch with `chunks`.
class Canned final : public client::Transport {
 public:
  void send(net::HttpRequest, std::function<void(net::HttpResponse)> done) override { done({status, {}, body}); }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest, net::StreamCallbacks callbacks) override {
    callbacks.on_header(status, {});
    for (const auto& chunk : chunks) callbacks.on_data(chunk);
    return nullptr;
  }
  void upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)>) override {}
  int status = 200;
  std::string body;
  std::vector<std::string> chunks;
};

std::string watched(const std::shared_ptr<Canned>& canned) {
  std::string out;
  net::StreamCallbacks callbacks;
  callbacks.on_data = [&](std::string_view data) { out += data; };
  (void)with_slim_objects(canned, RowKind::kPod)->stream({}, std::move(callbacks));
  return out;
}

TEST(SlimObjects, KeepIdentityAndRowAlone) {
  const auto slim = slim_object(RowKind::kPod, pod("web-1"));
  const auto document = json::parse(slim);
  ASSERT_TRUE(document);
  EXPECT_EQ(json::serialize(*json::find(*document, "metadata")),
            R"({"name":"web-1","namespace":"shop","uid":"u-1","resourceVersion":"7"})");
  EXPECT_EQ(std::string(row_in(slim)), json::serialize(row_of(RowKind::kPod, *json::parse(pod("web-1")))));
  EXPECT_EQ(slim.find("managedFields"), std::string::npos);
  EXPECT_EQ(slim.find("env"), std::string::npos);
}

TEST(SlimObjects, OfAListAreReadAsTheListWas) {
  const auto canned = std::make_shared<Canned>();
  canned->body =
      fmt::format(R"({{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9","continue":"more"}},"items":[{},{}]}})",
                  pod("web-1"), pod("web-2"));
  net::HttpResponse answer;
  with_slim_objects(canned, RowKind::kPod)->send({}, [&](net::HttpResponse response) { answer = std::move(response); });
  const auto page = client::decode_list(answer.body);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->continue_token, "more");
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[1]->name(), "web-2");
  EXPECT_EQ(page->objects[1]->revision(), 7);
  EXPECT_NE(row_in(page->objects[1]->text().here()).find(R"("node":"n1")"), std::string_view::npos);
}

TEST(SlimObjects, OfAWatchComeWholeHoweverTheyAreCut) {
  const std::string bookmark = R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"8"}}})";
  const std::string text =
      fmt::format("{{\"type\":\"ADDED\",\"object\":{}}}\n{}\n{{\"type\":\"DELETED\",\"object\":{}}}\n", pod("a"), bookmark, pod("b"));
  const auto whole = std::make_shared<Canned>();
  whole->chunks = {text};
  const auto expected = watched(whole);
  EXPECT_NE(expected.find(bookmark + "\n"), std::string::npos);
  EXPECT_EQ(std::ranges::count(expected, '\n'), 3);
  const auto cut = std::make_shared<Canned>();
  for (const char c : text) cut->chunks.emplace_back(1, c);
  EXPECT_EQ(watched(cut), expected);
}

TEST(SlimObjects, LeaveErrorsAsTheyAre) {
  const auto canned = std::make_shared<Canned>();
  canned->status = 403;
  canned->body = R"({"kind":"Status","message":"no"})";
  canned->chunks = {canned->body};
  EXPECT_EQ(watched(canned), canned->body);
  net::HttpResponse answer;
  with_slim_objects(canned, RowKind::kPod)->send({}, [&](net::HttpResponse response) { answer = std::move(response); });
  EXPECT_EQ(answer.body, canned->body);
  EXPECT_EQ(slim_object(RowKind::kPod, "not json"), "not json");
}

}  // namespace
}  // namespace berth::dashboard::testing
