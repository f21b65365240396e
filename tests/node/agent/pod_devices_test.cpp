// One pod's worker and the devices of its containers: claims that are prepared before it starts and taken back after it, and their health.
#include "node/agent/node_metrics.h"
#include "node/cpus/cpu_manager.h"
#include "node/devices/claim_drivers.h"
#include "pod_worker_fixture.h"

namespace berth::node::agent::testing {
namespace {

/// Drivers that do as they are told.
class FakeDrivers final : public devices::ClaimDrivers {
 public:
  plugins::PluginHandler& handler() override { std::abort(); }
  Result<void> prepare(const std::string& uid, const std::vector<devices::ClaimUse>& claims, const std::atomic<bool>&) override {
    const std::lock_guard lock(mutex_);
    ++prepared;
    if (!wrong.empty()) return fail(ErrorCode::kUnavailable, wrong);
    for (const auto& one : claims) claims_[one.id.name] = {one.id, {{"gpu", std::vector<devices::ClaimLedger::Device>{}}}, {uid}};
    return {};
  }
  Result<void> release(const std::string&, const std::atomic<bool>&) override {
    const std::lock_guard lock(mutex_);
    if (claims_.empty()) return {};
    ++released;
    if (!wrong.empty()) return fail(ErrorCode::kUnavailable, wrong);
    claims_.clear();
    return {};
  }
  std::vector<std::string> cdi_devices(const std::vector<devices::ContainerClaim>& uses) const override {
    std::vector<std::string> out;
    for (const auto& use : uses) out.push_back(fmt::format("example.com/x={}-{}", use.claim, use.request));
    return out;
  }
  std::vector<devices::DeviceHealth> health(const devices::ContainerClaim&) const override {
    const std::lock_guard lock(mutex_);
    return {{"example.com/x=a", {state, state == "Healthy" ? "" : "hot"}}};
  }
  std::optional<devices::ClaimLedger::Claim> claim(const std::string&, const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    const auto found = claims_.find(name);
    return found == claims_.end() ? std::nullopt : std::optional(found->second);
  }
  void look(const Pods&) override {}
  void keep_looking(Duration, std::function<Pods()>) override {}
  void stop_looking() override {}
  void say(std::string why) {
    const std::lock_guard lock(mutex_);
    wrong = std::move(why);
  }
  void set_state(std::string now) {
    const std::lock_guard lock(mutex_);
    state = std::move(now);
  }

  std::atomic<int> prepared = 0, released = 0;

 private:
  mutable std::mutex mutex_;
  std::string wrong, state = "Healthy";
  std::map<std::string, devices::ClaimLedger::Claim> claims_;
};

class PodDevicesTest : public PodWorkerTest {
 protected:
  PodDevicesTest() {
    environment_->claims = &drivers_;
    environment_->objects.resource_claim = [](const std::string& ns, const std::string& name) -> Result<json::Value> {
      if (name == "missing") return fail(ErrorCode::kNotFound, "resourceclaims \"missing\" not found");
      return json::parse(fmt::format(
          R"({{"metadata":{{"name":"{0}","namespace":"{1}","uid":"uid-{0}"}},"status":{{"reservedFor":[{{"resource":"pods","uid":"{2}"}}],)"
          R"("allocation":{{"devices":{{"results":[{{"driver":"gpu","request":"r"}}]}}}}}}}})",
          name, ns, name == "of-another" ? "uid-2" : "uid-1"));
    };
  }
  ~PodDevicesTest() override { worker_.reset(); }
  static json::Value with_claim(const std::string& claim = "gpu") {
    return pod(
        fmt::format("{{resourceClaims: [{{name: g, resourceClaimName: {}}}], containers: [{{name: c, image: 'app:1', resources: "
                    "{{claims: [{{name: g, request: r}}]}}}}, {{name: plain, image: 'app:1'}}]}}",
                    claim));
  }
  json::Value config_of(const std::string& name) { return runtime_.running(name)->config; }

  FakeDrivers drivers_;
};

TEST_F(PodDevicesTest, AContainerHasTheDevicesOfTheClaimsThatItNames) {
  start(with_claim());
  ASSERT_TRUE(eventually_phase("Running"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("plain").has_value(); }));
  EXPECT_EQ(json::serialize(*json::find(config_of("c"), "CDI_devices")), R"([{"name":"example.com/x=gpu-r"}])");
  EXPECT_EQ(json::find(config_of("plain"), "CDI_devices"), nullptr);
  EXPECT_EQ(drivers_.prepared, 1);
  runtime_.end("c", 1);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("c").has_value(); }));
  EXPECT_EQ(json::serialize(*json::find(config_of("c"), "CDI_devices")), R"([{"name":"example.com/x=gpu-r"}])");
  EXPECT_EQ(drivers_.prepared, 1) << "a restart prepares nothing";
}

TEST_F(PodDevicesTest, APodWaitsForADriverThatIsNotThere) {
  drivers_.say("DRA driver gpu is not registered");
  start(with_claim());
  ASSERT_TRUE(eventually([&] {
    return has_event(
        "Warning FailedPrepareDynamicResources Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu "
        "is not registered");
  }));
  EXPECT_EQ(runtime_.sandbox_count(), 0u);
  drivers_.say("");
  pass(std::chrono::seconds(11));
  EXPECT_TRUE(eventually_phase("Running"));
}

TEST_F(PodDevicesTest, AClaimThatIsNotThereOrNotItsOwnIsNoClaim) {
  start(with_claim("missing"));
  ASSERT_TRUE(eventually([&] { return has_event("fetch ResourceClaim missing: resourceclaims \"missing\" not found"); }));
  worker_.reset();
  start(with_claim("of-another"));
  ASSERT_TRUE(eventually([&] { return has_event("pod p (uid-1) is not allowed to use ResourceClaim of-another (uid-of-another)"); }));
  EXPECT_EQ(drivers_.prepared, 0);
}

TEST_F(PodDevicesTest, ADeletedPodIsNotGoneBeforeItsDevicesAreTakenBack) {
  start(with_claim());
  ASSERT_TRUE(eventually_phase("Running"));
  drivers_.say("DRA driver gpu is not registered");
  worker_->terminate(Duration::zero());
  ASSERT_TRUE(eventually([&] { return has_event("Warning FailedUnprepareDynamicResources"); }));
  EXPECT_FALSE(runtime_.running("c")) << "its containers are";
  EXPECT_FALSE(worker_->is_stopped());
  drivers_.say("");
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(eventually([&] { return worker_->is_finished(); }));
}

TEST_F(PodDevicesTest, AnAgentThatLostItsCheckpointHasClaimsPreparedOnceMore) {
  start(with_claim());
  ASSERT_TRUE(eventually_phase("Running"));
  std::atomic<bool> off{false};
  (void)drivers_.release("uid-1", off);
  runtime_.end("c", 1);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("c").has_value(); }));
  EXPECT_EQ(drivers_.prepared, 2);
}

TEST_F(PodDevicesTest, TheStatusTellsHowHealthyDevicesAre) {
  environment_->held_devices = [](const std::string&, const std::string& name) {
    devices::DeviceLedger::ByResource out;
    if (name == "plain") out["example.com/lamp"] = {{"lamp-0", {.is_healthy = false}}, {"lamp-1", {.is_listed = false}}};
    return out;
  };
  start(with_claim());
  ASSERT_TRUE(eventually_phase("Running"));
  const auto told = [&](std::size_t i) {
    const json::Value status = worker_->status();
    const json::Value* found = json::find(json::get_array(status, {"containerStatuses"})[i], "allocatedResourcesStatus");
    return found == nullptr ? "" : json::serialize(*found);
  };
  EXPECT_EQ(told(0), R"([{"name":"claim:g/r","resources":[{"resourceID":"example.com/x=a","health":"Healthy"}]}])");
  EXPECT_EQ(told(1), R"([{"name":"example.com/lamp","resources":[{"resourceID":"lamp-0","health":"Unhealthy"},)"
                     R"({"resourceID":"lamp-1","health":"Unknown"}]}])");
  drivers_.set_state("Unhealthy");
  worker_->show_devices();
  EXPECT_TRUE(eventually([&] {
    return told(0) == R"([{"name":"claim:g/r","resources":[{"resourceID":"example.com/x=a","health":"Unhealthy","message":"hot"}]}])";
  }));
}

TEST_F(PodDevicesTest, ARuntimeThatKnowsNoCdiIsToldWhatItComesTo) {
  runtime_.knows_cdi = false;
  environment_->cdi_folders = {root_ + "/cdi"};
  start(with_claim());
  const std::string missing = "unresolvable CDI device example.com/x=gpu-r: no specification in /etc/cdi or /var/run/cdi has it";
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "message"}) == missing; }));
  fs::create_directories(root_ + "/cdi");
  std::ofstream(root_ + "/cdi/x.json") << R"({"kind":"example.com/x","devices":[{"name":"gpu-r","containerEdits":{"env":["GPU=1"]}}]})";
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(eventually([&] { return runtime_.running("c").has_value(); }));
  EXPECT_NE(json::serialize(config_of("c")).find(R"({"key":"GPU","value":"1"})"), std::string::npos);
}

TEST_F(PodDevicesTest, ARuntimeWhoseCallsAreCountedKnowsWhatItKnows) {
  NodeMetrics metrics;
  auto runtime = std::make_unique<FakeRuntime>();
  runtime->knows_cdi = false;
  EXPECT_FALSE(measured(std::move(runtime), metrics)->has_field("ContainerConfig", "CDI_devices"));
}

/// Processors as they are told.
class FakeCpus final : public cpus::CpuManager {
 public:
  void keep_only(const std::set<std::string>&) override {}
  numa::HintsByResource hints(const numa::PodWishes&, const numa::Wish&) const override { return {}; }
  numa::HintsByResource pod_hints(const numa::PodWishes&) const override { return {}; }
  std::optional<Refusal> give(const numa::PodWishes&, const numa::Wish&, const numa::Hint&) override { return std::nullopt; }
  void release(const std::string& uid) override {
    const std::lock_guard lock(mutex_);
    released += uid;
  }
  std::string cpus_of(const std::string&, const std::string& container) const override {
    const std::lock_guard lock(mutex_);
    return container == "own" ? "2-3" : shared;
  }
  cpus::CpuSet own(const std::string&, const std::string&) const override { return {}; }
  cpus::CpuSet allocatable() const override { return {}; }
  void tell(numa::Offer&) const override {}
  int threads_of_whole_cores() const override { return 1; }
  std::vector<numa::NodeSet> sockets() const override { return {}; }
  void share(std::string which) {
    const std::lock_guard lock(mutex_);
    shared = std::move(which);
  }
  std::string given_back() const {
    const std::lock_guard lock(mutex_);
    return released;
  }

 private:
  mutable std::mutex mutex_;
  std::string shared = "0-1", released;
};

TEST_F(PodDevicesTest, ContainersRunOnTheProcessorsThatAreTheirsOrShared) {
  FakeCpus cpus;
  environment_->cpus = &cpus;
  start(pod("containers: [{name: own, image: 'app:1'}, {name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  EXPECT_EQ(json::get_string(config_of("own"), {"linux", "resources", "cpuset_cpus"}), "2-3");
  EXPECT_EQ(json::get_string(config_of("c"), {"linux", "resources", "cpuset_cpus"}), "0-1");
  EXPECT_EQ(runtime_.count("UpdateContainerResources"), 0);
  cpus.share("0-3");
  worker_->show_devices();
  ASSERT_TRUE(eventually([&] { return runtime_.count("UpdateContainerResources") == 1; }));
  worker_->terminate(Duration::zero());
  ASSERT_TRUE(eventually([&] { return worker_->is_finished(); }));
  EXPECT_EQ(cpus.given_back(), "uid-1");
  worker_.reset();
  environment_->cpus = nullptr;
}

TEST_F(PodDevicesTest, ANewAgentPutsContainersOnTheirProcessors) {
  const json::Value document = pod("containers: [{name: c, image: 'app:1'}]");
  start(document);
  ASSERT_TRUE(eventually_phase("Running"));
  worker_.reset();
  FakeCpus cpus;
  environment_->cpus = &cpus;
  start(document);
  ASSERT_TRUE(eventually([&] { return runtime_.count("UpdateContainerResources") == 1; }));
  worker_.reset();
  environment_->cpus = nullptr;
}

}  // namespace
}  // namespace berth::node::agent::testing
