// Control groups of version 2, by a directory that stands for /sys/fs/cgroup: what is written where, and what is read from where.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "node/agent/cgroups.h"

namespace berth::node::agent {
namespace {

class CgroupsV2 : public ::testing::Test {
 protected:
  CgroupsV2() {
    char pattern[] = "/tmp/berth-cgroups.XXXXXX";
    root_ = ::mkdtemp(pattern);
    write("cgroup.controllers", "cpuset cpu io memory pids\n");
    write("cgroup.subtree_control", "");
    for (const char* group : {"kubepods", "kubepods/burstable", "kubepods/burstable/podA"}) make(group);
  }
  ~CgroupsV2() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const { std::ofstream(root_ + "/" + path) << text; }
  [[nodiscard]] std::string read(const std::string& path) const { return read_small_file(root_ + "/" + path).value_or("(not there)"); }
  /// As the kernel makes a group: with its files.
  void make(const std::string& group) const {
    std::filesystem::create_directories(root_ + "/" + group);
    for (const char* file : {"memory.max", "cpu.weight", "cpu.max", "pids.max", "cgroup.subtree_control"}) write(group + "/" + file, "");
  }
  [[nodiscard]] Cgroups groups() const { return *Cgroups::at(root_); }
  std::string root_;
};

const std::string kPod = "/kubepods/burstable/podA", kFiles = "kubepods/burstable/podA/";

TEST_F(CgroupsV2, IsKnownByItsControllers) {
  EXPECT_TRUE(groups().is_v2());
  std::filesystem::remove(root_ + "/cgroup.controllers");
  const auto found = Cgroups::at(root_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "no cgroup hierarchy with a memory controller at " + root_);
}

TEST_F(CgroupsV2, WhatAKernelDoesNotHandDownIsSaid) {
  write("cgroup.controllers", "cpuset cpu io pids\n");
  const auto found = Cgroups::at(root_);
  ASSERT_FALSE(found) << "as with cgroup_disable=memory";
  EXPECT_EQ(found.error().message, fmt::format("the kernel hands down no memory controller at {}, only: cpuset cpu io pids", root_));
  write("cgroup.controllers", "cpuset memory\n");
  EXPECT_FALSE(Cgroups::at(root_)) << "cpuset is not cpu";
}

TEST_F(CgroupsV2, ProcessesInTheWayAreSaid) {
  const auto made = groups().create("/kubepods/burstable/podB", {.memory_bytes = 1});  // A directory; the kernel would have files in it.
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("has no memory controller: processes in a group above it are in the way"), std::string::npos)
      << made.error().message;
}

TEST_F(CgroupsV2, EachLimitHasItsFileAndItsOwnScale) {
  ASSERT_TRUE(groups().create(kPod, {.memory_bytes = 1 << 20, .cpu_shares = 1024, .cpu_quota_us = 50000, .pids = 100}));
  EXPECT_EQ(read(kFiles + "memory.max"), "1048576");
  EXPECT_EQ(read(kFiles + "cpu.weight"), "39") << "of 1 to 10,000, for 1024 of 2 to 262,144";
  EXPECT_EQ(read(kFiles + "cpu.max"), "50000 100000");
  EXPECT_EQ(read(kFiles + "pids.max"), "100") << "beside a quota";
  make(kFiles.substr(0, kFiles.size() - 1));
  ASSERT_TRUE(groups().set_limits(kPod, {.memory_bytes = -1, .cpu_shares = 2, .cpu_quota_us = -1, .pids = -1}));
  EXPECT_EQ(read(kFiles + "memory.max"), "max");
  EXPECT_EQ(read(kFiles + "cpu.weight"), "1");
  EXPECT_EQ(read(kFiles + "cpu.max"), "max 100000");
  EXPECT_EQ(read(kFiles + "pids.max"), "max");
}

TEST_F(CgroupsV2, ControllersAreHandedDownGroupByGroup) {
  ASSERT_TRUE(groups().create(kPod, {}));
  for (const char* above : {"", "kubepods/", "kubepods/burstable/"})
    EXPECT_EQ(read(std::string(above) + "cgroup.subtree_control"), "+cpuset") << above << ": the last of those that were asked for";
  EXPECT_EQ(read(kFiles + "cgroup.subtree_control"), "") << "the pod's own are the runtime's to hand down";
}

TEST_F(CgroupsV2, WhatAGroupUses) {
  EXPECT_FALSE(groups().memory(kPod)) << "the kernel has not told yet";
  write(kFiles + "memory.current", "3000\n");
  write(kFiles + "memory.stat", "anon 1200\nfile 1700\ninactive_file 1000\npgfault 7\npgmajfault 2\n");
  write(kFiles + "memory.max", "max\n");
  auto memory = groups().memory(kPod);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->usage_bytes, 3000U);
  EXPECT_EQ(memory->working_set_bytes, 2000U) << "without what nobody has used lately";
  EXPECT_EQ(memory->rss_bytes, 1200U);
  EXPECT_EQ(memory->page_faults, 7U);
  EXPECT_EQ(memory->major_page_faults, 2U);
  EXPECT_EQ(memory->limit_bytes, std::nullopt);
  write(kFiles + "memory.max", "4096\n");
  EXPECT_EQ(groups().memory(kPod)->limit_bytes, 4096U);
  write(kFiles + "cpu.stat", "usage_usec 12\nuser_usec 10\n");
  EXPECT_EQ(groups().cpu_usage_ns(kPod), 12'000U);
  write(kFiles + "pids.current", "5\n");
  EXPECT_EQ(groups().process_count(kPod), 5U);
  write(kFiles + "memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\n");
  EXPECT_EQ(groups().oom_kills(kPod), 2U);
}

TEST_F(CgroupsV2, WhatIsInUseIsInTheWayOfALowerLimit) {
  EXPECT_FALSE(groups().usage_in_the_way(kPod, 1000)) << "the kernel has not told";
  write(kFiles + "memory.current", "3000\n");
  write(kFiles + "memory.max", "max\n");
  EXPECT_EQ(groups().usage_in_the_way(kPod, 3000), 3000U) << "all of it would be full";
  EXPECT_FALSE(groups().usage_in_the_way(kPod, 3001));
  EXPECT_FALSE(groups().usage_in_the_way(kPod, -1)) << "no limit";
  write(kFiles + "memory.max", "2000\n");
  EXPECT_FALSE(groups().usage_in_the_way(kPod, 2000)) << "that is in force";
  EXPECT_FALSE(groups().usage_in_the_way(kPod, 2500)) << "more than now";
  EXPECT_EQ(groups().usage_in_the_way(kPod, 1500), 3000U);
}

TEST_F(CgroupsV2, PressureIsTheGroupsOwn) {
  EXPECT_FALSE(groups().pressure(kPod, "memory"));
  write(kFiles + "memory.pressure", "some avg10=1.50 avg60=0.20 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
  const auto found = groups().pressure(kPod, "memory");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->some.avg10, 1.5);
  EXPECT_EQ(found->full->total_us, 5U);
}

TEST_F(CgroupsV2, SwapCanBeLimitedWhereTheKernelCountsIt) {
  EXPECT_FALSE(groups().counts_swap("/kubepods"));
  write("kubepods/memory.swap.max", "max\n");
  EXPECT_TRUE(groups().counts_swap("/kubepods"));
}

TEST_F(CgroupsV2, GroupsAreFoundAndGoWithThoseBelow) {
  EXPECT_TRUE(groups().exists(kPod));
  EXPECT_EQ(groups().children("/kubepods"), std::vector<std::string>{"burstable"});
  // rmdir of a group takes the kernel's files with it; of a directory it does not.
  for (const char* group : {"kubepods", "kubepods/burstable", "kubepods/burstable/podA"})
    for (const auto& file : std::filesystem::directory_iterator(root_ + "/" + group))
      if (file.is_regular_file()) std::filesystem::remove(file.path());
  EXPECT_TRUE(groups().remove("/kubepods"));
  EXPECT_FALSE(groups().exists("/kubepods"));
}

}  // namespace
}  // namespace berth::node::agent
