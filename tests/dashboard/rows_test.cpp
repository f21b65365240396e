#include "dashboard/rows.h"

#include <gtest/gtest.h>

#include "dashboard/recording.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::dashboard {
namespace {

json::Value parsed(std::string_view text) { return *json::parse(text); }
std::string row(RowKind kind, std::string_view object) { return json::serialize(row_of(kind, parsed(object))); }

TEST(Rows, NodeHasItsZoneRoomTaintsAndState) {
  EXPECT_EQ(
      row(RowKind::kNode, R"({"kind":"Node","metadata":{"name":"n1","creationTimestamp":"2026-01-01T00:00:10Z","labels":{
    "failure-domain.beta.kubernetes.io/zone":"b","node.kubernetes.io/instance-type":"m5.large"}},
    "spec":{"unschedulable":true,"taints":[{"key":"gpu","value":"a100","effect":"NoSchedule"},{"key":"x","effect":"NoExecute"}]},
    "status":{"allocatable":{"cpu":"3900m","memory":"8Gi","pods":"110","nvidia.com/gpu":"4"},"capacity":{"cpu":"4"},
    "conditions":[{"type":"Ready","status":"True"},{"type":"MemoryPressure","status":"True"},{"type":"DiskPressure","status":"False"}]}})"),
      R"({"kind":"node","name":"n1","zone":"b","cpu":3900,"memory":8589934592,"pods":110,"gpu":4,"ready":true,"pressure":["MemoryPressure"],)"
      R"("taints":["gpu=a100:NoSchedule","x:NoExecute"],"cordoned":true,"type":"m5.large","created":1767225610})");
}

TEST(Rows, NodeThatIsNotReadySaysSinceWhenAndWhy) {
  const auto node = [](std::string_view ready) {
    return row(RowKind::kNode, fmt::format(R"({{"kind":"Node","metadata":{{"name":"n1"}},"status":{{"conditions":[
      {{"type":"DiskPressure","status":"True","lastTransitionTime":"1970-01-01T00:03:00Z"}},
      {{"type":"MemoryPressure","status":"True","lastTransitionTime":"1970-01-01T00:02:00Z"}},
      {{"type":"Ready","status":"{}","lastTransitionTime":"1970-01-01T00:01:00Z","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."}}]}}}})",
                                           ready));
  };
  const std::string pressed = R"("pressure":["DiskPressure","MemoryPressure"],"pressed":120})";
  EXPECT_EQ(node("Unknown"),
            R"({"kind":"node","name":"n1","unknown":true,"since":60,"why":"Kubelet stopped posting node status.",)" + pressed);
  EXPECT_EQ(node("False"), R"({"kind":"node","name":"n1","since":60,"why":"Kubelet stopped posting node status.",)" + pressed);
  EXPECT_EQ(node("True"), R"({"kind":"node","name":"n1","ready":true,)" + pressed) << "of a ready one there is nothing to say";
}

TEST(Rows, PodThatCannotRunSaysWhatItWaitsForAndHowItEnded) {
  const auto pod = [](std::string_view containers, std::string_view more = {}) {
    return row(RowKind::kPod, fmt::format(R"({{"metadata":{{"namespace":"a","name":"b"}},"spec":{{"nodeName":"n"}},"status":{{{}{}}}}})",
                                          containers, more));
  };
  EXPECT_EQ(
      pod(R"("containerStatuses":[{"restartCount":3,"state":{"running":{}}},{"restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"reason":"Error","exitCode":1}}}])",
          R"(,"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"1970-01-01T00:01:00Z"}])"),
      R"({"kind":"pod","ns":"a","name":"b","node":"n","unready":60,"restarts":7,"waiting":"CrashLoopBackOff","ended":"exit code 1"})");
  EXPECT_EQ(pod(R"("initContainerStatuses":[{"restartCount":1,"state":{"waiting":{"reason":"ErrImagePull"}}}])"),
            R"({"kind":"pod","ns":"a","name":"b","node":"n","waiting":"ErrImagePull"})");
  EXPECT_EQ(
      pod(R"("containerStatuses":[{"restartCount":1,"state":{"running":{}},"lastState":{"terminated":{"reason":"OOMKilled","exitCode":137}}}])"),
      R"({"kind":"pod","ns":"a","name":"b","node":"n","restarts":1,"ended":"OOMKilled"})");
  for (const char* ordinary : {"ContainerCreating", "PodInitializing"})
    EXPECT_EQ(pod(fmt::format(R"("containerStatuses":[{{"restartCount":0,"state":{{"waiting":{{"reason":"{}"}}}}}}])", ordinary)),
              R"({"kind":"pod","ns":"a","name":"b","node":"n"})");
  EXPECT_EQ(
      pod("", R"("conditions":[{"type":"Ready","status":"False","reason":"PodCompleted","lastTransitionTime":"1970-01-01T00:01:00Z"}])"),
      R"({"kind":"pod","ns":"a","name":"b","node":"n"})")
      << "who has ended need not be ready";
}

TEST(Rows, PodOfAGroupNamesIt) {
  for (const char* pod : {R"({"metadata":{"labels":{"scheduling.x-k8s.io/pod-group":"train"}}})",
                          R"({"metadata":{"labels":{"pod-group.scheduling.sigs.k8s.io":"train"}}})",
                          R"({"spec":{"schedulingGroup":{"podGroupName":"train"}}})"})
    EXPECT_EQ(row(RowKind::kPod, pod), R"({"kind":"pod","gang":"train"})");
}

TEST(Rows, BudgetSaysWhatItAllowsAndSinceWhenNothing) {
  const auto budget = [](std::string_view status) {
    return row(RowKind::kBudget,
               fmt::format(R"({{"kind":"PodDisruptionBudget","metadata":{{"namespace":"shop","name":"web"}},"status":{}}})", status));
  };
  EXPECT_EQ(
      budget(
          R"({"disruptionsAllowed":0,"currentHealthy":2,"desiredHealthy":3,"expectedPods":4,"conditions":[{"type":"DisruptionAllowed","status":"False","lastTransitionTime":"1970-01-01T00:01:00Z"}]})"),
      R"({"kind":"budget","ns":"shop","name":"web","healthy":2,"desired":3,"expected":4,"since":60})");
  EXPECT_EQ(
      budget(
          R"({"disruptionsAllowed":1,"currentHealthy":4,"desiredHealthy":3,"expectedPods":4,"conditions":[{"type":"DisruptionAllowed","status":"True","lastTransitionTime":"1970-01-01T00:01:00Z"}]})"),
      R"({"kind":"budget","ns":"shop","name":"web","allowed":1,"healthy":4,"desired":3,"expected":4})");
  EXPECT_EQ(budget("{}"), R"({"kind":"budget","ns":"shop","name":"web"})");
  EXPECT_EQ(row_kind_of(parsed(R"({"kind":"PodDisruptionBudget"})")), RowKind::kBudget);
  EXPECT_EQ(json::serialize(gone_row(RowKind::kBudget, "shop", "web")), R"({"gone":"budget","ns":"shop","name":"web"})");
}

TEST(Rows, GroupSaysHowManyItNeedsAndWhyItWaits) {
  const auto group = [](std::string_view conditions) {
    return row(RowKind::kGroup,
               fmt::format(R"({{"kind":"PodGroup","metadata":{{"namespace":"ml","name":"train"}},"spec":{{"schedulingPolicy":{{"gang":)"
                           R"({{"minCount":3}}}},"schedulingConstraints":{{"topology":[{{"key":"rack"}}]}},"priority":7}},"status":)"
                           R"({{"conditions":[{}]}}}})",
                           conditions));
  };
  EXPECT_EQ(
      group(
          R"({"type":"PodGroupScheduled","status":"False","reason":"Unschedulable","message":"m","lastTransitionTime":"1970-01-01T00:01:00Z"})"),
      R"({"kind":"group","ns":"ml","name":"train","min":3,"topology":"rack","priority":7,"reason":"Unschedulable","message":"m","since":60})");
  EXPECT_EQ(group(R"({"type":"PodGroupScheduled","status":"True","reason":"Scheduled"})"),
            R"({"kind":"group","ns":"ml","name":"train","min":3,"topology":"rack","priority":7,"scheduled":true})");
  EXPECT_EQ(row(RowKind::kGroup, R"({"metadata":{"name":"g"},"spec":{"schedulingPolicy":{"basic":{}}}})"),
            R"({"kind":"group","name":"g"})");
  EXPECT_EQ(row_kind_of(parsed(R"({"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1alpha2"})")), RowKind::kGroup);
  EXPECT_EQ(row_kind_of(parsed(R"({"kind":"PodGroup","apiVersion":"scheduling.volcano.sh/v1beta1"})")), std::nullopt);
  EXPECT_EQ(json::serialize(gone_row(RowKind::kGroup, "ml", "train")), R"({"gone":"group","ns":"ml","name":"train"})");
}

TEST(Rows, PodBelongsToItsDeployment) {
  const std::string text = row(
      RowKind::kPod, R"({"kind":"Pod","metadata":{"namespace":"shop","name":"web-5d8f-x2x","uid":"u","labels":{"pod-template-hash":"5d8f"},
    "ownerReferences":[{"kind":"ReplicaSet","name":"web-5d8f","controller":true}]},
    "spec":{"nodeName":"n1","priority":5,"schedulerName":"default-scheduler","containers":[{"resources":{"requests":{"cpu":"250m","memory":"1Mi"}}}]},
    "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True","lastTransitionTime":"1970-01-01T00:01:00Z"}]}})");
  EXPECT_EQ(
      text,
      R"({"kind":"pod","ns":"shop","name":"web-5d8f-x2x","uid":"u","node":"n1","phase":"Running","cpu":250,"memory":1048576,"priority":5,)"
      R"("workload":"Deployment/web","ready":true,"bound":60})");
}

TEST(Rows, PendingPodSaysWhyAndVictimBecauseOfWhat) {
  const std::string text =
      row(RowKind::kPod, R"({"kind":"Pod","metadata":{"namespace":"a","name":"b","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{},
    "status":{"phase":"Pending","nominatedNodeName":"n2","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1"},
    {"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}]}})");
  EXPECT_EQ(
      text,
      R"({"kind":"pod","ns":"a","name":"b","phase":"Pending","reason":"Unschedulable","message":"0/1","disruption":"PreemptionByScheduler",)"
      R"("nominated":"n2","deleting":true})");
}

TEST(Rows, WhatIsNoObjectMakesARowNotACrash) {
  for (const char* text :
       {"{}", "[]", "null", R"({"metadata":7,"spec":[],"status":"x"})", R"({"status":{"conditions":[1,null,{}],"allocatable":[]}})",
        R"({"status":{"containerStatuses":[1,null,{"state":7,"lastState":{"terminated":[]}}],"initContainerStatuses":{}}})"})
    for (const RowKind kind : {RowKind::kNode, RowKind::kPod, RowKind::kEvent, RowKind::kBudget, RowKind::kGroup})
      EXPECT_NE(row(kind, text), "") << text;
}

TEST(Rows, EventsOfBothApisAreTheSame) {
  const std::string core = row(
      RowKind::kEvent, R"({"metadata":{"namespace":"a","name":"e"},"involvedObject":{"kind":"Pod","name":"p"},"reason":"R","message":"m",
    "lastTimestamp":"1970-01-01T00:00:05Z","type":"Warning","source":{"component":"c"}})");
  EXPECT_EQ(
      core,
      R"({"kind":"event","ns":"a","name":"e","at":5,"type":"Warning","reason":"R","object":"Pod","on":"p","message":"m","source":"c"})");
  EXPECT_EQ(row(RowKind::kEvent, R"({"metadata":{"namespace":"a","name":"e"},"regarding":{"kind":"Pod","name":"p"},"reason":"R","note":"m",
    "eventTime":"1970-01-01T00:00:05.000000Z","type":"Warning","reportingComponent":"c"})"),
            core);
}

class RecordingTest : public ::testing::Test {
 protected:
  RecordingRows rows;
  std::string out;
  void take(std::string_view line) { ASSERT_TRUE(rows.take(line, out)); }
  void begin() {
    take(R"({"recording":"berth/v1","start":"1970-01-01T00:00:01Z","source":"test"})");
    out.clear();
  }
};

TEST_F(RecordingTest, EventsBecomeRowsWithTimes) {
  take(R"({"recording":"berth/v1","start":"1970-01-01T00:00:01Z","source":"test"})");
  EXPECT_EQ(out, "{\"kind\":\"recording\",\"start\":1000,\"source\":\"test\"}\n");
  out.clear();
  take(R"({"at":5,"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n"}}})");
  take(R"({"at":6,"type":"MODIFIED","object":{"kind":"Node","metadata":{"name":"n","annotations":{"heartbeat":"1"}}}})");
  take(R"({"at":7,"type":"ADDED","object":{"kind":"Lease","metadata":{"name":"n"}}})");
  take(R"({"at":9.5,"type":"DELETED","object":{"kind":"Node","metadata":{"name":"n"}}})");
  EXPECT_EQ(out, "{\"kind\":\"node\",\"name\":\"n\",\"t\":5}\n{\"gone\":\"node\",\"name\":\"n\",\"t\":9}\n")
      << "what changes nothing is left out";
  EXPECT_EQ(rows.end(), "{\"kind\":\"end\",\"length\":9,\"lines\":5,\"shown\":2,\"problems\":[]}\n");
}

TEST_F(RecordingTest, BadLinesAreLeftOutAndSaid) {
  begin();
  take("{\"at\":1,");
  take("{\"at\":\"x\",\"type\":\"ADDED\",\"object\":{}}");
  take("{\"at\":1,\"type\":\"BOOKMARK\",\"object\":{}}");
  take(R"({"at":9,"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n"}}})");
  take(R"({"at":3,"type":"ADDED","object":{"kind":"Node","metadata":{"name":"m"}}})");
  take("");
  EXPECT_EQ(out, "{\"kind\":\"node\",\"name\":\"n\",\"t\":9}\n{\"kind\":\"node\",\"name\":\"m\",\"t\":9}\n");
  const auto end = parsed(rows.end());
  ASSERT_EQ(json::get_array(end, {"problems"}).size(), 4U) << rows.end();
  EXPECT_TRUE(json::as_view(json::get_array(end, {"problems"})[0]).starts_with("line 2: "));
  EXPECT_EQ(json::as_view(json::get_array(end, {"problems"})[3]), "line 6: at 3 is before the line above it (9); shown at that time");
}

TEST_F(RecordingTest, WhatIsNoRecordingIsRefused) {
  for (const char* line : {"", "{}", "apiVersion: v1", R"({"recording":"berth/v2","start":"1970-01-01T00:00:01Z"})",
                           R"({"recording":"berth/v1","start":"yesterday"})"})
    EXPECT_FALSE(RecordingRows().take(line, out)) << line;
}

TEST(SendRecording, GoesAtTheReadersPace) {
  std::string text = R"({"recording":"berth/v1","start":"1970-01-01T00:00:01Z"})";
  for (int i = 0; i < 20'000; ++i)
    text += fmt::format("\n{{\"at\":{},\"type\":\"ADDED\",\"object\":{{\"kind\":\"Node\",\"metadata\":{{\"name\":\"n{}\"}}}}}}", i, i);
  VirtualLoop loop{TimePoint{}};
  auto reader = std::make_shared<apiserver::testing::RecordedResponse>();
  reader->stalled = true;
  send_recording(text, loop, reader);
  loop.run_ready();
  EXPECT_LT(reader->body.size(), 400'000U);
  reader->stalled = false;
  std::exchange(reader->drain, nullptr)();
  loop.run_ready();
  EXPECT_EQ(std::ranges::count(reader->body, '\n'), 20'002);
  EXPECT_TRUE(reader->body.ends_with("\"shown\":20000,\"problems\":[]}\n"));
}

}  // namespace
}  // namespace berth::dashboard
