// The definitions can be read, and say what kubectl shows.
#include "pools/crds.h"

#include <gtest/gtest.h>

namespace berth::pools {
namespace {

TEST(Definitions, AreThreeKindsThatCanBeRead) {
  ASSERT_EQ(definitions().size(), 3U);
  const char* names[] = {"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "simulatednodeclasses.sim.berth.dev"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(json::get_string(definitions()[i], {"metadata", "name"}), names[i]);
    EXPECT_NE(
        json::find(json::get_array(definitions()[i], {"spec", "versions"}).at(0), {"schema", "openAPIV3Schema", "properties", "spec"}),
        nullptr);
  }
}

}  // namespace
}  // namespace berth::pools
