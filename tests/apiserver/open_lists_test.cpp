// Lists in pages on a busy cluster: the history forgets where they began, and they end all the same.
#include "apiserver/cache/open_lists.h"

#include <gtest/gtest.h>

#include "tests/apiserver/object_cache_fixture.h"

namespace berth::apiserver {
namespace {

class OpenListsTest : public CacheFixture {
 protected:
  static std::string name(int i) { return fmt::format("pod-{:03}", i); }
  void fill(int pods) {
    for (int i = 0; i < pods; ++i) put({.name = name(i), .padding = 1000});
  }
  /// Each of `from` to `to` is written once more.
  void touch(int from, int to) {
    for (int i = from; i < to; ++i) put({.name = name(i), .phase = "Running", .padding = 1000});
  }
  static std::string key(int i) { return make_key("", "pods", "default", name(i)); }
  /// The page behind pod `i`, of two: its names, or "expired".
  std::string page(Revision at, int i) {
    const auto list = cache_->list_at(at, pods(), key(i), 2);
    return list ? fmt::format("{}", fmt::join(names(*list), " ")) : "expired";
  }
};

TEST_F(OpenListsTest, ShowTheirBeginningToTheirEndWhateverTheHistoryForgets) {
  open(store::make_memory_store(), true, {.history_events = 20});
  fill(300);
  const Revision then = cache_->revision();
  const auto whole = cache_->list(pods(), {}, 0);
  ListResult page = cache_->list(pods(), {}, 50);
  touch(40, 45);  // What the second page finds changed already.
  std::vector<ObjectPtr> seen = page.items;
  for (int round = 0; page.more; ++round) {
    auto next = cache_->list_at(then, pods(), page.items.back()->key, 50);
    ASSERT_TRUE(next) << "page " << round + 2;
    page = std::move(*next);
    EXPECT_EQ(page.revision, then);
    seen.insert(seen.end(), page.items.begin(), page.items.end());
    EXPECT_EQ(page.remaining, static_cast<std::int64_t>(whole.items.size() - seen.size()));
    touch(0, 300);
    remove(name(70 + 50 * round));
    put({.name = fmt::format("pod-{:03}-new", 80 + 50 * round)});
  }
  EXPECT_EQ(seen, whole.items);
  EXPECT_FALSE(cache_->list_at(then, pods(), key(99), 50)) << "after its last page nothing is kept";
}

TEST_F(OpenListsTest, ArePerNamespaceAndMayBeSelective) {
  open(store::make_memory_store(), true, {.history_events = 20});
  for (int i = 0; i < 40; ++i) {
    put({.name = name(i), .node = i % 2 == 0 ? "n1" : "n2"});
    put({.ns = "other", .name = name(i), .node = "n1"});
  }
  const Revision then = cache_->revision();
  put({.name = "later"});
  ASSERT_TRUE(cache_->list_at(then, pods_on("n1"), key(4), 2));
  touch(0, 40);
  const auto next = cache_->list_at(then, pods_on("n1"), key(8), 2);
  ASSERT_TRUE(next);
  EXPECT_EQ(names(*next), (std::vector<std::string>{"default/pod-010", "default/pod-012"}));
  EXPECT_FALSE(cache_->list_at(then, pods("other"), {}, 2)) << "of one namespace it was not asked";
  EXPECT_FALSE(cache_->list_at(then, pods_on("n1"), {}, 2)) << "nor for what was before";
}

TEST_F(OpenListsTest, HoldSoManyBytesAndTheOneIdleLongestGoes) {
  // Two times the history's bytes: some 28 pods.
  open(store::make_memory_store(), true, {.history_events = 20, .history_bytes = 22'000});
  fill(100);
  const Revision first = cache_->revision();
  put({.name = "other"});
  ASSERT_EQ(page(first, 10), "default/pod-011 default/pod-012");
  const Revision second = cache_->revision();
  put({.name = "other"});
  ASSERT_EQ(page(second, 10), "default/pod-011 default/pod-012");
  touch(0, 10);
  for (int i = 0; i < 20; ++i) touch(0, 10);  // What came since is shown by neither.
  EXPECT_EQ(page(second, 12), "default/pod-013 default/pod-014");
  EXPECT_EQ(page(first, 12), "default/pod-013 default/pod-014");
  touch(10, 20);
  EXPECT_EQ(page(second, 14), "expired") << "the other was asked later";
  EXPECT_EQ(page(first, 14), "default/pod-015 default/pod-016");
  touch(20, 40);
  EXPECT_EQ(page(first, 16), "expired") << "one alone has the same bound";
}

TEST_F(OpenListsTest, EndWithTheIntervalOfCompaction) {
  open(store::make_memory_store(), true, {.history_events = 20, .compaction_interval = std::chrono::minutes(5)});
  fill(50);
  const Revision then = cache_->revision();
  put({.name = "other"});
  ASSERT_EQ(page(then, 10), "default/pod-011 default/pod-012");
  touch(0, 50);
  clock_.advance(std::chrono::minutes(6));
  touch(0, 1);
  EXPECT_EQ(page(then, 12), "default/pod-013 default/pod-014");
  clock_.advance(std::chrono::minutes(6));
  touch(0, 1);
  EXPECT_EQ(page(then, 14), "expired");
}

}  // namespace
}  // namespace berth::apiserver
