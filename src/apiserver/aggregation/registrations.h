// APIServices as the server works with them: which group versions it serves itself, and which another server does.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apiserver/cache/object_cache.h"

namespace berth::apiserver::aggregation {

/// One APIService (kube-aggregator's apiregistration/v1).
struct Registration {
  std::string name;  ///< "v1beta1.metrics.k8s.io"
  std::string group, version;
  int group_priority = 0, version_priority = 0;
  std::string service_ns, service_name;  ///< Empty: this server's own.
  int service_port = 443;
  std::string ca_pem;
  bool is_insecure = false;
  std::string status, reason, message;  ///< Of the condition Available.
  Revision revision = 0;
  [[nodiscard]] bool is_available() const { return status == "True"; }
  [[nodiscard]] bool is_remote() const { return !service_name.empty(); }
};
Registration read_registration(const StoredObject& object);

/// Every APIService by (group, version), immutable.
using Table = std::map<std::pair<std::string, std::string>, Registration, std::less<>>;

/// Follows the APIServices of the cache. Thread-safe. Must be destroyed before the cache.
class Registrations {
 public:
  /// `changed` is called after each change, from the publishing thread: it must only queue.
  Registrations(ObjectCache& cache, std::function<void()> changed);
  ~Registrations();
  [[nodiscard]] std::shared_ptr<const Table> table() const;
  /// Whether any group version is another server's: asked on every request.
  [[nodiscard]] bool has_remote() const;
  /// The registration of a group version that another server serves; nullopt where this one does.
  [[nodiscard]] std::optional<Registration> remote(std::string_view group, std::string_view version) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<Watch> watch_;
};

/// Kubernetes' order of versions: v2, v1, v1beta1, v1alpha1, then others by name. True: `a` comes first.
bool is_newer_version(std::string_view a, std::string_view b);

}  // namespace berth::apiserver::aggregation
