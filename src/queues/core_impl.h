// The core's state, shared by its parts: core.cpp (what is told), cycle.cpp (who gets quota), workload_life.cpp (what a Workload goes
// through), jobs.cpp and pod_groups.cpp (who waits for it), statuses.cpp (what queues show).
#pragma once
#include <deque>
#include <map>
#include <set>

#include "queues/books.h"
#include "queues/core.h"
#include "queues/documents.h"
#include "queues/flavors.h"

namespace berth::queues {

/// An object as it is stored, or as it will be once the write on its way has succeeded.
struct Stored {
  json::Value document;  ///< Null: it is being created.
  json::Value seen;      ///< What to go back to when the write fails.
  std::int64_t revision = 0;
  bool is_in_flight = false;
  int failures = 0;
  TimePoint not_before{};
};

/// Where a Workload stands: the most important first, then by age, then in the order in which they came.
struct QueuePlace {
  std::int64_t priority_down = 0;
  TimePoint queued{};
  std::uint64_t arrival = 0;
  WorkloadKey key;
  friend auto operator<=>(const QueuePlace&, const QueuePlace&) = default;
};

struct WorkloadState {
  Workload workload;
  std::uint64_t arrival = 0;
  bool is_held = false;             ///< Its group lacks pods.
  std::string queue;                ///< The ClusterQueue among whose waiting it is; empty: it does not wait.
  std::optional<QueuePlace> place;  ///< There.
};

/// Those that wait for one ClusterQueue.
struct Waiting {
  std::set<QueuePlace> active, inadmissible;
};

/// Why a ClusterQueue admits nobody; an empty reason: it does.
struct Inactivity {
  std::string reason, message;
};

enum class GroupType { kSingle, kLabel, kPodGroup };
struct GroupKey {
  std::string ns, name;
  GroupType type = GroupType::kSingle;
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

struct CoreState {
  explicit CoreState(Settings s) : settings(std::move(s)) {}
  const Settings settings;

  std::map<ObjectKey, Stored> objects;
  std::map<std::string, ClusterQueue> queues;
  std::map<std::string, Cohort> cohorts;
  std::map<std::string, Flavor> flavors;
  std::map<WorkloadKey, LocalQueue> local_queues;
  std::map<WorkloadKey, WorkloadState> workloads;
  std::map<std::string, std::set<WorkloadKey>> by_owner;        ///< Workloads by their owner's uid.
  std::map<WorkloadKey, std::set<WorkloadKey>> by_local_queue;  ///< And by namespace and queue name.
  std::map<GroupKey, std::set<std::string>> groups;             ///< Names of pods.
  std::map<std::string, Inactivity> inactive;                   ///< By ClusterQueue.
  std::map<std::string, Waiting> waiting;
  std::map<ObjectKey, json::Value> lost_templates;  ///< Of Jobs whose Workload is gone: how their pods were before admission.
  std::map<ObjectKey, std::string> spec_marks;      ///< Of queues, cohorts and flavors: the spec that was read.
  std::map<ObjectKey, std::string> told;            ///< Complaints, so that each is told once.
  Books books;
  std::uint64_t arrivals = 0;

  bool structure_changed = false;
  std::set<ObjectKey> dirty;  ///< Jobs, Workloads.
  std::set<GroupKey> dirty_groups;
  std::set<std::string> dirty_queues;  ///< ClusterQueues whose status may differ.
  std::set<WorkloadKey> dirty_local_queues;
  std::set<std::string> stirred;  ///< ClusterQueues in whose cohort somebody may be admitted now.
  std::set<std::pair<TimePoint, ObjectKey>> timers;

  TimePoint now{};
  Effects effects;

  // core.cpp
  void absorb(const ObjectKey& key);
  void absorb_gone(const ObjectKey& key, const json::Value& last);
  void absorb_workload(const ObjectKey& key, const json::Value& document);
  void drop_workload(const WorkloadKey& key);
  void absorb_structure(const ObjectKey& key, const json::Value& document);
  void touch_owner(const Workload& workload);
  void touch_workloads_of(const WorkloadKey& local_queue);
  void touch_queues_of(const Workload& workload);
  void mark_dirty(const ObjectKey& key);
  [[nodiscard]] const json::Value* document(const ObjectKey& key) const;
  [[nodiscard]] bool may_write(const ObjectKey& key) const;
  /// Changes what is known at once, as if it had succeeded.
  void update(const ObjectKey& key, json::Value document, bool is_status, std::vector<EventNote> events = {},
              std::vector<Tally> tallies = {});
  void create(const ObjectKey& key, json::Value document, std::vector<EventNote> events);
  void remove(const ObjectKey& key, std::vector<EventNote> events);
  [[nodiscard]] EventNote note(const ObjectKey& key, std::string_view type, std::string_view reason, std::string message) const;
  /// Tells a complaint about an object once, until it is another one.
  void complain(const ObjectKey& about, const std::string& reason, const std::string& message);
  void look_again(const ObjectKey& key, TimePoint when) { timers.insert({when, key}); }
  void rebuild();
  /// What a queue, or its cohort, has to give may have become more.
  void stir(const std::string& queue, bool retries_inadmissible);
  [[nodiscard]] std::vector<std::string> rivals_of(const std::string& queue) const;  ///< Of one cohort; itself too.
  [[nodiscard]] const LocalQueue* local_queue_of(const Workload& workload) const;
  /// `is_news`: it is worth trying again.
  void requeue(WorkloadState& state, bool is_news);
  void leave_queue(WorkloadState& state);
  [[nodiscard]] bool is_eligible(const WorkloadState& state) const;
  [[nodiscard]] TimePoint queued_since(const Workload& workload) const;

  // workload_life.cpp
  void reconcile_workload(const WorkloadKey& key);
  void evict(const WorkloadKey& key, json::Value document, std::string_view reason, const std::string& message,
             std::vector<Tally> tallies = {});
  bool live_active(const WorkloadKey& key, const Workload& workload);
  bool live_inactive(const WorkloadKey& key, const Workload& workload);
  bool live_with_reservation(const WorkloadKey& key, const Workload& workload);
  bool check_times(const WorkloadKey& key, const Workload& workload);
  void tell_why_inadmissible(const WorkloadKey& key, const Workload& workload);
  /// The pods are gone: it gives its quota back.
  void clear_admission(const WorkloadKey& key);
  void finish(const WorkloadKey& key, bool succeeded, std::string_view reason, const std::string& message, const ObjectKey& owner);

  // cycle.cpp
  void run_cycles();
  void admit(const WorkloadKey& key, const std::string& queue, const Assignment& assignment);

  // jobs.cpp
  void reconcile_job(const ObjectKey& key);
  /// The priority of a class, by Kueue's label or the pods' own; false with a complaint where there is no such class.
  struct Priority {
    std::string name, source;
    std::int64_t value = 0;
  };
  std::optional<Priority> priority_of(const ObjectKey& about, const json::Value& object, const json::Value& pod_spec);
  [[nodiscard]] std::vector<WorkloadKey> workloads_of(const std::string& owner_uid) const;

  // pod_groups.cpp
  [[nodiscard]] GroupKey group_of(const json::Value& pod) const;
  void reconcile_group(const GroupKey& group);
  [[nodiscard]] std::vector<const json::Value*> pods_of(const GroupKey& group) const;

  // statuses.cpp
  void judge_queues();
  void write_statuses();
};

/// "ns/name".
std::string text_of(const WorkloadKey& key);
inline ObjectKey object_of(const WorkloadKey& key) { return {Kind::kWorkload, key.first, key.second}; }

}  // namespace berth::queues
