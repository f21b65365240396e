// Takes dead containers, old sandboxes and unused images away: by itself (every minute, every five minutes) and when the eviction manager
// asks (SPEC F6; kubelet StartGarbageCollection).
#pragma once
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "node/cri/channel.h"
#include "node/eviction/container_gc.h"
#include "node/eviction/image_gc.h"

namespace berth::node::agent {

/// Everything outlives the collector. The functions are called from its thread and the eviction manager's and must not block.
struct CollectorEnvironment {
  cri::Channel& runtime;
  const Clock& clock;
  std::string image_fs;  ///< A path on the images' filesystem.
  /// The API's pods are known: what none of them owns may go.
  std::function<bool()> is_synced;
  std::function<eviction::PodExistence(const std::string& uid)> pod;
  /// What image volumes of live pods are made of, as canonical_image names it. May be empty.
  std::function<std::vector<std::string>()> volume_images;
  std::function<void(const std::string& type, const std::string& reason, const std::string& message)> node_event;
};

/// Owns its thread. Thread-safe.
class GarbageCollector {
 public:
  GarbageCollector(CollectorEnvironment environment, eviction::ContainerGcPolicy containers, eviction::ImageGcPolicy images);
  ~GarbageCollector();
  GarbageCollector(const GarbageCollector&) = delete;
  GarbageCollector& operator=(const GarbageCollector&) = delete;

  void start();
  /// For the eviction manager: all containers of pods that are over, and surplus ones of the others. How many were removed; their bytes are
  /// free a moment later. The error says what could not be asked.
  Result<std::size_t> remove_dead_containers();
  /// For the eviction manager. How many were removed.
  Result<std::size_t> remove_unused_images();

 private:
  void run();
  void collect_images() BERTH_REQUIRES(mutex_);
  Result<void> observe_images(TimePoint now) BERTH_REQUIRES(mutex_);
  Result<std::size_t> collect_containers(bool of_terminated);
  [[nodiscard]] Result<void> remove_image(const std::string& id);

  CollectorEnvironment environment_;
  const eviction::ContainerGcPolicy container_policy_;
  Mutex mutex_;  ///< Held while anything is collected.
  eviction::ImageCollector images_ BERTH_GUARDED_BY(mutex_);
  int image_failures_ BERTH_GUARDED_BY(mutex_) = 0;

  Mutex stop_mutex_;
  CondVar stop_;
  bool stopping_ BERTH_GUARDED_BY(stop_mutex_) = false;
  std::thread thread_;
};

}  // namespace berth::node::agent
