// Pods of simulated nodes whose programs are berth's own roles: which they are, and how their containers follow them.
#include <gtest/gtest.h>

#include "node/simulated/fleet.h"
#include "node/simulated/role_command.h"

namespace berth::node::simulated {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

const TimePoint kStart = *parse_rfc3339("2026-01-01T00:00:00Z");

TEST(RoleCommand, TheDocumentsJobIsTheDescheduler) {
  const RoleCommand wanted{"descheduler", {"--policy-config-file", "/policy-dir/policy.yaml"}};
  const std::string image = "registry.access.redhat.com/openshift3/ose-descheduler";
  EXPECT_EQ(read_role_command(image, {"/bin/sh", "-ec", "/bin/descheduler --policy-config-file /policy-dir/policy.yaml\n"}, {}), wanted);
  EXPECT_EQ(
      read_role_command(image, {"sh", "-e", "-c", "set -e\nexec descheduler \\\n --policy-config-file '/policy-dir/policy.yaml'"}, {}),
      wanted);
  EXPECT_EQ(read_role_command("any", {"berth", "descheduler"}, {"--policy-config-file", "/policy-dir/policy.yaml"}), wanted);
  EXPECT_EQ(read_role_command(image + ":v3.11", {}, wanted.args), wanted) << "the image's own program";
  EXPECT_EQ(read_role_command("berth@sha256:0", {}, {"scheduler", "--scheduler-name", "x"}),
            (RoleCommand{"scheduler", {"--scheduler-name", "x"}}));
}

TEST(RoleCommand, EverythingElseIsNot) {
  EXPECT_FALSE(read_role_command("nginx", {}, {}));
  EXPECT_FALSE(read_role_command("berth", {}, {})) << "no role";
  EXPECT_FALSE(read_role_command("berth", {}, {"server"})) << "a role that no pod may have";
  EXPECT_FALSE(read_role_command("descheduler", {"sleep", "5"}, {}));
  for (const char* script : {"descheduler; rm -rf /", "descheduler && true", "descheduler $(id)", "echo x; descheduler", "descheduler > /f",
                             "descheduler `id`", "descheduler \"$HOME\"", "descheduler 'open"})
    EXPECT_FALSE(read_role_command("i", {"sh", "-c", script}, {})) << script;
}

struct World {
  Fleet fleet;
  TimePoint now = kStart;
  std::string last_status;

  explicit World(bool has_runner = true) : fleet(FleetOptions{.runs_programs = has_runner}) {
    fleet.add_node({"node-1", "z", "r", 0, {}}, now);
  }
  void put(const char* policy, const char* annotations = "{}") {
    fleet.observe_pod(
        *json::parse(fmt::format(
            R"({{"metadata":{{"namespace":"d","name":"p","uid":"u","annotations":{}}},"spec":{{"nodeName":"node-1","restartPolicy":"{}",
                              "containers":[{{"name":"c","image":"berth","args":["descheduler"]}}]}},"status":{{"phase":"Pending"}}}})",
            annotations, policy)),
        now);
    drain();
  }
  void drain() {
    while (const auto write = fleet.next_write(now)) {
      if (write->kind == Write::Kind::kPodStatus) last_status = write->body;
      fleet.finish_write(*write, {200, "uid", "1"}, now);
    }
  }
  [[nodiscard]] std::string phase() const { return std::string(json::get_string(*json::parse(last_status), {"status", "phase"})); }
  ProgramOrder order() {
    const auto next = fleet.next_program();
    EXPECT_TRUE(next);
    return next.value_or(ProgramOrder{});
  }
};

TEST(Programs, AContainerEndsWithItsProgram) {
  World world;
  world.put("Never");
  const ProgramOrder start = world.order();
  EXPECT_TRUE(start.is_start);
  EXPECT_EQ(start.command.role, "descheduler");
  EXPECT_EQ(world.phase(), "Running");
  world.fleet.program_wrote(start, "evicted one\nevicted ");
  world.now += 3s;
  world.fleet.program_ended(start, 0, world.now);
  world.drain();
  EXPECT_EQ(world.phase(), "Succeeded");
  EXPECT_EQ(world.fleet.find_pod("d", "p")->log(0, false), "evicted one\nevicted \n");
}

TEST(Programs, OneThatEndsInTheMomentItStartedEndsTheContainerToo) {
  World world;
  world.put("Never");
  world.fleet.program_ended(world.order(), 3, world.now);
  world.drain();
  EXPECT_EQ(world.phase(), "Failed");
}

TEST(Programs, AFailureIsRunAgainByPolicy) {
  World world;
  world.put("OnFailure");
  const ProgramOrder first = world.order();
  world.now += 1s;
  world.fleet.program_ended(first, 1, world.now);
  EXPECT_FALSE(world.order().is_start) << "the run that is over";
  const ProgramOrder second = world.order();
  EXPECT_TRUE(second.is_start);
  EXPECT_NE(second.container_id, first.container_id);
  world.fleet.program_ended(first, 0, world.now);
  world.drain();
  EXPECT_EQ(world.phase(), "Running") << "an old run says nothing of the new one";
}

TEST(Programs, ADeletedPodsProgramIsStopped) {
  World world;
  world.put("Always");
  const ProgramOrder start = world.order();
  world.fleet.forget_pod("u");
  const ProgramOrder stop = world.order();
  EXPECT_FALSE(stop.is_start);
  EXPECT_EQ(stop.container_id, start.container_id);
  EXPECT_FALSE(world.fleet.next_program());
}

TEST(Programs, AnAnnotationThatSaysHowLongItRunsWins) {
  World world;
  world.put("Never", R"({"sim.berth.dev/run-for":"5s"})");
  EXPECT_FALSE(world.fleet.next_program());
}

TEST(Programs, WithoutARunnerNothingIsAsked) {
  World world(false);
  world.put("Never");
  EXPECT_FALSE(world.fleet.next_program());
  EXPECT_EQ(world.phase(), "Running");
}

}  // namespace
}  // namespace berth::node::simulated
