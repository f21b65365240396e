#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/text_packer.h"

namespace berth {
namespace {

/// As pods of one template: much that is alike, some of its own.
std::string pod_text(std::string_view app, int i, std::size_t filling = 3000) {
  std::string text = fmt::format(R"({{"kind":"Pod","metadata":{{"name":"{}-{:05}","uid":"{:08x}-1111-2222"}},"spec":{{"image":")", app, i,
                                 static_cast<unsigned>(i) * 2654435761U);
  std::uint32_t state = static_cast<std::uint32_t>(std::hash<std::string_view>()(app));
  while (text.size() < filling) text += fmt::format("{}={};", (state = state * 1664525 + 1013904223) >> 8, app);
  return text + R"("}})";
}

TEST(KeptText, APackedTextReadsAsItWas) {
  TextPacker packer;
  std::vector<KeptTextRef> texts;
  std::size_t saved = 0;
  for (int i = 0; i < 200; ++i) {
    texts.push_back(std::make_shared<const KeptText>(pod_text(i % 2 == 0 ? "web" : "db", i)));
    saved += packer.pack("//pods/", fmt::format("{}-{:05}", i % 2 == 0 ? "web" : "db", i), *texts.back());
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(texts[static_cast<std::size_t>(i)]->is_packed());
    EXPECT_EQ(*texts[static_cast<std::size_t>(i)]->read().shared(), pod_text(i % 2 == 0 ? "web" : "db", i));
    EXPECT_EQ(texts[static_cast<std::size_t>(i)]->size(), pod_text(i % 2 == 0 ? "web" : "db", i).size());
  }
  EXPECT_GT(saved, 200U * 2600) << "a family that is not like the first one gets a sample of its own";
}

/// Samples that are used often are prepared, as many as there is room for.
TEST(KeptText, WhatIsPackedByManyFamiliesInTurnReadsAsItWas) {
  TextPacker packer;
  constexpr int kFamilies = 1100, kRounds = 24;
  const auto name_of = [](int family) { return fmt::format("app{}", family); };
  std::vector<KeptTextRef> texts;
  for (int round = 0; round < kRounds; ++round)
    for (int family = 0; family < kFamilies; ++family) {
      texts.push_back(std::make_shared<const KeptText>(pod_text(name_of(family), round, 700)));
      packer.pack("//pods/", name_of(family) + "-1", *texts.back());
    }
  EXPECT_GE(packer.preparations(), 1000U) << "they are used often enough";
  EXPECT_LE(packer.preparations(), 2U * kFamilies) << "preparing one takes as long as ten texts";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto family = static_cast<int>(i % kFamilies), round = static_cast<int>(i / kFamilies);
    ASSERT_EQ(texts[i]->read().here(), pod_text(name_of(family), round, 700)) << name_of(family) << " in round " << round;
    if (round > 5) {
      EXPECT_TRUE(texts[i]->is_packed());
    }
  }
}

TEST(KeptText, TheFirstFormThatSomebodyKeepsIsEverybodys) {
  const KeptText text(std::string("{}"));
  EXPECT_EQ(text.form(), nullptr);
  std::shared_ptr<const void> first = std::make_shared<const int>(1);
  const std::shared_ptr<const void> second = std::make_shared<const int>(2);
  EXPECT_EQ(text.offer_form(first), first);
  EXPECT_EQ(text.offer_form(second), first) << "made at the same time, and too late";
  EXPECT_EQ(text.form(), first);
  first.reset();
  EXPECT_EQ(text.form(), nullptr) << "the text keeps none";
  EXPECT_EQ(text.offer_form(second), second);
}

TEST(KeptText, AHoldOutlivesPackingAndTheTextItself) {
  TextPacker packer;
  auto text = std::make_shared<const KeptText>(pod_text("web", 1));
  const HeldText before = text->read();
  const std::string_view name = std::string_view(*before).substr(before->find("web-"), 9);
  packer.pack("//pods/", "web-00001", *text);
  const HeldText after = text->read();
  EXPECT_NE(before.shared(), after.shared());
  EXPECT_EQ(text->read().here(), pod_text("web", 1)) << "read once more";
  text.reset();
  EXPECT_EQ(name, "web-00001");
  EXPECT_EQ(*after, pod_text("web", 1));
}

TEST(KeptText, ASampleIsThereAsLongAsATextNeedsIt) {
  std::vector<KeptTextRef> texts;
  {
    TextPacker packer;
    for (int i = 0; i < 3; ++i) {
      texts.push_back(std::make_shared<const KeptText>(pod_text("web", i)));
      packer.pack("//pods/", "web-1", *texts.back());
    }
    texts.erase(texts.begin());  // Of which the sample was made.
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(texts[static_cast<std::size_t>(i)]->read().here(), pod_text("web", i + 1));
}

TEST(KeptText, SmallOnesAndNoiseStayPlain) {
  TextPacker packer;
  const KeptText small(std::string(TextPacker::kLeastBytes - 1, 'x'));
  EXPECT_EQ(packer.pack("//pods/", "a", small), 0U);
  EXPECT_FALSE(small.is_packed());
  packer.pack("//pods/", "a", KeptText(pod_text("first", 1)));
  std::string noise;
  std::uint64_t state = 1;
  while (noise.size() < 4000) noise += static_cast<char>((state = state * 6364136223846793005U + 1) >> 56);
  const KeptText no_use(noise);
  packer.pack("//pods/", "a", no_use);
  EXPECT_FALSE(no_use.is_packed());
  EXPECT_EQ(no_use.read().here(), noise);
  EXPECT_EQ(packer.pack("//pods/", "a", no_use), 0U);
}

TEST(KeptText, LargeOnesAreNoSamples) {
  TextPacker packer;
  const std::string large(TextPacker::kMostSampleBytes * 20, 'x');
  const KeptText map(large);
  EXPECT_GT(packer.pack("//configmaps/", "a", map), large.size() - 1000);
  EXPECT_EQ(packer.families(), 0U);
  EXPECT_EQ(map.read().here(), large);
}

TEST(KeptText, FamiliesAreBounded) {
  TextPacker packer;
  for (std::size_t i = 0; i < TextPacker::kMostFamilies + 100; ++i)
    packer.pack("//pods/", fmt::format("family{}-a", i), KeptText(pod_text("web", static_cast<int>(i), 300)));
  EXPECT_LE(packer.families(), TextPacker::kMostFamilies);
}

TEST(KeptText, ReadersOnOtherThreadsSeeOneTextWhilePackingGoesOn) {
  std::vector<KeptTextRef> texts;
  for (int i = 0; i < 300; ++i) texts.push_back(std::make_shared<const KeptText>(pod_text("web", i, 1000)));
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0}, rounds{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&] {
      do {
        for (int i = 0; i < 300; ++i)
          if (const HeldText text = texts[static_cast<std::size_t>(i)]->read(); *text != pod_text("web", i, 1000)) ++wrong;
        ++rounds;
      } while (!is_over);
    });
  while (rounds == 0) std::this_thread::yield();
  TextPacker packer;
  for (int i = 0; i < 300; ++i) packer.pack("//pods/", "web-1", *texts[static_cast<std::size_t>(i)]);
  is_over = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace berth
