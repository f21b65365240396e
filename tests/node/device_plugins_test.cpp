// Device plugins over their sockets: one that registers, lists, goes, comes back, and is asked.
#include "node/devices/device_plugins.h"

#ifdef BERTH_WITH_CRI
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "model/views/pod_view.h"
#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/devices/plugin_protocol.h"
#include "node/plugins/plugin_watcher.h"

namespace berth::node::devices {
namespace {

using net::proto::Messages;
constexpr const char* kGpu = "example.com/gpu";

struct StillClock final : Clock {
  [[nodiscard]] TimePoint now() const override { return TimePoint{std::chrono::hours(1)}; }
};

/// A plugin: answers as it is told to, one stream of lists at a time.
class StubPlugin {
 public:
  using Answer = std::function<net::GrpcAnswer(const std::string& method, const json::Value& request)>;
  StubPlugin(const std::string& socket, Answer answer) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix://" + socket, grpc::InsecureServerCredentials());
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    thread_ = std::thread([this] { serve(); });
  }
  ~StubPlugin() {
    is_over_ = true;
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    thread_.join();
  }
  StubPlugin(const StubPlugin&) = delete;
  StubPlugin& operator=(const StubPlugin&) = delete;

  /// What whoever listens is told, and who comes later first of all.
  void list(const std::string& devices) {
    const std::lock_guard lock(mutex_);
    lists_.push_back(*messages_->encode("v1beta1.DevicePlugin/ListAndWatch", Messages::Side::kAnswer, *json::parse(devices)));
  }

 private:
  struct Call {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer request;
    enum class Step { kAccepted, kRead, kListing, kAnswered } step = Step::kAccepted;
    std::size_t told = 0;
  };
  static grpc::ByteBuffer buffer(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    return {&slice, 1};
  }
  static std::string text(const grpc::ByteBuffer& from) {
    std::vector<grpc::Slice> slices;
    std::string out;
    if (from.Dump(&slices).ok())
      for (const auto& one : slices) out.append(reinterpret_cast<const char*>(one.begin()), one.size());
    return out;
  }
  void accept() {
    auto* call = new Call;
    service_.RequestCall(&call->context, &call->stream, queue_.get(), queue_.get(), call);
  }
  void serve() {
    accept();
    void* tag = nullptr;
    bool ok = false;
    Call* listening = nullptr;
    for (;;) {
      const auto next = queue_->AsyncNext(&tag, &ok, std::chrono::system_clock::now() + std::chrono::milliseconds(5));
      if (next == grpc::CompletionQueue::SHUTDOWN) return;
      if (next == grpc::CompletionQueue::TIMEOUT) {
        const std::lock_guard lock(mutex_);
        if (listening == nullptr || listening->step != Call::Step::kListing || listening->told == lists_.size()) continue;
        listening->step = Call::Step::kAnswered;  // Until it is written.
        listening->stream.Write(buffer(lists_.back()), listening);
        listening->told = lists_.size();
        continue;
      }
      auto* call = static_cast<Call*>(tag);
      if (!ok || is_over_) {
        if (call == listening) listening = nullptr;
        delete call;
      } else if (call->step == Call::Step::kAccepted) {
        accept();
        call->step = Call::Step::kRead;
        call->stream.Read(&call->request, call);
      } else if (call == listening) {
        call->step = Call::Step::kListing;
      } else if (call->step == Call::Step::kRead) {
        const std::string method = call->context.method().substr(1);
        if (method.ends_with("ListAndWatch")) {
          call->step = Call::Step::kListing;
          listening = call;
          continue;
        }
        call->step = Call::Step::kAnswered;
        const auto answer = answer_(method, *messages_->decode(method, Messages::Side::kRequest, text(call->request)));
        if (answer)
          call->stream.WriteAndFinish(buffer(*answer), grpc::WriteOptions(), grpc::Status::OK, call);
        else
          call->stream.Finish(grpc::Status(grpc::StatusCode::INTERNAL, answer.error().message), call);
      } else {
        delete call;
      }
    }
  }

  Answer answer_;
  std::unique_ptr<Messages> messages_ = *Messages::of(kPluginProtocol);
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::vector<std::string> lists_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

class Plugins : public ::testing::Test {
 protected:
  /// Beside pods that are there already.
  bool admit(const json::Value& pod, std::set<std::string> others) {
    others.emplace(json::get_string(pod, {"metadata", "uid"}));
    plugins_->keep_only(others);
    return !numa::admit({}, {}, numa::wishes_of(model::PodView::parse(pod)), {plugins_.get()});
  }
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("berth-devices-{}", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    start();
  }
  void TearDown() override {
    plugin_.reset();
    plugins_.reset();
    std::filesystem::remove_all(directory_);
  }
  void start() {
    plugins_.reset();
    auto started = DevicePlugins::start(clock_, {.directory = directory_, .checkpoint = directory_ + "/checkpoint", .changed = [this] {
                                                   const std::lock_guard lock(mutex_);
                                                   ++changes_;
                                                   changed_.notify_all();
                                                 }});
    ASSERT_TRUE(started) << started.error().message;
    plugins_ = std::move(*started);
  }
  /// Waits until the node has so many changes behind it.
  void wait_for_change(int count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return changes_ >= count; })) << changes_;
  }
  net::GrpcAnswer register_plugin(const std::string& options = "{}", const std::string& version = "v1beta1",
                                  const std::string& resource = kGpu) {
    const auto calls = *net::GrpcCalls::open({.target = "unix://" + directory_ + "/kubelet.sock"});
    return calls->call(
        "/v1beta1.Registration/Register",
        *messages_->encode("v1beta1.Registration/Register", Messages::Side::kRequest,
                           *json::parse(fmt::format(R"({{"version":"{}","endpoint":"gpu.sock","resource_name":"{}","options":{}}})",
                                                    version, resource, options))),
        20'000);
  }
  /// Notes what it is asked; `said` by method, else nothing.
  void start_plugin() {
    plugin_ = std::make_unique<StubPlugin>(
        directory_ + "/gpu.sock", [this](const std::string& method, const json::Value& request) -> net::GrpcAnswer {
          const std::string name = method.substr(method.find('/') + 1);
          asked_.push_back(name + " " + json::serialize(request));
          if (const auto error = errors_.find(name); error != errors_.end()) return std::unexpected(net::GrpcFailure{13, error->second});
          const auto found = said_.find(name);
          return *messages_->encode(method, Messages::Side::kAnswer, *json::parse(found == said_.end() ? "{}" : found->second));
        });
  }
  static json::Value pod(const std::string& uid) {
    return *json::parse(fmt::format(
        R"({{"metadata":{{"uid":"{}"}},"spec":{{"containers":[{{"name":"c","resources":{{"limits":{{"example.com/gpu":"1"}}}}}}]}}}})",
        uid));
  }

  std::string directory_;
  StillClock clock_;
  std::unique_ptr<Messages> messages_ = *Messages::of(kPluginProtocol);
  std::unique_ptr<DevicePlugins> plugins_;
  std::unique_ptr<StubPlugin> plugin_;
  std::vector<std::string> asked_;
  std::map<std::string, std::string> said_, errors_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
};

constexpr const char* kTwo =
    R"({"devices":[{"ID":"g0","health":"Healthy"},{"ID":"g1","health":"Healthy","topology":{"nodes":[{"ID":"1"}]}}]})";

TEST_F(Plugins, RegisterListGoAndComeBack) {
  start_plugin();
  ASSERT_TRUE(register_plugin());
  plugin_->list(kTwo);
  wait_for_change(1);
  EXPECT_EQ(plugins_->inventory().allocatable.at(kGpu), 2);
  plugin_->list(R"({"devices":[{"ID":"g0","health":"Healthy"},{"ID":"g1","health":"Unhealthy"}]})");
  wait_for_change(2);
  EXPECT_EQ(plugins_->inventory().capacity.at(kGpu), 2);
  EXPECT_EQ(plugins_->inventory().allocatable.at(kGpu), 1);
  plugin_.reset();
  wait_for_change(3);
  EXPECT_EQ(plugins_->inventory().capacity.at(kGpu), 2);
  EXPECT_EQ(plugins_->inventory().allocatable.at(kGpu), 0);
  start_plugin();
  ASSERT_TRUE(register_plugin());
  plugin_->list(kTwo);
  wait_for_change(4);
  EXPECT_EQ(plugins_->inventory().allocatable.at(kGpu), 2);
}

TEST_F(Plugins, OneWhoseSocketIsFoundIsAskedForItsOptions) {
  said_["GetDevicePluginOptions"] = R"({"pre_start_required":true})";
  said_["Allocate"] = R"({"container_responses":[{}]})";
  start_plugin();
  const std::atomic<bool> goes_on{false};
  plugins::PluginInfo found{"DevicePlugin", kGpu, directory_ + "/gpu.sock", {"v1alpha"}, "/registration.sock"};
  EXPECT_FALSE(plugins_->handler().register_plugin(found, goes_on));
  found.versions.emplace_back("v1beta1");
  ASSERT_TRUE(plugins_->handler().register_plugin(found, goes_on));
  plugin_->list(kTwo);
  wait_for_change(1);
  plugins_->handler().deregister_plugin(found);
  EXPECT_EQ(plugins_->inventory().allocatable.at(kGpu), 2) << "its devices are there for as long as it lists them";
  ASSERT_TRUE(admit(pod("p"), {}));
  ASSERT_TRUE(plugins_->prepare("p", "c"));
  EXPECT_EQ(asked_.back(), R"(PreStartContainer {"devices_ids":["g0"]})");
}

TEST_F(Plugins, AreRefusedWithAWordOfWhatIsWrong) {
  for (const auto& [version, resource, words] :
       {std::tuple{"v1alpha", kGpu, "requested API version"}, {"v1beta1", "cpu", "the ResourceName \"cpu\" is invalid"}}) {
    const auto refused = register_plugin("{}", version, resource);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(plugins_->inventory().capacity.empty());
}

TEST_F(Plugins, AreAskedOnceForAContainerAndBeforeEachStartWhereTheyWant) {
  start_plugin();
  said_["GetPreferredAllocation"] = R"({"container_responses":[{"deviceIDs":["g1"]}]})";
  said_["Allocate"] = R"({"container_responses":[{"envs":{"GPU":"one"}}]})";
  ASSERT_TRUE(register_plugin(R"({"pre_start_required":true,"get_preferred_allocation_available":true})"));
  plugin_->list(kTwo);
  wait_for_change(1);
  ASSERT_TRUE(admit(pod("p"), {}));
  for (int start = 0; start < 2; ++start) {
    const auto grant = plugins_->prepare("p", "c");
    ASSERT_TRUE(grant) << grant.error().message;
    EXPECT_EQ(grant->environment.at("GPU"), "one");
  }
  EXPECT_EQ(
      asked_,
      (std::vector<std::string>{
          R"(GetPreferredAllocation {"container_requests":[{"available_deviceIDs":["g0","g1"],"must_include_deviceIDs":[],"allocation_size":1}]})",
          R"(Allocate {"container_requests":[{"devices_ids":["g1"]}]})", R"(PreStartContainer {"devices_ids":["g1"]})",
          R"(PreStartContainer {"devices_ids":["g1"]})"}));
  EXPECT_TRUE(plugins_->prepare("p", "other")->environment.empty());
}

TEST_F(Plugins, WhatWasGivenIsKnownToTheNextProcessAndFreeWhenThePodIsOver) {
  start_plugin();
  said_["Allocate"] = R"({"container_responses":[{"envs":{"GPU":"one"}}]})";
  ASSERT_TRUE(register_plugin());
  plugin_->list(R"({"devices":[{"ID":"g0","health":"Healthy"}]})");
  wait_for_change(1);
  ASSERT_TRUE(admit(pod("p"), {}));
  ASSERT_TRUE(plugins_->prepare("p", "c"));
  start();
  EXPECT_EQ(plugins_->prepare("p", "c")->environment.at("GPU"), "one") << "no plugin is asked again";
  ASSERT_TRUE(register_plugin());
  wait_for_change(3);  // The first process's plugin was there, it went, it is there.
  EXPECT_FALSE(admit(pod("q"), {"p"}));
  EXPECT_TRUE(admit(pod("q"), {}));
}

TEST_F(Plugins, WhatAPluginRefusesIsSaid) {
  start_plugin();
  errors_["Allocate"] = "it is on fire";
  ASSERT_TRUE(register_plugin());
  plugin_->list(kTwo);
  wait_for_change(1);
  ASSERT_TRUE(admit(pod("p"), {}));
  const auto refused = plugins_->prepare("p", "c");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the device plugin of example.com/gpu says to Allocate: it is on fire");
}

TEST_F(Plugins, ADirectoryIsOneNodes) {
  const auto second = DevicePlugins::start(clock_, {.directory = directory_, .checkpoint = directory_ + "/other", .changed = {}});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("is served by another node of this machine"), std::string::npos);
}

}  // namespace
}  // namespace berth::node::devices
#endif
