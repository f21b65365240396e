// What the objects of a namespace use of its quotas, kept by differences: a pod's event costs one look at that pod and its quotas.
#pragma once
#include <functional>
#include <map>
#include <string>
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
  /// What is used of each resource that the quota limits; null for a quota that is not there.
  [[nodiscard]] const model::ResourceAmounts* used(const std::string& ns, const std::string& name) const;
  /// The same, counted anew.
  [[nodiscard]] static model::ResourceAmounts recount(const ObjectRef& quota, const Cache& cache);

 private:
  struct Quota {
    std::string spec;      ///< As it stands in the object's bytes.
    json::Value document;  ///< The quota with this spec; its status is not kept up.
    model::ResourceAmounts used;
  };
  void take_quota(const Event& event, const Cache& cache);
  void take_class(const Event& event, const Cache& cache, const std::function<void(const std::string& key)>& moved);
  std::map<std::string, std::map<std::string, Quota>, std::less<>> by_ns_;
};

}  // namespace berth::controllers
