// Packed selectors say what compiled ones say, in about as many bytes as their text.
#include "apiserver/reads/packed_labels.h"

#include <gtest/gtest.h>

#include <random>

#include "apiserver/cache/object_codec.h"

namespace berth::apiserver {
namespace {

TEST(PackedLabels, SayWhatTheSelectorSays) {
  std::mt19937 random(7);
  const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  const char* forms[] = {"k{0}",     "!k{0}",   "k{0}=v{1}", "k{0}!=v{1}", "k{0} in (v{1},v{2})", "k{0} notin (v{1},v{2},)",
                         "k{0}>{1}", "k{0}<{1}"};
  int matched = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (int part = below(3); part >= 0; --part)
      text += (text.empty() ? "" : ",") + fmt::format(fmt::runtime(forms[below(8)]), below(3), below(3), below(3));
    const auto selector = model::Selector::parse(text);
    ASSERT_TRUE(selector) << text;
    std::vector<std::pair<std::string, std::string>> pairs;
    for (int k = 0; k < 3; ++k)
      if (below(2) == 0) pairs.emplace_back(fmt::format("k{}", k), below(3) == 0 ? std::to_string(below(4)) : fmt::format("v{}", below(3)));
    const model::Labels labels(pairs);
    EXPECT_EQ(PackedLabels(*selector).matches(labels), selector->matches(labels)) << text;
    matched += selector->matches(labels);
  }
  EXPECT_GT(matched, 500);
  EXPECT_FALSE(PackedLabels(model::Selector::nothing()).matches({}));
  EXPECT_TRUE(PackedLabels(model::Selector::everything()).matches({}));
}

TEST(PackedLabels, TakeAboutAsMuchAsTheirText) {
  std::string text = "long in (" + std::string(200, 'v').substr(0, 60);
  for (int i = 0; i < 5000; ++i) text += fmt::format(",v{}", i);
  text += ")";
  for (int i = 0; i < 5000; ++i) text += fmt::format(",!k{}", i);
  const auto selector = model::Selector::parse(text);
  ASSERT_TRUE(selector);
  EXPECT_LT(PackedLabels(*selector).bytes(), text.size() + 2 * 5000);
}

TEST(PackedLabels, AFilterOfManyIsPackedAndAsksTheRestAsWell) {
  std::string text = "app=web";
  for (int i = 0; i < 100; ++i) text += fmt::format(",!k{}", i);
  WatchFilter filter;
  filter.labels = *model::Selector::parse(text);
  bool says = true;
  filter.also = [&](const StoredObject&) { return says; };
  pack_labels(filter);
  EXPECT_TRUE(filter.labels.is_everything());
  const auto object = [](const std::string& labels) {
    const std::string text = R"({"metadata":{"name":"a","namespace":"default","labels":)" + labels + "}}";
    return StoredObject("//pods/default/a", make_bytes(text), 1, 1, extract_meta("//pods/default/a", text, Duration::zero()));
  };
  const auto web = object(R"({"app":"web"})"), other = object(R"({"app":"web","k7":""})");
  EXPECT_TRUE(filter.also(web));
  EXPECT_FALSE(filter.also(other));
  says = false;
  EXPECT_FALSE(filter.also(web));
  WatchFilter few;
  few.labels = *model::Selector::parse("a,b=c");
  pack_labels(few);
  EXPECT_FALSE(few.labels.is_everything());
}

}  // namespace
}  // namespace berth::apiserver
