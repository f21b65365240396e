#include "tests/apiserver/wrapped_cache.h"

namespace berth::apiserver::testing {

class ListWatch : public ServerTest {
 protected:
  std::vector<std::string> names(const json::Value& list) {
    std::vector<std::string> out;
    for (const auto& item : json::get_array(list, {"items"})) out.push_back(text(item, {"metadata", "name"}));
    return out;
  }
  std::vector<std::string> types(const Response& watch) {
    std::vector<std::string> out;
    for (const auto& event : watch->events()) out.push_back(text(event, {"type"}));
    return out;
  }
  std::string revision() { return text(read(kMaps), {"metadata", "resourceVersion"}); }
  using Names = std::vector<std::string>;
};

TEST_F(ListWatch, LabelSelectors) {
  create(kMaps, config_map("a", "{}", R"({"e":"prod","t":"x"})"));
  create(kMaps, config_map("b", "{}", R"({"e":"dev"})"));
  create(kMaps, config_map("c"));
  const std::vector<std::pair<std::string, Names>> cases = {{"e=prod", {"a"}},
                                                            {"e!=prod", {"b", "c"}},
                                                            {"e%20in%20(prod,dev)", {"a", "b"}},
                                                            {"e%20notin%20(prod)", {"b", "c"}},
                                                            {"e", {"a", "b"}},
                                                            {"!e", {"c"}},
                                                            {"e,t", {"a"}},
                                                            {"e==dev", {"b"}},
                                                            {"e=dev,t", {}}};
  for (const auto& [selector, expected] : cases)
    EXPECT_EQ(names(read(std::string(kMaps) + "?labelSelector=" + selector)), expected) << selector;
  EXPECT_STATUS(get(std::string(kMaps) + "?labelSelector=a%20in%20b"), 400, "BadRequest");
}

TEST_F(ListWatch, FieldSelectors) {
  create(kPods, pod("a"));
  create(kPods, pod("b", R"("nodeName":"n1")"));
  const auto select = [&](const std::string& selector) { return names(read("/api/v1/pods?fieldSelector=" + selector)); };
  EXPECT_EQ(select("metadata.name=a"), Names{"a"});
  EXPECT_EQ(select("spec.nodeName=n1"), Names{"b"});
  EXPECT_EQ(select("spec.nodeName="), Names{"a"});
  EXPECT_EQ(select("status.phase=Pending,metadata.name=a"), Names{"a"});
  EXPECT_EQ(select("status.phase!=Pending"), Names{});
  EXPECT_EQ(select("metadata.namespace=default,metadata.name=b"), Names{"b"});
  auto bad = get("/api/v1/pods?fieldSelector=spec.nope=1");
  EXPECT_STATUS(bad, 400, "BadRequest");
  EXPECT_NE(bad->body.find("field label not supported"), std::string::npos);
  EXPECT_STATUS(get(std::string(kMaps) + "?fieldSelector=data=1"), 400, "BadRequest");
}

TEST_F(ListWatch, PagesAreOneSnapshot) {
  for (int i = 0; i < 25; ++i) create(kMaps, config_map(fmt::format("c{:02}", i)));
  Names seen;
  std::string next, first_revision;
  int pages = 0;
  do {
    const auto page = read(std::string(kMaps) + "?limit=10" + (next.empty() ? "" : "&continue=" + next));
    for (const auto& name : names(page)) seen.push_back(name);
    if (pages++ == 0) {
      first_revision = text(page, {"metadata", "resourceVersion"});
      EXPECT_EQ(json::get_int(page, {"metadata", "remainingItemCount"}), 15);
      create(kMaps, config_map("c99"));
      remove(std::string(kMaps) + "/c24");
    }
    EXPECT_EQ(text(page, {"metadata", "resourceVersion"}), first_revision);
    next = text(page, {"metadata", "continue"});
  } while (!next.empty());
  EXPECT_EQ(pages, 3);
  ASSERT_EQ(seen.size(), 25u);
  EXPECT_EQ(seen.back(), "c24");
  auto garbage = get(std::string(kMaps) + "?limit=5&continue=garbage");
  EXPECT_STATUS(garbage, 400, "BadRequest");
  EXPECT_NE(garbage->body.find("invalid continue token: continue key is not valid"), std::string::npos);
}

TEST_F(ListWatch, RevisionParametersOfLists) {
  create(kMaps, config_map("a"));
  const auto before = revision();
  create(kMaps, config_map("b"));
  EXPECT_EQ(names(read(std::string(kMaps) + "?resourceVersionMatch=Exact&resourceVersion=" + before)), Names{"a"});
  EXPECT_EQ(names(read(std::string(kMaps) + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + before)), (Names{"a", "b"}));
  EXPECT_EQ(get(std::string(kMaps) + "?resourceVersion=abc")->status, 400);
  EXPECT_EQ(json::get_array(get(std::string(kMaps) + "?resourceVersion=0&limit=1")->document(), {"items"}).size(),
            json::get_array(get(kMaps)->document(), {"items"}).size())
      << "what the cache has comes whole";
  EXPECT_STATUS(get(std::string(kMaps) + "?resourceVersion=999999"), 504, "Timeout");
  EXPECT_STATUS(get(std::string(kMaps) + "?resourceVersionMatch=Exact"), 422, "Invalid");
  EXPECT_STATUS(get(std::string(kMaps) + "?resourceVersionMatch=Exact&resourceVersion=0"), 422, "Invalid");
  EXPECT_STATUS(get(std::string(kMaps) + "?sendInitialEvents=true"), 422, "Invalid");
}

TEST_F(ListWatch, LongListsAreStreamedWithTheReader) {
  const std::string data = fmt::format(R"({{"x":"{}"}})", std::string(50'000, 'x'));
  for (int i = 0; i < 40; ++i) create(kMaps, config_map(fmt::format("c{:02}", i), data));
  const auto list = get(kMaps);
  EXPECT_GT(list->chunks, 3);
  EXPECT_TRUE(list->finished);
  EXPECT_EQ(names(list->document()).size(), 40u);
}

TEST_F(ListWatch, EventsInOrderFromARevision) {
  const auto start = revision();
  create(kMaps, config_map("a", R"({"n":"0"})"));
  auto watch = get(std::string(kMaps) + "?watch=1&fieldSelector=metadata.name=a&resourceVersion=" + start);
  EXPECT_EQ(watch->status, 200);
  for (int i = 1; i < 6; ++i) patch(std::string(kMaps) + "/a", fmt::format(R"({{"data":{{"n":"{}"}}}})", i));
  create(kMaps, config_map("other"));
  remove(std::string(kMaps) + "/a");
  EXPECT_EQ(types(watch), (Names{"ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"}));
  std::int64_t last = 0;
  for (const auto& event : watch->events()) {
    const auto now = std::stoll(text(event, {"object", "metadata", "resourceVersion"}));
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_EQ(text(watch->events().back(), {"object", "data", "n"}), "5");
}

TEST_F(ListWatch, SelectorTransitionsAreAddedAndDeleted) {
  auto watch = get(std::string(kMaps) + "?watch=1&labelSelector=on%3Dyes&resourceVersion=" + revision());
  create(kMaps, config_map("a"));
  patch(std::string(kMaps) + "/a", R"({"metadata":{"labels":{"on":"yes"}}})");
  patch(std::string(kMaps) + "/a", R"({"data":{"k":"2"}})");
  patch(std::string(kMaps) + "/a", R"({"metadata":{"labels":{"on":"no"}}})");
  EXPECT_EQ(types(watch), (Names{"ADDED", "MODIFIED", "DELETED"}));
}

TEST_F(ListWatch, EndsAtItsTimeWithABookmark) {
  auto watch = get(std::string(kMaps) + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion=" + revision());
  loop_.run_for(std::chrono::seconds(4));
  EXPECT_FALSE(watch->finished);
  create(kPods, pod("p"));
  loop_.run_for(std::chrono::seconds(2));
  EXPECT_TRUE(watch->finished);
  ASSERT_EQ(types(watch), Names{"BOOKMARK"});
  EXPECT_EQ(text(watch->events()[0], {"object", "kind"}), "ConfigMap");
  EXPECT_EQ(text(watch->events()[0], {"object", "metadata", "resourceVersion"}), revision());
}

TEST_F(ListWatch, BookmarksOnceAMinute) {
  auto watch = get(std::string(kMaps) + "?watch=1&allowWatchBookmarks=true&resourceVersion=" + revision());
  loop_.run_for(std::chrono::minutes(3) + std::chrono::seconds(5));
  EXPECT_EQ(types(watch).size(), 3u);
  watch->disconnect();
  loop_.run_for(std::chrono::minutes(3));
  EXPECT_EQ(types(watch).size(), 3u);
}

TEST_F(ListWatch, SendsTheInitialStateAndSaysWhereItEnds) {
  create(kMaps, config_map("a"));
  create(kMaps, config_map("b"));
  auto watch = get(std::string(kMaps) + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan");
  create(kMaps, config_map("c"));
  EXPECT_EQ(types(watch), (Names{"ADDED", "ADDED", "BOOKMARK", "ADDED"}));
  EXPECT_EQ(text(watch->events()[2], {"object", "metadata", "annotations", "k8s.io/initial-events-end"}), "true");
  EXPECT_STATUS(get(std::string(kMaps) + "?watch=1&sendInitialEvents=true"), 422, "Invalid");
  auto plain = get(std::string(kMaps) + "?watch=1");
  EXPECT_EQ(types(plain), (Names{"ADDED", "ADDED", "ADDED"}));
}

TEST_F(ListWatch, AResumedWatchSaysWhenItIsCurrent) {
  create(kMaps, config_map("a"));
  const auto from = revision();
  create(kMaps, config_map("b"));
  create(kPods, pod("p"));
  const auto now = revision();
  const auto query = std::string(kMaps) + "?watch=1&tellWhenCurrent=true&resourceVersion=" + from;
  auto watch = get(query + "&allowWatchBookmarks=true");
  create(kMaps, config_map("c"));
  ASSERT_EQ(types(watch), (Names{"ADDED", "BOOKMARK", "ADDED"}));
  EXPECT_EQ(text(watch->events()[1], {"object", "metadata", "annotations", "k8s.io/initial-events-end"}), "true");
  EXPECT_EQ(text(watch->events()[1], {"object", "metadata", "resourceVersion"}), now);
  loop_.run_for(std::chrono::seconds(61));
  ASSERT_EQ(types(watch).size(), 4U);
  EXPECT_EQ(text(watch->events()[3], {"object", "metadata", "annotations", "k8s.io/initial-events-end"}), "") << "an ordinary bookmark";
  EXPECT_EQ(types(get(query)), (Names{"ADDED", "ADDED"})) << "who takes no bookmarks gets none";
}

/// What others wrote to the store is shown when the test lets it.
class LateCache final : public WrappedCache {
 public:
  LateCache(std::unique_ptr<ObjectCache> below, std::vector<std::function<void(bool)>>& waiting)
      : WrappedCache(std::move(below)), waiting_(waiting) {}
  void propose(Proposal proposal, std::function<void(ProposeResult)> result) override {
    below_->propose(std::move(proposal), std::move(result));
  }
  [[nodiscard]] bool is_shared() const override { return true; }
  void catch_up(std::function<void(bool)> done) override { waiting_.push_back(std::move(done)); }

 private:
  std::vector<std::function<void(bool)>>& waiting_;
};

TEST_F(ListWatch, BesideOtherServersAWatchIsCurrentOnlyOnceTheirWritesAreShown) {
  std::vector<std::function<void(bool)>> waiting;
  wrap_cache_ = [&](std::unique_ptr<ObjectCache> cache) { return std::make_unique<LateCache>(std::move(cache), waiting); };
  start({});
  waiting.clear();
  const std::string query = std::string(kMaps) + "?watch=1&allowWatchBookmarks=true&resourceVersion=1";
  EXPECT_EQ(get(query)->status, 200) << "who does not ask waits for nobody";
  EXPECT_TRUE(waiting.empty());
  auto watch = get(query + "&tellWhenCurrent=true");
  EXPECT_EQ(watch->status, 0);
  ASSERT_EQ(waiting.size(), 1U);
  waiting.front()(true);
  EXPECT_EQ(types(watch), Names{"BOOKMARK"});
  auto lost = get(query + "&tellWhenCurrent=true");
  waiting.back()(false);
  EXPECT_EQ(lost->status, 500) << "nothing is said that is not known";
}

TEST_F(ListWatch, ASlowReaderOfLargeObjectsIsDroppedForItsBytes) {
  ServerOptions options;
  options.watch_queue_bytes = 3'000'000;
  start(std::move(options));
  create(kMaps, config_map("a"));
  net::HttpRequest request;
  request.method = "GET";
  request.path = kMaps;
  request.query = "watch=1&resourceVersion=" + revision();
  auto slow = std::make_shared<RecordedResponse>();
  slow->stalled = true;
  server_->handle(request, slow);
  // 5 MB in a hundred events: far from the limit of events. One megabyte waits in the socket's queue.
  for (int i = 0; i < 100; ++i)
    patch(std::string(kMaps) + "/a", fmt::format(R"({{"data":{{"n":"{}","x":"{}"}}}})", i, std::string(50'000, 'x')));
  slow->stalled = false;
  if (slow->drain) slow->drain();
  EXPECT_TRUE(slow->finished);
  ASSERT_FALSE(slow->events().empty());
  EXPECT_EQ(text(slow->events().back(), {"type"}), "ERROR");
  EXPECT_EQ(text(slow->events().back(), {"object", "reason"}), "Expired");
}

TEST_F(ListWatch, ASlowReaderIsDroppedAndHoldsNobodyUp) {
  ServerOptions options;
  options.watch_queue_events = 50;
  start(std::move(options));
  create(kMaps, config_map("a"));
  net::HttpRequest request;
  request.method = "GET";
  request.path = kMaps;
  request.query = "watch=1&resourceVersion=" + revision();
  auto slow = std::make_shared<RecordedResponse>();
  slow->stalled = true;
  server_->handle(request, slow);
  auto quick = std::make_shared<RecordedResponse>();
  server_->handle(request, quick);
  for (int i = 0; i < 200; ++i) patch(std::string(kMaps) + "/a", fmt::format(R"({{"data":{{"n":"{}"}}}})", i));
  EXPECT_EQ(types(quick).size(), 200u);
  slow->stalled = false;
  if (slow->drain) slow->drain();
  EXPECT_TRUE(slow->finished);
  ASSERT_FALSE(slow->events().empty());
  EXPECT_EQ(text(slow->events().back(), {"type"}), "ERROR");
  EXPECT_EQ(json::get_int(slow->events().back(), {"object", "code"}), 410);
}

TEST_F(ListWatch, TablesOnAWatch) {
  auto watch = send("GET", std::string(kMaps) + "?watch=1&resourceVersion=" + revision(), "", "",
                    {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}});
  create(kMaps, config_map("a"));
  create(kMaps, config_map("b"));
  const auto events = watch->events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(text(events[0], {"object", "kind"}), "Table");
  EXPECT_FALSE(json::get_array(events[0], {"object", "columnDefinitions"}).empty());
  const auto& later = events[1].at("object").get_object();
  ASSERT_TRUE(later.contains("columnDefinitions"));
  EXPECT_TRUE(later.at("columnDefinitions").is_null()) << "they have been said";
}

TEST_F(ListWatch, LegacyWatchPaths) {
  create(kMaps, config_map("a"));
  auto watch = get("/api/v1/watch/namespaces/default/configmaps/a?resourceVersion=" + revision());
  create(kMaps, config_map("b"));
  patch(std::string(kMaps) + "/a", R"({"data":{"n":"1"}})");
  EXPECT_EQ(types(watch), Names{"MODIFIED"});
}

}  // namespace berth::apiserver::testing
