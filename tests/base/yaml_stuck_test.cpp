#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::json {

// The parser underneath answers these with empty documents without end.
TEST(YamlStream, StrayTokensAreErrorsAndEnd) {
  for (const char* text : {"a: 1}", "}", "]", "x: y\n}\n", ",", "\"a\": [1]]", ": :}"})
    EXPECT_TRUE(!parse_yaml_stream(text) || parse_yaml_stream(text)->size() < 5) << text;
  const auto stream = parse_yaml_stream("---\na: 1\n---\n...\n---\nb: 2\n");
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_EQ(stream->size(), 2u);
}

}  // namespace berth::json
