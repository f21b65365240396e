#include "base/dotted.h"

#include <gtest/gtest.h>

namespace berth::json {
namespace {

TEST(Dotted, LeadsToWhatStandsThere) {
  const Value document = *parse(R"({"spec":{"replicas":3,"a":{"b":null}}})");
  EXPECT_EQ(*find_dotted(document, "spec.replicas"), Value(3));
  EXPECT_EQ(find_dotted(document, ".spec.replicas"), find_dotted(document, "spec.replicas"));
  EXPECT_EQ(find_dotted(document, "spec.a.b"), nullptr);
  EXPECT_EQ(find_dotted(document, "spec.replicas.deeper"), nullptr);
  EXPECT_EQ(find_dotted(document, "status"), nullptr);
  EXPECT_EQ(find_dotted(document, ""), &document);
}

TEST(Dotted, MakesTheWayToWhatIsSet) {
  Value document = *parse(R"({"spec":5})");
  set_dotted(document, "spec.scale.size", Value(2));
  set_dotted(document, ".status", Value("x"));
  EXPECT_EQ(berth::json::serialize(document), R"({"spec":{"scale":{"size":2}},"status":"x"})");
}

TEST(Dotted, NamesAreSplitAtDots) {
  EXPECT_EQ(dotted_names(".spec.replicas"), (std::vector<std::string_view>{"spec", "replicas"}));
  EXPECT_EQ(dotted_names("a"), (std::vector<std::string_view>{"a"}));
}

}  // namespace
}  // namespace berth::json
