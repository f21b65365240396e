// One pod's worker against a runtime in memory, with the clock in the test's hand.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fake_runtime.h"
#include "node/agent/pod_worker.h"

namespace berth::node::agent::testing {

namespace fs = std::filesystem;

class TestClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return TimePoint(Duration(us_.load())); }
  void advance(Duration by) { us_ += by.count(); }

 private:
  std::atomic<std::int64_t> us_{1'800'000'000'000'000};
};

class PodWorkerTest : public ::testing::Test {
 protected:
  PodWorkerTest() {
    char pattern[] = "/tmp/berth-pod-worker.XXXXXX";
    root_ = ::mkdtemp(pattern);
    fs::create_directories(root_ + "/cgroup");
    std::ofstream(root_ + "/cgroup/cgroup.controllers") << "cpu memory";
    for (const char* qos : {"besteffort", "burstable"}) {
      const std::string group = fmt::format("{}/cgroup/kubepods/{}/poduid-1", root_, qos);
      fs::create_directories(group);
      for (const char* file : {"memory.max", "cpu.weight", "cpu.max"}) std::ofstream(group + "/" + file) << "max";
    }
    cgroups_ = *Cgroups::at(root_ + "/cgroup");
    environment_.emplace(runtime_, *cgroups_, clock_);
    environment_->root = root_;
    environment_->pods_cgroup = "/kubepods";
    environment_->node_name = "real";
    environment_->host_ip = "192.0.2.1";
    environment_->objects.config_map = environment_->objects.secret = environment_->objects.claim =
        [](const std::string&, const std::string&) -> Result<json::Value> { return fail(ErrorCode::kNotFound, "not found"); };
    environment_->changed = [this](const std::string&) { signal(); };
    environment_->event = [this](const json::Value&, const std::string& type, const std::string& reason, const std::string& message,
                                 const std::string& path) {
      std::lock_guard lock(mutex_);
      events_.push_back(fmt::format("{} {} {} [{}]", type, reason, message, path));
    };
    runtime_.now = clock_.now();
  }
  ~PodWorkerTest() override {
    worker_.reset();
    environment_.reset();
    fs::remove_all(root_);
  }

  static json::Value pod(std::string_view spec, std::string_view name = "p") {
    // A text that starts with a brace would be read as JSON.
    json::Value parsed =
        spec.starts_with('{') ? json::parse_yaml(fmt::format("spec: {}", spec)).value().at("spec") : json::parse_yaml(spec).value();
    return json::Object{{"metadata", json::Object{{"name", name}, {"namespace", "default"}, {"uid", "uid-1"}}},
                        {"spec", std::move(parsed)}};
  }
  PodWorker& start(json::Value document) {
    worker_ = std::make_unique<PodWorker>(*environment_, std::move(document));
    worker_->start();
    return *worker_;
  }
  void signal() {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  /// Waits until the claim holds; it is looked at whenever the pod changes and every few milliseconds.
  ::testing::AssertionResult eventually(const std::function<bool()>& claim) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!claim()) {
      if (std::chrono::steady_clock::now() > deadline)
        return ::testing::AssertionFailure() << json::serialize(worker_->status()) << "\n" << fmt::format("{}", fmt::join(events(), "\n"));
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult eventually_phase(std::string_view phase) {
    return eventually([=, this] { return json::get_string(worker_->status(), {"phase"}) == phase; });
  }
  [[nodiscard]] std::string container_field(std::size_t i, json::Path path) {
    const json::Value status = worker_->status();
    const json::Array& list = json::get_array(status, {"containerStatuses"});
    return i < list.size() ? std::string(json::get_string(list[i], path)) : std::string();
  }
  [[nodiscard]] bool has_event(std::string_view text) {
    return std::ranges::any_of(events(), [&](const std::string& event) { return event.find(text) != std::string::npos; });
  }
  std::vector<std::string> events() {
    std::lock_guard lock(mutex_);
    return events_;
  }
  void pass(Duration time) {
    clock_.advance(time);
    runtime_.now = clock_.now();
    worker_->wake();
  }

  std::string root_;
  TestClock clock_;
  FakeRuntime runtime_;
  std::optional<Cgroups> cgroups_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
  std::optional<PodEnvironment> environment_;
  std::unique_ptr<PodWorker> worker_;
};

}  // namespace berth::node::agent::testing
