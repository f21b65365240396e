#include "custom/formats.h"

#include <gtest/gtest.h>

namespace berth::custom {
namespace {

TEST(CustomFormats, AHostnameIsLabelsOfUpTo63BytesAndAWordOfLetters) {
  const std::string longest(63, 'a'), longer(64, 'a');
  for (const std::string& good : {std::string("a"), std::string("a-b"), std::string("example.com"), std::string("9-9.a-b.de"), longest,
                                  longest + ".de", "a." + longest, std::string("bücher.de"), std::string("x€.de")})
    EXPECT_TRUE(has_format("hostname", good)) << good;
  for (const std::string& bad :
       {std::string(""), std::string("a-b-c"), std::string("a."), std::string(".a"), std::string("a..b"), std::string("-a.de"),
        std::string("a-.de"), std::string("a.1"), std::string("a.b"), std::string("a_b.de"), std::string("x.ö€ab"), longer, longer + ".de",
        "a." + longer, std::string(32, 'a') + std::string(224, '.')})
    EXPECT_FALSE(has_format("hostname", bad)) << bad;
}

TEST(CustomFormats, NoFormatIsTooLargeForTheAutomatonOfItsExpression) {
  testing::internal::CaptureStderr();
  for (const char* format :
       {"hostname", "email", "mac", "creditcard", "uuid", "hexcolor", "rgbcolor", "ssn", "isbn", "uri", "cidr", "bsonobjectid"})
    for (const char* text : {"a-b.example.com", "somebody@example.com", "4111111111111111"}) (void)has_format(format, text);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace berth::custom
