// Questions to the scheduler that runs: who is answered, who is refused, and how many may wait.
#include "cli/roles/scheduler_role.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "apiserver/server.h"
#include "cli/planning/placement_question.h"
#include "client/client.h"

namespace berth::cli {
namespace {

using Answer = model::ApiResult<std::string>;

class RunningScheduler : public ::testing::Test {
 protected:
  RunningScheduler() {
    auto cache = apiserver::open_object_cache(store::make_memory_store(), server_loop_, {}, true);
    apiserver::ServerOptions server;
    server.cache = std::move(*cache);
    server.loop = &server_loop_;
    auto trusting = std::make_shared<apiserver::TrustingAuth>();
    server.authenticator = trusting;
    server.authorizer = trusting;
    api_ = std::move(*apiserver::ApiServer::create(std::move(server)));
    scheduler::SchedulerOptions options;
    options.profiles.push_back(placement::default_profile(placement::Era::k136));
    options.aside = [this](std::function<void()> job) {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    };
    role_ = std::make_unique<SchedulerRole>(
        client::make_in_process_transport(*api_, {"system:kube-scheduler", {"system:masters", "system:authenticated"}}),
        std::move(options));
    EXPECT_TRUE(role_->start());
    // Before it knows the cluster it says so.
    for (;;) {
      auto first = ask({pod("first")});
      come_to_the_end();
      if (first.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        run_job();
        EXPECT_TRUE(first.get());
        return;
      }
      EXPECT_EQ(first.get().error().code, 503);
      std::this_thread::yield();
    }
  }
  ~RunningScheduler() override {
    role_.reset();
    api_->begin_shutdown();
  }
  static json::Value pod(const std::string& name, const std::string& scheduler = "default-scheduler") {
    return {{"metadata", {{"name", name}, {"namespace", "shop"}}},
            {"spec", {{"schedulerName", scheduler}, {"containers", json::Array{{{"name", "c"}}}}}}};
  }
  std::future<Answer> ask(PlacementQuestion question) {
    auto told = std::make_shared<std::promise<Answer>>();
    auto out = told->get_future();
    role_->explain(std::move(question), [told](Answer answer) { told->set_value(std::move(answer)); });
    return out;
  }
  /// All that was asked until now is answered or waits.
  void come_to_the_end() { (void)ask({pod("last", "somebody")}).get(); }
  /// The look that waits longest.
  void run_job() {
    std::function<void()> job;
    {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(jobs_.empty());
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }

  ThreadLoop server_loop_{"server"};
  std::unique_ptr<apiserver::ApiServer> api_;
  std::mutex mutex_;
  std::deque<std::function<void()>> jobs_;
  std::unique_ptr<SchedulerRole> role_;
};

TEST_F(RunningScheduler, AnswersAboutItsOwnPodsAlone) {
  auto own = ask({pod("web")}), other = ask({pod("web", "somebody")});
  EXPECT_EQ(other.get().error().code, 404);
  run_job();
  const Answer answer = own.get();
  ASSERT_TRUE(answer);
  EXPECT_NE(answer->find("shop/web cannot be placed: no nodes available"), std::string::npos) << *answer;
  EXPECT_NE(answer->find("ConfigMap kube-system/berth-scheduler-default-scheduler"), std::string::npos) << *answer;
}

TEST_F(RunningScheduler, KnowsNoGroupThatIsNotThere) {
  const Answer answer = ask({.pod = {}, .output = "text", .group = "shop/crew"}).get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, 404);
  EXPECT_NE(answer.error().message.find("shop/crew"), std::string::npos);
}

TEST_F(RunningScheduler, LetsSixteenWaitAndTakesTheNextWhenOneWasAnswered) {
  std::vector<std::future<Answer>> waiting;
  for (int i = 0; i < 16; ++i) waiting.push_back(ask({pod("web")}));
  EXPECT_EQ(ask({pod("late")}).get().error().code, 429);
  run_job();
  EXPECT_TRUE(waiting.front().get());
  auto next = ask({pod("next")});
  come_to_the_end();
  for (int i = 0; i < 16; ++i) run_job();
  EXPECT_TRUE(next.get());
}

}  // namespace
}  // namespace berth::cli
