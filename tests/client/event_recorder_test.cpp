#include "client/event_recorder.h"

#include <gtest/gtest.h>

namespace berth::client::test {
namespace {

using namespace std::chrono_literals;

/// Stores events by name; merges patches on the top level and in "series".
class EventServer final : public net::Handler {
 public:
  std::map<std::string, json::Value> events;
  std::vector<std::string> log;
  bool is_away = false;
  int refuse_status = 0;

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    log.push_back(request.method + " " + request.path);
    if (is_away) return writer->respond({.status = 0, .headers = {}, .body = "away"});
    if (refuse_status != 0) return writer->respond({.status = refuse_status, .headers = {}, .body = R"({"reason":"Forbidden"})"});
    auto body = json::parse(request.body).value();
    if (request.method == "POST") {
      const auto name = std::string(json::get_string(body, {"metadata", "name"}));
      events[name] = body;
      return writer->respond({.status = 201, .headers = {}, .body = request.body});
    }
    const auto name = request.path.substr(request.path.rfind('/') + 1);
    const auto found = events.find(name);
    if (found == events.end())
      return writer->respond({.status = 404, .headers = {}, .body = R"({"kind":"Status","reason":"NotFound","code":404})"});
    for (const auto& [key, value] : body.as_object()) found->second.as_object()[key] = value;
    writer->respond({.status = 200, .headers = {}, .body = json::serialize(found->second)});
  }

  [[nodiscard]] const json::Value& only() const { return events.begin()->second; }
};

class EventRecorderTest : public ::testing::Test {
 protected:
  std::unique_ptr<EventRecorder> make(EventRecorderOptions::Shape shape = EventRecorderOptions::Shape::kCore) {
    return std::make_unique<EventRecorder>(client, EventRecorderOptions{.shape = shape, .component = "kubelet", .host = "n1"});
  }
  VirtualLoop loop{*parse_rfc3339("2026-01-02T03:04:05Z")};
  EventServer server;
  Client client{make_in_process_transport(server, {}), &loop, "test"};
  ObjectReference pod{.api_version = "v1", .kind = "Pod", .ns = "web", .name = "a", .uid = "u1", .resource_version = "7"};
};

TEST_F(EventRecorderTest, WritesTheFieldsThatClientGoWrites) {
  const auto recorder = make();
  recorder->event(pod, "Normal", "Pulled", "image is there");
  loop.run_ready();
  ASSERT_EQ(server.events.size(), 1U);
  EXPECT_EQ(server.log.front(), "POST /api/v1/namespaces/web/events");
  const auto nanos = loop.now().time_since_epoch().count() * 1000;
  EXPECT_EQ(server.events.begin()->first, fmt::format("a.{:x}", nanos));
  const auto expected = json::parse(fmt::format(R"({{
    "kind":"Event","apiVersion":"v1","metadata":{{"name":"a.{:x}","namespace":"web"}},
    "involvedObject":{{"kind":"Pod","namespace":"web","name":"a","uid":"u1","apiVersion":"v1","resourceVersion":"7"}},
    "reason":"Pulled","message":"image is there","source":{{"component":"kubelet","host":"n1"}},
    "firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:05Z","count":1,"type":"Normal","eventTime":null,
    "reportingComponent":"kubelet","reportingInstance":"n1"}})",
                                                nanos))
                            .value();
  EXPECT_TRUE(json::equal(server.only(), expected)) << json::serialize(server.only());
}

TEST_F(EventRecorderTest, ClusterScopedObjectsHaveTheirEventsInDefault) {
  const auto recorder = make();
  recorder->event({.api_version = "v1", .kind = "Node", .name = "n1"}, "Normal", "Starting", "x");
  loop.run_ready();
  EXPECT_EQ(server.log.front(), "POST /api/v1/namespaces/default/events");
}

TEST_F(EventRecorderTest, TheSameAgainRaisesTheCount) {
  const auto recorder = make();
  for (int i = 0; i < 3; ++i) {
    recorder->event(pod, "Warning", "BackOff", "restarting");
    loop.run_for(10s);
  }
  ASSERT_EQ(server.events.size(), 1U);
  EXPECT_EQ(json::get_int(server.only(), {"count"}), 3);
  EXPECT_EQ(json::get_string(server.only(), {"firstTimestamp"}), "2026-01-02T03:04:05Z");
  EXPECT_EQ(json::get_string(server.only(), {"lastTimestamp"}), "2026-01-02T03:04:25Z");
  EXPECT_EQ(server.log[1].substr(0, 5), "PATCH");
}

TEST_F(EventRecorderTest, RepeatsInOneMomentAreWrittenInOrder) {
  const auto recorder = make();
  for (int i = 0; i < 5; ++i) recorder->event(pod, "Warning", "BackOff", "restarting");
  loop.run_ready();
  ASSERT_EQ(server.events.size(), 1U);
  EXPECT_EQ(json::get_int(server.only(), {"count"}), 5);
  EXPECT_EQ(recorder->pending(), 0U);
}

TEST_F(EventRecorderTest, AnEventThatExpiredOnTheServerIsMadeAnew) {
  const auto recorder = make();
  recorder->event(pod, "Warning", "BackOff", "restarting");
  loop.run_ready();
  server.events.clear();
  recorder->event(pod, "Warning", "BackOff", "restarting");
  loop.run_ready();
  ASSERT_EQ(server.events.size(), 1U);
  EXPECT_EQ(json::get_int(server.only(), {"count"}), 2);
}

TEST_F(EventRecorderTest, TenSimilarOnesBecomeOne) {
  const auto recorder = make();
  for (int i = 0; i < 15; ++i) {
    recorder->event(pod, "Warning", "FailedMount", fmt::format("volume {}", i));
    loop.run_for(1s);
  }
  EXPECT_EQ(server.events.size(), 10U) << "nine as they are, and one for the rest";
  int combined = 0;
  for (const auto& [name, event] : server.events) {
    if (!json::get_string(event, {"message"}).starts_with("(combined from similar events): ")) continue;
    ++combined;
    EXPECT_EQ(json::get_string(event, {"message"}), "(combined from similar events): volume 14");
    EXPECT_EQ(json::get_int(event, {"count"}), 6);
  }
  EXPECT_EQ(combined, 1);
}

TEST_F(EventRecorderTest, SimilarOnesFarApartStaySingle) {
  const auto recorder = make();
  for (int i = 0; i < 12; ++i) {
    recorder->event(pod, "Warning", "FailedMount", fmt::format("volume {}", i));
    loop.run_for(11min);
  }
  EXPECT_EQ(server.events.size(), 12U);
}

TEST_F(EventRecorderTest, SpamAboutOneObjectIsHeldBack) {
  const auto recorder = make();
  for (int i = 0; i < 40; ++i) recorder->event(pod, "Normal", fmt::format("Reason{}", i), "x");
  loop.run_ready();
  EXPECT_EQ(server.events.size(), 25U);
  auto other = pod;
  other.name = "b";
  recorder->event(other, "Normal", "Reason", "x");
  loop.run_ready();
  EXPECT_EQ(server.events.size(), 26U) << "other objects have their own measure";
  loop.run_for(5min);
  recorder->event(pod, "Normal", "Later", "x");
  recorder->event(pod, "Normal", "Later2", "x");
  loop.run_ready();
  EXPECT_EQ(server.events.size(), 27U);
}

TEST_F(EventRecorderTest, AServerThatIsAwayIsTriedAgain) {
  const auto recorder = make();
  server.is_away = true;
  recorder->event(pod, "Normal", "Pulled", "x");
  loop.run_for(30s);
  EXPECT_EQ(recorder->pending(), 1U);
  server.is_away = false;
  loop.run_for(15s);
  EXPECT_EQ(server.events.size(), 1U);
  EXPECT_EQ(recorder->pending(), 0U);
}

TEST_F(EventRecorderTest, WhatIsRefusedOrTooLateIsDropped) {
  const auto recorder = make();
  server.refuse_status = 403;
  recorder->event(pod, "Normal", "Pulled", "x");
  loop.run_ready();
  EXPECT_EQ(recorder->pending(), 0U);
  server.is_away = true;
  recorder->event(pod, "Normal", "Started", "x");
  loop.run_for(5min);
  EXPECT_EQ(recorder->pending(), 0U);
  EXPECT_EQ(server.log.size(), 1U + 12U);
}

TEST_F(EventRecorderTest, SeriesAreWrittenAtTheSecondEventAndAtTheirEnd) {
  const auto recorder = make(EventRecorderOptions::Shape::kEvents);
  for (int i = 0; i < 10; ++i) {
    recorder->event(pod, "Warning", "FailedScheduling", "0/3 nodes are available", "Scheduling");
    loop.run_for(1s);
  }
  ASSERT_EQ(server.events.size(), 1U);
  EXPECT_EQ(server.log.size(), 2U);
  EXPECT_EQ(server.log[0], "POST /apis/events.k8s.io/v1/namespaces/web/events");
  EXPECT_EQ(json::get_int(server.only(), {"series", "count"}), 2);
  EXPECT_EQ(json::get_string(server.only(), {"eventTime"}), "2026-01-02T03:04:05.000000Z");
  EXPECT_EQ(json::get_string(server.only(), {"reportingInstance"}), "kubelet-n1");
  EXPECT_EQ(json::get_string(server.only(), {"note"}), "0/3 nodes are available");
  loop.run_for(12min);
  EXPECT_EQ(json::get_int(server.only(), {"series", "count"}), 10);
  EXPECT_EQ(json::get_string(server.only(), {"series", "lastObservedTime"}), "2026-01-02T03:04:14.000000Z");
  recorder->event(pod, "Warning", "FailedScheduling", "again", "Scheduling");
  loop.run_ready();
  EXPECT_EQ(server.events.size(), 2U) << "a new series";
}

TEST_F(EventRecorderTest, LongNotesAreCut) {
  const auto recorder = make(EventRecorderOptions::Shape::kEvents);
  recorder->event(pod, "Warning", "FailedScheduling", std::string(3000, 'x'), "Scheduling");
  loop.run_ready();
  const auto note = json::get_string(server.only(), {"note"});
  EXPECT_EQ(note.size(), 1024U);
  EXPECT_TRUE(note.ends_with("x ..."));
}

TEST_F(EventRecorderTest, TooManyAreDroppedNotKept) {
  EventRecorder recorder(client, {.component = "x", .max_queued = 100});
  server.is_away = true;
  for (int i = 0; i < 500; ++i) {
    auto other = pod;
    other.name = fmt::format("p{}", i);
    recorder.event(other, "Normal", "Pulled", "x");
  }
  loop.run_ready();
  EXPECT_EQ(recorder.pending(), 100U);
  EXPECT_EQ(recorder.dropped(), 400U);
}

}  // namespace
}  // namespace berth::client::test
