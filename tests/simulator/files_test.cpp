// Files that a simulation reads and writes: traces, recordings, dumps.
#include <filesystem>
#include <fstream>

#include "simulator/recording.h"
#include "simulator/replay.h"
#include "tests/simulator/support.h"

namespace berth::simulator {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 ("simulator-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(directory_);
    log::set_level(log::Level::kError);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return (directory_ / name).string();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (directory_ / name).string(); }
  [[nodiscard]] Result<Comparison> parse(const std::string& text) const { return parse_scenario(text, "s.yaml", directory_.string()); }

 private:
  std::filesystem::path directory_;
};

TEST_F(Files, ATraceBringsItsPods) {
  write("t.csv", "name,at,duration,cpu,memory,comment\na,10m,20m,2,1Gi,x\nb,5m,1h,500m,512Mi,\"quoted, with comma\"\nc,1h,,1,1Gi,\n");
  auto parsed = parse("duration: 3h\nnodes: [{count: 1}]\nworkloads: [{name: t, trace: {file: t.csv, keepTimes: true}}]\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto& rows = parsed->variants[0].scenario.workloads[0].trace;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, "b");
  EXPECT_EQ(rows[1].run_for, Duration(std::chrono::minutes(20)));
  EXPECT_FALSE(rows[2].run_for);
  const auto outcome = run(parsed->variants[0].scenario);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->samples.back().created, 3);
  EXPECT_EQ(outcome->samples.back().finished, 2);
  EXPECT_EQ(outcome->samples.back().running, 1);
}

TEST_F(Files, ATracesMistakesAreSaidWithTheirLine) {
  write("t.csv", "name,start,stop,cpu_milli,mem\na,100,50,1000,1\nb,10,20,-5,1\nc,,1,1,1\n");
  const auto parsed = parse(
      "duration: 3h\nnodes: [{count: 1}]\nworkloads:\n- name: t\n  trace: {file: t.csv, timeUnit: s, columns: {at: start, end: stop, cpu: "
      "cpu_milli, memory: mem}, units: {cpu: m}}\n");
  ASSERT_FALSE(parsed);
  const std::string& problems = parsed.error().message;
  for (const char* expected : {"t.csv:2: ends (50) before it starts (100)", "t.csv:3: cpu: \"-5m\" is not an amount", "t.csv:4: at: empty",
                               "memory: 1 has no unit"})
    EXPECT_NE(problems.find(expected), std::string::npos) << expected << "\n" << problems;
  write("u.csv", "at,cpu\n100,1\n");
  const auto bare = parse("duration: 3h\nnodes: [{count: 1}]\nworkloads: [{name: t, trace: {file: u.csv}}]\n");
  ASSERT_FALSE(bare);
  EXPECT_NE(bare.error().message.find("at: 100 has no unit"), std::string::npos) << bare.error().message;
  const auto no_column = parse("duration: 3h\nnodes: [{count: 1}]\nworkloads: [{name: t, trace: {file: u.csv, columns: {end: att}}}]\n");
  ASSERT_FALSE(no_column);
  EXPECT_NE(no_column.error().message.find("did you mean \"at\"?"), std::string::npos) << no_column.error().message;
}

constexpr const char* kDay = R"yaml(
duration: 4h
seed: 9
nodes: [{name: worker, count: 4, cpu: "8", memory: 32Gi}]
workloads:
- {name: web, deployment: {replicas: 5}, pod: {cpu: 500m, memory: 512Mi}}
- {name: batch, pod: {cpu: 1, memory: 1Gi}, arrivals: {rate: 30/h}, runFor: {mean: 20m}}
- {name: night, job: {completions: 4}, pod: {cpu: 1, memory: 1Gi}, arrivals: {at: 1h}, runFor: 10m}
)yaml";

TEST_F(Files, ARecordedDayRunsAgain) {
  const Scenario day = scenario_of(kDay);
  const auto recorded = run(day, {.on_progress = {}, .recording_file = path("day.jsonl"), .writes_heartbeats = false});
  ASSERT_TRUE(recorded) << recorded.error().message;
  std::int64_t pods = 0;
  const auto head = read_recording(path("day.jsonl"), [&](RecordedEvent event) -> Result<void> {
    pods += event.type == RecordedEvent::Type::kAdded && json::get_string(event.object, {"kind"}) == "Pod";
    return {};
  });
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(pods, recorded->samples.back().created);
  EXPECT_EQ(head->start, day.start);

  const auto again = parse("duration: 4h\nreplay: day.jsonl\n");
  ASSERT_TRUE(again) << again.error().message;
  const auto replayed = run(again->variants[0].scenario);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_TRUE(replayed->ok()) << to_text(*replayed);
  const Sample &before = recorded->samples.back(), &after = replayed->samples.back();
  EXPECT_EQ(after.nodes, before.nodes);
  EXPECT_EQ(after.created, before.created);
  EXPECT_EQ(after.running, before.running);
  EXPECT_NEAR(static_cast<double>(after.finished), static_cast<double>(before.finished), 2);

  const auto workloads = parse("duration: 4h\nreplay: {file: day.jsonl, as: workloads}\n");
  const auto remade = run(workloads->variants[0].scenario);
  ASSERT_TRUE(remade) << remade.error().message;
  EXPECT_EQ(remade->samples.back().workloads.at("default/web")[1], 5) << to_text(*remade);
}

TEST_F(Files, TwoRecordingsOfOneSeedAreTheSameBytes) {
  const Scenario day = scenario_of(std::string(kDay) + "faults: [{at: 2h, lose: 1, for: 20m}]\n");
  for (const char* name : {"a.jsonl", "b.jsonl"})
    ASSERT_TRUE(run(day, {.on_progress = {}, .recording_file = path(name), .writes_heartbeats = false}));
  const auto text = [&](const char* name) {
    std::ifstream in(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_TRUE(text("a.jsonl") == text("b.jsonl"));
  EXPECT_GT(text("a.jsonl").size(), 100'000U);
}

TEST_F(Files, ARecordingThatIsCutOffIsRefused) {
  const std::string head = "{\"recording\":\"berth/v1\",\"start\":\"2026-01-01T00:00:00Z\",\"source\":\"test\"}\n";
  const std::string line = "{\"at\":0,\"type\":\"ADDED\",\"object\":{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}}\n";
  const auto refusal = [&](const std::string& text) {
    const auto read = Replay::load(write("r.jsonl", text), false);
    return read ? std::string("none") : read.error().message;
  };
  EXPECT_EQ(refusal(head + line), "none");
  EXPECT_NE(refusal(head + line + line.substr(0, 30)).find("r.jsonl:3: the recording is cut off"), std::string::npos);
  EXPECT_NE(refusal(line).find("r.jsonl:1: not a recording"), std::string::npos);
  EXPECT_NE(refusal(head + "{\"at\":5,\"type\":\"ADED\",\"object\":{}}\n").find("r.jsonl:2: type \"ADED\""), std::string::npos);
  EXPECT_NE(refusal(head + "{\"at\":-5,\"type\":\"ADDED\",\"object\":{}}\n").find("milliseconds"), std::string::npos);
  EXPECT_NE(refusal("").find("not a recording"), std::string::npos);
}

TEST_F(Files, ADumpIsTheStart) {
  write("dump.yaml", R"yaml(
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, uid: node-1, labels: {topology.kubernetes.io/zone: a}}
  spec: {}
  status: {capacity: {cpu: "4", memory: 16Gi, pods: "110"}, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web-1, namespace: shop, uid: rs-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d-1, controller: true}], labels: {app: web, pod-template-hash: "1"}}
  spec: {replicas: 1, selector: {matchLabels: {app: web, pod-template-hash: "1"}}, template: {metadata: {labels: {app: web, pod-template-hash: "1"}}, spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: "1"}}}]}}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop, uid: d-1}
  spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: "1"}}}]}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: web-1-x, namespace: shop, uid: p-1, labels: {app: web, pod-template-hash: "1"}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: rs-1, controller: true}]}
  spec: {nodeName: n1, containers: [{name: c, image: nginx, resources: {requests: {cpu: "1"}}}]}
  status: {phase: Running}
- {apiVersion: v1, kind: Pod, metadata: {name: done, namespace: shop}, spec: {containers: [{name: c, image: x}]}, status: {phase: Succeeded}}
- {apiVersion: v1, kind: Pod, metadata: {name: adrift, namespace: shop}, spec: {nodeName: gone, containers: [{name: c, image: x}]}, status: {phase: Running}}
)yaml");
  const auto parsed = parse("duration: 1h\nfrom: dump.yaml\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto outcome = run(parsed->variants[0].scenario);
  ASSERT_TRUE(outcome) << outcome.error().message;
  const Sample& end = outcome->samples.back();
  EXPECT_TRUE(outcome->refusals.empty()) << to_text(*outcome);
  EXPECT_EQ(end.nodes, 1);
  EXPECT_EQ(end.workloads.at("shop/web")[1], 1) << to_text(*outcome);
  EXPECT_EQ(end.created, 1) << "the pod was taken over, not made again";
  ASSERT_EQ(outcome->notes.size(), 2U);
  EXPECT_NE(outcome->notes[1].find("nodes that are not in it"), std::string::npos);
}

}  // namespace
}  // namespace berth::simulator
