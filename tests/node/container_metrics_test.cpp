// What Prometheus and the metrics server read of a node's pods, from control groups and procfs made here.
#include "node/agent/container_metrics.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "node/agent/group_figures.h"
#include "node/agent/node_stats.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

const TimePoint kNow{std::chrono::seconds(1'700'000'000)};

class ContainerMetrics : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "berth-metrics-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    paths_.proc = (root_ / "proc").string();
    write("proc/meminfo",
          "MemTotal: 4096 kB\nMemFree: 96 kB\nMemAvailable: 1096 kB\nAnonPages: 50 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n");
    machine_.memory_bytes = 4096 << 10;
    write("proc/stat", "cpu 1 2 3\nbtime 1600000000\n");
    for (const char* group : {"", "/kubepods", "/kubepods/burstable"}) make_group(group);
    for (const char* group : {"", "/sand", "/c1"}) make_group(kPod + group);
    pod_.ns = "shop", pod_.name = "web", pod_.uid = "u", pod_.cgroup = kPod, pod_.sandbox_id = "sand", pod_.has_network = true;
    pod_.start_time = kNow - std::chrono::minutes(2);
    pod_.containers["c"] = {"c1", "nginx:1", kNow - std::chrono::minutes(1)};
    pod_.usage.containers.push_back({"c", eviction::MemoryUsage{{}, 700, 1000, kNow}, {}, {}});
    pod_.usage.memory = eviction::MemoryUsage{{}, 800, 1100, kNow};
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, std::string_view text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] bool is_v2() const { return GetParam() == 2; }
  [[nodiscard]] Cgroups groups() const { return Cgroups::at((root_ / "cgroup").string(), is_v2()); }
  void write_group(const std::string& group, const std::string& controller, const std::string& file, std::string_view text) {
    write("cgroup" + (is_v2() ? "" : "/" + controller) + group + "/" + file, text);
  }
  /// The same figures by either version's files.
  void make_group(const std::string& group) {
    if (is_v2()) {
      write_group(group, "", "cpu.stat",
                  "usage_usec 5000000\nuser_usec 3000000\nsystem_usec 2000000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1500000\n");
      write_group(group, "", "memory.stat", "anon 400\nfile 500\nfile_mapped 50\ninactive_file 300\npgfault 7\npgmajfault 2\n");
      write_group(group, "", "io.stat", "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2\n");
      for (const auto& [resource, some] : {std::pair("cpu", 1'500'000), {"memory", 2'500'000}, {"io", 3'500'000}})
        write_group(group, "", fmt::format("{}.pressure", resource),
                    fmt::format("some avg10=1.25 avg60=0.50 avg300=0.10 total={}\nfull avg10=0.75 avg60=0.25 avg300=0.05 total={}\n", some,
                                some - 1'000'000));
      if (group.empty()) return;  // The kernel's root has no more.
      write_group(group, "", "cpu.max", "50000 100000\n");
      write_group(group, "", "cpu.weight", "1\n");
      write_group(group, "", "memory.current", "1000\n");
      write_group(group, "", "memory.max", "2000\n");
      write_group(group, "", "memory.swap.current", "30\n");
      write_group(group, "", "memory.swap.max", "90\n");
      write_group(group, "", "memory.events", "max 6\noom 1\noom_kill 3\n");
      write_group(group, "", "pids.current", "5\n");
    } else {
      write_group(group, "cpuacct", "cpuacct.usage", "5000000000\n");
      write_group(group, "cpuacct", "cpuacct.stat", "user 300\nsystem 200\n");
      write_group(group, "cpu", "cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 1500000000\n");
      write_group(group, "cpu", "cpu.cfs_quota_us", "50000\n");
      write_group(group, "cpu", "cpu.cfs_period_us", "100000\n");
      write_group(group, "cpu", "cpu.shares", "2\n");
      write_group(group, "memory", "memory.usage_in_bytes", "1000\n");
      write_group(group, "memory", "memory.stat",
                  "rss 1\ntotal_rss 400\ntotal_cache 500\ntotal_mapped_file 50\ntotal_inactive_file 300\ntotal_swap 30\ntotal_pgfault "
                  "7\ntotal_pgmajfault 2\n");
      write_group(group, "memory", "memory.limit_in_bytes", "2000\n");
      write_group(group, "memory", "memory.memsw.limit_in_bytes", "2090\n");
      write_group(group, "memory", "memory.failcnt", "6\n");
      write_group(group, "memory", "memory.oom_control", "oom_kill 3\n");
      write_group(group, "pids", "pids.current", "5\n");
      write_group(group, "blkio", "blkio.throttle.io_service_bytes", "8:0 Read 4096\n8:0 Write 8192\n8:0 Total 12288\nTotal 12288\n");
      write_group(group, "blkio", "blkio.throttle.io_serviced", "8:0 Read 1\n8:0 Write 2\nTotal 3\n");
    }
  }
  json::Value summary() {
    CpuRates rates;
    return summary_json("n", {}, {pod_}, groups(), paths_, rates, kNow);
  }
  std::string cadvisor() { return cadvisor_metrics(machine_, {pod_}, groups(), paths_, kNow); }

  inline static const std::string kPod = "/kubepods/burstable/podu";
  fs::path root_;
  MachinePaths paths_;
  PodFigures pod_;
  eviction::Machine machine_;
};

/// Lines of a family, without comments.
std::vector<std::string> lines_of(const std::string& text, const std::string& family) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(family + "{") || line.starts_with(family + " ")) out.push_back(line);
  return out;
}

using Lines = std::vector<std::string>;

TEST_P(ContainerMetrics, ResourceFiguresAreOfContainersPodsAndTheNode) {
  eviction::NodeUsage node;
  node.memory = eviction::MemoryUsage{{}, 3000, 3500, kNow};
  const std::string text = resource_metrics(node, {pod_}, groups(), paths_, kNow);
  const std::string labels = R"({container="c",namespace="shop",pod="web"} )", pod = R"({namespace="shop",pod="web"} )";
  EXPECT_EQ(lines_of(text, "container_cpu_usage_seconds_total"), Lines{"container_cpu_usage_seconds_total" + labels + "5 1700000000000"});
  EXPECT_EQ(lines_of(text, "container_memory_working_set_bytes"),
            Lines{"container_memory_working_set_bytes" + labels + "700 1700000000000"});
  EXPECT_EQ(lines_of(text, "container_start_time_seconds"), Lines{"container_start_time_seconds" + labels + "1699999940"});
  EXPECT_EQ(lines_of(text, "container_swap_usage_bytes"), Lines{"container_swap_usage_bytes" + labels + "30 1700000000000"});
  EXPECT_EQ(lines_of(text, "container_swap_limit_bytes"), Lines{"container_swap_limit_bytes" + labels + "90 1700000000000"});
  EXPECT_EQ(lines_of(text, "pod_cpu_usage_seconds_total"), Lines{"pod_cpu_usage_seconds_total" + pod + "5 1700000000000"});
  EXPECT_EQ(lines_of(text, "pod_memory_working_set_bytes"), Lines{"pod_memory_working_set_bytes" + pod + "800 1700000000000"});
  EXPECT_EQ(lines_of(text, "node_memory_working_set_bytes"), Lines{"node_memory_working_set_bytes 3000 1700000000000"});
  EXPECT_EQ(lines_of(text, "node_swap_usage_bytes"), Lines{"node_swap_usage_bytes 40960 1700000000000"});
  EXPECT_EQ(lines_of(text, "resource_scrape_error"), Lines{"resource_scrape_error 0"});
  EXPECT_NE(text.find("# TYPE container_cpu_usage_seconds_total counter\n"), std::string::npos);
}

TEST_P(ContainerMetrics, OneThatDoesNotRunIsNotTold) {
  pod_.containers.clear();
  pod_.usage.containers.clear();
  const std::string text = resource_metrics({}, {pod_}, groups(), paths_, kNow);
  EXPECT_EQ(text.find("container_"), std::string::npos) << "a family without samples has no heading either";
  EXPECT_EQ(lines_of(text, "pod_cpu_usage_seconds_total").size(), 1u);
}

TEST_P(ContainerMetrics, WatchersSeeTheNodeItsGroupsPodsSandboxesAndContainers) {
  const std::string text = cadvisor();
  const std::string tail = R"(,namespace="shop",pod="web"} 5 1700000000000)";
  EXPECT_EQ(
      lines_of(text, "container_cpu_usage_seconds_total"),
      (Lines{
          R"(container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 5 1700000000000)",
          R"(container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods",image="",name="",namespace="",pod=""} 5 1700000000000)",
          R"(container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/burstable",image="",name="",namespace="",pod=""} 5 1700000000000)",
          R"(container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/burstable/podu",image="",name="")" + tail,
          R"(container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/burstable/podu/sand",image="pause",name="sand")" +
              tail,
          R"(container_cpu_usage_seconds_total{container="c",cpu="total",id="/kubepods/burstable/podu/c1",image="nginx:1",name="c1")" +
              tail}));
}

TEST_P(ContainerMetrics, AContainersFigures) {
  const std::string text = cadvisor();
  const std::string labels = R"({container="c",id="/kubepods/burstable/podu/c1",image="nginx:1",name="c1",namespace="shop",pod="web"} )";
  for (const auto& [family, value] : std::map<std::string, std::string>{{"container_cpu_user_seconds_total", "3"},
                                                                        {"container_cpu_system_seconds_total", "2"},
                                                                        {"container_cpu_cfs_periods_total", "10"},
                                                                        {"container_cpu_cfs_throttled_periods_total", "4"},
                                                                        {"container_cpu_cfs_throttled_seconds_total", "1.5"},
                                                                        {"container_memory_usage_bytes", "1000"},
                                                                        {"container_memory_working_set_bytes", "700"},
                                                                        {"container_memory_rss", "400"},
                                                                        {"container_memory_cache", "500"},
                                                                        {"container_memory_mapped_file", "50"},
                                                                        {"container_memory_swap", "30"},
                                                                        {"container_memory_failcnt", "6"},
                                                                        {"container_oom_events_total", "3"},
                                                                        {"container_threads", "5"},
                                                                        {"container_spec_cpu_quota", "50000"},
                                                                        {"container_spec_cpu_period", "100000"},
                                                                        {"container_spec_cpu_shares", "2"},
                                                                        {"container_spec_memory_limit_bytes", "2000"},
                                                                        {"container_spec_memory_swap_limit_bytes", "90"},
                                                                        {"container_start_time_seconds", "1699999940"},
                                                                        {"container_last_seen", "1700000000"}})
    EXPECT_EQ(lines_of(text, family).back(), family + labels + value + " 1700000000000");
  EXPECT_EQ(
      lines_of(text, "container_memory_failures_total").back(),
      R"(container_memory_failures_total{container="c",failure_type="pgmajfault",id="/kubepods/burstable/podu/c1",image="nginx:1",name="c1",namespace="shop",pod="web",scope="hierarchy"} 2 1700000000000)");
  EXPECT_NE(lines_of(text, "container_fs_writes_bytes_total").back().find(R"(device="8:0")"), std::string::npos);
  EXPECT_TRUE(lines_of(text, "container_fs_writes_bytes_total").back().ends_with(" 8192 1700000000000"));
  EXPECT_TRUE(lines_of(text, "container_fs_reads_total").back().ends_with(" 1 1700000000000"));
}

TEST_P(ContainerMetrics, WithoutAProcessorLimitThrottlingIsNotTold) {
  if (is_v2())
    write_group(kPod + "/c1", "", "cpu.max", "max 100000\n");
  else
    write_group(kPod + "/c1", "cpu", "cpu.cfs_quota_us", "-1\n");
  const std::string text = cadvisor();
  EXPECT_EQ(lines_of(text, "container_spec_cpu_quota").size(), lines_of(text, "container_spec_cpu_period").size() - 1);
  EXPECT_EQ(lines_of(text, "container_cpu_cfs_throttled_seconds_total").size(), lines_of(text, "container_spec_cpu_quota").size());
}

TEST_P(ContainerMetrics, TheNetworkIsTheSandboxs) {
  write_group(kPod + "/sand", "memory", "cgroup.procs", "77\n");
  write("proc/77/net/dev",
        "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
        "  eth0: 100 10 1 2 0 0 0 0 200 20 3 4 0 0 0 0\nveth12: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n");
  const std::string labels =
      R"({container="",id="/kubepods/burstable/podu/sand",image="pause",interface="eth0",name="sand",namespace="shop",pod="web"} )";
  std::string text = cadvisor();
  EXPECT_EQ(lines_of(text, "container_network_receive_bytes_total").back(),
            "container_network_receive_bytes_total" + labels + "100 1700000000000");
  EXPECT_EQ(lines_of(text, "container_network_receive_packets_dropped_total").back(),
            "container_network_receive_packets_dropped_total" + labels + "2 1700000000000");
  EXPECT_EQ(lines_of(text, "container_network_transmit_errors_total").back(),
            "container_network_transmit_errors_total" + labels + "3 1700000000000");
  EXPECT_EQ(lines_of(text, "container_network_transmit_packets_total").back(),
            "container_network_transmit_packets_total" + labels + "20 1700000000000");
  EXPECT_EQ(text.find(R"(interface="lo")"), std::string::npos);
  EXPECT_EQ(text.find("veth"), std::string::npos);
  pod_.has_network = false;
  EXPECT_EQ(cadvisor().find(R"(interface="eth0",name="sand")"), std::string::npos) << "the machine's own is not the pod's";
}

TEST_P(ContainerMetrics, DescriptorsAndSocketsAreCounted) {
  write_group(kPod + "/c1", "memory", "cgroup.procs", "78\n79\n");
  fs::create_directories(root_ / "proc/78/fd");
  fs::create_symlink("/dev/null", root_ / "proc/78/fd/0");
  fs::create_symlink("socket:[1]", root_ / "proc/78/fd/1");
  const std::string text = cadvisor();
  for (const auto& [family, value] : std::map<std::string, std::string>{
           {"container_processes", "2"}, {"container_file_descriptors", "2"}, {"container_sockets", "1"}, {"container_threads_max", "0"}})
    EXPECT_NE(lines_of(text, family).back().find("} " + value + " "), std::string::npos) << family;
  EXPECT_EQ(lines_of(text, "container_processes").size(), 2u) << "of sandboxes and containers, not of the groups above";
}

TEST_P(ContainerMetrics, TheMachineHasItsMemoryAndSwapForLimits) {
  for (const auto& [file, text] :
       {std::pair("memory.limit_in_bytes", "9223372036854771712\n"), {"memory.memsw.limit_in_bytes", "9223372036854771712\n"}})
    if (!is_v2()) write_group("", "memory", file, text);
  const std::string text = cadvisor();
  const std::string labels = R"({container="",id="/",image="",name="",namespace="",pod=""} )";
  for (const auto& [family, value] : std::map<std::string, std::string>{{"container_spec_memory_limit_bytes", "4194304"},
                                                                        {"container_spec_memory_swap_limit_bytes", "102400"},
                                                                        {"container_memory_usage_bytes", is_v2() ? "900" : "1000"},
                                                                        {"container_memory_working_set_bytes", is_v2() ? "600" : "700"},
                                                                        {"container_memory_rss", "400"},
                                                                        {"container_memory_swap", is_v2() ? "40960" : "30"}})
    EXPECT_EQ(lines_of(text, family).front(), family + labels + value + " 1700000000000");
  EXPECT_TRUE(lines_of(text, "container_memory_failures_total").front().ends_with(" 7 1700000000000"));
}

TEST_P(ContainerMetrics, WhoWaitedIsCountedOnVersion2) {
  const std::string text = cadvisor();
  const std::string labels = R"({container="c",id="/kubepods/burstable/podu/c1",image="nginx:1",name="c1",namespace="shop",pod="web"} )";
  for (const auto& [family, value] : std::map<std::string, std::string>{{"container_pressure_cpu_waiting_seconds_total", "1.5"},
                                                                        {"container_pressure_cpu_stalled_seconds_total", "0.5"},
                                                                        {"container_pressure_memory_waiting_seconds_total", "2.5"},
                                                                        {"container_pressure_memory_stalled_seconds_total", "1.5"},
                                                                        {"container_pressure_io_waiting_seconds_total", "3.5"},
                                                                        {"container_pressure_io_stalled_seconds_total", "2.5"}}) {
    const Lines lines = lines_of(text, family);
    if (!is_v2()) {
      EXPECT_EQ(lines, Lines{}) << family;
      continue;
    }
    ASSERT_EQ(lines.size(), 6U) << "the machine, all pods, a class, a pod, its sandbox, its container";
    EXPECT_EQ(lines.back(), family + labels + value + " 1700000000000");
  }
}

TEST_P(ContainerMetrics, TheSummaryHasPressureOfNodePodsAndContainers) {
  const json::Value all = summary();
  const json::Value *pod = json::find(all, {"pods"}), *system = json::find(all, {"node", "systemContainers"});
  ASSERT_TRUE(pod && system);
  pod = &pod->as_array()[0];
  for (const json::Value* holder :
       {json::find(all, {"node"}), &system->as_array()[0], pod, &json::find(*pod, {"containers"})->as_array()[0]})
    for (const auto& [resource, some] : {std::pair("cpu", 1'500'000), {"memory", 2'500'000}, {"io", 3'500'000}}) {
      const json::Value* psi = json::find(*holder, {resource, "psi"});
      ASSERT_EQ(psi != nullptr, is_v2()) << resource << " " << json::serialize(*holder);
      if (!is_v2()) continue;
      EXPECT_EQ(json::serialize(*psi), fmt::format(R"({{"full":{{"total":{},"avg10":0.75,"avg60":0.25,"avg300":0.05}},)"
                                                   R"("some":{{"total":{},"avg10":1.25,"avg60":0.5,"avg300":0.1}}}})",
                                                   some - 1'000'000, some));
    }
  EXPECT_EQ(json::find(all, {"node", "io"}) != nullptr, is_v2());
}

INSTANTIATE_TEST_SUITE_P(, ContainerMetrics, testing::Values(1, 2), [](const auto& info) { return fmt::format("Version{}", info.param); });

TEST(VolumeMetrics, EachClaimIsToldOnceHoweverManyPodsHaveIt) {
  eviction::FsUsage usage;
  usage.capacity_bytes = 1000, usage.used_bytes = 250, usage.inodes_free = 7;
  const std::string text = volume_metrics({{"data", usage, "shop", "notes"}, {"other", usage, "shop", "notes"}, {"scratch", usage}});
  EXPECT_EQ(lines_of(text, "kubelet_volume_stats_capacity_bytes"),
            Lines{R"(kubelet_volume_stats_capacity_bytes{namespace="shop",persistentvolumeclaim="notes"} 1000)"});
  EXPECT_EQ(lines_of(text, "kubelet_volume_stats_used_bytes").size(), 1u);
  EXPECT_EQ(lines_of(text, "kubelet_volume_stats_inodes_free").size(), 1u);
  EXPECT_EQ(text.find("available"), std::string::npos) << "the driver did not count it";
}

}  // namespace
}  // namespace berth::node::agent
