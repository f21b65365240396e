// The shape of every controller: events name keys, a pure reconcile step turns a key, the time and the cache into a plan of writes, and the
// shell (engine.h) carries the plan out. No controller knows of sockets, threads or clocks.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "controllers/cache.h"

namespace berth::controllers {

using client::ApiResult;
using client::ApiStatus;
using client::DeleteOptions;
using client::PatchType;
using client::Propagation;

/// A Kubernetes Event about an object, as `kubectl describe` shows it.
struct EventNote {
  std::string api_version, kind, ns, name, uid, resource_version;  ///< involvedObject
  std::string type = "Normal";                                     ///< or "Warning"
  std::string reason, message;
};
EventNote note_about(Kind kind, const Object& object, std::string_view type, std::string_view reason, std::string message);

/// One request of a plan.
struct Write {
  enum class Verb { kCreate, kUpdate, kPatch, kDelete, kGet, kList, kDeleteCollection };
  Verb verb = Verb::kCreate;
  Kind kind = nullptr;
  std::string ns, name, subresource;
  json::Value body;  ///< Create, update, patch.
  PatchType patch_type = PatchType::kMerge;
  DeleteOptions delete_options;
  std::string uid;                        ///< Delete: of the object meant; sent as a precondition.
  std::string query;                      ///< List, deletecollection: raw query.
  std::int64_t stage = 0;                 ///< Stages run one after the other; one failure ends the plan after its stage.
  bool slow_start = false;                ///< Creates of one plan whose concurrency doubles with success and stops with the first failure.
  bool may_fail = false;                  ///< A failure neither ends the plan nor counts as one of the key's.
  bool is_quiet_where_it_exists = false;  ///< AlreadyExists is no news (on_failure), though a failure.
  std::string tag;                        ///< For on_result.
  std::optional<EventNote> on_success, on_failure;  ///< "{}" in the message: the created object's name, or the error's message.
};

/// What one reconcile step wants done. An empty plan: all is as it should be. However much a user's numbers ask for, a plan holds a burst
/// of it: a step that stops because the plan is full is called again when that much is done. Reads (get, list) are not cut short.
struct Plan {
  static constexpr std::size_t kMostWrites = 5000;
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;  ///< Of the bodies, as text.
  std::vector<Write> writes;
  std::vector<EventNote> events;
  std::optional<Duration> requeue_after;  ///< Look again even when nothing happens.
  std::vector<std::string> enqueue;       ///< Other keys of this controller to look at next.
  Duration cooldown{0};                   ///< Least time to the key's next step (coalesces the events of busy objects).
  std::optional<std::string> error;       ///< The step itself failed: log it and retry with backoff.
  std::size_t bytes = 0;                  ///< Of bodies that are copies of what a user wrote, as far as the step tells.

  /// `body_bytes`: about how long the body is where a user decides that.
  void add(Write write, std::size_t body_bytes) {
    writes.push_back(std::move(write));
    bytes += body_bytes;
  }
  [[nodiscard]] bool is_full() const { return writes.size() >= kMostWrites || bytes >= kMostBytes; }
};

/// Where on_event puts keys. Duplicates are merged; a delay keeps the earliest.
class KeySink {
 public:
  virtual ~KeySink() = default;
  virtual void add(std::string key, Duration delay = Duration{0}) = 0;
};

/// A controller's core. Deterministic: its answers depend on the calls made and their arguments alone.
class Controller {
 public:
  virtual ~Controller() = default;
  /// Kubernetes' name: what --controllers and the metrics' label say ("replicaset-controller").
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// What its events say they are from. Kubernetes' older controllers have another name there.
  [[nodiscard]] virtual std::string_view event_source() const { return name(); }
  /// The kinds whose events it wants.
  [[nodiscard]] virtual std::vector<Kind> watches() const = 0;
  /// Whether it wants the events of custom kinds too, as they come and go.
  [[nodiscard]] virtual bool watches_custom_kinds() const { return false; }
  /// The objects of a further custom kind are in the cache: what could not be looked up may be there now. Of those that watch them.
  virtual void on_custom_kind(const Cache& /*cache*/, TimePoint /*now*/, KeySink& /*sink*/) {}
  /// Whether it wants the events of nodes that say no more than that they live.
  [[nodiscard]] virtual bool counts_heartbeats() const { return false; }
  /// Called for every event, the first list's included, after the cache has it.
  virtual void on_event(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) = 0;
  /// Called once when all caches are filled: periodic keys start here.
  virtual void on_start(const Cache& /*cache*/, TimePoint /*now*/, KeySink& /*sink*/) {}
  /// One step for a key. Never runs while a former plan of the same key is being carried out or is not yet visible in the cache.
  virtual Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) = 0;
  /// Tells how a write of the key's plan ended.
  virtual void on_result(const std::string& /*key*/, const Write& /*write*/, const ApiResult<json::Value>& /*result*/, TimePoint /*now*/) {}
  /// The first pause after a failed plan, doubled with each further one up to the second; zero: the engine's.
  [[nodiscard]] virtual Duration retry_base() const { return Duration{0}; }
  [[nodiscard]] virtual Duration retry_most() const { return Duration{0}; }
  /// Keys that may run at once (Kubernetes' --concurrent-*-syncs).
  [[nodiscard]] virtual int concurrency() const { return 16; }
};

using ControllerPtr = std::unique_ptr<Controller>;

/// "ns/name" split; a cluster-scoped key has an empty namespace.
std::pair<std::string, std::string> split_key(std::string_view key);

}  // namespace berth::controllers
