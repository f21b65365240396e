// A store whose values are encrypted on their way to the disk: what is above sees them plain.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "apiserver/encryption/config.h"
#include "base/mutex.h"
#include "store/store.h"

namespace berth::apiserver::encryption {

/// Which objects are not stored as the first provider writes: they are rewritten by any update, also by one that changes nothing, as in
/// Kubernetes (`kubectl get secrets -A -o json | kubectl replace -f -`). Thread-safe.
class StaleKeys {
 public:
  [[nodiscard]] bool contains(std::string_view key) const;
  void set(std::string_view key, bool is_stale);
  [[nodiscard]] std::size_t size() const;
  /// Everything that was written until now is, of the keys for which `covers` says so: a key management service has another key.
  void set_all(std::function<bool(std::string_view key)> covers);

 private:
  mutable Mutex mutex_;
  std::set<std::string, std::less<>> keys_ BERTH_GUARDED_BY(mutex_);
  std::function<bool(std::string_view)> covers_ BERTH_GUARDED_BY(mutex_);  ///< Empty: nothing was made stale at once.
  std::set<std::string, std::less<>> fresh_ BERTH_GUARDED_BY(mutex_);      ///< Written since.
};

/// What stands in a store for an object of /GROUP/PLURAL, opened; is_stale: not as the first provider writes. The error says why not.
Result<Plain> open_value(const Configuration& configuration, std::string_view group, std::string_view plural, std::string_view stored,
                         std::string_view context);
/// What to do about a value that open_value could not open.
std::string opening_advice(const Configuration& configuration);

/// Reading ends with an error that says what to do when a live value cannot be decrypted; superseded ones that cannot are passed over.
std::unique_ptr<store::Store> encrypt_store(std::unique_ptr<store::Store> inner, Configuration configuration,
                                            std::shared_ptr<StaleKeys> stale);

}  // namespace berth::apiserver::encryption
