// Pods that end while others still look at them.
#include "pod_worker_fixture.h"

namespace berth::node::agent {
namespace {

using testing::PodWorkerTest;

TEST_F(PodWorkerTest, APodThatEndsIsAskedOnWhetherItIsReadyAndNotWhetherItLives) {
  runtime_.ignores_stop_signals = true;
  start(
      pod("{terminationGracePeriodSeconds: 600, containers: [{name: c, image: 'app:1', readinessProbe: {exec: {command: [check]}, "
          "periodSeconds: 1, failureThreshold: 1}, livenessProbe: {exec: {command: [check]}, periodSeconds: 1, failureThreshold: 1}}]}"));
  const auto is_ready = [this] { return json::get_bool(json::get_array(worker_->status(), {"containerStatuses"})[0], {"ready"}); };
  ASSERT_TRUE(eventually_phase("Running"));
  ASSERT_TRUE(eventually(is_ready));
  worker_->terminate(std::chrono::seconds(600));
  ASSERT_TRUE(eventually([&] { return has_event("Killing Stopping container c"); }));
  EXPECT_TRUE(is_ready()) << "it serves until it says otherwise";
  runtime_.exec_exit_code = 1;
  ASSERT_TRUE(eventually([&] {
    pass(std::chrono::seconds(1));
    return !is_ready();
  }));
  EXPECT_TRUE(has_event("Readiness probe failed"));
  EXPECT_FALSE(has_event("failed liveness probe"));
  EXPECT_TRUE(runtime_.running("c")) << "it has its time still";
  runtime_.exec_exit_code = 0;
  ASSERT_TRUE(eventually([&] {
    pass(std::chrono::seconds(1));
    return is_ready();
  }));
  worker_->terminate(Duration::zero());
  ASSERT_TRUE(eventually([&] { return worker_->is_finished(); }));
}

TEST_F(PodWorkerTest, AContainerThatIsKilledForItsHealthHoldsNoOthersReadinessUp) {
  runtime_.ignores_stop_signals = true;
  start(pod(
      "{terminationGracePeriodSeconds: 600, containers: [{name: sick, image: 'app:1', livenessProbe: {tcpSocket: {host: not-an-address, "
      "port: 1}, periodSeconds: 1, failureThreshold: 1}}, {name: well, image: 'app:1', readinessProbe: {exec: {command: [check]}, "
      "periodSeconds: 1, failureThreshold: 1}}]}"));
  const auto is_ready = [this] {
    const json::Value status = worker_->status();
    const json::Array& list = json::get_array(status, {"containerStatuses"});
    return list.size() == 2 && json::get_bool(list[1], {"ready"});
  };
  ASSERT_TRUE(eventually([&] { return has_event("Container sick failed liveness probe, will be restarted"); }));
  runtime_.exec_exit_code = 0;
  ASSERT_TRUE(eventually([&] {
    pass(std::chrono::seconds(1));
    return is_ready();
  }));
  runtime_.exec_exit_code = 1;
  ASSERT_TRUE(eventually([&] {
    pass(std::chrono::seconds(1));
    return !is_ready();
  }));
  worker_->terminate(Duration::zero());
  ASSERT_TRUE(eventually([&] { return worker_->is_finished(); }));
}

}  // namespace
}  // namespace berth::node::agent
