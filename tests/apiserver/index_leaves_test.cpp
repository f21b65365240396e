// The index's leaves come and go: names that are deleted from the front, from the back and from the middle, and made again.
#include <numeric>

#include "tests/apiserver/object_cache_fixture.h"

namespace berth::apiserver {
namespace {

class IndexLeaves : public CacheFixture {
 protected:
  void SetUp() override {
    open();
    for (int i = 0; i < kNames; ++i) make(i);
  }
  void make(int number) {
    put({.name = name_of(number)});
    expected_.insert("default/" + name_of(number));
  }
  void forget(int number) {
    remove(name_of(number));
    expected_.erase("default/" + name_of(number));
  }
  static std::string name_of(int number) { return fmt::format("p{:03}", number); }
  /// Lists, pages, counts and single reads tell the same.
  void agree(const std::string& when) const {
    const std::vector<std::string> wanted(expected_.begin(), expected_.end());
    ASSERT_EQ(names(cache_->list(pods(), {}, 0)), wanted) << when;
    std::vector<std::string> paged;
    std::string after;
    for (bool more = true; more;) {
      const auto page = cache_->list(pods(), after, 37);
      for (const auto& name : names(page)) paged.push_back(name);
      more = page.more && !page.items.empty();
      if (more) after = page.items.back()->key;
    }
    ASSERT_EQ(paged, wanted) << when;
    ASSERT_EQ(cache_->counts(), (std::vector<std::pair<std::string, std::size_t>>{{"//pods", wanted.size()}})) << when;
    for (int i = 0; i < kNames; ++i)
      ASSERT_EQ(cache_->get(make_key("", "pods", "default", name_of(i))) != nullptr, expected_.contains("default/" + name_of(i))) << when;
  }

  static constexpr int kNames = 400;
  std::set<std::string> expected_;
};

TEST_F(IndexLeaves, TheFirstHundredGoAndOneComesBack) {
  for (int i = 0; i < 100; ++i) forget(i);
  agree("the first leaf is empty");
  make(0);
  agree("a name before all others");
  make(99);
  agree("and one behind it");
}

TEST_F(IndexLeaves, TheLastHundredGoAndOneComesBack) {
  for (int i = kNames - 1; i >= kNames - 100; --i) forget(i);
  agree("the last leaf is gone");
  make(kNames - 1);
  agree("a name behind all others");
}

TEST_F(IndexLeaves, AHoleInTheMiddleIsFilledAgain) {
  for (int i = 130; i < 270; ++i) forget(i);
  agree("a hole");
  for (int i = 269; i >= 130; --i) make(i);
  agree("filled from behind");
}

TEST_F(IndexLeaves, AllGoAndComeAgain) {
  for (int i = 0; i < kNames; ++i) forget((i * 7) % kNames);
  ASSERT_TRUE(cache_->list(pods(), {}, 0).items.empty());
  for (int i = kNames - 1; i >= 0; --i) make(i);
  agree("made again in the other order");
}

/// Who began to read goes on reading what was there.
TEST_F(IndexLeaves, AListIsNotChangedByWhatComesAfterIt) {
  const auto before = cache_->list(pods(), {}, 0);
  for (int i = 0; i < kNames; i += 2) forget(i);
  ASSERT_EQ(before.items.size(), static_cast<std::size_t>(kNames));
  EXPECT_EQ(before.items[2]->meta.name, "p002");
  agree("every second one is gone");
}

}  // namespace
}  // namespace berth::apiserver
