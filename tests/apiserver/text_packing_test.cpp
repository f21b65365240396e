#include "apiserver/upkeep/text_packing.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/apiserver/object_cache_fixture.h"

namespace berth::apiserver {
namespace {

constexpr Duration kAge = std::chrono::minutes(1);

TEST(TextPacking, RevisionsAgeByLooks) {
  AgedRevisions aged(kAge);
  const TimePoint start(std::chrono::hours(1));
  EXPECT_EQ(aged.look(start, 10), 0);
  EXPECT_EQ(aged.look(start + std::chrono::seconds(30), 20), 0);
  EXPECT_EQ(aged.look(start + std::chrono::seconds(60), 30), 10);
  EXPECT_EQ(aged.look(start + std::chrono::seconds(89), 30), 10);
  EXPECT_EQ(aged.look(start + std::chrono::hours(2), 30), 30) << "nothing happened since";
  EXPECT_EQ(aged.look(start + std::chrono::hours(2), 40), 30);
  EXPECT_EQ(aged.look(start + std::chrono::hours(2) + kAge, 40), 40);
}

TEST(TextPacking, WhereVeryMuchIsWrittenOnlyTheLatestRevisionsAreYoung) {
  AgedRevisions aged(kAge);
  const TimePoint start(std::chrono::hours(1));
  constexpr Revision kMost = AgedRevisions::kMostYoung;
  EXPECT_EQ(aged.look(start, kMost), 0);
  EXPECT_EQ(aged.look(start + std::chrono::seconds(10), kMost + 70), 70);
  EXPECT_EQ(aged.look(start + std::chrono::seconds(20), kMost + 70), 70) << "nothing was written";
  EXPECT_EQ(aged.look(start + kAge, kMost + 70), kMost) << "an age after the first look";
  EXPECT_EQ(aged.look(start + kAge, kMost + 80), kMost) << "what is old stays so";
}

/// A synchronous cache over a store in memory.
struct PackedCache {
  ManualClock clock;
  std::unique_ptr<ObjectCache> cache = std::move(*ObjectCache::open(store::make_memory_store(), clock, {}, meta_of_json, true));

  void put(const TestPod& pod) {
    cache->propose(pod_proposal(pod), [](const ProposeResult& result) { EXPECT_TRUE(result.has_value()); });
  }
  ObjectPtr get(std::string_view name) { return cache->get(make_key("", "pods", "default", name)); }
  /// A whole round; how many texts it packed.
  std::size_t round(Revision before) {
    std::size_t packed = 0;
    for (ObjectCache::Packing step; !step.is_round; packed += step.texts) step = cache->pack_texts(before);
    return packed;
  }
};

TestPod pod_named(std::string name, std::string phase = "Pending") {
  return {.name = std::move(name), .node = "n1", .phase = std::move(phase), .labels = {{"app", "web"}}, .padding = 2000};
}

TEST(TextPacking, ATextThatGetsOldIsPackedReadChangedAndPackedAgain) {
  PackedCache it;
  for (int i = 0; i < 1000; ++i) it.put(pod_named(fmt::format("web-{}", i)));
  EXPECT_EQ(it.round(0), 0U) << "nothing is old yet";
  EXPECT_EQ(it.round(it.cache->revision() - 300), 700U);
  EXPECT_EQ(it.round(it.cache->revision()), 300U);
  EXPECT_EQ(it.round(it.cache->revision()), 0U) << "each once";
  const ObjectPtr before = it.get("web-500");
  EXPECT_TRUE(before->kept->is_packed());
  EXPECT_EQ(revision_in_bytes(before), before->revision);
  EXPECT_EQ(before->meta.field("spec.nodeName"), "n1") << "what is selected by does not stand in the text";
  EXPECT_EQ(before->meta.uid, "uid-web-500");

  it.put(pod_named("web-500", "Running"));
  const ObjectPtr after = it.get("web-500");
  EXPECT_FALSE(after->kept->is_packed());
  EXPECT_EQ(it.round(before->revision), 0U) << "it is young again";
  EXPECT_EQ(it.round(after->revision), 1U);
  EXPECT_EQ(revision_in_bytes(after), after->revision);
  EXPECT_EQ(revision_in_bytes(before), before->revision) << "who holds the state before still reads it";
}

TEST(TextPacking, ADeletionSaysWhatAPackedTextSaid) {
  PackedCache it;
  for (int i = 0; i < 10; ++i) it.put(pod_named(fmt::format("web-{}", i)));
  EXPECT_EQ(it.round(it.cache->revision()), 10U);
  auto sink = std::make_shared<RecordingSink>();
  WatchFilter filter;
  filter.prefix = make_prefix("", "pods", "default");
  const auto watch = it.cache->watch(filter, it.cache->revision(), false, sink);
  ObjectPtr gone;
  it.cache->propose(delete_proposal("default", "web-3"), [&](const ProposeResult& result) { gone = result.value_or(nullptr); });
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(revision_in_bytes(gone), it.cache->revision());
  EXPECT_NE(gone->text()->find("uid-web-3"), std::string::npos);
  EXPECT_EQ(it.round(it.cache->revision()), 0U);
}

TEST(TextPacking, AllResourcesHaveTheirTurn) {
  PackedCache it;
  for (const std::string_view plural : {"configmaps", "pods", "secrets"})
    for (int i = 0; i < 70; ++i) {
      Proposal proposal = pod_proposal(pod_named(fmt::format("a-{}", i)));
      proposal.key = make_key("", plural, "default", fmt::format("a-{}", i));
      it.cache->propose(std::move(proposal), [](const ProposeResult&) {});
    }
  EXPECT_EQ(it.round(it.cache->revision()), 210U);
  EXPECT_EQ(it.round(it.cache->revision()), 0U);
}

TEST(TextPacking, WritersAndReadersGoOnMeanwhile) {
  ManualClock clock;
  auto cache = std::move(*ObjectCache::open(store::make_memory_store(), clock, {}, meta_of_json, false));
  std::atomic<int> answered{0};
  std::atomic<bool> is_over{false};
  constexpr int kPods = 400, kRounds = 10;
  std::thread reader([&] {
    WatchFilter filter;
    filter.prefix = make_prefix("", "pods");
    while (!is_over)
      for (const ObjectPtr& pod : cache->list(filter, {}, 0).items) EXPECT_EQ(revision_in_bytes(pod), pod->revision);
  });
  std::thread packer([&] {
    while (!is_over) cache->pack_texts(cache->revision());
  });
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kPods; ++i)
      cache->propose(pod_proposal(pod_named(fmt::format("web-{}", i), fmt::format("phase-{}", round))),
                     [&](const ProposeResult& result) { answered += result.has_value() ? 1 : 0; });
    while (answered < (round + 1) * kPods) std::this_thread::yield();
  }
  is_over = true;
  reader.join();
  packer.join();
  ObjectCache::Packing step;
  do step = cache->pack_texts(cache->revision());
  while (!step.is_round);
  const ObjectPtr last = cache->get(make_key("", "pods", "default", "web-7"));
  EXPECT_NE(last->text()->find(fmt::format("phase-{}", kRounds - 1)), std::string::npos);
  cache->end();
}

}  // namespace
}  // namespace berth::apiserver
