#include "model/quantity.h"

#include <gtest/gtest.h>

#include <limits>

namespace berth::model {
namespace {

std::string canonical(std::string_view text) {
  const auto quantity = Quantity::parse(text);
  return quantity ? quantity->to_string() : "malformed";
}

TEST(Quantity, ReadsEverySpelling) {
  EXPECT_EQ(Quantity::parse("0.1")->milli_value(), 100);
  EXPECT_EQ(Quantity::parse("100m")->milli_value(), 100);
  EXPECT_EQ(Quantity::parse("129e6")->value(), 129'000'000);
  EXPECT_EQ(Quantity::parse("129M")->value(), 129'000'000);
  EXPECT_EQ(Quantity::parse("128974848000m")->value(), 128'974'848);
  EXPECT_EQ(Quantity::parse("1Gi")->value(), 1LL << 30);
  EXPECT_EQ(Quantity::parse("0.5Gi")->value(), 1LL << 29);
  EXPECT_EQ(Quantity::parse("1E3")->value(), 1000);
  EXPECT_EQ(Quantity::parse("1E")->value(), 1'000'000'000'000'000'000);
  EXPECT_EQ(Quantity::parse("+5")->value(), 5);
  EXPECT_EQ(Quantity::parse("-5")->value(), -5);
  EXPECT_EQ(Quantity::parse(".5")->milli_value(), 500);
  EXPECT_EQ(Quantity::parse("5.")->value(), 5);
  EXPECT_EQ(Quantity::parse("1e-3")->milli_value(), 1);
}

TEST(Quantity, RefusesWhatKubernetesRefuses) {
  for (const char* text : {"", "+", "-", ".", "Mi", "1 Gi", "1gi", "1K", "1.5.5", "1e", "1e+-3", "abc", "1Mix", "0x10", "1ee3"})
    EXPECT_FALSE(Quantity::parse(text)) << text;
}

TEST(Quantity, RoundsUpAwayFromZero) {
  EXPECT_EQ(Quantity::parse("0.0005")->milli_value(), 1);
  EXPECT_EQ(Quantity::parse("1m")->value(), 1);
  EXPECT_EQ(Quantity::parse("-1m")->value(), -1);
  EXPECT_EQ(Quantity::parse("0.0000000001")->nano(), 1);
  EXPECT_EQ(Quantity::parse("1.0000000001n")->nano(), 2);
}

TEST(Quantity, CapsWhatIsTooLarge) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Quantity::parse("9223372036854775807")->value(), kMax);
  EXPECT_EQ(Quantity::parse("9223372036854775808")->value(), kMax);
  EXPECT_EQ(Quantity::parse("1e1000000")->value(), kMax);
  EXPECT_EQ(Quantity::parse("-999Ei")->value(), -kMax);
  EXPECT_EQ(Quantity::parse("1Ei")->milli_value(), kMax);
  EXPECT_EQ(Quantity::parse("1000000000000000000000000000n")->value(), 1'000'000'000'000'000'000);
  EXPECT_EQ(Quantity::parse("123456789012345678901234567890e-20")->value(), 1234567891);
  EXPECT_EQ(Quantity::parse("0e1000000")->value(), 0);
}

TEST(Quantity, PrintsTheCanonicalForm) {
  EXPECT_EQ(canonical("0.1"), "100m");
  EXPECT_EQ(canonical("1500"), "1500");
  EXPECT_EQ(canonical("1000"), "1k");
  EXPECT_EQ(canonical("1024Mi"), "1Gi");
  EXPECT_EQ(canonical("1536Mi"), "1536Mi");
  EXPECT_EQ(canonical("0.5Gi"), "512Mi");
  EXPECT_EQ(canonical("512"), "512");
  EXPECT_EQ(canonical("0.5Ki"), "512");
  EXPECT_EQ(canonical("1.5Ki"), "1536");
  EXPECT_EQ(canonical("12e6"), "12e6");
  EXPECT_EQ(canonical("-2.50"), "-2500m");
  EXPECT_EQ(canonical("0Gi"), "0");
}

TEST(Quantity, AddsExactly) {
  auto sum = *Quantity::parse("0.0005") + *Quantity::parse("0.0005");
  EXPECT_EQ(sum.milli_value(), 1);
  sum -= *Quantity::parse("1m");
  EXPECT_TRUE(sum.is_zero());
  EXPECT_LT(*Quantity::parse("999m"), *Quantity::parse("1"));
  EXPECT_EQ(*Quantity::parse("1Ki"), *Quantity::parse("1024"));
}

}  // namespace
TEST(Quantity, LongTextsAreExactToo) {
  const auto parse = [](const std::string& text) { return *Quantity::parse(text); };
  const std::string zeros(100'000, '0'), nines(100'000, '9');
  EXPECT_EQ(parse("1." + zeros).value(), 1);
  EXPECT_EQ(parse("1." + zeros + "1").nano(), 1'000'000'001);  // Something is more than nothing.
  EXPECT_EQ(parse("0." + nines).nano(), 1'000'000'000);
  EXPECT_EQ(parse("-0." + nines).value(), -1);
  EXPECT_EQ(parse("123456789." + nines + "n").nano(), 123'456'790);
  // 1024 times 0.0009765625 is one; less by whatever little is still one when it is rounded up, and more is more.
  EXPECT_EQ(parse("0.0009765625" + zeros + "Ki").nano(), 1'000'000'000);
  EXPECT_EQ(parse("0.0009765624" + nines + "Ki").nano(), 1'000'000'000);
  EXPECT_EQ(parse("0.0009765625" + zeros + "1Ki").nano(), 1'000'000'001);
  EXPECT_EQ(parse("1." + zeros + "1Ei").nano(), parse("1Ei").nano() + 1);
  EXPECT_GT(parse(nines), parse("1e30"));
  EXPECT_EQ(parse("0." + zeros + "1").nano(), 1);
}

TEST(Quantity, DifferencesThatAreNotToldAreStillThere) {
  const auto parse = [](const char* text) { return *Quantity::parse(text); };
  // 10^60 less what lies just below it: this went on for ever.
  EXPECT_GT((parse("1e60") - parse("999999999999999999e42")).sign(), 0);
  EXPECT_LT((parse("999999999999999999e42") - parse("1e60")).sign(), 0);
}

TEST(Quantity, KeepsDecimalsBeyondTheIntegers) {
  const auto parse = [](const char* text) { return *Quantity::parse(text); };
  EXPECT_EQ(parse("1e30").to_string(), "1e30");
  EXPECT_EQ(parse("12e40").to_string(), "120e39");
  EXPECT_EQ(parse("1e19").to_string(), "10e18");
  EXPECT_EQ(parse("-1e30").to_string(), "-1e30");
  EXPECT_EQ(parse("1e30").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_GT(parse("1e30"), parse("5"));
  EXPECT_LT(parse("-1e30"), parse("5"));
  EXPECT_GT(parse("1e60"), parse("1e30"));
  EXPECT_LT(parse("-1e60"), parse("-1e30"));
  EXPECT_EQ((parse("1e30") + parse("1e30")).to_string(), "2e30");
  EXPECT_EQ((parse("9e27") + parse("9e27")).to_string(), "18e27");
  EXPECT_EQ((parse("1e30") - parse("999e27")).to_string(), "1e27");
  EXPECT_EQ(parse("2e30") - parse("1e30"), parse("1e30"));
  EXPECT_EQ(parse("1e30") - parse("1e30"), parse("0"));
  // Binary ones end where the integers do.
  EXPECT_EQ(parse("100Ei").to_string(), "9223372036854775807");
}

}  // namespace berth::model
