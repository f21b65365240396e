// What a pod on a simulated node may ask berth's own binary to do: its author is not this machine's owner.
#include "cli/nodes/pod_programs.h"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using Words = std::vector<std::string>;

const std::vector<std::pair<std::string, std::string>> kMounts = {{"/policy-dir", "/here/volume-0"},
                                                                  {"/policy-dir/inner", "/here/volume-1"}};

Words accepted(const char* role, Words args) {
  Words notes;
  auto words = program_arguments({role, std::move(args)}, kMounts, notes);
  EXPECT_TRUE(words) << words.error().message;
  EXPECT_EQ(notes, Words());
  return words ? *words : Words{};
}
std::string refused(const char* role, Words args) {
  Words notes;
  const auto words = program_arguments({role, std::move(args)}, kMounts, notes);
  EXPECT_FALSE(words);
  return words ? "" : words.error().message;
}

TEST(PodPrograms, PathsOfThePodAreThoseOfItsVolumes) {
  EXPECT_EQ(accepted("descheduler", {"--policy-config-file", "/policy-dir/policy.yaml", "--dry-run"}),
            (Words{"descheduler", "--policy-config-file", "/here/volume-0/policy.yaml", "--dry-run", "--disable-metrics"}));
  EXPECT_EQ(accepted("descheduler", {"--policy-config-file=/policy-dir/inner/../p"})[1], "--policy-config-file=/here/volume-0/p");
  EXPECT_EQ(accepted("scheduler", {"--config=/policy-dir/inner/c", "--leader-elect=false"}),
            (Words{"scheduler", "--config=/here/volume-1/c", "--leader-elect=false", "--secure-port=0"}));
}

TEST(PodPrograms, ACalloutNumberOfTheDocumentIsNoArgumentAndThatIsTold) {
  Words notes;
  const auto words = program_arguments({"descheduler", {"--policy-config-file", "/policy-dir/policy.yaml", "4"}}, kMounts, notes);
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_EQ(words->size(), 4U);
  EXPECT_EQ(notes, Words{"the command is read without the callout \"4\" at its end"});
  // What a flag takes is its value, and what stands before other words is a mistake.
  EXPECT_EQ(accepted("descheduler", {"--descheduling-interval", "5"}),
            (Words{"descheduler", "--descheduling-interval", "5", "--disable-metrics"}));
  EXPECT_EQ(accepted("scheduler", {"--seed", "42"}), (Words{"scheduler", "--seed", "42", "--secure-port=0"}));
  EXPECT_NE(refused("descheduler", {"4", "--dry-run"}).find("\"4\": no flag of berth descheduler"), std::string::npos);
  EXPECT_NE(refused("descheduler", {"--dry-run=true", "400"}).find("\"400\": no flag of berth descheduler"), std::string::npos);
}

TEST(PodPrograms, OtherFilesAndFlagsAreRefusedByName) {
  for (const char* path : {"/etc/passwd", "policy.yaml", "/policy-dir/../etc/passwd", "/policy-directory/x"})
    EXPECT_NE(refused("descheduler", {"--policy-config-file", path}).find("no volume of the container is mounted there"), std::string::npos)
        << path;
  for (const char* flag : {"--kubeconfig", "--cluster", "--tls-cert-file=/x", "--secure-port", "--master-config"})
    EXPECT_NE(refused("descheduler", {flag, "/policy-dir/x"}).find("not a flag that a pod"), std::string::npos) << flag;
  EXPECT_NE(refused("scheduler", {"server"}).find("no flag of berth scheduler"), std::string::npos);
}

}  // namespace
}  // namespace berth::cli
