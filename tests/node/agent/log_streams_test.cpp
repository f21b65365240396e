// A log that is empty because its container has only just begun.
#include "node/agent/log_streams.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "net/client.h"
#include "net/server.h"

namespace berth::node::agent {
namespace {

class LogStreamsTest : public ::testing::Test, public net::Handler {
 protected:
  LogStreamsTest() {
    char pattern[] = "/tmp/berth-log-streams.XXXXXX";
    root_ = ::mkdtemp(pattern);
    std::ofstream(file()).flush();
    server_ = std::move(*net::Server::start({}, *this));
    client_ = std::move(*net::HttpClient::create({.url = fmt::format("http://127.0.0.1:{}", server_->port())}));
  }
  ~LogStreamsTest() override {
    client_.reset();
    streams_.stop();
    server_->stop(0);
    server_.reset();
    std::filesystem::remove_all(root_);
  }
  void handle(net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) override {
    streams_.send(
        std::move(writer), file(), {}, [this] { return is_over_.load(); }, std::chrono::steady_clock::now() + patience_);
  }
  [[nodiscard]] std::string file() const { return root_ + "/0.log"; }
  std::future<std::string> ask() {
    auto answer = std::make_shared<std::promise<std::string>>();
    net::HttpRequest request;
    request.method = "GET";
    request.path = "/";
    client_->send(std::move(request), [answer](const net::HttpResponse& response) { answer->set_value(response.body); });
    return answer->get_future();
  }

  std::string root_;
  std::chrono::seconds patience_ = std::chrono::hours(1);
  std::atomic<bool> is_over_{false};
  LogStreams streams_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<net::HttpClient> client_;
};

TEST_F(LogStreamsTest, TheFirstWordsOfAYoungContainerAreWaitedFor) {
  auto answer = ask();
  std::ofstream(file(), std::ios::app) << "2026-01-05T10:00:00.000000000Z stdout F alive\n";
  EXPECT_EQ(answer.get(), "alive\n");
}

TEST_F(LogStreamsTest, AContainerThatEndedWithoutAWordIsNotWaitedFor) {
  is_over_ = true;
  EXPECT_EQ(ask().get(), "");
}

TEST_F(LogStreamsTest, AnOldContainersEmptyLogIsAnsweredAtOnce) {
  patience_ = std::chrono::seconds(-1);
  EXPECT_EQ(ask().get(), "");
}

}  // namespace
}  // namespace berth::node::agent
