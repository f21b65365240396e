// kube-controller-manager's flags, and the configuration that /configz shows of them.
#include <gtest/gtest.h>

#include "controllers/manager.h"
#include "model/features.h"

namespace berth::controllers {
namespace {

TEST(ManagerFlags, ConfigzShowsWhatTheFlagsSet) {
  std::vector<std::string> notes;
  const auto options =
      parse_manager_flags({"--node-monitor-grace-period=70s", "--node-eviction-rate", "0.5", "--controllers=*,-job-controller",
                           "--horizontal-pod-autoscaler-sync-period=5s", "--terminated-pod-gc-threshold=7", "--leader-elect"},
                          {}, notes);
  ASSERT_TRUE(options) << options.error().message;
  const json::Value shown = config_document(*options);
  EXPECT_EQ(json::get_string(shown, {"NodeLifecycleController", "NodeMonitorGracePeriod"}), "1m10s");
  EXPECT_EQ(shown.at("NodeLifecycleController").at("NodeEvictionRate").as_double(), 0.5);
  EXPECT_EQ(json::get_string(shown, {"HPAController", "HorizontalPodAutoscalerSyncPeriod"}), "5s");
  EXPECT_EQ(json::get_int(shown, {"PodGCController", "TerminatedPodGCThreshold"}), 7);
  EXPECT_TRUE(json::get_bool(shown, {"Generic", "LeaderElection", "LeaderElect"}));
  EXPECT_EQ(json::serialize(shown.at("Generic").at("Controllers")), R"(["*","-job-controller"])");
}

TEST(ManagerFlags, TheTimesOfLeaderElectionAreOwnOrKubernetes) {
  std::vector<std::string> notes;
  EXPECT_EQ(parse_manager_flags({}, {}, notes)->election, client::kOwnTimes);
  const auto one = parse_manager_flags({"--leader-elect-renew-deadline=14s"}, {}, notes);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->election, (client::ElectionTimes{std::chrono::seconds(15), std::chrono::seconds(14), std::chrono::seconds(2)}));
  EXPECT_TRUE(check_election(*one));
  // In any order, as long as the three fit together in the end.
  const auto all = parse_manager_flags(
      {"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"}, {}, notes);
  ASSERT_TRUE(all);
  EXPECT_TRUE(check_election(*all));
  EXPECT_FALSE(check_election(*parse_manager_flags({"--leader-elect-lease-duration=6s"}, {}, notes)));
}

TEST(ManagerFlags, GatesMakeWhatTheyAreOfAndWhatNeedsIt) {
  using model::Feature;
  std::vector<std::string> notes;
  EXPECT_TRUE(model::has(parse_manager_flags({}, {}, notes)->features, Feature::kWorkloadWithJob)) << "as berth up has it";
  EXPECT_FALSE(model::has(parse_manager_flags({"--feature-gates=WorkloadWithJob=false"}, {}, notes)->features, Feature::kWorkloadWithJob));
  EXPECT_FALSE(model::has(parse_manager_flags({"--feature-gates=GenericWorkload=false"}, {}, notes)->features, Feature::kWorkloadWithJob));
  const auto both = parse_manager_flags({"--feature-gates=GenericWorkload=false,WorkloadWithJob=true"}, {}, notes);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().message, "--feature-gates: WorkloadWithJob cannot be on while GenericWorkload is off");
}

TEST(ManagerFlags, WrongOnesAreNamed) {
  std::vector<std::string> notes;
  for (const char* flag : {"--no-such-flag=1", "--node-monitor-period=soon", "--node-eviction-rate=-1", "--feature-gates=NoSuchGate=true"})
    EXPECT_FALSE(parse_manager_flags({flag}, {}, notes)) << flag;
}

TEST(ManagerFlags, EachSignerMayHaveItsOwnAuthority) {
  for (const std::string signer : {"kube-apiserver-client", "kubelet-client", "kubelet-serving"}) {
    std::vector<std::string> notes;
    const auto options =
        parse_manager_flags({"--cluster-signing-" + signer + "-cert-file=/c", "--cluster-signing-" + signer + "-key-file=/k"}, {}, notes);
    ASSERT_TRUE(options) << options.error().message;
    ASSERT_EQ(options->signing.own_authorities.size(), 1U);
    EXPECT_EQ(options->signing.own_authorities.at(signer).certificate_file, "/c");
    EXPECT_EQ(options->signing.own_authorities.at(signer).key_file, "/k");
  }
  std::vector<std::string> notes;
  const auto shared = parse_manager_flags({"--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k"}, {}, notes);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->signing.certificate_file, "/c");
  EXPECT_EQ(shared->signing.key_file, "/k");
  EXPECT_TRUE(shared->signing.own_authorities.empty());
  EXPECT_TRUE(parse_manager_flags({"--approve-kubelet-serving=own-addresses"}, {}, notes)->signing.approves_kubelet_serving);
  EXPECT_FALSE(parse_manager_flags({"--approve-kubelet-serving=none"}, {}, notes)->signing.approves_kubelet_serving);
  EXPECT_FALSE(parse_manager_flags({"--approve-kubelet-serving=all"}, {}, notes));
  EXPECT_TRUE(parse_manager_flags({"--simulated-machines=true"}, {}, notes)->simulated_machines);
  EXPECT_FALSE(parse_manager_flags({"--simulated-machines=false"}, {}, notes)->simulated_machines);
  EXPECT_FALSE(parse_manager_flags({"--simulated-machines=yes"}, {}, notes));
}

}  // namespace
}  // namespace berth::controllers
