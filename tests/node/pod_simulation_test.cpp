// Simulated pods under a virtual clock.
#include <gtest/gtest.h>

#include "node/simulated/usage_curve.h"
#include "tests/node/simulated_pods.h"

namespace berth::node::simulated {
namespace {

using namespace std::chrono_literals;

std::string condition(const json::Value& status, std::string_view type) {
  for (const json::Value& c : json::get_array(status, {"conditions"}))
    if (json::get_string(c, {"type"}) == type) return std::string(json::get_string(c, {"status"}));
  return "absent";
}

PodSimulationOptions options() { return {.host_ip = "172.16.0.1", .pod_ip = "10.10.0.2"}; }

TEST(PodSimulation, StartsAtOnceAsAKubeletReports) {
  PodSimulation sim(simple_pod("a"), options(), kStart);
  EXPECT_TRUE(sim.advance(kStart));
  const json::Value status = sim.status(kStart);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Running");
  EXPECT_EQ(json::get_string(status, {"podIP"}), "10.10.0.2");
  EXPECT_EQ(json::get_string(status, {"hostIP"}), "172.16.0.1");
  for (const char* type : {"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"})
    EXPECT_EQ(condition(status, type), "True") << type;
  EXPECT_EQ(condition(status, "PodScheduled"), "True");
  EXPECT_TRUE(json::find(container(status), {"state", "running"}));
  EXPECT_TRUE(json::get_bool(container(status), {"ready"}));
  EXPECT_FALSE(sim.next_change().has_value());
}

TEST(PodSimulation, EphemeralContainersComeWhileThePodRuns) {
  json::Value pod = simple_pod("a");
  PodSimulation sim(pod, options(), kStart);
  sim.advance(kStart);
  pod.get_object()["spec"].get_object()["ephemeralContainers"] = *json::parse(R"([{"name":"shell","image":"busybox"}])");
  EXPECT_TRUE(sim.update(pod, kStart + 1s));
  const json::Value status = sim.status(kStart + 1s);
  EXPECT_EQ(json::get_array(status, {"ephemeralContainerStatuses"}).size(), 1U);
  EXPECT_TRUE(json::find(json::get_array(status, {"ephemeralContainerStatuses"})[0], {"state", "running"})) << json::serialize(status);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Running");
  EXPECT_EQ(condition(status, "Ready"), "True");
  // A fleet that starts anew finds it there.
  pod.get_object()["status"] = status;
  PodSimulation again(pod, options(), kStart + 2s);
  again.advance(kStart + 3s);
  EXPECT_TRUE(json::find(json::get_array(again.status(kStart + 3s), {"ephemeralContainerStatuses"})[0], {"state", "running"}));
}

TEST(PodSimulation, AContainerWithAnotherImageIsRestartedWhateverThePolicy) {
  json::Value pod = simple_pod("a", "{}", "Never");
  json::set(pod, {"metadata", "generation"}, 1);
  PodSimulation sim(pod, options(), kStart);
  sim.advance(kStart);
  (void)sim.take_events();
  json::find(pod, {"spec", "containers"})->get_array()[0].get_object()["image"] = "nginx:2";
  json::set(pod, {"metadata", "generation"}, 2);
  EXPECT_TRUE(sim.update(pod, kStart + 5s));
  const json::Value status = sim.status(kStart + 5s);
  EXPECT_EQ(json::get_int(status, {"observedGeneration"}), 2);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Running");
  EXPECT_EQ(json::get_string(container(status), {"image"}), "nginx:2");
  EXPECT_EQ(json::get_int(container(status), {"restartCount"}), 1);
  EXPECT_EQ(json::get_string(container(status), {"state", "running", "startedAt"}), "2026-01-01T00:00:05Z");
  EXPECT_EQ(json::get_int(container(status), {"lastState", "terminated", "exitCode"}), 143);
  EXPECT_EQ(sim.take_events().front().message, "Container c definition changed, will be restarted");
  EXPECT_FALSE(sim.next_change().has_value()) << "no back-off";
}

TEST(PodSimulation, ADeadlineMayComeOrBeShortenedWhileThePodRuns) {
  json::Value pod = simple_pod("a");
  PodSimulation sim(pod, options(), kStart);
  sim.advance(kStart);
  json::set(pod, {"spec", "activeDeadlineSeconds"}, 60);
  json::set(pod, {"metadata", "generation"}, 2);
  EXPECT_TRUE(sim.update(pod, kStart + 5s));
  EXPECT_EQ(sim.next_change(), kStart + 60s);
  json::set(pod, {"spec", "activeDeadlineSeconds"}, 2);
  json::set(pod, {"metadata", "generation"}, 3);
  sim.update(pod, kStart + 6s);
  EXPECT_EQ(json::get_string(sim.status(kStart + 6s), {"reason"}), "DeadlineExceeded");
}

TEST(PodSimulation, StartDelayIsSeenAsContainerCreating) {
  PodSimulation sim(simple_pod("a", R"({"sim.berth.dev/start-delay":"2s"})"), options(), kStart);
  EXPECT_TRUE(sim.advance(kStart));
  json::Value status = sim.status(kStart);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Pending");
  EXPECT_EQ(json::get_string(container(status), {"state", "waiting", "reason"}), "ContainerCreating");
  EXPECT_EQ(condition(status, "Ready"), "False");
  EXPECT_EQ(*sim.next_change(), kStart + 2s);
  EXPECT_TRUE(sim.advance(kStart + 2s));
  status = sim.status(kStart + 2s);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Running");
  EXPECT_EQ(condition(status, "Ready"), "True");
}

TEST(PodSimulation, CompletesByAnnotationAndByCommand) {
  struct Case {
    const char *annotations, *command, *phase;
    int exit_code;
    Duration after;
  };
  for (const Case& c :
       {Case{R"({"kubesuite/complete":"succeeded"})", "[]", "Succeeded", 0, 500ms},
        Case{R"({"kubesuite/complete":"failed:3"})", "[]", "Failed", 1, 3s}, Case{"{}", R"(["sh","-c","exit 7"])", "Failed", 7, 500ms},
        Case{"{}", R"(["sh","-c","sleep 2; echo done && exit 0"])", "Succeeded", 0, 2s},
        Case{"{}", R"(["sh","-c","false && exit 3; sleep 1"])", "Succeeded", 0, 1s},
        Case{R"({"sim.berth.dev/run-for":"4s","sim.berth.dev/exit-code":"9"})", "[]", "Failed", 9, 4s}}) {
    PodSimulation sim(simple_pod("a", c.annotations, "Never", c.command), options(), kStart);
    sim.advance(kStart);
    EXPECT_EQ(sim.phase(), PodPhase::kRunning) << c.command;
    ASSERT_TRUE(sim.next_change()) << c.command;
    EXPECT_EQ(*sim.next_change(), kStart + c.after) << c.command;
    sim.advance(kStart + c.after);
    const json::Value status = sim.status(kStart + c.after);
    EXPECT_EQ(json::get_string(status, {"phase"}), c.phase) << c.annotations << c.command;
    EXPECT_EQ(json::get_int(container(status), {"state", "terminated", "exitCode"}), c.exit_code);
    EXPECT_EQ(condition(status, "Ready"), "False");
    EXPECT_FALSE(sim.next_change());
  }
}

TEST(PodSimulation, SuiteAnnotationDoesNotEndPodsThatAlwaysRestart) {
  PodSimulation sim(simple_pod("a", R"({"kubesuite/complete":"succeeded"})"), options(), kStart);
  sim.advance(kStart + 1h);
  EXPECT_EQ(sim.phase(), PodPhase::kRunning);
  EXPECT_FALSE(sim.next_change());
}

TEST(PodSimulation, CrashLoopsWithDoublingBackOff) {
  PodSimulation sim(simple_pod("a", R"({"sim.berth.dev/run-for":"1s","sim.berth.dev/exit-code":"1"})"), options(), kStart);
  sim.advance(kStart + 1s);  // Ends, and starts again at once.
  EXPECT_EQ(json::get_int(container(sim.status(kStart + 1s)), {"restartCount"}), 1);
  EXPECT_TRUE(json::find(container(sim.status(kStart + 1s)), {"lastState", "terminated"}));
  sim.advance(kStart + 2s);
  const json::Value status = sim.status(kStart + 2s);
  EXPECT_EQ(json::get_string(container(status), {"state", "waiting", "reason"}), "CrashLoopBackOff");
  EXPECT_EQ(json::get_string(container(status), {"state", "waiting", "message"}),
            "back-off 10s restarting failed container=c pod=a_default(uid-a)");
  EXPECT_EQ(json::get_string(status, {"phase"}), "Running");
  EXPECT_EQ(*sim.next_change(), kStart + 12s);
  sim.advance(kStart + 13s);
  EXPECT_EQ(*sim.next_change(), kStart + 33s) << "20 s after the third end";
  EXPECT_EQ(json::get_int(container(sim.status(kStart + 13s)), {"restartCount"}), 2);
}

TEST(PodSimulation, InitContainersRunInOrderAndSidecarsStay) {
  PodSimulation sim(pod_document("a", R"({"nodeName":"node-1","restartPolicy":"Never","initContainers":[{"name":"first","image":"i"},
      {"name":"proxy","image":"p","restartPolicy":"Always"},{"name":"second","image":"i"}],
      "containers":[{"name":"c","image":"x","command":["sleep","5"]}]})",
                                 R"({"sim.berth.dev/init-for":"2s"})"),
                    options(), kStart);
  sim.advance(kStart);
  json::Value status = sim.status(kStart);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Pending");
  EXPECT_EQ(condition(status, "Initialized"), "False");
  EXPECT_EQ(json::get_string(container(status), {"state", "waiting", "reason"}), "PodInitializing");
  sim.advance(kStart + 2s);
  const auto& init = sim.state().containers;
  EXPECT_EQ(init[0].state.kind, ContainerState::Kind::kTerminated);
  EXPECT_EQ(init[1].state.kind, ContainerState::Kind::kRunning);
  EXPECT_EQ(init[2].state.kind, ContainerState::Kind::kRunning);
  sim.advance(kStart + 4s);
  status = sim.status(kStart + 4s);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Running");
  EXPECT_EQ(condition(status, "Initialized"), "True");
  EXPECT_EQ(condition(status, "Ready"), "True");
  sim.advance(kStart + 9s);
  EXPECT_EQ(sim.phase(), PodPhase::kSucceeded);
  EXPECT_EQ(sim.state().containers[1].state.kind, ContainerState::Kind::kTerminated);
}

TEST(PodSimulation, FailedInitContainerFailsANeverPodAndRepeatsOtherwise) {
  for (const bool never : {true, false}) {
    PodSimulation sim(
        pod_document(
            "a",
            fmt::format(
                R"({{"nodeName":"n","restartPolicy":"{}","initContainers":[{{"name":"i","image":"i"}}],"containers":[{{"name":"c","image":"x"}}]}})",
                never ? "Never" : "Always"),
            R"({"sim.berth.dev/init-for":"1s","sim.berth.dev/init-exit-code":"3"})"),
        options(), kStart);
    sim.advance(kStart + 30s);
    EXPECT_EQ(sim.phase(), never ? PodPhase::kFailed : PodPhase::kPending);
    EXPECT_GE(sim.state().containers[0].restart_count, never ? 0 : 2);
  }
}

TEST(PodSimulation, ReadinessWaitsAndCanBeSwitched) {
  PodSimulation sim(simple_pod("a", R"({"sim.berth.dev/ready-after":"5s"})"), options(), kStart);
  sim.advance(kStart);
  EXPECT_EQ(condition(sim.status(kStart), "Ready"), "False");
  sim.advance(kStart + 5s);
  EXPECT_EQ(condition(sim.status(kStart + 5s), "Ready"), "True");
  EXPECT_TRUE(sim.update(simple_pod("a", R"({"sim.berth.dev/ready-after":"5s","sim.berth.dev/ready":"false"})"), kStart + 6s));
  EXPECT_EQ(condition(sim.status(kStart + 6s), "Ready"), "False");
  EXPECT_TRUE(sim.update(simple_pod("a", R"({"sim.berth.dev/ready-after":"5s"})"), kStart + 7s));
  EXPECT_EQ(condition(sim.status(kStart + 7s), "Ready"), "True");
}

TEST(PodSimulation, FailingLivenessRestartsTheContainer) {
  PodSimulation sim(simple_pod("a", R"({"sim.berth.dev/liveness-after":"30s"})"), options(), kStart);
  sim.advance(kStart + 30s);
  EXPECT_EQ(sim.state().containers[0].restart_count, 1);
  EXPECT_EQ(sim.state().containers[0].last->exit_code, 137);
  bool saw_unhealthy = false;
  for (const PodEvent& event : sim.take_events()) saw_unhealthy = saw_unhealthy || event.reason == "Unhealthy";
  EXPECT_TRUE(saw_unhealthy);
}

TEST(PodSimulation, StopHonoursTheShorterOfGraceAndNeed) {
  for (const auto& [grace, need, code] : {std::tuple{30s, "2s", 143}, std::tuple{1s, "10s", 137}}) {
    PodSimulation sim(simple_pod("a", fmt::format(R"({{"sim.berth.dev/stop-after":"{}"}})", need)), options(), kStart);
    sim.advance(kStart);
    sim.stop(grace, kStart);
    const TimePoint end = kStart + std::min<Duration>(grace, *parse_go_duration(need));
    EXPECT_EQ(*sim.next_change(), end);
    sim.advance(end);
    EXPECT_TRUE(sim.is_stopped());
    EXPECT_EQ(sim.state().containers[0].state.exit_code, code);
    EXPECT_EQ(sim.phase(), PodPhase::kFailed);
  }
}

TEST(PodSimulation, GoesOnWhereAnEarlierProcessStopped) {
  json::Value pod = simple_pod("a", R"({"sim.berth.dev/run-for":"10s","sim.berth.dev/exit-code":"1"})");
  PodSimulation first(pod, options(), kStart);
  first.advance(kStart + 25s);
  pod.as_object()["status"] = first.status(kStart + 25s);
  pod.as_object()["status"].as_object()["conditions"].as_array().push_back(
      json::Object{{"type", "PodScheduled"}, {"status", "True"}});  // The scheduler's.
  PodSimulation second(pod, {.host_ip = "172.16.0.1", .pod_ip = "10.10.0.9"}, kStart + 26s);
  EXPECT_EQ(second.next_change(), first.next_change());
  EXPECT_FALSE(second.advance(kStart + 26s)) << "nothing to report that is not known";
  EXPECT_EQ(json::serialize(second.status(kStart + 26s)), json::serialize(first.status(kStart + 26s)));
}

TEST(PodSimulation, WrongAnnotationsAreNamedAndIgnored) {
  PodSimulation sim(
      simple_pod("a", R"({"sim.berth.dev/run-for":"soon","kubesuite/complete":"maybe","sim.berth.dev/exit-code":"999"})", "Never"),
      options(), kStart);
  sim.advance(kStart + 1h);
  EXPECT_EQ(sim.phase(), PodPhase::kRunning);
  int problems = 0;
  for (const PodEvent& event : sim.take_events()) problems += event.reason == "InvalidSimulationAnnotation";
  EXPECT_EQ(problems, 3);
}

TEST(PodSimulation, DeadlineFailsThePod) {
  PodSimulation sim(
      pod_document("a", R"({"nodeName":"n","restartPolicy":"Never","activeDeadlineSeconds":10,"containers":[{"name":"c","image":"x"}]})"),
      options(), kStart);
  sim.advance(kStart + 20s);
  const json::Value status = sim.status(kStart + 20s);
  EXPECT_EQ(json::get_string(status, {"phase"}), "Failed");
  EXPECT_EQ(json::get_string(status, {"reason"}), "DeadlineExceeded");
}

TEST(PodSimulation, AtItsDeadlineContainersEndAsTheirGraceLetsThem) {
  for (const auto& [grace, stop_delay, code] : {std::tuple{30, 2s, 143}, {30, 45s, 137}, {1, 2s, 137}, {3, 2s, 143}}) {
    PodSimulationOptions slow = options();
    slow.stop_delay = stop_delay;
    PodSimulation sim(pod_document("a", fmt::format(R"({{"nodeName":"n","restartPolicy":"Never","activeDeadlineSeconds":10,)"
                                                    R"("terminationGracePeriodSeconds":{},"containers":[{{"name":"c","image":"x"}}]}})",
                                                    grace)),
                      slow, kStart);
    sim.advance(kStart + 100s);
    const json::Value status = sim.status(kStart + 100s);
    EXPECT_EQ(json::get_string(status, {"phase"}), "Failed");
    EXPECT_EQ(json::get_int(container(status), {"state", "terminated", "exitCode"}), code) << grace;
    const auto ended = parse_rfc3339(json::get_string(container(status), {"state", "terminated", "finishedAt"}));
    EXPECT_EQ(*ended, kStart + 10s + std::min<Duration>(stop_delay, std::chrono::seconds(grace)));
  }
}

TEST(UsageCurve, ReadsConstantsAndLines) {
  EXPECT_EQ(UsageCurve::parse("100Mi")->at(1h), 100.0 * 1024 * 1024);
  const auto curve = UsageCurve::parse("10s=1,20s=3");
  EXPECT_EQ(curve->at(0s), 1);
  EXPECT_EQ(curve->at(15s), 2);
  EXPECT_EQ(curve->at(1h), 3);
  EXPECT_EQ(UsageCurve::parse("0s=0,10s=10,loop")->at(25s), 5);
  for (const char* wrong : {"", "x", "1s=", "1s=1,1s=2", "5s=1,2s=2", "1,2", "loop", "-1", "1s=1,loop,2s=3"})
    EXPECT_FALSE(UsageCurve::parse(wrong)) << wrong;
}

}  // namespace
}  // namespace berth::node::simulated
