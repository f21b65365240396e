// What the objects of a namespace use of its quotas, kept by differences: a pod's event costs one look at that pod and its quotas.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "controllers/cache.h"
#include "model/quota_usage.h"

namespace berth::controllers {

/// The kinds whose objects quotas count, beside custom ones.
const std::vector<Kind>& quota_counted_kinds();

/// Invariant: what is used equals a recount over the cache that the events are about. Single-threaded, no I/O.
class QuotaLedger {
 public:
  /// Takes an event of a counted kind, ResourceQuotas included, or of a DeviceClass, which `cache` has already. `moved` gets the keys of
  /// the quotas of which something else is used than before.
  void observe(const Event& event, const Cache& cache, const std::function<void(const std::string& key)>& moved);
  /// A pod whose grace is long over (model::quota_stops_counting) and that is still there: from now on it counts as an object only.
  void stop_counting(const Object& pod, const Cache& cache, const std::function<void(const std::string& key)>& moved);
  /// Whether the namespace has quotas.
  [[nodiscard]] bool limits(std::string_view ns) const { return by_ns_.contains(ns); }
  /// What is used of each resource that the quota limits; null for a quota that is not there.
  [[nodiscard]] const model::ResourceAmounts* used(const std::string& ns, const std::string& name) const;
  /// Uids of pods that count as objects only.
  using Stopped = std::unordered_set<std::string>;
  /// The same, counted anew.
  [[nodiscard]] static model::ResourceAmounts recount(const ObjectRef& quota, const Cache& cache, const Stopped& stopped = {});

 private:
  struct Quota {
    std::string spec;      ///< As it stands in the object's bytes.
    json::Value document;  ///< The quota with this spec; its status is not kept up.
    model::ResourceAmounts used;
  };
  /// An object and what it uses.
  struct Share {
    std::shared_ptr<const json::Value> document;
    model::ResourceAmounts usage;
  };
  [[nodiscard]] Share share_of(Kind kind, const ObjectRef& object, const Cache& cache) const;
  void shift(Kind kind, const std::string& ns, const Share& before, const Share& after,
             const std::function<void(const std::string& key)>& moved);
  void take_quota(const Event& event, const Cache& cache);
  void take_class(const Event& event, const Cache& cache, const std::function<void(const std::string& key)>& moved);
  std::map<std::string, std::map<std::string, Quota>, std::less<>> by_ns_;
  Stopped stopped_;
};

}  // namespace berth::controllers
