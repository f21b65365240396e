// Which kinds a server serves, asked group version by group version.
#include "scheduler/consulted.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/event_loop.h"

namespace berth::scheduler {
namespace {

/// Answers discovery at once, by path; counts what was asked.
class Server final : public client::Transport {
 public:
  std::map<std::string, net::HttpResponse> answers;
  std::map<std::string, int> asked;

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    ++asked[request.path];
    const auto found = answers.find(request.path);
    net::HttpResponse none;
    none.status = 404;
    done(found != answers.end() ? found->second : none);
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest, net::StreamCallbacks) override { return nullptr; }
  void upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)>) override {}

  void serve(const std::string& path, std::initializer_list<const char*> resources) {
    json::Array list;
    for (const char* name : resources) list.push_back(json::Object{{"name", name}});
    answers[path] = {};
    answers[path].status = 200;
    answers[path].body = json::serialize(json::Value(json::Object{{"resources", std::move(list)}}));
  }
  void fail(const std::string& path, int status) {
    answers[path] = {};
    answers[path].status = status;
  }
};

class Discovering : public ::testing::Test {
 protected:
  void start() {
    discover_consulted(
        client_, [this] { return is_wanted_; },
        [this](std::vector<Consulted> found) {
          ++calls_;
          found_ = std::move(found);
        });
  }
  /// "VERSION/RESOURCE " of all that were found, but for what may come later.
  [[nodiscard]] std::string found() const {
    std::string out;
    for (const Consulted& one : found_)
      if (one.kind != "NodeResourceTopology") out += one.gvr.version + "/" + one.gvr.resource + " ";
    return out;
  }

  VirtualLoop loop_{TimePoint{} + std::chrono::hours(500'000)};
  std::shared_ptr<Server> server_ = std::make_shared<Server>();
  client::Client client_{server_, &loop_, "test"};
  bool is_wanted_ = true;
  int calls_ = 0;
  std::vector<Consulted> found_;
};

TEST_F(Discovering, TheNewestVersionOfEachAndWhatIsNotThereIsLeftOut) {
  server_->serve("/api/v1", {"services", "pods", "namespaces"});
  server_->serve("/apis/policy/v1", {"evictions"});
  server_->serve("/apis/policy/v1beta1", {"poddisruptionbudgets"});
  server_->serve("/apis/storage.k8s.io/v1", {"storageclasses"});
  server_->serve("/apis/storage.k8s.io/v1beta1", {"storageclasses", "csinodes"});
  start();
  loop_.run_for(Duration(0));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(found(), "v1/namespaces v1/services v1/storageclasses v1beta1/csinodes v1beta1/poddisruptionbudgets ");
  for (const auto& [path, times] : server_->asked) EXPECT_EQ(times, 1) << path;
}

TEST_F(Discovering, AKindThatADefinitionMayMakeIsFollowedBeforeItIsThere) {
  start();
  loop_.run_for(Duration(0));
  ASSERT_EQ(found_.size(), 1U) << "nothing else";
  EXPECT_EQ(found_[0].gvr, (client::Gvr{"topology.node.k8s.io", "v1alpha2", "noderesourcetopologies"}));
}

TEST_F(Discovering, WhoMayNotAskTakesTheNewest) {
  server_->fail("/apis/policy/v1", 403);
  server_->fail("/apis/policy/v1beta1", 403);
  start();
  loop_.run_for(Duration(0));
  EXPECT_EQ(found(), "v1/poddisruptionbudgets ");
}

TEST_F(Discovering, AServerThatDoesNotAnswerIsAskedForTheRestAgain) {
  server_->serve("/api/v1", {"services"});
  for (const int status : {500, 0}) {
    server_->fail("/apis/policy/v1", status);
    calls_ = 0;
    server_->asked.clear();
    start();
    loop_.run_for(std::chrono::milliseconds(2500));
    EXPECT_EQ(calls_, 0);
    EXPECT_EQ(server_->asked["/apis/policy/v1"], 3);
    EXPECT_EQ(server_->asked["/api/v1"], 1);
    server_->serve("/apis/policy/v1", {"poddisruptionbudgets"});
    loop_.run_for(std::chrono::seconds(5));
    EXPECT_EQ(calls_, 1);
    EXPECT_EQ(server_->asked["/apis/policy/v1"], 4);
    EXPECT_EQ(found(), "v1/services v1/poddisruptionbudgets ");
  }
}

TEST_F(Discovering, WhoIsNotWantedAnyMoreIsNotCalled) {
  server_->fail("/apis/policy/v1", 500);
  start();
  loop_.run_for(std::chrono::milliseconds(500));
  is_wanted_ = false;
  server_->serve("/apis/policy/v1", {"poddisruptionbudgets"});
  loop_.run_for(std::chrono::seconds(5));
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(server_->asked["/apis/policy/v1"], 1);
}

}  // namespace
}  // namespace berth::scheduler
