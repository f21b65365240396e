// Image volumes: what goes to containerd's snapshot service, and what its mounts become.
#include "node/agent/image_volumes.h"

#include <gtest/gtest.h>

#include "node/agent/images.h"

namespace berth::node::agent {
namespace {

TEST(Snapshots, AMessageHasItsStringsInOrderWithoutTheEmptyOnes) {
  EXPECT_EQ(cri::message_of_strings({"ab", "", "c"}), std::string("\x0a\x02"
                                                                  "ab"
                                                                  "\x1a\x01"
                                                                  "c"));
  const std::string big = cri::message_of_strings({std::string(300, 'x')});
  EXPECT_EQ(big.substr(0, 3), "\x0a\xac\x02") << "sizes from 128 take two bytes";
}

TEST(Snapshots, MountsAreReadWithAllTheirOptions) {
  const std::string one = cri::message_of_strings({"overlay", "overlay", "", "index=off"}) + std::string(
                                                                                                 "\x22\x0c"
                                                                                                 "lowerdir=/a:");
  const auto mounts = cri::parse_snapshot_mounts(cri::message_of_strings({one}));
  ASSERT_TRUE(mounts);
  ASSERT_EQ(mounts->size(), 1u);
  EXPECT_EQ((*mounts)[0].type, "overlay");
  EXPECT_EQ((*mounts)[0].source, "overlay");
  EXPECT_EQ((*mounts)[0].options, (std::vector<std::string>{"index=off", "lowerdir=/a:"}));
}

TEST(Snapshots, AnAnswerThatEndsEarlyIsNotRead) {
  const std::string whole = cri::message_of_strings({cri::message_of_strings({"bind", "/source"})});
  for (std::size_t size = 1; size < whole.size(); ++size) EXPECT_FALSE(cri::parse_snapshot_mounts(whole.substr(0, size))) << size;
  EXPECT_FALSE(cri::parse_snapshot_mounts(std::string(20, '\xff')));
  EXPECT_TRUE(cri::parse_snapshot_mounts("")->empty());
}

TEST(OverlayOptions, FewLayersAreNamedInFull) {
  const OverlayOptions options = overlay_options({"ro", "index=off", "lowerdir=/s/2/fs:/s/1/fs"});
  EXPECT_EQ(options.base, "");
  EXPECT_EQ(options.data, "index=off,lowerdir=/s/2/fs:/s/1/fs");
}

TEST(OverlayOptions, ManyLayersAreNamedFromTheirCommonDirectory) {
  const OverlayOptions options =
      overlay_options({"index=off", "lowerdir=/data/snapshots/12/fs:/data/snapshots/1/fs:/data/snapshots/7/fs"}, 20);
  EXPECT_EQ(options.base, "/data/snapshots");
  EXPECT_EQ(options.data, "index=off,lowerdir=12/fs:1/fs:7/fs");
}

TEST(ImageNames, CanonicalNamesAreThoseThatRuntimesList) {
  EXPECT_EQ(canonical_image("busybox"), "docker.io/library/busybox:latest");
  EXPECT_EQ(canonical_image("me/app:1"), "docker.io/me/app:1");
  EXPECT_EQ(canonical_image("registry.k8s.io/pause:3"), "registry.k8s.io/pause:3");
  EXPECT_EQ(canonical_image("localhost:5000/a/b"), "localhost:5000/a/b:latest");
}

}  // namespace
}  // namespace berth::node::agent
