// DRA drivers over their sockets: ones that register, prepare, fail, are slow, go, and come back after the agent was started anew.
#include "node/devices/claim_drivers.h"

#ifdef BERTH_WITH_CRI
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <future>

#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/devices/claim_protocol.h"
#include "node/devices/pod_resources.h"
#include "node/plugins/plugin_watcher.h"

namespace berth::node::devices {
namespace {

using net::proto::Messages;

struct HandClock final : Clock {
  [[nodiscard]] TimePoint now() const override { return TimePoint(Duration(us.load())); }
  std::atomic<std::int64_t> us{3'600'000'000};
};

/// Prepares one CDI device a claim, "example.com/x=CLAIM", unless it is told what else to answer.
class FakeDriver {
 public:
  FakeDriver(const std::string& socket, std::string service) : package_(claim_package(service)) {
    messages_ = std::move(*Messages::of(fmt::format("package {};\n{}", package_, kClaimProtocol)));
    service_ = std::move(*net::GrpcService::start(
        {.address = "unix://" + socket}, [this](const std::string& method, const std::string& bytes) { return serve(method, bytes); }));
  }
  std::string calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  void answer(std::string text) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(text);
  }
  /// From now on nothing is answered; the future is there when the driver is asked.
  std::future<void> hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
    return asked_.get_future();
  }
  void wake_up() {
    const std::lock_guard lock(mutex_);
    hangs_ = false;
    changed_.notify_all();
  }

 private:
  net::GrpcAnswer serve(const std::string& method, const std::string& bytes) {
    const std::string whole = method.substr(1);
    if (!whole.starts_with(package_)) return std::unexpected(net::GrpcFailure{static_cast<int>(net::GrpcCode::kUnimplemented), ""});
    const auto request = messages_->decode(whole, Messages::Side::kRequest, bytes);
    std::unique_lock lock(mutex_);
    const bool prepares = whole.ends_with("NodePrepareResources");
    calls_ += prepares ? "prepare" : "unprepare";
    json::Object claims;
    for (const auto& one : json::get_array(*request, {"claims"})) {
      const std::string_view name = json::get_string(one, {"name"});
      calls_ += fmt::format(" {}", name);
      claims[json::get_string(one, {"uid"})] =
          prepares ? *json::parse(fmt::format(
                         R"({{"devices":[{{"pool_name":"p","device_name":"{0}","cdi_device_ids":["example.com/x={0}"]}}]}})", name))
                   : json::Value(json::Object{});
    }
    calls_ += "; ";
    if (hangs_) asked_.set_value();
    changed_.wait(lock, [this] { return !hangs_; });
    const json::Value answer = answer_.empty() ? json::Value(json::Object{{"claims", std::move(claims)}}) : *json::parse(answer_);
    return *messages_->encode(whole, Messages::Side::kAnswer, answer);
  }

  const std::string package_;
  std::unique_ptr<Messages> messages_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::promise<void> asked_;
  bool hangs_ = false;
  std::string calls_, answer_;
  std::unique_ptr<net::GrpcService> service_;
};

class DriversTest : public ::testing::Test {
 protected:
  DriversTest() {
    char pattern[] = "/tmp/berth-dra.XXXXXX";
    root_ = ::mkdtemp(pattern);
    start_agent();
  }
  ~DriversTest() override {
    drivers_.reset();
    driver_.reset();
    std::filesystem::remove_all(root_);
  }
  void start_agent(const std::string& boot = "boot-1") {
    drivers_.reset();
    ClaimDriverOptions options{.checkpoint = root_ + "/claims.json", .boot_id = boot};
    options.remove_slices = [this](const std::string& driver) -> Result<void> {
      removed_ += "[" + driver + "]";
      return {};
    };
    drivers_ = std::move(*ClaimDrivers::start(clock_, std::move(options)));
  }
  [[nodiscard]] plugins::PluginInfo info(const std::string& service = "v1.DRAPlugin") const {
    return {"DRAPlugin", "gpu", root_ + "/gpu.sock", {service}, root_ + "/reg.sock"};
  }
  void start_driver(const std::string& service = "v1.DRAPlugin") {
    driver_.reset();
    driver_ = std::make_unique<FakeDriver>(root_ + "/gpu.sock", service);
  }
  void register_driver(const std::string& service = "v1.DRAPlugin") {
    start_driver(service);
    ASSERT_TRUE(drivers_->handler().register_plugin(info(service), goes_on_));
  }
  static ClaimUse use(const std::string& name) { return {{"default", name, "uid-" + name}, {"gpu"}}; }
  std::string prepare(const std::string& pod, const std::vector<ClaimUse>& claims) {
    const auto done = drivers_->prepare(pod, claims, goes_on_);
    return done ? "" : done.error().message;
  }
  std::string release(const std::string& pod) {
    const auto done = drivers_->release(pod, goes_on_);
    return done ? "" : done.error().message;
  }

  HandClock clock_;
  std::string root_, removed_;
  ClaimDrivers::Pods pods_;
  std::atomic<bool> goes_on_{false};
  std::unique_ptr<FakeDriver> driver_;
  std::unique_ptr<ClaimDrivers> drivers_;
};

TEST_F(DriversTest, APodsClaimsArePreparedGivenAndTakenBack) {
  EXPECT_EQ(prepare("p", {use("a")}), "DRA driver gpu is not registered");
  EXPECT_EQ(release("p"), "") << "nobody was asked for anything";
  register_driver();
  EXPECT_EQ(prepare("p", {use("a"), use("b")}), "");
  EXPECT_EQ(prepare("q", {use("b")}), "");
  EXPECT_EQ(drivers_->cdi_devices({{"c", "default", "a", ""}, {"d", "default", "b", "r"}}),
            (std::vector<std::string>{"example.com/x=a", "example.com/x=b"}));
  EXPECT_EQ(release("p"), "");
  EXPECT_EQ(release("p"), "");
  EXPECT_EQ(release("q"), "");
  EXPECT_EQ(driver_->calls(), "prepare a b; unprepare a; unprepare b; ");
}

TEST_F(DriversTest, AnOlderDriverIsSpokenToInItsWords) {
  register_driver("v1beta1.DRAPlugin");
  EXPECT_EQ(prepare("p", {use("a")}), "");
  EXPECT_EQ(driver_->calls(), "prepare a; ");
  const auto refused = drivers_->handler().register_plugin(info("v1alpha4.Node"), goes_on_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("none of services supported by the plugin"), std::string::npos);
}

TEST_F(DriversTest, WhatADriverRefusesIsToldAndAskedForAgain) {
  register_driver();
  driver_->answer(R"({"claims":{"uid-a":{"error":"no power"}}})");
  EXPECT_EQ(prepare("p", {use("a")}), "NodePrepareResources failed for ResourceClaim a: no power");
  driver_->answer(R"({"claims":{}})");
  EXPECT_EQ(prepare("p", {use("a")}), "NodePrepareResources skipped 1 ResourceClaims");
  driver_->answer("");
  EXPECT_EQ(prepare("p", {use("a")}), "");
  driver_->answer(R"({"claims":{"uid-a":{"error":"in use"}}})");
  EXPECT_EQ(release("p"), "NodeUnprepareResources failed for ResourceClaim a: in use");
  driver_->answer("");
  EXPECT_EQ(release("p"), "");
}

TEST_F(DriversTest, ADriverThatIsAwayIsWaitedForWhenItsDevicesAreTakenBack) {
  register_driver();
  EXPECT_EQ(prepare("p", {use("a")}), "");
  drivers_->handler().deregister_plugin(info());
  EXPECT_EQ(release("p"), "DRA driver gpu is not registered");
  EXPECT_EQ(prepare("q", {use("b")}), "DRA driver gpu is not registered");
  register_driver();
  EXPECT_EQ(release("p"), "");
  EXPECT_EQ(driver_->calls(), "unprepare a; ");
}

TEST_F(DriversTest, ASlowDriverIsCalledOffWithItsPodAndHoldsUpNobodyElse) {
  register_driver();
  auto asked = driver_->hang();
  std::atomic<bool> off{false};
  auto slow = std::async(std::launch::async, [&] { return drivers_->prepare("p", {use("a")}, off); });
  asked.wait();
  EXPECT_EQ(release("nobody"), "") << "the lock is not held meanwhile";
  // A second pod of the same claim waits for the first, and asks nobody.
  std::atomic<bool> second_off{true};
  EXPECT_EQ(drivers_->prepare("q", {use("a")}, second_off).error().message, "called off");
  off = true;
  EXPECT_FALSE(slow.get());
  driver_->wake_up();
  EXPECT_EQ(release("p"), "") << "it may have prepared all the same";
  EXPECT_EQ(driver_->calls(), "prepare a; unprepare a; ");
}

TEST_F(DriversTest, TheNextAgentKnowsWhatIsPrepared) {
  register_driver();
  EXPECT_EQ(prepare("p", {use("a")}), "");
  EXPECT_EQ(prepare("q", {use("a"), use("b")}), "");
  start_agent();
  EXPECT_EQ(drivers_->cdi_devices({{"c", "default", "a", ""}}), (std::vector<std::string>{"example.com/x=a"}));
  register_driver();
  EXPECT_EQ(prepare("p", {use("a")}), "");
  pods_ = {"p"};  // q was deleted while no agent ran.
  drivers_->look(pods_);
  EXPECT_EQ(driver_->calls(), "unprepare b; ");
  start_agent("boot-2");
  register_driver();
  EXPECT_EQ(prepare("p", {use("a")}), "");
  EXPECT_EQ(driver_->calls(), "prepare a; ") << "what was in memory is gone with the machine's start";
}

TEST_F(DriversTest, WithoutACheckpointNoDriverIsAsked) {
  register_driver();
  std::filesystem::create_directories(root_ + "/claims.json.new");
  EXPECT_EQ(prepare("p", {use("a")}), fmt::format("checkpoint ResourceClaim cache: {}/claims.json cannot be written", root_));
  EXPECT_EQ(driver_->calls(), "");
}

TEST_F(DriversTest, SlicesOfADriverThatDoesNotAnswerGo) {
  drivers_->look(pods_);
  EXPECT_EQ(removed_, "[]") << "of all drivers, at the start";
  register_driver();
  drivers_->look(pods_);
  driver_.reset();  // It registered, and was killed: its socket's file is there, and nobody answers.
  drivers_->look(pods_);
  clock_.us += 29'000'000;
  drivers_->look(pods_);
  EXPECT_EQ(removed_, "[]");
  clock_.us += 1'000'000;
  drivers_->look(pods_);
  drivers_->look(pods_);
  EXPECT_EQ(removed_, "[][gpu]");
}

TEST_F(DriversTest, MonitoringAgentsAreToldOfClaims) {
  register_driver();
  EXPECT_EQ(prepare("uid-1", {use("a")}), "");
  const json::Value pod = *json::parse_yaml(R"(
metadata: {name: web, namespace: default, uid: uid-1}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: a}]
  initContainers: [{name: ends}, {name: stays, restartPolicy: Always}]
  containers: [{name: c, resources: {claims: [{name: gpu}]}}])");
  PodResourcesOptions options{.directory = root_ + "/pod-resources"};
  options.pods = [&] { return std::vector<json::Value>{pod}; };
  options.claims = drivers_.get();
  auto served = PodResources::start(options);
  ASSERT_TRUE(served) << served.error().message;
  const auto found = (*served)->answer("Get", json::Object{{"pod_name", "web"}, {"pod_namespace", "default"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(
      json::serialize(*json::find(*found, {"pod_resources", "containers"})),
      R"([{"name":"stays","devices":[],"cpu_ids":[],"memory":[],"dynamic_resources":[]},{"name":"c","devices":[],"cpu_ids":[],"memory":[],"dynamic_resources":[)"
      R"({"claim_name":"a","claim_namespace":"default","claim_resources":[)"
      R"({"cdi_devices":[{"name":"example.com/x=a"}],"driver_name":"gpu","pool_name":"p","device_name":"a","share_id":""}]}]}])");
  EXPECT_EQ((*served)->answer("Get", json::Object{{"pod_name", "db"}, {"pod_namespace", "default"}}).error().message,
            "pod db in namespace default not found");
  EXPECT_FALSE(PodResources::start(options)) << "one a directory";
  // Over the socket, as bytes: an empty request, and a method that is not there.
  auto calls = std::move(*net::GrpcCalls::open({.target = "unix://" + options.directory + "/kubelet.sock"}));
  const auto listed = calls->call("/v1.PodResourcesLister/List", "", 5000);
  ASSERT_TRUE(listed);
  EXPECT_NE(listed->find("example.com/x=a"), std::string::npos);
  EXPECT_TRUE(calls->call("/v1.PodResourcesLister/Watch", "", 5000).error().is(net::GrpcCode::kUnimplemented));
}

}  // namespace
}  // namespace berth::node::devices
#endif
