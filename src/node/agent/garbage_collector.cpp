#include "node/agent/garbage_collector.h"

#include "base/log.h"
#include "base/mutex.h"
#include "node/agent/machine.h"

namespace berth::node::agent {
namespace {

constexpr Duration kContainerPeriod = std::chrono::minutes(1), kImagePeriod = std::chrono::minutes(5);

std::uint64_t number(const json::Value& object, json::Path path) {
  const std::string_view text = json::get_string(object, path);  // 64-bit integers are strings in proto3's JSON.
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

TimePoint created_at(const json::Value& object) {
  return TimePoint(Duration(static_cast<std::int64_t>(number(object, {"created_at"}) / 1000)));
}

}  // namespace

GarbageCollector::GarbageCollector(CollectorEnvironment environment, eviction::ContainerGcPolicy containers, eviction::ImageGcPolicy images)
    : environment_(std::move(environment)), container_policy_(containers), images_(images, environment_.clock.now()) {}

GarbageCollector::~GarbageCollector() {
  {
    MutexLock lock(stop_mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GarbageCollector::start() {
  thread_ = std::thread([this] { run(); });
}

void GarbageCollector::run() {
  {
    MutexLock lock(mutex_);
    (void)observe_images(environment_.clock.now());  // What is there now is of unknown age.
  }
  TimePoint next_images = environment_.clock.now() + kImagePeriod;
  for (;;) {
    {
      MutexLock lock(stop_mutex_);
      if (stop_.wait_for(stop_mutex_, kContainerPeriod, [this]() BERTH_REQUIRES(stop_mutex_) { return stopping_; })) return;
    }
    MutexLock lock(mutex_);
    if (const auto done = collect_containers(false); !done) {
      log::warning("node", "container garbage collection: {}", done.error().message);
      environment_.node_event("Warning", "ContainerGCFailed", done.error().message);
    }
    if (environment_.clock.now() < next_images) continue;
    next_images = environment_.clock.now() + kImagePeriod;
    collect_images();
  }
}

void GarbageCollector::collect_images() {
  const TimePoint now = environment_.clock.now();
  std::string error;
  if (const auto seen = observe_images(now); !seen) {
    error = seen.error().message;
  } else if (!images_.policy().is_disabled()) {
    const eviction::ImageGcResult result =
        images_.collect(observe_filesystem(environment_.image_fs, now), now, [this](const std::string& id) { return remove_image(id); });
    if (result.event) environment_.node_event("Warning", result.event->reason, result.event->message);
    error = result.error;
  }
  if (error.empty()) {
    image_failures_ = 0;
    return;
  }
  log::warning("node", "image garbage collection: {}", error);
  // Once may be a runtime that has just started; the kubelet reports from the second failure in a row.
  if (++image_failures_ > 1) environment_.node_event("Warning", "ImageGCFailed", error);
}

Result<void> GarbageCollector::observe_images(TimePoint now) {
  const auto listed = environment_.runtime.call("ImageService/ListImages", json::Object{});
  if (!listed) return std::unexpected(listed.error());
  const auto containers = environment_.runtime.call("RuntimeService/ListContainers", json::Object{});
  if (!containers) return std::unexpected(containers.error());
  std::set<std::string> names, used;
  if (environment_.volume_images)
    for (std::string& name : environment_.volume_images()) names.insert(std::move(name));
  for (const json::Value& container : json::get_array(*containers, {"containers"})) {
    names.emplace(json::get_string(container, {"image_ref"}));
    names.emplace(json::get_string(container, {"image", "image"}));
  }
  std::vector<eviction::Image> images;
  for (const json::Value& image : json::get_array(*listed, {"images"})) {
    const std::string id(json::get_string(image, {"id"}));
    bool is_used = names.contains(id), is_pause = false;
    for (const char* list : {"repo_tags", "repo_digests"})
      for (const json::Value& name : json::get_array(image, {list})) {
        is_used = is_used || names.contains(std::string(json::as_view(name)));
        // Runtimes older than the pinned flag: without its sandbox image nothing starts any more.
        is_pause = is_pause || json::as_view(name).find("/pause:") != std::string_view::npos ||
                   json::as_view(name).find("/pause@") != std::string_view::npos;
      }
    if (is_used) used.insert(id);
    images.push_back({id, number(image, {"size"}), is_pause || json::get_bool(image, {"pinned"})});
  }
  images_.observe(images, used, now);
  return {};
}

Result<void> GarbageCollector::remove_image(const std::string& id) {
  const auto removed = environment_.runtime.call("ImageService/RemoveImage", json::Object{{"image", json::Object{{"image", id}}}}, 60'000);
  if (!removed) return std::unexpected(removed.error());
  log::info("node", "removed image {}", id);
  return {};
}

Result<std::size_t> GarbageCollector::remove_dead_containers() {
  MutexLock lock(mutex_);
  return collect_containers(true);
}

Result<std::size_t> GarbageCollector::remove_unused_images() {
  MutexLock lock(mutex_);
  const TimePoint now = environment_.clock.now();
  if (const auto seen = observe_images(now); !seen) return std::unexpected(seen.error());
  const eviction::ImageGcResult result = images_.delete_unused(now, [this](const std::string& id) { return remove_image(id); });
  if (!result.error.empty()) log::warning("node", "{}", result.error);
  return result.removed.size();
}

Result<std::size_t> GarbageCollector::collect_containers(bool of_terminated) {
  const auto sandboxes = environment_.runtime.call("RuntimeService/ListPodSandbox", json::Object{});
  if (!sandboxes) return std::unexpected(sandboxes.error());
  const auto listed = environment_.runtime.call("RuntimeService/ListContainers", json::Object{});
  if (!listed) return std::unexpected(listed.error());
  // Until the API's pods are known, every pod may still be wanted. Those that nobody knows here at all are the monitor's (it can tell this
  // node's leftovers from another agent's).
  const bool synced = environment_.is_synced();
  const auto pod = [&](const std::string& uid) {
    const eviction::PodExistence existence = environment_.pod(uid);
    return synced && existence == eviction::PodExistence::kTerminated ? existence : eviction::PodExistence::kLive;
  };
  const auto is_ours = [&](const std::string& uid) { return !uid.empty() && environment_.pod(uid) != eviction::PodExistence::kGone; };
  std::vector<eviction::DeadContainer> containers;
  for (const json::Value& container : json::get_array(*listed, {"containers"})) {
    eviction::DeadContainer dead;
    dead.pod_uid = json::get_string(container, {"labels", "io.kubernetes.pod.uid"});
    if (!is_ours(dead.pod_uid)) continue;
    dead.id = json::get_string(container, {"id"});
    dead.name = json::get_string(container, {"metadata", "name"});
    dead.sandbox_id = json::get_string(container, {"pod_sandbox_id"});
    dead.attempt = static_cast<std::uint32_t>(json::get_int(container, {"metadata", "attempt"}));
    dead.created = created_at(container);
    // A container that was made and not started yet is about to run: it is no more dead than a running one.
    dead.is_running = json::get_string(container, {"state"}) != "CONTAINER_EXITED";
    containers.push_back(std::move(dead));
  }
  std::vector<eviction::DeadSandbox> old;
  for (const json::Value& sandbox : json::get_array(*sandboxes, {"items"})) {
    eviction::DeadSandbox dead;
    dead.pod_uid = json::get_string(sandbox, {"labels", "io.kubernetes.pod.uid"});
    if (!is_ours(dead.pod_uid)) continue;
    dead.id = json::get_string(sandbox, {"id"});
    dead.attempt = static_cast<std::uint32_t>(json::get_int(sandbox, {"metadata", "attempt"}));
    dead.created = created_at(sandbox);
    dead.is_ready = json::get_string(sandbox, {"state"}) == "SANDBOX_READY";
    old.push_back(std::move(dead));
  }
  std::size_t count = 0;
  for (const std::string& id :
       eviction::containers_to_remove(containers, container_policy_, pod, of_terminated, environment_.clock.now())) {
    const auto removed = environment_.runtime.call("RuntimeService/RemoveContainer", json::Object{{"container_id", id}}, 60'000);
    if (!removed)
      log::warning("node", "removing container {}: {}", id, removed.error().message);
    else
      ++count;
    std::erase_if(containers, [&](const eviction::DeadContainer& c) { return removed && c.id == id; });
  }
  for (const std::string& id : eviction::sandboxes_to_remove(std::move(old), containers, pod, of_terminated)) {
    const json::Value request = json::Object{{"pod_sandbox_id", id}};
    if (environment_.runtime.call("RuntimeService/StopPodSandbox", request, 60'000))
      (void)environment_.runtime.call("RuntimeService/RemovePodSandbox", request, 60'000);
  }
  return count;
}

}  // namespace berth::node::agent
