// What the flags about etcd refuse before anybody looks for it.
#include "cli/keep/etcd_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace berth::cli {
namespace {

TEST(EtcdFlags, AnEmptyUrlDoesNotMeanTheDataDirectory) {
  CLI::App unset;
  EtcdFlags none;
  none.add_to(unset);
  EXPECT_THROW(unset.parse(std::vector<std::string>{"", "--etcd-servers"}), CLI::ValidationError);
  CLI::App app;
  EtcdFlags flags;
  flags.add_to(app);
  app.parse(std::vector<std::string>{"http://a:2379,http://b:2379,", "--etcd-servers"});
  EXPECT_EQ(flags.servers, (std::vector<std::string>{"http://a:2379", "http://b:2379"}));
}

TEST(EtcdFlags, AFileThatIsNotThereIsToldWithItsFlag) {
  EtcdFlags flags;
  flags.servers = {"https://a:2379"};
  flags.ca_file = "no-such-file.pem";
  Findings findings;
  const auto plan = flags.plan(findings);
  EXPECT_TRUE(plan.is_wanted());
  EXPECT_TRUE(findings.all_errors().starts_with("--etcd-cafile: no-such-file.pem")) << findings.all_errors();
}

}  // namespace
}  // namespace berth::cli
