// One pod's worker and memory that a resize would take away while it is in use.
#include "pod_worker_fixture.h"

namespace berth::node::agent::testing {
namespace {

class PodResize : public PodWorkerTest {};

/// Version 2's kernel takes a limit below what is in use, and kills for it: the node does not write one.
TEST_F(PodResize, MemoryInUseIsNotTakenAwayByAResize) {
  const auto with = [](const char* memory) {
    return pod(fmt::format("containers: [{{name: c, image: 'app:1', resources: {{requests: {{memory: 10Mi}}, limits: {{memory: {}}}}}}}]",
                           memory));
  };
  const std::string group = root_ + "/cgroup/kubepods/burstable/poduid-1";
  const auto set = [](const std::string& file, std::int64_t mebibytes) { std::ofstream(file) << (mebibytes << 20) << "\n"; };
  const auto condition = [&](std::string_view part) {
    const json::Value status = worker_->status();
    for (const json::Value& c : json::get_array(status, {"conditions"}))
      if (json::get_string(c, {"type"}) == "PodResizeInProgress") return std::string(json::get_string(c, {part}));
    return std::string();
  };
  start(with("200Mi"));
  ASSERT_TRUE(eventually_phase("Running"));
  const std::string container = group + "/" + runtime_.running("c")->id;
  fs::create_directories(container);
  set(container + "/memory.max", 200), set(container + "/memory.current", 160), set(group + "/memory.current", 161);
  worker_->update(with("100Mi"));
  ASSERT_TRUE(eventually([&] { return condition("reason") == "Error"; }));
  EXPECT_EQ(
      condition("message"),
      "cannot decrease memory limits: [attempting to set pod memory limit (104857600) below current usage (168820736), attempting to set "
      "container \"c\" memory limit (104857600) below current usage (167772160)]");
  EXPECT_TRUE(has_event("Warning ResizeError Pod resize error: "));
  EXPECT_EQ(read_small_file(group + "/memory.max"), std::to_string(200 << 20)) << "nor by what makes the pod's group";
  EXPECT_TRUE(runtime_.updates.empty());
  pass(std::chrono::seconds(11));
  EXPECT_TRUE(eventually([&] { return runtime_.count("ListContainers") > 0; }));
  EXPECT_EQ(read_small_file(group + "/memory.max"), std::to_string(200 << 20));
  set(container + "/memory.current", 90), set(group + "/memory.current", 91);
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(eventually([&] { return has_event("Normal ResizeCompleted"); }));
  EXPECT_EQ(condition("reason"), "");
  EXPECT_EQ(read_small_file(group + "/memory.max"), std::to_string(100 << 20));
  ASSERT_EQ(runtime_.updates.size(), 1u);
}

/// One that wants a restart for it gives its memory back first.
TEST_F(PodResize, ARestartFreesTheMemoryThatIsTakenAway) {
  const auto with = [](const char* memory) {
    return pod(
        fmt::format("containers: [{{name: c, image: 'app:1', resizePolicy: [{{resourceName: memory, restartPolicy: RestartContainer}}], "
                    "resources: {{requests: {{memory: 10Mi}}, limits: {{memory: {}}}}}}}]",
                    memory));
  };
  const std::string group = root_ + "/cgroup/kubepods/burstable/poduid-1";
  start(with("200Mi"));
  ASSERT_TRUE(eventually_phase("Running"));
  std::ofstream(group + "/memory.current") << (160 << 20) << "\n";
  worker_->update(with("100Mi"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("c") && runtime_.running("c")->attempt == 1; }));
  EXPECT_EQ(read_small_file(group + "/memory.max"), std::to_string(200 << 20)) << "the kernel has not counted down yet";
  std::ofstream(group + "/memory.current") << (1 << 20) << "\n";
  pass(std::chrono::seconds(11));
  EXPECT_TRUE(eventually([&] { return read_small_file(group + "/memory.max") == std::to_string(100 << 20); }));
  EXPECT_TRUE(eventually([&] { return has_event("Normal ResizeCompleted"); }));
}

}  // namespace
}  // namespace berth::node::agent::testing
