#include "controllers/workloads.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

class JobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api.engine.add(make_job_controller());
    api.engine.start();
  }
  void put_job(std::string_view spec) {
    api.put(kinds().job, yaml(fmt::format("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec: {{{}, selector: {{matchLabels: "
                                          "{{app: j}}}}, template: {{metadata: {{labels: {{app: j}}}}, "
                                          "spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}\n",
                                          spec)));
  }
  void change(const char* field, json::Value value) {
    json::Value document = job();
    json::set(document, {"spec", field}, std::move(value));
    api.put(kinds().job, document);
  }
  void settle(Duration time = seconds(2)) { loop.run_for(time); }
  std::vector<json::Value> pods() { return api.all(kinds().pod); }
  void end_pods(const char* phase) {
    for (json::Value pod : pods()) {
      const std::string_view now = json::get_string(pod, {"status", "phase"});
      if (now == "Succeeded" || now == "Failed") continue;
      json::set(pod, {"status", "phase"}, phase);
      api.put(kinds().pod, pod);
    }
  }
  json::Value job() { return api.get(kinds().job, "j"); }
  std::string failed_reason() {
    const json::Value document = job();
    const json::Value* failed = find_condition(document, "Failed");
    return failed == nullptr ? "" : std::string(json::get_string(*failed, {"reason"}));
  }
  static bool is_tracked(const json::Value& pod) { return has_finalizer(pod, "batch.kubernetes.io/job-tracking"); }

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

TEST_F(JobTest, ADeletedJobLetsGoOfItsRunningPods) {
  put_job("completions: 2, parallelism: 2");
  settle();
  api.run_pods();
  settle();
  ASSERT_EQ(pods().size(), 2u);
  ASSERT_TRUE(is_tracked(pods()[0]));
  api.erase(kinds().job, "default", "j");
  settle();
  for (const json::Value& pod : pods()) EXPECT_FALSE(is_tracked(pod));
}

TEST_F(JobTest, WhoWasCountedAsFailedDoesNotSucceedAsWell) {
  put_job("completions: 2, parallelism: 2");
  settle();
  api.run_pods();
  settle();
  json::Value pod = pods().at(0);
  // Told to go, and counted for that; its program ends well all the same, before anybody saw that it is counted.
  json::Value document = job();
  json::set(document, {"status", "uncountedTerminatedPods", "failed"}, json::Array{*json::find(pod, {"metadata", "uid"})});
  api.put(kinds().job, document);
  end_pods("Succeeded");
  settle();
  document = job();
  EXPECT_EQ(json::get_int(document, {"status", "succeeded"}), 1);
  EXPECT_EQ(json::get_int(document, {"status", "failed"}), 1);
  EXPECT_EQ(find_condition(document, "SuccessCriteriaMet"), nullptr) << "one is still to be done";
}

TEST_F(JobTest, AnOrphanedPodIsLetGo) {
  put_job("completions: 1, parallelism: 1");
  settle();
  json::Value pod = pods().at(0);
  api.erase(kinds().job, "default", "j");
  settle();
  json::set(pod, {"metadata", "ownerReferences"}, json::Array());
  api.put(kinds().pod, pod);
  settle();
  EXPECT_FALSE(is_tracked(pods().at(0)));
}

TEST_F(JobTest, APodOfAnEarlierJobOfTheNameIsLetGo) {
  put_job("completions: 1, parallelism: 1");
  settle();
  json::Value pod = pods().at(0);
  json::set(pod, {"metadata", "name"}, "stale");
  json::set(pod, {"metadata", "uid"}, "");
  json::Array owners = json::get_array(pod, {"metadata", "ownerReferences"});
  owners[0].get_object()["uid"] = "another";
  json::set(pod, {"metadata", "ownerReferences"}, owners);
  api.put(kinds().pod, pod);
  settle();
  EXPECT_FALSE(is_tracked(api.get(kinds().pod, "stale")));
}

TEST_F(JobTest, RefusedCreationsAreRetriedFromOneSecondOn) {
  int refused = 0;
  api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().pod) return std::nullopt;
    ++refused;
    return model::forbidden("", "pods", "j", "exceeded quota");
  };
  put_job("completions: 1, parallelism: 1");
  settle(milliseconds(900));
  EXPECT_LE(refused, 2) << "the first step, and one for the status it wrote";
  settle(seconds(3));
  EXPECT_LE(refused, 4) << "after one second, then after two";
}

TEST_F(JobTest, FailuresWaitLongerEachTimeAndEndAtTheLimit) {
  put_job("backoffLimit: 1");
  settle();
  end_pods("Failed");
  settle(seconds(5));
  EXPECT_EQ(pods().size(), 1u) << "the next pod waits ten seconds";
  settle(seconds(10));
  EXPECT_EQ(pods().size(), 2u);
  end_pods("Failed");
  settle(minutes(1));
  EXPECT_EQ(pods().size(), 2u);
  EXPECT_EQ(failed_reason(), "BackoffLimitExceeded");
  EXPECT_TRUE(api.saw("BackoffLimitExceeded: Job has reached the specified backoff limit"));
}

TEST_F(JobTest, RestartsInPlaceEndTheJobAtTheLimitAndNotBefore) {
  put_job("backoffLimit: 2");
  json::Value document = job();
  json::set(document, {"spec", "template", "spec", "restartPolicy"}, "OnFailure");
  api.put(kinds().job, document);
  settle();
  api.run_pods();
  const auto restarted = [&](int times) {
    json::Value pod = pods().at(0);
    json::set(pod, {"status", "containerStatuses"}, json::Array{json::Object{{"name", "c"}, {"restartCount", times}}});
    api.put(kinds().pod, pod);
    settle(seconds(5));
    const json::Value now = job();
    const json::Value* failing = find_condition(now, "FailureTarget");
    return failing == nullptr ? "" : std::string(json::get_string(*failing, {"reason"}));
  };
  EXPECT_EQ(restarted(1), "");
  EXPECT_EQ(restarted(2), "BackoffLimitExceeded");
}

TEST_F(JobTest, ReadyPodsAreActiveWhileOthersWaitForTheirNextTry) {
  put_job("completions: 3, parallelism: 3");
  settle();
  api.run_pods();
  settle();
  ASSERT_EQ(json::get_int(job(), {"status", "ready"}), 3);
  json::Value pod = pods()[0];
  json::set(pod, {"status", "phase"}, "Failed");
  api.put(kinds().pod, pod);
  settle();
  EXPECT_EQ(json::get_int(job(), {"status", "ready"}), 2);
  EXPECT_EQ(json::get_int(job(), {"status", "active"}), 2) << "the API server refuses more ready pods than active ones";
  EXPECT_EQ(json::get_int(job(), {"status", "failed"}), 1);
}

TEST_F(JobTest, ASuspendedJobHasNoPodsUntilItResumes) {
  put_job("suspend: true, completions: 1, parallelism: 1");
  settle();
  EXPECT_TRUE(pods().empty());
  EXPECT_TRUE(api.saw("Suspended: Job suspended"));
  json::Value resumed = job();
  json::set(resumed, {"spec", "suspend"}, false);
  api.put(kinds().job, resumed);
  settle();
  EXPECT_EQ(pods().size(), 1u);
  EXPECT_TRUE(api.saw("Resumed: Job resumed"));
}

TEST_F(JobTest, TheDeadlineEndsIt) {
  put_job("activeDeadlineSeconds: 60, completions: 1, parallelism: 1");
  settle();
  api.run_pods();
  settle(seconds(50));
  EXPECT_EQ(failed_reason(), "");
  settle(seconds(20));
  EXPECT_EQ(failed_reason(), "DeadlineExceeded");
  EXPECT_EQ(json::get_int(job(), {"status", "failed"}), 1) << "a pod that the Job's failure ends has failed too";
  EXPECT_EQ(json::get_int(job(), {"status", "active"}), 0);
  EXPECT_TRUE(pods().empty());
}

TEST_F(JobTest, IndexedPodsAreMadeOncePerIndex) {
  put_job("completionMode: Indexed, completions: 3, parallelism: 3");
  settle();
  ASSERT_EQ(pods().size(), 3u);
  std::set<std::string> indexes;
  for (const json::Value& pod : pods())
    indexes.insert(std::string(json::get_string(pod, {"metadata", "annotations", "batch.kubernetes.io/job-completion-index"})));
  EXPECT_EQ(indexes, (std::set<std::string>{"0", "1", "2"}));
  end_pods("Succeeded");
  settle();
  EXPECT_EQ(json::get_string(job(), {"status", "completedIndexes"}), "0-2");
  EXPECT_EQ(condition_status(job(), "Complete"), "True");
}

TEST_F(JobTest, AFailurePolicyIgnoresDisruptionsAndFailsOnExitCodes) {
  put_job(
      "completions: 1, parallelism: 1, backoffLimit: 0, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: "
      "DisruptionTarget}]}, {action: FailJob, onExitCodes: {operator: In, values: [42]}}]}");
  settle();
  api.run_pods();
  json::Value pod = pods()[0];
  json::set(pod, {"status", "phase"}, "Failed");
  pod.at("status").at("conditions").get_array().push_back(json::Object{{"type", "DisruptionTarget"}, {"status", "True"}});
  api.put(kinds().job, job());
  api.put(kinds().pod, pod);
  settle(minutes(1));
  EXPECT_EQ(failed_reason(), "") << "a disruption does not count";
  api.run_pods();
  for (json::Value one : pods()) {
    if (json::get_string(one, {"status", "phase"}) != "Running") continue;
    json::set(one, {"status", "phase"}, "Failed");
    json::set(one, {"status", "containerStatuses"},
              json::Array{json::Object{{"name", "c"}, {"state", json::Object{{"terminated", json::Object{{"exitCode", 42}}}}}}});
    api.put(kinds().pod, one);
  }
  settle(minutes(1));
  EXPECT_EQ(failed_reason(), "PodFailurePolicy");
  const json::Value document = job();
  EXPECT_NE(
      json::get_string(*find_condition(document, "Failed"), {"message"}).find("failed with exit code 42 matching FailJob rule at index 1"),
      std::string::npos);
}

TEST_F(JobTest, BackoffLimitPerIndexFailsIndexesAlone) {
  put_job("completionMode: Indexed, completions: 2, parallelism: 2, backoffLimit: 100, backoffLimitPerIndex: 1");
  for (int i = 0; i < 6; ++i) {
    settle(minutes(11));
    for (json::Value pod : pods()) {
      if (!json::get_string(pod, {"status", "phase"}).empty()) continue;
      json::set(pod, {"status", "phase"},
                json::get_string(pod, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}) == "0" ? "Failed" : "Succeeded");
      api.put(kinds().pod, pod);
    }
  }
  EXPECT_EQ(json::get_string(job(), {"status", "failedIndexes"}), "0");
  EXPECT_EQ(json::get_string(job(), {"status", "completedIndexes"}), "1");
  EXPECT_EQ(failed_reason(), "FailedIndexes");
  EXPECT_EQ(json::get_int(job(), {"status", "failed"}), 2) << "one try and one more";
}

TEST_F(JobTest, ASuccessPolicyEndsItEarly) {
  put_job("completionMode: Indexed, completions: 3, parallelism: 3, successPolicy: {rules: [{succeededIndexes: '0', succeededCount: 1}]}");
  settle();
  api.run_pods();
  for (json::Value pod : pods()) {
    if (json::get_string(pod, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}) != "0") continue;
    json::set(pod, {"status", "phase"}, "Succeeded");
    api.put(kinds().pod, pod);
  }
  settle(seconds(5));
  const json::Value document = job();
  ASSERT_NE(find_condition(document, "SuccessCriteriaMet"), nullptr);
  EXPECT_EQ(json::get_string(*find_condition(document, "SuccessCriteriaMet"), {"reason"}), "SuccessPolicy");
  EXPECT_EQ(condition_status(document, "Complete"), "True");
  EXPECT_EQ(json::get_int(document, {"status", "failed"}), 0) << "the rest is ended, not failed";
  EXPECT_EQ(pods().size(), 1u);
}

TEST_F(JobTest, ReplacementAfterFailureWaitsForTheEndOfAPod) {
  put_job("completions: 1, parallelism: 1, podReplacementPolicy: Failed");
  settle();
  api.run_pods();
  json::Value pod = pods()[0];
  json::set(pod, {"metadata", "deletionTimestamp"}, "2026-01-05T10:00:00Z");
  api.put(kinds().pod, pod);
  settle(minutes(2));
  EXPECT_EQ(pods().size(), 1u);
  EXPECT_EQ(json::get_int(job(), {"status", "terminating"}), 1);
  json::set(pod, {"status", "phase"}, "Failed");
  api.put(kinds().pod, pod);
  settle(minutes(2));
  ASSERT_EQ(pods().size(), 1u);
  EXPECT_NE(json::get_string(pods()[0], {"metadata", "uid"}), json::get_string(pod, {"metadata", "uid"}));
}

TEST_F(JobTest, APauseClearsTheStartTimeAndAResumeSetsItAnew) {
  put_job("completions: 1, parallelism: 1");
  settle();
  const std::string started(json::get_string(job(), {"status", "startTime"}));
  ASSERT_FALSE(started.empty());
  change("suspend", true);
  settle(minutes(1));
  EXPECT_TRUE(pods().empty());
  EXPECT_EQ(json::find(job(), {"status", "startTime"}), nullptr);
  EXPECT_EQ(json::get_int(job(), {"status", "failed"}), 0);
  change("suspend", false);
  settle();
  ASSERT_NE(json::find(job(), {"status", "startTime"}), nullptr);
  EXPECT_NE(json::get_string(job(), {"status", "startTime"}), started);
}

TEST_F(JobTest, TheYoungestPodsGoWhenFewerAreWanted) {
  put_job("completions: 4, parallelism: 1");
  settle();
  const std::string oldest(json::get_string(pods()[0], {"metadata", "name"}));
  change("parallelism", 3);
  settle(seconds(10));
  ASSERT_EQ(pods().size(), 3u);
  change("parallelism", 1);
  settle();
  ASSERT_EQ(pods().size(), 1u);
  EXPECT_EQ(json::get_string(pods()[0], {"metadata", "name"}), oldest);
}

TEST_F(JobTest, AnotherManagersJobIsLeftAlone) {
  put_job("completions: 1, parallelism: 1, managedBy: example.com/queue");
  settle();
  EXPECT_TRUE(pods().empty());
  EXPECT_EQ(json::find(job(), {"status", "startTime"}), nullptr);
}

TEST_F(JobTest, AFinishedJobGoesAfterItsTime) {
  api.engine.add(make_ttl_after_finished_controller());
  put_job("completions: 1, parallelism: 1, ttlSecondsAfterFinished: 100");
  settle();
  end_pods("Succeeded");
  settle(seconds(5));
  ASSERT_EQ(condition_status(job(), "Complete"), "True");
  settle(seconds(80));
  EXPECT_EQ(json::find(job(), {"metadata", "deletionTimestamp"}), nullptr);
  settle(seconds(30));
  EXPECT_NE(json::find(job(), {"metadata", "deletionTimestamp"}), nullptr) << "in the foreground: its pods first";
}

TEST_F(JobTest, AFailedPodOfAnIndexHandsItsCountOn) {
  put_job(
      "completionMode: Indexed, completions: 1, parallelism: 1, backoffLimit: 100, backoffLimitPerIndex: 2, podFailurePolicy: {rules: "
      "[{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}]}");
  settle();
  const auto newest = [&] {
    json::Value found;
    for (const json::Value& pod : pods())
      if (json::get_string(pod, {"status", "phase"}).empty()) found = pod;
    return found;
  };
  const auto count = [&](const char* which) {
    return std::string(json::get_string(newest(), {"metadata", "annotations", fmt::format("batch.kubernetes.io/job-index-{}", which)}));
  };
  EXPECT_EQ(count("failure-count"), "0");
  const std::string first(json::get_string(newest(), {"metadata", "name"}));
  end_pods("Failed");
  settle(seconds(5));
  EXPECT_TRUE(is_tracked(api.get(kinds().pod, first))) << "it is kept until its successor has the count";
  settle(seconds(10));
  EXPECT_FALSE(is_tracked(api.get(kinds().pod, first)));
  EXPECT_EQ(count("failure-count"), "1");
  json::Value disrupted = newest();
  json::set(disrupted, {"status"},
            json::Object{{"phase", "Failed"}, {"conditions", json::Array{json::Object{{"type", "DisruptionTarget"}, {"status", "True"}}}}});
  api.put(kinds().pod, disrupted);
  settle(minutes(1));
  EXPECT_EQ(count("failure-count"), "1");
  EXPECT_EQ(count("ignored-failure-count"), "1");
}

TEST_F(JobTest, AnAdoptedPodIsTracked) {
  api.put(kinds().pod, yaml("{apiVersion: v1, kind: Pod, metadata: {name: lone, labels: {app: j}}, spec: {}}"));
  put_job("completions: 1, parallelism: 1");
  settle();
  EXPECT_TRUE(is_tracked(api.get(kinds().pod, "lone")));
  EXPECT_EQ(pods().size(), 1u);
}

TEST_F(JobTest, AnElasticJobForgetsWhatIsBeyondItsNewEnd) {
  put_job("completionMode: Indexed, completions: 3, parallelism: 3");
  settle();
  for (json::Value pod : pods()) {
    if (json::get_string(pod, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}) != "2") continue;
    json::set(pod, {"status", "phase"}, "Succeeded");
    api.put(kinds().pod, pod);
  }
  settle();
  EXPECT_EQ(json::get_string(job(), {"status", "completedIndexes"}), "2");
  json::Value smaller = job();
  json::set(smaller, {"spec", "completions"}, 2);
  json::set(smaller, {"spec", "parallelism"}, 2);
  api.put(kinds().job, smaller);
  settle();
  EXPECT_EQ(json::find(job(), {"status", "completedIndexes"}), nullptr);
  EXPECT_EQ(json::get_int(job(), {"status", "succeeded"}), 0);
  EXPECT_EQ(condition_status(job(), "Complete"), "");
}

TEST_F(JobTest, AnIndexThatEndsAsTheJobShrinksBelowItDoesNotCount) {
  put_job("completionMode: Indexed, completions: 3, parallelism: 3");
  settle();
  // Both at once: neither the pods' ends nor the new size has been looked at.
  json::Value smaller = job();
  json::set(smaller, {"spec", "completions"}, 2);
  json::set(smaller, {"spec", "parallelism"}, 2);
  for (json::Value pod : pods()) {
    const std::string_view index = json::get_string(pod, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"});
    if (index == "0") continue;
    json::set(pod, {"status", "phase"}, "Succeeded");
    api.put(kinds().pod, pod);
  }
  api.put(kinds().job, smaller);
  settle();
  EXPECT_EQ(json::get_string(job(), {"status", "completedIndexes"}), "1");
  EXPECT_EQ(json::get_int(job(), {"status", "succeeded"}), 1);
  EXPECT_EQ(condition_status(job(), "Complete"), "");
  end_pods("Succeeded");
  settle();
  EXPECT_EQ(json::get_string(job(), {"status", "completedIndexes"}), "0,1");
  EXPECT_EQ(condition_status(job(), "Complete"), "True");
}

TEST_F(JobTest, AFailureBeyondTheNewEndOfAJobDoesNotCount) {
  put_job("completionMode: Indexed, completions: 3, parallelism: 3, backoffLimit: 0");
  settle();
  json::Value smaller = job();
  json::set(smaller, {"spec", "completions"}, 2);
  json::set(smaller, {"spec", "parallelism"}, 2);
  for (json::Value pod : pods()) {
    if (json::get_string(pod, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}) != "2") continue;
    json::set(pod, {"status", "phase"}, "Failed");
    api.put(kinds().pod, pod);
  }
  api.put(kinds().job, smaller);
  settle();
  EXPECT_EQ(json::get_int(job(), {"status", "failed"}), 0);
  EXPECT_EQ(failed_reason(), "");
}

TEST_F(JobTest, TheEndIsAnnouncedBeforeItComes) {
  put_job("completions: 1, parallelism: 1");
  settle();
  std::vector<std::string> steps;
  api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    std::string types;
    for (const json::Value& condition : json::get_array(write.body, {"status", "conditions"}))
      types += std::string(json::get_string(condition, {"type"})) + " ";
    if (write.kind == kinds().job && !types.empty()) steps.push_back(types);
    return std::nullopt;
  };
  end_pods("Succeeded");
  settle();
  EXPECT_EQ(steps, (std::vector<std::string>{"SuccessCriteriaMet ", "SuccessCriteriaMet Complete "}));
}

TEST_F(JobTest, ALimitOfZeroAllowsNoRestart) {
  put_job("backoffLimit: 0");
  json::Value document = job();
  json::set(document, {"spec", "template", "spec", "restartPolicy"}, "OnFailure");
  api.put(kinds().job, document);
  settle();
  api.run_pods();
  settle();
  EXPECT_EQ(find_condition(job(), "FailureTarget"), nullptr);
  json::Value pod = pods().at(0);
  json::set(pod, {"status", "containerStatuses"}, json::Array{json::Object{{"name", "c"}, {"restartCount", 1}}});
  api.put(kinds().pod, pod);
  settle(seconds(5));
  EXPECT_EQ(failed_reason(), "BackoffLimitExceeded");
}

/// Who writes a label may write anything into it.
TEST_F(JobTest, AnIndexThatIsNoneCountsForNothing) {
  put_job("completionMode: Indexed, completions: 2, parallelism: 2");
  settle();
  const json::Value model = pods().at(0);
  int number = 0;
  for (const char* index : {"-5", "2", "x", "", "0x1", "1 "}) {
    json::Value odd = model;
    json::set(odd, {"metadata", "name"}, json::Value(fmt::format("odd-{}", ++number)));
    json::set(odd, {"metadata", "uid"}, "");
    json::set(odd, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}, index);
    json::set(odd, {"metadata", "annotations", "batch.kubernetes.io/job-completion-index"}, index);
    json::set(odd, {"status", "phase"}, "Succeeded");
    api.put(kinds().pod, odd);
    settle();
    EXPECT_EQ(json::get_string(job(), {"status", "completedIndexes"}), "") << index;
    EXPECT_EQ(json::get_int(job(), {"status", "succeeded"}), 0) << index;
  }
  EXPECT_EQ(find_condition(job(), "SuccessCriteriaMet"), nullptr);
}

TEST_F(JobTest, ASuccessPolicyWithoutACountWantsAllThatItNames) {
  put_job("completionMode: Indexed, completions: 6, parallelism: 6, successPolicy: {rules: [{succeededIndexes: '1-2,4'}]}");
  settle();
  api.run_pods();
  const auto succeed = [&](std::string_view index) {
    for (json::Value pod : pods()) {
      if (json::get_string(pod, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}) != index) continue;
      json::set(pod, {"status", "phase"}, "Succeeded");
      api.put(kinds().pod, pod);
    }
    settle(seconds(5));
    return find_condition(job(), "SuccessCriteriaMet") != nullptr;
  };
  EXPECT_FALSE(succeed("1"));
  EXPECT_FALSE(succeed("0"));
  EXPECT_FALSE(succeed("4"));
  EXPECT_TRUE(succeed("2")) << "the end of a range is of it";
}

/// A status whose write was seen, and the pod's finalizer still there: what is written down counts once.
TEST_F(JobTest, AFinishedPodThatIsWrittenDownAlreadyCountsOnce) {
  for (const bool fails : {false, true}) {
    FakeApi other(loop);
    other.engine.add(make_job_controller());
    const std::string list = fails ? "failed" : "succeeded";
    other.put(
        kinds().job,
        yaml("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, uid: job}\nspec: {completions: 2, parallelism: 1, backoffLimit: 1, "
             "selector: {matchLabels: {app: j}}, template: {metadata: {labels: {app: j}}, spec: {restartPolicy: Never, containers: "
             "[{name: c, image: i}]}}}\nstatus: {startTime: '2026-01-05T09:00:00Z', uncountedTerminatedPods: {" +
             list + ": [done]}}\n"));
    other.put(kinds().pod,
              yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: done, uid: done, labels: {{app: j}}, finalizers: "
                               "[batch.kubernetes.io/job-tracking], ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: "
                               "j, uid: job, controller: true}}]}}\nspec: {{nodeName: n}}\nstatus: {{phase: {}}}\n",
                               fails ? "Failed" : "Succeeded")));
    other.engine.start();
    loop.run_for(minutes(2));
    const json::Value now = other.get(kinds().job, "j");
    EXPECT_EQ(json::get_int(now, {"status", list}), 1) << list;
    EXPECT_EQ(condition_status(now, "Complete"), "") << "one more is wanted";
    EXPECT_EQ(condition_status(now, "Failed"), "") << "one failure is allowed";
    EXPECT_EQ(other.all(kinds().pod).size(), 2U);
    EXPECT_EQ(json::find(now, {"status", "uncountedTerminatedPods", list}), nullptr);
  }
}

TEST_F(JobTest, TooManySuccessesAreToldAndJustEnoughAreNot) {
  const std::string words = "TooManySucceededPods: Too many succeeded pods running after completion count reached";
  put_job("completions: 2, parallelism: 2");
  settle();
  end_pods("Succeeded");
  settle();
  EXPECT_EQ(condition_status(job(), "Complete"), "True");
  EXPECT_FALSE(api.saw(words));
  api.erase(kinds().job, "default", "j");
  for (const json::Value& pod : pods()) api.erase(kinds().pod, "default", std::string(json::get_string(pod, {"metadata", "name"})));
  settle();
  put_job("completions: 3, parallelism: 3");
  settle();
  change("completions", 2);
  for (json::Value pod : pods()) {
    json::set(pod, {"status", "phase"}, "Succeeded");
    api.put(kinds().pod, pod);
  }
  settle();
  EXPECT_EQ(condition_status(job(), "Complete"), "True");
  EXPECT_TRUE(api.saw(words));
}

}  // namespace
}  // namespace berth::controllers
