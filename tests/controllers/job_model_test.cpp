// Indexes and policies of Jobs; counting.
#include "controllers/job_model.h"

#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

TEST(Job, CountsEveryFinishedPodOnce) {
  World world;
  world.api.engine.add(make_job_controller());
  world.api.engine.start();
  world.api.put(kinds().job, yaml("{apiVersion: batch/v1, kind: Job, metadata: {name: j, generation: 1}, spec: {completions: 3, "
                                  "parallelism: 2, backoffLimit: 6, selector: {matchLabels: {app: j}}, "
                                  "template: {metadata: {labels: {app: j}}, spec: {restartPolicy: Never, containers: []}}}}"));
  for (int i = 0; i < 10; ++i) {
    world.settle(seconds(1));
    EXPECT_LE(std::count_if(world.api.objects.begin(), world.api.objects.end(),
                            [](const auto& entry) {
                              return json::get_string(entry.second, {"status", "phase"}) == "Running";
                            }),
              2);
    for (json::Value pod : world.api.all(kinds().pod)) {
      if (json::get_string(pod, {"status", "phase"}) != "Running") continue;
      json::set(pod, {"status", "phase"}, "Succeeded");
      world.api.put(kinds().pod, pod);
    }
  }
  const json::Value job = world.api.get(kinds().job, "j");
  EXPECT_EQ(condition_status(job, "Complete"), "True");
  EXPECT_EQ(json::get_int(job, {"status", "succeeded"}), 3);
  EXPECT_EQ(world.pods(), 3u);
  for (const json::Value& pod : world.api.all(kinds().pod)) EXPECT_FALSE(has_finalizer(pod, "batch.kubernetes.io/job-tracking"));
}

const TimePoint kThen = *parse_rfc3339("2026-01-05T10:00:00Z");

TEST(JobBackoff, GrowsWithFailuresAndBeginsAnewAfterASuccess) {
  const auto ended = [](int second) { return job::JobPod{.info = {}, .verdict = {}, .finished = kThen + seconds(second)}; };
  const job::JobPod first = ended(5), second = ended(20), third = ended(12);
  const auto shown = [](const job::Backoff& one) { return std::pair(one.failures, one.last); };
  const job::Backoff known{3, kThen};
  EXPECT_EQ(shown(job::next_backoff(known, {}, {})), std::pair(std::int64_t{3}, kThen));
  EXPECT_EQ(shown(job::next_backoff(known, {}, {&second, &first})), std::pair(std::int64_t{5}, kThen + seconds(20)));
  EXPECT_EQ(shown(job::next_backoff(known, {&third}, {})), std::pair(std::int64_t{0}, TimePoint{}));
  EXPECT_EQ(shown(job::next_backoff(known, {&third}, {&first, &second})), std::pair(std::int64_t{1}, kThen + seconds(20)))
      << "what failed before the success is forgotten";
  EXPECT_EQ(shown(job::next_backoff(known, {&first, &second}, {&third})), std::pair(std::int64_t{0}, TimePoint{}));

  EXPECT_EQ(job::backoff_left(0, kThen, kThen), Duration{0});
  EXPECT_EQ(job::backoff_left(1, kThen, kThen), seconds(10));
  EXPECT_EQ(job::backoff_left(2, kThen, kThen + seconds(5)), seconds(15));
  EXPECT_EQ(job::backoff_left(3, kThen, kThen + seconds(41)), Duration{0});
  EXPECT_EQ(job::backoff_left(7, kThen, kThen), minutes(10));
  EXPECT_EQ(job::backoff_left(1000, kThen, kThen), minutes(10));
}

/// A Job whose every index has failures of its own, and pods of it.
struct IndexedView {
  json::Value document = yaml(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default, uid: j}, spec: {completions: 2, parallelism: 2, "
      "completionMode: Indexed, backoffLimitPerIndex: 5, template: {spec: {restartPolicy: Never, containers: []}}}}");
  std::vector<PodRef> pods;
  void failed(const char* name, int index, int failures, int ignored, const std::string& status) {
    pods.push_back(make_pod_info(std::make_shared<Object>(yaml(fmt::format(
        "{{metadata: {{name: {0}, namespace: default, uid: {0}, finalizers: [batch.kubernetes.io/job-tracking], labels: "
        "{{batch.kubernetes.io/job-completion-index: '{1}'}}, annotations: {{batch.kubernetes.io/job-index-failure-count: '{2}', "
        "batch.kubernetes.io/job-index-ignored-failure-count: '{3}'}}}}, spec: {{}}, status: {{phase: Failed, {4}}}}}",
        name, index, failures, ignored, status)))));
  }
  [[nodiscard]] job::View view() const { return job::view_of(std::make_shared<Object>(document), document, pods); }
  static std::string ended_at(int second) {
    return fmt::format("containerStatuses: [{{name: c, state: {{terminated: {{finishedAt: '{}'}}}}}}]",
                       format_rfc3339(kThen + seconds(second)));
  }
};

TEST(JobIndexes, TheNextPodInheritsFromTheOneThatFailedMost) {
  IndexedView of;
  of.failed("a", 0, 1, 0, IndexedView::ended_at(10));
  of.failed("b", 0, 2, 0, IndexedView::ended_at(20));
  of.failed("c", 0, 1, 0, IndexedView::ended_at(30));
  of.failed("d", 1, 0, 3, IndexedView::ended_at(5));
  const job::View view = of.view();
  ASSERT_EQ(view.awaiting_successor.size(), 2U);
  EXPECT_EQ(view.awaiting_successor.at(0)->info->name(), "b");
  EXPECT_EQ(view.awaiting_successor.at(1)->info->name(), "d");

  // Failures that the policy ignores count for the pause all the same: two of index 0 and one more, three of index 1 and one more.
  const auto indexes_at = [&](int second) {
    std::vector<std::string> out;
    for (const Write& write : job::create_pods(view, 2, {}, kThen + seconds(second)).writes)
      out.emplace_back(json::get_string(write.body, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}));
    return out;
  };
  EXPECT_EQ(indexes_at(59), (std::vector<std::string>{}));
  EXPECT_EQ(job::create_pods(view, 2, {}, kThen + seconds(50)).pause, seconds(10));
  EXPECT_EQ(indexes_at(60), (std::vector<std::string>{"0"}));
  EXPECT_EQ(indexes_at(84), (std::vector<std::string>{"0"}));
  EXPECT_EQ(indexes_at(85), (std::vector<std::string>{"0", "1"}));
  const Write next = job::create_pods(view, 2, {}, kThen + minutes(30)).writes.at(0);
  EXPECT_EQ(json::get_string(next.body, {"metadata", "annotations", "batch.kubernetes.io/job-index-failure-count"}), "3");
}

TEST(JobPods, EndedWhenTheirLastContainerDid) {
  const auto finished = [](const std::string& status) {
    IndexedView of;
    of.failed("p", 0, 0, 0, status);
    const job::View view = of.view();
    return std::chrono::duration_cast<seconds>(view.pods.at(0).finished - kThen).count();
  };
  const std::string ready =
      fmt::format(", conditions: [{{type: Ready, status: 'False', lastTransitionTime: '{}'}}]", format_rfc3339(kThen + seconds(7)));
  const auto container = [](const char* name, const std::string& state) { return fmt::format("{{name: {}, state: {{{}}}}}", name, state); };
  const auto over = [](int second) { return fmt::format("terminated: {{finishedAt: '{}'}}", format_rfc3339(kThen + seconds(second))); };
  EXPECT_EQ(finished(fmt::format("containerStatuses: [{}, {}]{}", container("a", over(30)), container("b", over(20)), ready)), 30);
  EXPECT_EQ(finished(fmt::format("containerStatuses: [{}, {}]{}", container("a", over(30)), container("b", "running: {}"), ready)), 7)
      << "while one runs, by what the pod says of being ready";
  EXPECT_EQ(finished(fmt::format("containerStatuses: [{}, {}]{}", container("a", "running: {}"), container("b", over(30)), ready)), 7);
}

TEST(JobIndexes, AreWrittenAsRanges) {
  EXPECT_EQ(job::format_indexes({0, 1, 2, 3, 5, 7, 8}), "0-3,5,7,8");
  EXPECT_EQ(job::parse_indexes("0-3,5,7,8"), (std::set<std::int64_t>{0, 1, 2, 3, 5, 7, 8}));
  EXPECT_TRUE(job::parse_indexes("x,,-").empty());
}

}  // namespace
}  // namespace berth::controllers
