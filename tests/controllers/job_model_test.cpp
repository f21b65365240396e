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

TEST(JobIndexes, AreWrittenAsRanges) {
  EXPECT_EQ(job::format_indexes({0, 1, 2, 3, 5, 7, 8}), "0-3,5,7,8");
  EXPECT_EQ(job::parse_indexes("0-3,5,7,8"), (std::set<std::int64_t>{0, 1, 2, 3, 5, 7, 8}));
  EXPECT_TRUE(job::parse_indexes("x,,-").empty());
}

}  // namespace
}  // namespace berth::controllers
