// What the API server has of what the autoscaler decides on, watched into a ClusterCache.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/cluster_cache.h"
#include "base/lifeline.h"
#include "client/informer.h"

namespace berth::autoscaler {

/// Lives on its client's loop, and is called there. What it is given must outlive it.
class Watches : public Guarded<Watches> {
 public:
  /// `ns`: of the expanders' ConfigMaps. `has_rules`: somebody wants scaling already, whatever ClusterAutoscalers there are.
  Watches(client::Client& client, ClusterCache& cache, std::string ns, bool has_rules)
      : client_(client), cache_(cache), ns_(std::move(ns)), has_rules_(has_rules) {}

  /// Until somebody wants scaling, only that is watched: the rest costs as much as a scheduler's caches. `synced` is called once, when all
  /// of it is there.
  void start(std::function<void()> synced);
  /// The server serves something that can be scaled.
  [[nodiscard]] bool has_machines() const { return has_machines_; }
  /// Calls `done` once what is watched is as new as the call.
  void catch_up(std::function<void()> done) { client::catch_up(informers_, std::move(done)); }
  /// How far the watch of a resource has come; INT64_MAX: it is not watched.
  [[nodiscard]] std::int64_t seen(const std::string& resource) const;

 private:
  void watch_all();
  void watch_config_map(const std::string& name);
  void probe(const WatchedKind& one);
  void answered(const WatchedKind& one, const client::ApiResult<json::Value>& result);
  void subscribe(client::Informer& informer, std::string_view kind);
  void put(std::string_view kind, const client::ObjectRef& object);
  void wait_for_sync();

  client::Client& client_;
  ClusterCache& cache_;
  const std::string ns_;
  const bool has_rules_;
  std::function<void()> synced_;
  std::vector<std::unique_ptr<client::Informer>> informers_;
  std::map<std::string, const client::Informer*> informer_of_;  ///< By resource.
  std::set<std::string> told_;                                  ///< Why kinds are waited for.
  std::size_t probes_open_ = 0;
  bool is_watching_ = false, has_machines_ = false;
};

}  // namespace berth::autoscaler
