// What a scenario lets happen to a cluster: users who create and delete, faults that come and go, changes on purpose.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/lifeline.h"
#include "simulator/census.h"
#include "simulator/cluster.h"
#include "simulator/in_force.h"

namespace berth::simulator {

class Gangs;

/// Lives on the cluster's loop.
class Story {
 public:
  Story(const Scenario& scenario, Cluster& cluster, std::function<void(std::string kind, std::string text)> tell);
  ~Story();
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;

  /// What is there before anything happens; with the server up and nobody else.
  void set_up();
  /// The scenario's time begins now.
  void begin();
  /// A pod has ended: of those that it created, the user takes it away after a while.
  void pod_is_over(std::string_view ns, std::string_view name);
  /// Objects that the server refused, with its words: the first few of each kind of refusal.
  [[nodiscard]] const std::map<std::string, std::int64_t>& refusals() const { return refusals_; }
  [[nodiscard]] std::int64_t arrivals() const { return arrivals_; }

  /// Whom workloads with `gang` go to; set before `begin`.
  Gangs* gangs = nullptr;
  /// Called before the story does anything to the cluster; may be empty.
  std::function<void()> on_change;

  // For whoever replays.
  /// `may_exist`: one that is there already is left as it is.
  void create(json::Value object, const std::string& ns, bool may_exist = false);
  void apply(const json::Value& object);
  void remove(const std::string& group, const std::string& resource, const std::string& ns, const std::string& name);
  void patch(const std::string& group, const std::string& resource, const std::string& ns, const std::string& name, json::Value body);
  /// `as`: the Namespace as it is to be; null: with its name alone.
  void make_namespace(const std::string& name, const json::Value& as = {});
  void keep_track(const std::string& ns, const std::string& name, Duration keep_finished);
  Cluster& cluster() { return cluster_; }
  [[nodiscard]] Duration now() const;
  void at(Duration when, std::function<void()> what);

 private:
  struct Source;
  void make_nodes(const NodeSet& set);
  void make_group(const NodeGroup& group);
  void start_workload(const Workload& workload);
  void arm(const std::shared_ptr<Source>& source);
  void arrive(Source& source);
  void arrive(Source& source, const TraceRow& row);
  void create_all(const std::vector<json::Value>& objects, const std::string& ns);
  void remove_all(const std::vector<json::Value>& objects, const std::string& ns);
  void submit(client::Call call, const std::string& what, bool may_exist = false);

  void start_fault(const Fault& fault, std::size_t number);
  void strike(const Fault& fault, Random& random);
  /// A fault that strikes.
  struct Strike {
    const Fault& fault;
    std::uint64_t number = 0;         ///< Of all strikes.
    std::optional<Duration> lasts{};  ///< This time; nullopt: for good, or nothing that lasts.
  };
  void strike_nodes(Strike strike, Random& random);
  void change_node(const Strike& strike, const std::string& node, bool begins);
  void strike_links(const Strike& strike);
  void strike_component(const Strike& strike);
  /// `component` stops, and starts once nobody holds it down any more.
  void hold_down(const std::string& component, std::uint64_t strike, Duration away);
  void set_clock(const Strike& strike, bool begins);
  /// `what`, once nodes write their heartbeats again.
  void unsteadily(std::function<void()> what);
  void steady_again();
  [[nodiscard]] std::vector<std::string> choose(const NodeChoice& choice, Random& random) const;
  void set_taint(const std::string& node, const json::Value& taint, bool present);
  void carry_out(const PlannedChange& change);
  void drain(const std::string& node, TimePoint until);

  const Scenario& scenario_;
  Cluster& cluster_;
  std::function<void(std::string, std::string)> tell_;
  TimePoint start_{};
  std::set<std::string> namespaces_;
  std::map<std::string, std::int64_t> refusals_;
  std::unordered_map<std::string, Duration> own_pods_;  ///< Those to be taken away when they are over, and after how long.
  std::int64_t arrivals_ = 0;
  int unsteady_ = 0;
  std::uint64_t strikes_ = 0;
  // What is in force:
  InForce<Duration> delays_, clocks_;
  InForce<double> failing_;
  std::map<std::string, InForce<bool>> cuts_, down_;                                  ///< By component.
  std::map<std::pair<std::string, std::string>, InForce<json::Value>> node_changes_;  ///< By node, and what is changed of it.
  std::map<std::string, std::int64_t> added_;                                         ///< Nodes ever made of a set.
  Lifeline lifeline_;
};

/// A dump's objects, made anew in a cluster whose server is up and empty. What was left out, and why, for a note.
std::vector<std::string> load_dump(const std::vector<json::Value>& objects, Story& story);

}  // namespace berth::simulator
