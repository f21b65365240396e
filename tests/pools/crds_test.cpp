// The definitions can be read, and say what kubectl shows.
#include "pools/crds.h"

#include <gtest/gtest.h>

namespace berth::pools {
namespace {

TEST(Definitions, AreKindsThatCanBeRead) {
  constexpr std::string_view kNames[] = {"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "simulatednodeclasses.sim.berth.dev",
                                         "machinenodeclasses.berth.dev"};
  ASSERT_EQ(definitions().size(), std::size(kNames));
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    EXPECT_EQ(json::get_string(definitions()[i], {"metadata", "name"}), kNames[i]);
    EXPECT_NE(
        json::find(json::get_array(definitions()[i], {"spec", "versions"}).at(0), {"schema", "openAPIV3Schema", "properties", "spec"}),
        nullptr);
  }
}

}  // namespace
}  // namespace berth::pools
