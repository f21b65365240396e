// Queues: who gets quota, and the Jobs and pods that wait for it. A pure core: it is told what there is and what became of its writes, and
// says what is to be written and told; no clock, no thread, no request.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace berth::queues {

enum class Kind {
  kClusterQueue,
  kLocalQueue,
  kResourceFlavor,
  kCohort,
  kWorkloadPriorityClass,
  kWorkload,
  kJob,       ///< Those with the label kueue.x-k8s.io/queue-name.
  kPod,       ///< The same.
  kPodGroup,  ///< scheduling.k8s.io
  kNamespace,
  kPriorityClass,  ///< scheduling.k8s.io
};

struct ObjectKey {
  Kind kind = Kind::kWorkload;
  std::string ns, name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

/// A Kubernetes Event about an object.
struct EventNote {
  ObjectKey object;
  std::string uid, type = "Normal", reason, message;
};

/// What metrics count.
struct Tally {
  enum class What { kQuotaReserved, kAdmitted, kEvicted, kPreempted };
  What what = What::kAdmitted;
  std::string queue;   ///< The ClusterQueue; of kPreempted, the preemptor's.
  std::string reason;  ///< Of kEvicted and kPreempted.
  Duration waited{};   ///< Of the others: since it was made or queued again.
};

/// A request. `body` has the resourceVersion that was seen, so that nothing that somebody else wrote is lost.
struct Write {
  enum class Verb { kCreate, kUpdate, kDelete };
  Verb verb = Verb::kUpdate;
  ObjectKey object;
  bool is_status = false;
  json::Value body;
  std::string uid;                ///< Of kDelete: of the object that is meant.
  std::vector<EventNote> events;  ///< To be told once it has succeeded,
  std::vector<Tally> tallies;     ///< and counted.
};

/// How a write ended: `code` 200 or the API's error code; `document` is what is stored now.
struct WriteResult {
  int code = 200;
  std::string message;
  json::Value document;
};

struct Effects {
  std::vector<Write> writes;
  std::vector<EventNote> events;
  std::optional<TimePoint> wake;  ///< To be called again then, whatever happens.
  int admission_cycles = 0, successful_cycles = 0;
};

struct Settings {
  bool fair_sharing = false;
  /// Since admission; who has not all pods ready by then is evicted and queued again later. Nullopt: nobody asks.
  std::optional<Duration> pods_ready_timeout;
  Duration requeue_base = std::chrono::seconds(60), requeue_most = std::chrono::hours(1);  ///< Doubled with each time.
  std::optional<std::int64_t> requeue_limit;                                               ///< Then it is deactivated.
};

/// Of one ClusterQueue, for metrics.
struct QueueFigures {
  std::string queue, cohort;
  bool is_active = false;
  std::int64_t pending_active = 0, pending_inadmissible = 0, reserving = 0, admitted = 0, weighted_share = 0;
  struct Resource {
    std::string flavor, resource;
    double nominal = 0, reserved = 0, used = 0;
  };
  std::vector<Resource> resources;
};

struct CoreState;

/// Not thread-safe. Deterministic: its answers depend on the calls made and their arguments alone.
class Core {
 public:
  explicit Core(Settings settings);
  ~Core();
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;

  /// The object as it is now; older revisions than the one known are left alone.
  void observe(Kind kind, const json::Value& document);
  void forget(const ObjectKey& object);
  /// Each write is answered once.
  void answered(const Write& write, const WriteResult& result, TimePoint now);
  /// What is to be done now. One object has one write on its way at a time: what comes after it waits for the answer.
  Effects step(TimePoint now);
  [[nodiscard]] std::vector<QueueFigures> figures() const;

 private:
  std::unique_ptr<CoreState> impl_;
};

}  // namespace berth::queues
