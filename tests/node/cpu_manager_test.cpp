// Configurations and files of the CPU manager.
#include "node/cpus/cpu_manager.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/views/pod_view.h"
#include "node/numa/shared.h"

namespace berth::node::cpus {
namespace {

class CpuManagerTest : public ::testing::Test {
 protected:
  CpuManagerTest() {
    char pattern[] = "/tmp/berth-cpu-manager.XXXXXX";
    root_ = ::mkdtemp(pattern);
    for (int cpu = 0; cpu < 4; ++cpu) {
      const std::string folder = fmt::format("{}/cpu/cpu{}/topology", root_, cpu);
      std::filesystem::create_directories(folder);
      std::ofstream(folder + "/thread_siblings_list") << cpu << "\n";
    }
    std::ofstream(root_ + "/cpu/online") << "0-3\n";
  }
  ~CpuManagerTest() override { std::filesystem::remove_all(root_); }
  CpuManagerOptions options(const std::string& reserved = "0") {
    CpuManagerOptions out{.policy = "static", .reserved = reserved};
    out.checkpoint = root_ + "/state";
    out.system_root = root_;
    out.changed = [this] { ++changes_; };
    return out;
  }
  static std::string error(CpuManagerOptions options) {
    const auto started = CpuManager::start(std::move(options));
    return started ? "" : started.error().message;
  }
  static json::Value pod(const std::string& uid, const std::string& cpu) {
    return *json::parse(fmt::format(
        R"({{"metadata":{{"uid":"{0}"}},"spec":{{"containers":[{{"name":"c","resources":{{"limits":{{"cpu":"{1}","memory":"1Gi"}},)"
        R"("requests":{{"cpu":"{1}","memory":"1Gi"}}}}}}]}}}})",
        uid, cpu));
  }
  /// Beside pods that are there already.
  static std::optional<Refusal> admit(CpuManager& manager, const json::Value& pod, std::set<std::string> others) {
    others.emplace(json::get_string(pod, {"metadata", "uid"}));
    manager.keep_only(others);
    return numa::admit({}, {}, numa::wishes_of(model::PodView::parse(pod)), {&manager});
  }
  std::string root_;
  int changes_ = 0;
};

TEST_F(CpuManagerTest, MistakesInTheConfigurationSayWhatIsWanted) {
  auto wrong = options();
  wrong.policy = "dynamic";
  EXPECT_EQ(error(wrong), "cpuManagerPolicy: unknown policy: \"dynamic\" (none, static)");
  EXPECT_EQ(error(options("")), "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  EXPECT_EQ(error(options("0-9")), "reservedSystemCPUs: this machine has the processors 0-3, not 0-9");
  EXPECT_EQ(error(options("one")), "reservedSystemCPUs: \"one\": a list of processors such as 0-3,8 is wanted");
  wrong = options();
  wrong.options = {{"align-by-core", "true"}};
  EXPECT_EQ(error(wrong),
            "cpuManagerPolicyOptions.align-by-core: this node knows align-by-socket, distribute-cpus-across-cores, "
            "distribute-cpus-across-numa, full-pcpus-only, prefer-align-cpus-by-uncorecache, strict-cpu-reservation");
  for (const auto& [one, other] : {std::pair("distribute-cpus-across-numa", "prefer-align-cpus-by-uncorecache"),
                                   {"distribute-cpus-across-cores", "prefer-align-cpus-by-uncorecache"},
                                   {"distribute-cpus-across-cores", "distribute-cpus-across-numa"},
                                   {"distribute-cpus-across-cores", "full-pcpus-only"}}) {
    wrong.options = {{one, "true"}, {other, "true"}};
    EXPECT_NE(error(wrong).find("can not be used at the same time"), std::string::npos) << one << " " << other;
  }
  wrong.options = {{"full-pcpus-only", "yes"}};
  EXPECT_EQ(error(wrong), "cpuManagerPolicyOptions.full-pcpus-only: true or false is wanted");
  auto many = options("");
  many.reserved_milli = 4001;
  EXPECT_EQ(error(many), "5 processors are reserved, and this machine has 4");
}

TEST_F(CpuManagerTest, WhatIsReservedByAmountIsRoundedUp) {
  auto some = options("");
  some.reserved_milli = 1100;
  const auto manager = CpuManager::start(some);
  ASSERT_TRUE(manager) << manager.error().message;
  EXPECT_EQ(numa::number_list((*manager)->allocatable()), "2-3");
}

TEST_F(CpuManagerTest, WhoIsToldAndWhatIsKept) {
  auto manager = std::move(*CpuManager::start(options()));
  EXPECT_FALSE(admit(*manager, pod("p", "2"), {}));
  EXPECT_EQ(changes_, 1);
  EXPECT_FALSE(admit(*manager, pod("b", "500m"), {"p"}));
  EXPECT_EQ(changes_, 1) << "nothing that is shared is another";
  EXPECT_TRUE(admit(*manager, pod("q", "2"), {"p"}));
  manager = std::move(*CpuManager::start(options()));
  EXPECT_EQ(numa::number_list(manager->own("p", "c")), "1-2");
  EXPECT_EQ(manager->cpus_of("b", "c"), "0,3");
  manager->release("p");
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(manager->cpus_of("b", "c"), "0-3");
}

TEST_F(CpuManagerTest, AFileOfAnotherConfigurationIsNotTakenOver) {
  {
    const auto manager = std::move(*CpuManager::start(options()));
    EXPECT_FALSE(admit(*manager, pod("p", "2"), {}));
  }
  EXPECT_NE(error(options("0-1")).find("drain this node and delete the CPU manager checkpoint file"), std::string::npos);
  auto none = options();
  none.policy = "none";
  EXPECT_NE(error(none).find("differs from state checkpoint policy \"static\""), std::string::npos);
  std::ofstream(root_ + "/state") << "{";
  EXPECT_NE(error(options()).find("it cannot be read"), std::string::npos);
  std::filesystem::remove(root_ + "/state");
  const auto nobody = CpuManager::start(none);
  ASSERT_TRUE(nobody);
  EXPECT_EQ(*nobody, nullptr);
}

}  // namespace
}  // namespace berth::node::cpus
