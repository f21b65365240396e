// base64: both alphabets, one spelling a text.
#include "base/base64.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Base64, TextsOfRfc4648) {
  const std::pair<std::string_view, std::string_view> known[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
  EXPECT_EQ(base64_encode("\xfb\xff"), "+/8=");
  EXPECT_EQ(base64url_encode("\xfb\xff"), "-_8");
}

TEST(Base64, LineEndsAreNoPartOfTheText) { EXPECT_EQ(base64_decode("Zm9v\r\nYmFy\n"), "foobar"); }

TEST(Base64, AnotherSpellingIsNone) {
  for (const char* text : {"Zg", "Zg=", "Z", "Zh==", "Zg==Zg==", "Z g=", "Zg===", "-_8=", "Zm9v=", "===="})
    EXPECT_FALSE(base64_decode(text)) << text;
  for (const char* text : {"Zg==", "Zh", "+/8", "Z"}) EXPECT_FALSE(base64url_decode(text)) << text;
  EXPECT_EQ(base64url_decode("Zg"), "f");
}

}  // namespace
}  // namespace berth
