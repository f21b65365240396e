// What is read from the machine: control groups of both versions, procfs, the kernel's log. On files made here.
#include "node/agent/machine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "node/agent/memory_alarm.h"
#include "node/agent/oom_watch.h"
#include "node/agent/writable_layers.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

class MachineFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "berth-machine-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    paths_.proc = (root_ / "proc").string();
    paths_.node_fs = paths_.image_fs = root_.string();
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, std::string_view text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Cgroups version(int number) {
    write(number == 2 ? "cgroup/cgroup.controllers" : "cgroup/memory/cgroup.procs", number == 2 ? "cpu memory" : "");
    auto groups = Cgroups::at((root_ / "cgroup").string());
    EXPECT_TRUE(groups && groups->is_v2() == (number == 2));
    return *groups;
  }

  fs::path root_;
  MachinePaths paths_;
};

TEST_F(MachineFiles, Version2MemoryLeavesInactivePageCacheOut) {
  write("cgroup/kubepods/memory.current", "104857600\n");
  write("cgroup/kubepods/memory.stat", "anon 62914560\nfile 41943040\ninactive_anon 1\nactive_file 10485760\ninactive_file 31457280\n");
  write("cgroup/kubepods/memory.max", "max\n");
  auto memory = version(2).memory("/kubepods");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->usage_bytes, 104857600u);
  EXPECT_EQ(memory->working_set_bytes, 73400320u);
  EXPECT_FALSE(memory->limit_bytes) << "the word max is no limit";
  write("cgroup/kubepods/memory.max", "209715200\n");
  memory = version(2).memory("/kubepods");
  EXPECT_EQ(memory->limit_bytes, 209715200u);
  write("cgroup/kubepods/memory.stat", "inactive_file 999999999\n");
  EXPECT_EQ(version(2).memory("/kubepods")->working_set_bytes, 0u) << "never below nothing";
  EXPECT_FALSE(version(2).memory("/gone"));
}

TEST_F(MachineFiles, Version2CpuProcessesAndOomKills) {
  write("cgroup/kubepods/cpu.stat", "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\nnr_periods 0\n");
  write("cgroup/kubepods/pids.current", "42\n");
  write("cgroup/kubepods/memory.events", "low 0\nhigh 0\nmax 17\noom 3\noom_kill 2\noom_group_kill 0\n");
  const Cgroups groups = version(2);
  EXPECT_EQ(groups.cpu_usage_ns("/kubepods"), 1234567000u);
  EXPECT_EQ(groups.process_count("/kubepods"), 42u);
  EXPECT_EQ(groups.oom_kills("/kubepods"), 2u) << "oom_kill, not oom";
  EXPECT_FALSE(groups.cpu_usage_ns("/gone"));
  EXPECT_FALSE(groups.process_count("/gone"));
}

TEST_F(MachineFiles, Version1HasAFileAndADirectoryPerController) {
  write("cgroup/memory/kubepods/memory.usage_in_bytes", "1000\n");
  write("cgroup/memory/kubepods/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n");
  write("cgroup/memory/kubepods/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/memory/kubepods/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  write("cgroup/cpuacct/kubepods/cpuacct.usage", "777\n");
  write("cgroup/pids/kubepods/pids.current", "9\n");
  const Cgroups groups = version(1);
  const auto memory = groups.memory("/kubepods");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->working_set_bytes, 700u) << "the whole subtree's page cache counts";
  EXPECT_FALSE(memory->limit_bytes) << "a number near 2^63 is no limit";
  EXPECT_EQ(groups.cpu_usage_ns("/kubepods"), 777u);
  EXPECT_EQ(groups.process_count("/kubepods"), 9u);
  EXPECT_EQ(groups.oom_kills("/kubepods"), 5u);
}

TEST_F(MachineFiles, PressureStallInformation) {
  write("cgroup/kubepods/memory.pressure",
        "some avg10=1.50 avg60=0.25 avg300=0.05 total=123456\nfull avg10=0.75 avg60=0.10 avg300=0.00 total=65432\n");
  const auto pressure = version(2).pressure("/kubepods", "memory");
  ASSERT_TRUE(pressure);
  EXPECT_DOUBLE_EQ(pressure->some.avg10, 1.5);
  EXPECT_DOUBLE_EQ(pressure->some.avg300, 0.05);
  EXPECT_EQ(pressure->some.total_us, 123456u);
  ASSERT_TRUE(pressure->full);
  EXPECT_EQ(pressure->full->total_us, 65432u);
  write("cgroup/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  const auto cpu = version(2).pressure("", "cpu");
  ASSERT_TRUE(cpu);
  EXPECT_FALSE(cpu->full);
  for (const char* wrong : {"", "some\n", "some avg10=x avg60=0 avg300=0 total=1\n", "some avg10 total=1\n",
                            "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", "some avg10=0.00 avg60=0.00 avg300=0.00\n"})
    EXPECT_FALSE(parse_pressure(wrong)) << wrong;
}

TEST_F(MachineFiles, TheMachineItself) {
  write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    4194304 kB\n");
  write("cgroup/memory.stat", "anon 5368709120\nfile 4294967296\ninactive_file 3221225472\nslab 7\npgfault 9\npgmajfault 3\n");
  write("proc/loadavg", "0.10 0.20 0.30 2/321 4242\n");
  write("proc/sys/kernel/pid_max", "4194304\n");
  write("proc/sys/kernel/threads-max", "1000\n");
  write("proc/swaps", "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n");
  EXPECT_FALSE(is_swap_on(paths_.proc));
  write("proc/swaps", "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n/dev/vdb partition 1 0 -2\n");
  EXPECT_TRUE(is_swap_on(paths_.proc));
  const Cgroups groups = version(2);
  EXPECT_EQ(read_machine(groups, paths_).memory_bytes, 16LL << 30);
  EXPECT_EQ(read_machine(groups, paths_).max_pid, 1000) << "the smaller of two limits";
  const eviction::NodeUsage usage = observe_machine(groups, paths_, TimePoint(Duration(5)));
  EXPECT_EQ(usage.memory->usage_bytes, 9ULL << 30) << "what programs use and page cache";
  EXPECT_EQ(usage.memory->working_set_bytes, 6ULL << 30) << "less what is cached and was not used lately";
  EXPECT_EQ(usage.memory->available_bytes, 10ULL << 30) << "what the machine has, less that: not MemAvailable";
  EXPECT_EQ(usage.memory->rss_bytes, 5ULL << 30);
  EXPECT_EQ(usage.memory->page_faults, 9U);
  EXPECT_EQ(usage.memory->major_page_faults, 3U);
  EXPECT_EQ(usage.running_processes, 321);
  EXPECT_GT(usage.fs->capacity_bytes.value_or(0), 0u);
}

TEST_F(MachineFiles, TheMachineItselfByVersion1sRoot) {
  write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    4194304 kB\n");
  write("cgroup/memory/memory.usage_in_bytes", "9663676416\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/memory/memory.stat", "inactive_file 1\ntotal_rss 5\ntotal_inactive_file 3221225472\ntotal_pgfault 9\n");
  const eviction::NodeUsage usage = observe_machine(version(1), paths_, {});
  EXPECT_EQ(usage.memory->available_bytes, 10ULL << 30);
  EXPECT_EQ(usage.memory->page_faults, 9U);
}

TEST_F(MachineFiles, AMachineWithoutSuchFilesIsWhatTheKernelTakesForAvailable) {
  write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    4194304 kB\n");
  const eviction::NodeUsage usage = observe_machine(version(2), paths_, {});
  EXPECT_EQ(usage.memory->available_bytes, 4ULL << 30);
  EXPECT_EQ(usage.memory->usage_bytes, 15ULL << 30);
}

TEST_F(MachineFiles, ACgroupStandsForTheMachine) {
  write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    4194304 kB\n");
  write("cgroup/node1/memory.current", "700\n");
  write("cgroup/node1/memory.stat", "inactive_file 100\n");
  write("cgroup/node1/memory.max", "1000\n");
  paths_.node_cgroup = "/node1";
  const Cgroups groups = version(2);
  EXPECT_EQ(read_machine(groups, paths_).memory_bytes, 1000);
  EXPECT_EQ(observe_machine(groups, paths_, {}).memory->available_bytes, 400u);
}

TEST_F(MachineFiles, DamagedFilesGiveNothing) {
  const Cgroups groups = version(2);
  for (const char* text : {"", "garbage", "-5\n", "\n\n"}) {
    write("cgroup/g/memory.current", text);
    write("cgroup/g/cpu.stat", text);
    write("proc/meminfo", text);
    write("proc/loadavg", text);
    EXPECT_FALSE(groups.memory("/g")) << text;
    EXPECT_FALSE(groups.cpu_usage_ns("/g"));
    EXPECT_FALSE(observe_machine(groups, paths_, {}).running_processes);
  }
}

TEST(WritableLayers, AreFoundByTheContainersMounts) {
  const auto layers = writable_layers(
      "36 35 98:0 / / rw,noatime - ext4 /dev/vda rw\n"
      "88 36 0:60 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/abc/rootfs rw,relatime - overlay overlay "
      "rw,lowerdir=/l/1:/l/2,upperdir=/snap\\040shots/7/fs,workdir=/snapshots/7/work\n"
      "89 36 0:61 / /merged shared:5 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n"
      "90 36 0:62 / /x/def/rootfs ro - overlay overlay ro,lowerdir=/l\n\nrubbish - overlay\n");
  EXPECT_EQ(layers, (std::map<std::string, std::string>{{"abc", "/snap shots/7/fs"}}));
}

TEST_F(MachineFiles, MeasuredLayersReplaceTheRuntimesFigures) {
  write("layer/file", std::string(100'000, 'x'));
  write("proc/self/mountinfo",
        fmt::format("88 36 0:60 / /run/abc/rootfs rw - overlay overlay rw,upperdir={}\n", (root_ / "layer").string()));
  PodFigures pod;
  pod.containers["c"].id = "abc";
  eviction::FsUsage old;
  old.used_bytes = 5;
  old.inodes_used = 1;
  pod.usage.containers.push_back({"c", {}, old, {}});
  pod.usage.ephemeral_storage = eviction::FsUsage{};
  pod.usage.ephemeral_storage->used_bytes = 1005;
  std::vector<PodFigures> pods{pod};
  measure_writable_layers(pods, paths_.proc);
  const std::uint64_t measured = *pods[0].usage.containers[0].rootfs->used_bytes;
  EXPECT_GE(measured, 100'000u);
  EXPECT_EQ(pods[0].usage.ephemeral_storage->used_bytes, 1000 + measured) << "logs and volumes stay";
}

TEST(MemoryAlarmLevel, IsWhatMayStillBeUsedBeyondTheThreshold) {
  EXPECT_EQ(alarm_usage_bytes(1000, 500, 200), 1300u);
  EXPECT_EQ(alarm_usage_bytes(1000, 200, 200), 0u) << "crossed already: there is nothing to wait for";
}

TEST_F(MachineFiles, AnAlarmWithoutAKernelOnlyLetsTimePass) {
  const Cgroups groups = version(2);
  MemoryAlarm alarm(groups, {"/gone"}, paths_.proc);
  EXPECT_FALSE(alarm.is_armed());
  EXPECT_EQ(alarm.describe(), "polling");
  EXPECT_EQ(alarm.wait(std::chrono::milliseconds(1)), MemoryAlarm::Wake::kTimeout);
  std::thread other([&] { alarm.stop(); });
  EXPECT_EQ(alarm.wait(std::chrono::hours(1)), MemoryAlarm::Wake::kStopped);
  other.join();
}

/// A cgroup of this machine's own hierarchy, gone at the end.
struct OwnGroup {
  OwnGroup() : path("/berth-test-" + std::to_string(getpid())) {
    groups = Cgroups::detect();
    if (groups && !groups->create(path, {})) groups = fail(ErrorCode::kUnavailable, "cannot make a group");
  }
  ~OwnGroup() {
    if (groups) (void)groups->remove(path);
  }
  std::string path;
  Result<Cgroups> groups = fail(ErrorCode::kUnavailable, "");
};

TEST(MemoryAlarm, TheKernelWakesAtTheLevel) {
  OwnGroup own;
  if (!own.groups || own.groups->is_v2() || access("/sys/fs/cgroup/memory/cgroup.procs", W_OK) != 0)
    GTEST_SKIP() << "needs a writable cgroup v1 memory hierarchy";
  MemoryAlarm alarm(*own.groups, {own.path});
  const auto now = own.groups->memory(own.path);
  ASSERT_TRUE(now);
  alarm.arm({{own.path, now->usage_bytes + (8 << 20)}});
  ASSERT_TRUE(alarm.is_armed());
  EXPECT_EQ(alarm.describe(), "cgroup thresholds");
  // A child that puts itself into the group and uses 32 MiB there.
  const std::string procs = own.groups->directory("memory", own.path) + "/cgroup.procs";
  const pid_t child = fork();
  if (child == 0) {
    const std::string self = std::to_string(getpid());
    if (!write_control_file(procs, self)) _exit(1);
    const std::size_t size = 32 << 20;
    volatile char* memory = static_cast<char*>(std::malloc(size));
    for (std::size_t i = 0; i < size; i += 4096) memory[i] = 1;
    pause();
    _exit(0);
  }
  EXPECT_EQ(alarm.wait(std::chrono::seconds(20)), MemoryAlarm::Wake::kThreshold);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// ---- the OOM killer

constexpr const char* kStart = "4,1,100,-;stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=1000";

TEST(OomLog, OneLineOfNewKernels) {
  OomLogParser parser;
  EXPECT_FALSE(parser.feed(kStart));
  EXPECT_FALSE(parser.feed("6,2,101,-;Tasks state (memory values in pages):"));
  auto kill = parser.feed(
      "6,3,102,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=abc,mems_allowed=0,oom_memcg=/kubepods/podx,task_memcg=/"
      "kubepods/podx/c1,task=stress,pid=4242,uid=0\n SUBSYSTEM=x");
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->process, "stress");
  EXPECT_EQ(kill->pid, 4242);
  EXPECT_EQ(kill->limit_group, "/kubepods/podx");
  EXPECT_EQ(kill->victim_group, "/kubepods/podx/c1");
  EXPECT_FALSE(is_system_oom(*kill, "")) << "a container at its own limit is its own affair";
  kill = parser.feed(
      "6,4,103,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods/podx/"
      "c1,task=my prog,pid=7,uid=0");
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->limit_group, "/");
  EXPECT_TRUE(is_system_oom(*kill, ""));
  EXPECT_EQ(system_oom_message(*kill), "System OOM encountered, victim process: my prog, pid: 7");
}

TEST(OomLog, SeveralLinesOfOldKernels) {
  OomLogParser parser;
  EXPECT_FALSE(parser.feed(kStart));
  EXPECT_FALSE(parser.feed("6,5,1,-;Task in /kubepods/podx/c1 killed as a result of limit of /kubepods/podx"));
  auto kill = parser.feed("3,6,1,-;Killed process 99 (stress) total-vm:1kB, anon-rss:1kB");
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->limit_group, "/kubepods/podx");
  EXPECT_EQ(kill->pid, 99);
  EXPECT_FALSE(parser.feed("3,7,1,-;Killed process 98 (other)")) << "nothing is open any more";
  EXPECT_FALSE(parser.feed(kStart));
  kill = parser.feed("3,8,1,-;Out of memory: Killed process 5 (a) total-vm:1kB");
  ASSERT_TRUE(kill);
  EXPECT_TRUE(is_system_oom(*kill, ""));
}

TEST(OomLog, ACgroupThatStandsForTheMachine) {
  const OomKill kill{"a", 1, "/node1", "/node1/kubepods/podx"};
  EXPECT_TRUE(is_system_oom(kill, "/node1"));
  EXPECT_FALSE(is_system_oom(kill, "/node2"));
  EXPECT_FALSE(is_system_oom(kill, ""));
  EXPECT_EQ(system_oom_message({{}, 0, "/", {}}), "System OOM encountered");
}

TEST(OomLog, AnythingElseIsNothing) {
  OomLogParser parser;
  for (const char* text : {"", ";", "6,1,1,-;", "oom-kill", "Killed process", "Killed process x (", "6,1,1,-;eth0: link up"})
    EXPECT_FALSE(parser.feed(text)) << text;
  const auto bare = parser.feed("oom-kill:constraint=");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->pid, 0);
}

}  // namespace
}  // namespace berth::node::agent
