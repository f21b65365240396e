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

}  // namespace
}  // namespace berth::controllers
