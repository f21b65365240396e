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

TEST_F(Files, ATraceThatIsCutOffIsRefusedWithItsLine) {
  const auto problems = [&](const std::string& csv) {
    write("t.csv", csv);
    const auto parsed = parse("duration: 3h\nnodes: [{count: 1}]\nworkloads: [{name: t, trace: {file: t.csv, timeUnit: s}}]\n");
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(problems("at,end,cpu\n0,10,1\n5,20,1"), "") << "the last line may lack its end";
  EXPECT_NE(problems("at,end,cpu\n0,10,1\n50").find("t.csv:3: has 1 column, the header 3: the file seems to be cut off"),
            std::string::npos);
  EXPECT_NE(problems("at,end,cpu\n0,10,1,7\n5,20,1\n").find("t.csv:2: has 4 columns, the header 3"), std::string::npos);
}

TEST_F(Files, ARecordingOfNothingIsRefused) {
  write("r.jsonl", "{\"recording\":\"berth/v1\",\"start\":\"2026-03-02T00:00:00Z\",\"source\":\"berth record\"}\n");
  const auto parsed = parse("duration: 10m\nreplay: r.jsonl\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto outcome = run(parsed->variants[0].scenario);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("nothing happens in it"), std::string::npos) << outcome.error().message;
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

TEST_F(Files, ARecordingIsAScenarioOfItsOwn) {
  const std::string head = "{\"recording\":\"berth/v1\",\"start\":\"2026-03-02T08:00:00Z\",\"source\":\"test\"}\n";
  const std::string node =
      "{\"at\":0,\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}}\n";
  const std::string later =
      "{\"at\":90001,\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}}\n";
  const auto loaded = load_scenario(write("monday.jsonl", head + node + later + "\n"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->variants.size(), 1U);
  const Scenario& scenario = loaded->variants[0].scenario;
  EXPECT_EQ(scenario.title, "monday");
  EXPECT_EQ(scenario.duration, std::chrono::minutes(3)) << "a minute after the whole one in which the last thing happened";
  EXPECT_EQ(format_rfc3339(scenario.start), "2026-03-02T08:00:00Z");
  const auto outcome = run(scenario);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->samples.front().nodes, 1);
  EXPECT_EQ(outcome->samples.back().nodes, 0);

  const auto audited = load_scenario(write(
      "audit.log",
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"create","requestURI":"/api/v1/nodes","stageTimestamp":"2026-03-02T09:00:00Z","objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":201},"responseObject":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"1"}}})"
      "\n"));
  ASSERT_TRUE(audited) << audited.error().message;
  EXPECT_EQ(format_rfc3339(audited->variants[0].scenario.start), "2026-03-02T09:00:00Z");
  // Read from a pipe it has no name to be found by.
  const auto piped = parse_scenario(head + node, "standard input", "");
  ASSERT_FALSE(piped);
  EXPECT_EQ(piped.error().message, "standard input is a recording: give the file's name instead");
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

TEST_F(Files, ADumpOfTwoClustersIsRefusedAndWhatIsMissingIsNoted) {
  constexpr const char* kNode = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, uid: UID}\nstatus: {capacity: {cpu: 4}}\n";
  const auto node = [&](const std::string& uid) {
    std::string text = kNode;
    return text.replace(text.find("UID"), 3, uid);
  };
  write("two.yaml", node("a") + "---\n" + node("b"));
  const auto two = parse("duration: 1h\nfrom: two.yaml\n");
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("Node /n1: two objects of one name with two uids"), std::string::npos) << two.error().message;
  write("cut.yaml", node("a") + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: d}\n");
  const auto cut = parse("duration: 1h\nfrom: cut.yaml\n");
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("Pod d/p: no spec.containers: the dump seems to be cut off"), std::string::npos);
  write("orphan.yaml",
        node("a") +
            "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: d, ownerReferences: [{kind: ReplicaSet, name: web-1, "
            "uid: x, controller: true}]}\nspec: {containers: [{name: c}]}\n");
  const auto orphan = parse("duration: 1h\nfrom: orphan.yaml\n");
  ASSERT_TRUE(orphan) << orphan.error().message;
  const std::string notes = fmt::format("{}", fmt::join(orphan->notes, "\n"));
  EXPECT_NE(notes.find("pods of ReplicaSet d/web-1, and not these themselves"), std::string::npos) << notes;
  EXPECT_NE(notes.find("no PodDisruptionBudget in the dump"), std::string::npos) << notes;
}

/// One line of an audit log.
std::string audited(int second, const std::string& verb, const std::string& resource, const std::string& name, const std::string& bodies,
                    const std::string& subresource = "", const std::string& level = "RequestResponse") {
  return fmt::format(
      R"({{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"{}","stage":"ResponseComplete","requestURI":"/x","verb":"{}","objectRef":{{"resource":"{}","namespace":"{}","name":"{}","apiVersion":"v1","subresource":"{}"}},"responseStatus":{{"code":200}},"stageTimestamp":"2026-01-01T00:00:{:02}.000000Z"{}}})"
      "\n",
      level, verb, resource, resource == "nodes" ? "" : "d", name, subresource, second, bodies);
}

std::string pod_text(const std::string& name, const std::string& more, int revision, const std::string& metadata = "") {
  return fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{0}","namespace":"d","uid":"u-{0}","resourceVersion":"{2}"{3}}},"spec":{{"restartPolicy":"Never","containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}]}}{1}}})",
      name, more, revision, metadata);
}

constexpr const char* kAuditNode =
    R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"un","resourceVersion":"1","creationTimestamp":"2025-12-01T00:00:00Z"},"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"110"},"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}})";

TEST_F(Files, AnAuditLogIsARecordedDay) {
  const auto answer = [](const std::string& object) { return ",\"responseObject\":" + object; };
  const std::string text =
      audited(0, "patch", "nodes", "n", answer(kAuditNode), "status") + audited(10, "create", "pods", "a", answer(pod_text("a", "", 5))) +
      audited(11, "create", "pods", "a", R"(,"requestObject":{"kind":"Binding","target":{"name":"n"}},"responseObject":{"kind":"Status"})",
              "binding") +
      audited(15, "patch", "pods", "a", answer(pod_text("a", R"(,"status":{"phase":"Running"})", 8)), "status") +
      // Told late by another API server's log: older than what is known.
      audited(14, "get", "pods", "a", answer(pod_text("a", "", 5))) +
      audited(45, "patch", "pods", "a", answer(pod_text("a", R"(,"status":{"phase":"Succeeded"})", 9)), "status") +
      audited(50, "delete", "pods", "a",
              answer(pod_text("a", "", 10, R"(,"deletionTimestamp":"2026-01-01T00:00:50Z","deletionGracePeriodSeconds":0)"))) +
      audited(55, "update", "pods", "b", "", "", "Metadata");
  std::vector<std::string> seen;
  const auto head = read_recording(write("audit.log", text), [&](RecordedEvent event) -> Result<void> {
    seen.push_back(
        fmt::format("{} {} {}", event.at_ms, static_cast<int>(event.type), json::get_string(event.object, {"metadata", "name"})));
    return {};
  });
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(seen, (std::vector<std::string>{"0 0 n", "10000 0 a", "11000 1 a", "15000 1 a", "45000 1 a", "50000 2 a"}));
  ASSERT_EQ(head->notes.size(), 1U);
  EXPECT_NE(head->notes[0].find("1 writes were logged at level Metadata"), std::string::npos) << head->notes[0];
  const auto outcome = run(parse("duration: 2m\nreplay: audit.log\n")->variants[0].scenario);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->samples.back().created, 1);
  EXPECT_EQ(outcome->samples.back().finished, 1) << to_text(*outcome);
  EXPECT_EQ(outcome->samples.back().nodes, 1);
}

TEST_F(Files, AnAuditLogAtLevelRequestTellsWhatWasSent) {
  const auto sent = [](const std::string& object) { return ",\"requestObject\":" + object; };
  const std::string text =
      audited(0, "update", "nodes", "n", sent(kAuditNode), "", "Request") +
      audited(5, "create", "pods", "a", sent(pod_text("a", "", 0)), "", "Request") +
      audited(6, "create", "pods", "", R"(,"requestObject":{"kind":"Pod","metadata":{"generateName":"x-"}})", "", "Request") +
      audited(20, "patch", "pods", "a", R"(,"requestObject":{"status":{"phase":"Running"}})", "status", "Request") +
      audited(30, "delete", "pods", "a", "", "", "Request");
  std::vector<std::string> phases;
  const auto head = read_recording(write("audit.log", text), [&](RecordedEvent event) -> Result<void> {
    phases.push_back(fmt::format("{} {}", event.at_ms, json::get_string(event.object, {"status", "phase"})));
    return {};
  });
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(phases, (std::vector<std::string>{"0 ", "5000 ", "20000 Running", "30000 Running"}));
  ASSERT_EQ(head->notes.size(), 1U);
  EXPECT_NE(head->notes[0].find("generateName"), std::string::npos);
}

TEST_F(Files, AnAuditLogThatSaysNothingOrIsCutOffIsRefused) {
  const auto refusal = [&](const std::string& text) {
    const auto read = Replay::load(write("audit.log", text), false);
    return read ? std::string("none") : read.error().message;
  };
  const std::string bare = audited(0, "create", "pods", "a", "", "", "Metadata");
  EXPECT_NE(refusal(bare).find("nothing to replay: 1 writes of pods"), std::string::npos) << refusal(bare);
  EXPECT_NE(refusal(bare + bare.substr(0, 80)).find("audit.log:2: the log is cut off"), std::string::npos);
  EXPECT_NE(refusal(bare + "{}\n").find("audit.log:2: no event of audit.k8s.io"), std::string::npos);
}

}  // namespace
}  // namespace berth::simulator
