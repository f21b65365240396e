// Plugins that register by their sockets: those that come, go, lie, and say nothing.
#include "node/plugins/plugin_watcher.h"

#ifdef BERTH_WITH_CRI
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/plugins/registration_protocol.h"

namespace berth::node::plugins {
namespace {

using net::proto::Messages;
constexpr const char* kInfo = "pluginregistration.Registration/GetInfo";
constexpr const char* kNotify = "pluginregistration.Registration/NotifyRegistrationStatus";

/// What happened, in order of its happening, and a place to wait for it.
class Notes {
 public:
  void add(std::string what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(what));
    more_.notify_all();
  }
  bool wait(const std::string& what) {
    std::unique_lock lock(mutex_);
    return more_.wait_for(lock, std::chrono::seconds(20), [&] { return std::ranges::find(all_, what) != all_.end(); });
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    all_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> all_;
};

struct Handler final : PluginHandler {
  explicit Handler(Notes& notes) : notes(notes) {}
  Result<void> register_plugin(const PluginInfo& plugin, const std::atomic<bool>&) override {
    if (plugin.name == "bad") return fail(ErrorCode::kInvalid, "not this one");
    notes.add(fmt::format("registered {} at {} {}", plugin.name, plugin.endpoint, fmt::join(plugin.versions, ",")));
    return {};
  }
  void deregister_plugin(const PluginInfo& plugin) override { notes.add("gone " + plugin.name); }
  Notes& notes;
};

class PluginWatcherTest : public testing::Test {
 protected:
  PluginWatcherTest() : directory_(fmt::format("{}/berth-registry-{}", testing::TempDir(), ::getpid())) {
    std::filesystem::create_directories(directory_ + "/sub");
    messages_ = *Messages::of(kRegistrationProtocol);
  }
  ~PluginWatcherTest() override {
    watcher_.reset();
    std::filesystem::remove_all(directory_);
  }
  void start() {
    WatcherOptions options{.directory = directory_, .handlers = {{std::string(kCsiPlugin), &handler_}}};
    options.period = std::chrono::milliseconds(20);
    watcher_ = *PluginWatcher::start(clock_, std::move(options));
  }
  /// One that answers GetInfo with this, and notes what it is told.
  std::unique_ptr<net::GrpcService> plugin(const std::string& file, const std::string& info) {
    return *net::GrpcService::start({.address = fmt::format("unix://{}/{}", directory_, file)},
                                    [this, info](const std::string& method, const std::string& bytes) -> net::GrpcAnswer {
                                      if (method == std::string("/") + kInfo) {
                                        if (info == "garbage") return std::string("\xff\xff\xff");
                                        return *messages_->encode(kInfo, Messages::Side::kAnswer, *json::parse(info));
                                      }
                                      notes_.add("told " + json::serialize(*messages_->decode(kNotify, Messages::Side::kRequest, bytes)));
                                      return std::string();
                                    });
  }

  const std::string directory_;
  SystemClock clock_;
  Notes notes_;
  Handler handler_{notes_};
  std::unique_ptr<Messages> messages_;
  std::unique_ptr<PluginWatcher> watcher_;
};

constexpr const char* kGood =
    R"({"type":"CSIPlugin","name":"csi.example.com","endpoint":"/run/csi.sock","supported_versions":["1.0.0","1.5.0"]})";

TEST_F(PluginWatcherTest, OneThatIsThereOneThatComesAndOneThatGoes) {
  auto before = plugin("sub/csi.sock", kGood);
  start();
  EXPECT_TRUE(notes_.wait("registered csi.example.com at /run/csi.sock 1.0.0,1.5.0"));
  EXPECT_TRUE(notes_.wait(R"(told {"plugin_registered":true,"error":""})"));
  auto later = plugin("later.sock", R"({"type":"CSIPlugin","name":"later"})");
  EXPECT_TRUE(notes_.wait(fmt::format("registered later at {}/later.sock ", directory_))) << "its own socket is its endpoint";
  later.reset();
  std::filesystem::remove(directory_ + "/later.sock");
  EXPECT_TRUE(notes_.wait("gone later"));
  notes_.clear();
  later = plugin("later.sock", R"({"type":"CSIPlugin","name":"later","endpoint":"/e"})");
  EXPECT_TRUE(notes_.wait("registered later at /e "));
}

TEST_F(PluginWatcherTest, WhatIsNotTakenIsToldWhyAndHoldsUpNobody) {
  auto bad = plugin("bad.sock", R"({"type":"CSIPlugin","name":"bad"})");
  auto strange = plugin("strange.sock", R"({"type":"Kettle","name":"k"})");
  auto garbage = plugin("garbage.sock", "garbage");
  auto nameless = plugin("nameless.sock", R"({"type":"CSIPlugin"})");
  auto good = plugin("zgood.sock", kGood);
  start();
  EXPECT_TRUE(notes_.wait("registered csi.example.com at /run/csi.sock 1.0.0,1.5.0"));
  EXPECT_TRUE(notes_.wait(R"(told {"plugin_registered":false,"error":"not this one"})"));
  EXPECT_TRUE(notes_.wait(
      fmt::format(R"(told {{"plugin_registered":false,"error":"no handler registered for plugin type: Kettle at socket {}/strange.sock"}})",
                  directory_)));
  notes_.clear();
  EXPECT_TRUE(notes_.wait(R"(told {"plugin_registered":false,"error":"not this one"})")) << "it is asked again";
}

TEST_F(PluginWatcherTest, OneThatNeverAnswersIsLeftWhenTheNodeEnds) {
  std::atomic<bool> asked{false}, release{false};
  auto mute = *net::GrpcService::start({.address = fmt::format("unix://{}/mute.sock", directory_)},
                                       [&](const std::string&, const std::string&) -> net::GrpcAnswer {
                                         asked = true;
                                         release.wait(false);
                                         return std::string();
                                       });
  start();
  while (!asked) std::this_thread::yield();
  watcher_.reset();
  release = true;
  release.notify_all();
}

}  // namespace
}  // namespace berth::node::plugins
#endif
