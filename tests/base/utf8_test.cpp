#include "base/utf8.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Utf8, WhatIsNoCharacterIsFoundAndReplaced) {
  EXPECT_TRUE(is_utf8("a\u00e9\u20ac\U0001F600"));
  for (const std::string_view bad : {"\x80", "\xC0\x80", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xFF"})
    EXPECT_FALSE(is_utf8(bad));
  EXPECT_EQ(to_utf8("a\xFF\u20ac\xE2\x82"), "a\uFFFD\u20ac\uFFFD\uFFFD");
}

}  // namespace
}  // namespace berth
