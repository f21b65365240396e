// A container runtime in memory, for tests: keeps sandboxes and containers as the CRI shows them, and obeys at once.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "node/cri/channel.h"

namespace berth::node::agent::testing {

class FakeRuntime final : public cri::Channel {
 public:
  struct Container {
    std::string id, sandbox, name, state = "CONTAINER_CREATED";
    int attempt = 0, exit_code = 0;
    json::Value config;
    std::string reason;
  };

  cri::CallAnswer call(const std::string& method, const json::Value& request, int, const std::atomic<bool>* cancel) override {
    std::unique_lock lock(mutex_);
    const std::string name = method.substr(method.find('/') + 1);
    calls.push_back(name);
    if (is_down) return fail(ErrorCode::kUnavailable, "connection refused");
    if (name == "ListPodSandbox") return list_sandboxes(request);
    if (name == "ListContainers") return list_containers(request);
    if (name == "RunPodSandbox") {
      held_changed_.wait(lock, [&] { return held_.empty() || json::get_string(request, {"config", "metadata", "name"}) != held_; });
      return run_sandbox(request);
    }
    if (name == "PodSandboxStatus") return json::Object{{"status", json::Object{{"network", json::Object{{"ip", "10.0.0.9"}}}}}};
    if (name == "StopPodSandbox")
      return sandboxes[id_of(request, "pod_sandbox_id")].as_object()["state"] = "SANDBOX_NOTREADY", json::Object{};
    if (name == "RemovePodSandbox") return sandboxes.erase(id_of(request, "pod_sandbox_id")), json::Object{};
    if (name == "CreateContainer") return create(request);
    if (name == "StartContainer") return start(request);
    if (name == "ContainerStatus") return status(request);
    if (name == "StopContainer") return stop(request, cancel, lock);
    if (name == "RemoveContainer") return containers.erase(id_of(request, "container_id")), json::Object{};
    if (name == "ExecSync" && !exec_error.empty())
      return std::unexpected(cri::CallFailure({ErrorCode::kInternal, exec_error}, exec_is_late));
    if (name == "ExecSync") return json::Object{{"exit_code", exec_exit_code}, {"stderr", "bm8="}};
    if (name == "ImageStatus") return image_status(request);
    if (name == "PullImage") return pull(request);
    if (name == "UpdateContainerResources") return updates.push_back(request), json::Object{};
    return fail(ErrorCode::kInternal, "no such method");
  }

  bool knows_cdi = true;
  [[nodiscard]] bool has_field(const std::string&, const std::string& field) const override { return field != "CDI_devices" || knows_cdi; }

  /// Whoever makes the sandbox of this pod waits until it is another's turn.
  void hold_sandbox_of(std::string pod) {
    std::lock_guard lock(mutex_);
    held_ = std::move(pod);
    held_changed_.notify_all();
  }
  void allow_starts() {
    std::lock_guard lock(mutex_);
    start_error.clear();
  }
  /// The running container of that name ends.
  void end(const std::string& name, int exit_code) {
    std::lock_guard lock(mutex_);
    for (auto& [id, container] : containers)
      if (container.name == name && container.state == "CONTAINER_RUNNING")
        container.state = "CONTAINER_EXITED", container.exit_code = exit_code;
  }
  [[nodiscard]] std::vector<Container> all() {
    std::lock_guard lock(mutex_);
    std::vector<Container> out;
    for (const auto& [id, container] : containers) out.push_back(container);
    return out;
  }
  [[nodiscard]] std::optional<Container> running(const std::string& name) {
    for (Container& container : all())
      if (container.name == name && container.state == "CONTAINER_RUNNING") return container;
    return std::nullopt;
  }
  [[nodiscard]] std::size_t sandbox_count() {
    std::lock_guard lock(mutex_);
    return sandboxes.size();
  }
  void lose_sandboxes() {
    std::lock_guard lock(mutex_);
    for (auto& [id, sandbox] : sandboxes) sandbox.as_object()["state"] = "SANDBOX_NOTREADY";
  }
  [[nodiscard]] int count(const std::string& name) {
    std::lock_guard lock(mutex_);
    return static_cast<int>(std::ranges::count(calls, name));
  }

  std::set<std::string> images{"app:1"};
  std::set<std::string> pullable;
  std::atomic<int> exec_exit_code{0};
  bool exec_is_late = false;
  std::string exec_error, start_error;  ///< Set: every such call fails so; a container that cannot be started has ended.
  std::atomic<bool> is_down{false}, ignores_stop_signals{false};
  std::vector<json::Value> updates, pulls;
  std::vector<std::int64_t> stop_timeouts;
  std::vector<std::string> started_names;
  TimePoint now{};

 private:
  static std::string id_of(const json::Value& request, std::string_view field) { return std::string(json::get_string(request, {field})); }
  static bool matches(const json::Value& request, const json::Value& labels) {
    for (const auto& [key, value] : json::get_object(request, {"filter", "label_selector"}))
      if (json::get_string(labels, {std::string_view(key)}) != json::as_view(value)) return false;
    return true;
  }
  json::Value list_sandboxes(const json::Value& request) {
    json::Array items;
    for (const auto& [id, sandbox] : sandboxes)
      if (matches(request, *json::find(sandbox, "labels"))) items.push_back(sandbox);
    return json::Object{{"items", std::move(items)}};
  }
  json::Value list_containers(const json::Value& request) {
    json::Array items;
    for (const auto& [id, container] : containers)
      if (matches(request, *json::find(container.config, "labels")))
        items.push_back(json::Object{{"id", id},
                                     {"state", container.state},
                                     {"metadata", json::Object{{"name", container.name}, {"attempt", container.attempt}}},
                                     {"labels", *json::find(container.config, "labels")},
                                     {"annotations", *json::find(container.config, "annotations")}});
    return json::Object{{"containers", std::move(items)}};
  }
  json::Value run_sandbox(const json::Value& request) {
    const std::string id = fmt::format("sandbox-{}", ++made_);
    const json::Value& config = *json::find(request, "config");
    sandboxes[id] = json::Object{{"id", id},
                                 {"state", "SANDBOX_READY"},
                                 {"metadata", *json::find(config, "metadata")},
                                 {"labels", *json::find(config, "labels")},
                                 {"config", config}};
    return json::Object{{"pod_sandbox_id", id}};
  }
  json::Value create(const json::Value& request) {
    Container container;
    container.id = fmt::format("container-{}", ++made_);
    container.config = *json::find(request, "config");
    container.name = json::get_string(container.config, {"metadata", "name"});
    container.attempt = static_cast<int>(json::get_int(container.config, {"metadata", "attempt"}));
    started_names.push_back(container.name);
    const std::string id = container.id;
    containers[id] = std::move(container);
    return json::Object{{"container_id", id}};
  }
  Result<json::Value> start(const json::Value& request) {
    Container& container = containers[id_of(request, "container_id")];
    container.state = start_error.empty() ? "CONTAINER_RUNNING" : "CONTAINER_EXITED";
    if (start_error.empty()) return json::Object{};
    container.exit_code = 128;
    container.reason = "StartError";
    return fail(ErrorCode::kInternal, start_error);
  }
  Result<json::Value> status(const json::Value& request) {
    const auto found = containers.find(id_of(request, "container_id"));
    if (found == containers.end()) return fail(ErrorCode::kNotFound, "not found");
    const std::string at = std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count());
    return json::Object{{"status", json::Object{{"started_at", at},
                                                {"finished_at", at},
                                                {"exit_code", found->second.exit_code},
                                                {"reason", found->second.reason},
                                                {"image_ref", "sha256:app"},
                                                {"image", json::Object{{"image", "app:1"}}}}}};
  }
  Result<json::Value> stop(const json::Value& request, const std::atomic<bool>* cancel, std::unique_lock<std::mutex>& lock) {
    const std::int64_t seconds = std::atoll(std::string(json::get_string(request, {"timeout"})).c_str());
    stop_timeouts.push_back(seconds);
    // A process that does not heed the signal holds the call up until it is cancelled or out of time.
    while (ignores_stop_signals && seconds > 0 && !(cancel && cancel->load())) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    if (ignores_stop_signals && seconds > 0) return fail(ErrorCode::kUnavailable, "cancelled");
    const auto found = containers.find(id_of(request, "container_id"));
    if (found != containers.end() && found->second.state == "CONTAINER_RUNNING")
      found->second.state = "CONTAINER_EXITED", found->second.exit_code = 137;
    return json::Object{};
  }
  json::Value image_status(const json::Value& request) {
    const std::string image(json::get_string(request, {"image", "image"}));
    if (!images.contains(image)) return json::Object{};
    return json::Object{{"image", json::Object{{"id", "sha256:" + image}, {"size", "100"}}}};
  }
  Result<json::Value> pull(const json::Value& request) {
    pulls.push_back(request);
    const std::string image(json::get_string(request, {"image", "image"}));
    if (!pullable.contains(image)) return fail(ErrorCode::kNotFound, "no such image");
    images.insert(image);
    return json::Object{{"image_ref", "sha256:" + image}};
  }

  std::mutex mutex_;
  std::condition_variable held_changed_;
  std::string held_;
  std::map<std::string, json::Value> sandboxes;
  std::map<std::string, Container> containers;
  std::vector<std::string> calls;
  int made_ = 0;
};

}  // namespace berth::node::agent::testing
