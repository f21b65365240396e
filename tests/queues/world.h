// A cluster as far as queues see it: objects in memory, writes applied as an API server would, Jobs and pods that start and stop.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "queues/core.h"
#include "queues/objects.h"

namespace berth::queues::testing {

json::Value yaml(std::string_view text);

class World {
 public:
  explicit World(Settings settings = {}) : core(settings) {
    put(Kind::kNamespace, yaml("{metadata: {name: default, labels: {team: blue}}}"));
  }

  /// Creates or replaces, as a user does; tells the core.
  void put(Kind kind, json::Value document);
  /// As a user's kubectl delete: finalizers hold it.
  void remove(const ObjectKey& key);
  /// Merges into the object, as kubectl patch --type merge.
  void patch(const ObjectKey& key, const json::Value& change);
  /// Steps until nothing is written any more, and the Jobs' pods have followed.
  void settle();
  void pass(Duration time) {
    now += time;
    settle();
  }
  /// Like a restart: a new core sees what is stored.
  void restart(Settings settings = {});

  [[nodiscard]] const json::Value* find(const ObjectKey& key) const;
  /// The Workload of a Job, or of a pod group by its own name; null when there is none.
  [[nodiscard]] const json::Value* workload_of(const std::string& name) const;
  [[nodiscard]] std::vector<Workload> workloads() const;
  [[nodiscard]] std::string condition(const json::Value& document, std::string_view type) const;

  // In short forms, all in the namespace default.
  void flavor(const json::Value& flavor);
  void queue(const json::Value& queue);
  void cohort(const json::Value& cohort);
  void job(const json::Value& job);
  void pod(const json::Value& pod);
  void finish_job(const std::string& name, bool succeeded = true);

  Core core;
  TimePoint now = *parse_rfc3339("2026-01-01T00:00:00Z");
  std::vector<std::string> events;     ///< "OBJECT REASON: MESSAGE"
  std::map<std::string, int> tallies;  ///< "admitted a", "evicted a Preempted", …
  bool pods_stay = false;              ///< Pods of suspended Jobs, and deleted ones, go only when this is false again.
  std::map<ObjectKey, int> refusals;   ///< Writes of these fail with this code, once.
  int writes = 0;
  std::map<ObjectKey, json::Value> objects;

 private:
  void store(const ObjectKey& key, json::Value document);
  void drop(const ObjectKey& key);
  WriteResult apply(const Write& write);
  bool follow_jobs();
  bool follow_pods();
  void perform(Effects effects);
  std::int64_t revision_ = 0, uids_ = 0;
};

}  // namespace berth::queues::testing
