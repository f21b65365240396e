// A scenario: what a simulation is made of, read from one YAML file (docs/simulate.md has every field).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "controllers/manager.h"
#include "descheduler/policy.h"
#include "node/simulated/fleet.h"
#include "scheduler/config/config.h"
#include "simulator/arrivals.h"

namespace berth::pools {
struct Catalogue;
}

namespace berth::simulator {

using AmountTexts = std::map<std::string, std::string>;  ///< Resource names and quantities as Kubernetes writes them.

/// Nodes that are alike, there from the start.
struct NodeSet {
  std::string name;  ///< Nodes are NAME-1, NAME-2, …
  std::int64_t count = 0;
  std::vector<std::string> zones;  ///< Taken in turn.
  std::string region = "region-1", instance_type;
  AmountTexts capacity, labels, annotations;
  json::Array taints;
  double price_per_hour = 0;
};

/// Machines that the cluster autoscaler may add and take away.
struct NodeGroup {
  NodeSet nodes;  ///< count: at the start. One zone.
  std::int64_t min = 0, max = 0;
  Duration boot_delay{};
};

/// One line of a trace, as little as a million of them need.
struct TraceRow {
  Duration at{};
  std::optional<Duration> run_for;
  std::string name, ns;  ///< Empty: as the workload says.
  /// Resources in their own small list; shared by rows that ask for the same.
  std::shared_ptr<const AmountTexts> requests;
  std::string priority_class;
  std::int64_t size = 1;  ///< Of a workload with `gang`: so many pods come as one.
};

/// Pods that are of use together alone, as many at each arrival (gangs.h).
struct GangSetting {
  std::int64_t size = 0;       ///< Of a trace: of rows that do not say it.
  std::int64_t min_count = 0;  ///< 0: all of them.
  std::string topology;        ///< The label in one of whose domains they are to be; empty: anywhere.
  bool goes_as_one = false;    ///< disruptionMode PodGroup.
  std::string queue;           ///< Label kueue.x-k8s.io/queue-name, and the report's row; empty: the workload's name is that.
  Duration patience{};         ///< Pods that stand so long without their partners end, and all come anew; zero: never.
};

/// How gangs are scheduled.
enum class GangPolicy : std::uint8_t {
  kBerth,       ///< As `berth up` does.
  kKubernetes,  ///< By the rules of kube-scheduler 1.36, chance included.
  kNone,        ///< Not at all: their pods are pods like any.
};

/// Something that comes again and again: each arrival creates `object` under a name of its own.
struct Workload {
  std::string name, ns = "default";
  enum class Kind { kPod, kJob, kDeployment, kObjects };
  Kind kind = Kind::kPod;
  json::Value object;                ///< Pod, Job or Deployment without name; null for kObjects.
  std::vector<json::Value> objects;  ///< Created as they are at each arrival (kObjects), or once with a Deployment (budget, HPA).
  Arrivals arrivals;
  bool has_arrivals = false;  ///< Without, it comes once and its name has no number.
  std::optional<GangSetting> gang;
  std::optional<Lengths> run_for;  ///< How long pods and Jobs' pods run, how long Deployments and objects stay.
  Duration keep_finished = std::chrono::minutes(10);
  std::vector<TraceRow> trace;  ///< In order of time; instead of arrivals.
  /// Cores that the pods of a Deployment need between them, by the time of the day: what the HPA sees. Empty: as they request.
  std::vector<std::pair<Duration, double>> load;
};

/// Which nodes something happens to.
struct NodeChoice {
  std::int64_t count = 0;  ///< So many at random of those that match the rest; 0: all of them.
  std::vector<std::string> names;
  std::string zone, selector;
  [[nodiscard]] bool is_empty() const { return count == 0 && names.empty() && zone.empty() && selector.empty(); }
};

struct Fault {
  enum class What { kLose, kDelete, kTaint, kCordon, kInterrupt, kSlowApi, kFailingApi, kRestart, kCut, kClock };
  What what = What::kLose;
  Arrivals when;
  std::optional<Lengths> lasts;  ///< Absent: for good (kRestart: ten seconds).
  NodeChoice nodes;
  json::Value taint;
  Duration delay{};       ///< kSlowApi: before every answer; kClock: by how much (may be negative).
  double share = 0;       ///< kFailingApi: of requests, answered with 503.
  std::string component;  ///< kRestart, kCut, kClock: "scheduler", "controllers", …
  std::string text;       ///< For people: "zone b is lost".
};

/// Something that somebody does on purpose.
struct PlannedChange {
  enum class What { kApply, kDelete, kPatch, kScheduler, kDescheduler, kAddNodes, kRemoveNodes, kDrain, kUncordon };
  What what = What::kApply;
  std::vector<Duration> at;
  std::vector<json::Value> objects;             ///< kApply.
  std::string group, resource, kind, ns, name;  ///< kDelete, kPatch.
  json::Value patch;                            ///< kPatch: a merge patch.
  std::shared_ptr<const scheduler::config::SchedulerConfig> scheduler;
  std::shared_ptr<const descheduler::Policy> descheduler;  ///< Null: it is switched off.
  NodeSet node_set;
  NodeChoice nodes;
  std::string text;
};

/// What must hold.
struct Check {
  std::string name, expression;
  enum class When { kEnd, kAlways, kAt };
  When when = When::kEnd;
  Duration at{};     ///< kAt.
  Duration after{};  ///< kAlways: not before.
};

struct AutoscalerSetting {
  json::Value object;  ///< The ClusterAutoscaler.
  Duration scan_interval = std::chrono::seconds(10);
};
struct DeschedulerSetting {
  std::shared_ptr<const descheduler::Policy> policy;
  Duration every = std::chrono::minutes(5);
};

/// Nodes without groups (docs/node-pools.md).
struct PoolsSetting {
  std::shared_ptr<const pools::Catalogue> instance_types;
  std::vector<json::Value> objects;  ///< NodePools, and the SimulatedNodeClasses that they name.
};

struct RecordSetting {
  Duration every{};  ///< Zero: a 288th of the duration, whole minutes, at least ten seconds.
  bool events = true;
};

struct Scenario {
  std::string file, title;
  Duration duration{};
  std::uint64_t seed = 1;
  TimePoint start{};
  std::vector<NodeSet> nodes;
  std::vector<NodeGroup> groups;
  std::vector<Workload> workloads;
  std::vector<Fault> faults;
  std::vector<PlannedChange> changes;
  std::vector<Check> checks;
  RecordSetting record;
  GangPolicy gangs = GangPolicy::kBerth;
  scheduler::config::SchedulerConfig scheduler;
  controllers::ManagerOptions controllers;
  std::optional<AutoscalerSetting> autoscaler;
  std::optional<DeschedulerSetting> descheduler;
  std::optional<PoolsSetting> pools;
  node::simulated::FleetOptions fleet;
  std::map<std::string, double> prices;  ///< An hour, by instance type.
  std::string currency;                  ///< In which prices are: "EUR"; empty: nobody says.
  std::vector<json::Value> initial;      ///< Objects of a dump that are there at the start.
  std::string replay;                    ///< A recording's file.
  bool replays_workloads = false;        ///< The recording's workloads, not its pods.
};

/// One side of a comparison.
struct Variant {
  std::string name;
  Scenario scenario;
};

/// What `compare:` of a scenario says.
struct Comparison {
  std::vector<Variant> variants;  ///< One, without a name, where the file compares nothing.
  std::int64_t seeds = 1;
  std::vector<std::string> notes;
};

/// Reads a scenario, or takes a recording or an audit log for one that plays it again; its files are looked for beside it. The error lists
/// every problem, a line each: FILE:LINE: PATH: what.
Result<Comparison> load_scenario(const std::string& path);
/// The same of a text; `directory`: where the files are that it names.
Result<Comparison> parse_scenario(std::string_view text, const std::string& file, const std::string& directory);
/// The scenario files' JSON schema.
std::string_view scenario_schema();

}  // namespace berth::simulator
