#include <gtest/gtest.h>

#include "base/event_loop.h"
#include "base/metrics.h"

namespace berth {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Clock, Rfc3339RoundTrip) {
  const auto t = parse_rfc3339("2026-11-21T04:32:10.250+01:30");
  ASSERT_TRUE(t.has_value());
  EXPECT_EQ(format_rfc3339(*t), "2026-11-21T03:02:10Z");
  EXPECT_EQ(format_rfc3339_micro(*t), "2026-11-21T03:02:10.250000Z");
  for (const char* bad :
       {"", "2026-11-21", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00", "x"})
    EXPECT_FALSE(parse_rfc3339(bad).has_value()) << bad;
}

TEST(Clock, GoDurations) {
  EXPECT_EQ(parse_go_duration("1h30m"), Duration(hours(1)) + minutes(30));
  EXPECT_EQ(parse_go_duration("-1.5s"), Duration(milliseconds(-1500)));
  EXPECT_EQ(parse_go_duration("0"), Duration(0));
  for (const char* bad : {"", "5", "s", "1x", "1h-5m", ".", "nans", "infs", "1e3s", "0x1s", "9999999h", "1 s"})
    EXPECT_FALSE(parse_go_duration(bad).has_value()) << bad;
  EXPECT_EQ(format_go_duration(hours(1)), "1h0m0s");
  EXPECT_EQ(format_go_duration(milliseconds(1500)), "1.5s");
  EXPECT_EQ(format_go_duration(milliseconds(15)), "15ms");
  EXPECT_EQ(format_go_duration(Duration(0)), "0s");
}

TEST(VirtualLoop, RunsTimersInOrderOfTimeThenCreation) {
  VirtualLoop loop{TimePoint{}};
  std::string order;
  loop.schedule_after(seconds(2), [&] { order += 'c'; });
  loop.schedule_after(seconds(1), [&] {
    order += 'a';
    loop.post([&] { order += 'b'; });
  });
  loop.schedule_after(seconds(2), [&] { order += 'd'; });
  const TimerId cancelled = loop.schedule_after(seconds(2), [&] { order += 'x'; });
  loop.cancel(cancelled);
  loop.run_for(seconds(3));
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(loop.now(), TimePoint{} + seconds(3));
}

TEST(ThreadLoop, RunsPostedTasksInOrderOnOneThread) {
  ThreadLoop loop("test");
  std::mutex mutex;
  std::condition_variable done;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i)
    loop.post([&, i] {
      std::lock_guard lock(mutex);
      seen.push_back(i);
      done.notify_one();
    });
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return seen.size() == 1000; });
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(Metrics, ExpositionHasCumulativeBuckets) {
  metrics::Registry registry;
  registry.counter("requests_total", "Requests.", {{"verb", "GET"}}).add(3);
  auto& histogram = registry.histogram("seconds", "Time.", {0.1, 1});
  histogram.observe(0.05);
  histogram.observe(0.5);
  histogram.observe(5);
  EXPECT_EQ(registry.expose(),
            "# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total{verb=\"GET\"} 3\n"
            "# HELP seconds Time.\n# TYPE seconds histogram\nseconds_bucket{le=\"0.1\"} 1\nseconds_bucket{le=\"1\"} 2\n"
            "seconds_bucket{le=\"+Inf\"} 3\nseconds_sum 5.55\nseconds_count 3\n");
}

}  // namespace
}  // namespace berth
