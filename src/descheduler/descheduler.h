// The descheduler's shell: reads the cluster, runs a cycle, evicts through the API, tells of it in events and metrics (SPEC G4, I6).
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "client/client.h"
#include "descheduler/execution.h"
#include "descheduler/memory.h"
#include "placement/profiles.h"

namespace berth::descheduler {

struct DeschedulerOptions {
  Policy policy;
  std::string policy_file;       ///< Where it comes from; it is read again before each cycle. Empty: it does not change.
  placement::Profiles profiles;  ///< The profiles of the cluster's scheduler.
  placement::Era era = placement::Era::k136;
  PlacementCheck check = PlacementCheck::kBetterPlace;
  bool dry_run = false;
  bool lists_everyone = false;      ///< As CycleOptions'.
  std::size_t most_in_flight = 16;  ///< Evictions asked for and not yet answered.
  std::string host;                 ///< For the events' reporting instance.
  const Clock* clock = nullptr;     ///< Of pods' ages and events; null: the machine's. Must outlive the descheduler.
};

/// Everything that a cycle reads. Nodes and pods must be listed; what else the server refuses or does not have is done without, and said in
/// `warnings`. Pods and nodes that are the same as at the last time with `known`, of the same era, are not read again. Blocks.
Result<Snapshot> read_snapshot(client::Client& client, placement::Era era, bool with_metrics, std::vector<std::string>& warnings,
                               ReadObjects& known);

/// Blocking; for one thread that is not the transport's.
class Descheduler {
 public:
  Descheduler(std::shared_ptr<client::Transport> transport, DeschedulerOptions options, std::shared_ptr<metrics::Registry> metrics);

  /// One cycle. On a dry run the server is asked whether it would evict (dryRun=All), and nothing changes. The error: the cluster cannot be
  /// read, or a priority class of the policy is not there.
  Result<CycleResult> run_once();
  /// The policy as its file has it by now, for the cycles from here on. The error: it cannot be used; then nobody should be evicted,
  /// neither by it nor by the one before. A change, and an error that is new, are told in an event on the Lease kube-system/descheduler.
  Result<void> refresh_policy();
  /// From any thread, and for good: the cycle that runs asks for nothing more, and ends once what it asked for is answered.
  void stop() { is_stopped_ = true; }
  [[nodiscard]] const DeschedulerOptions& options() const { return options_; }

 private:
  CycleOptions options_for(const Snapshot& snapshot);
  /// Carries the cycle out.
  CycleResult execute(Execution cycle);
  [[nodiscard]] client::Call call_for(const Step& step) const;
  /// By the status that a cluster autoscaler writes, berth's or another.
  bool nodes_are_coming();
  /// What Prometheus says of nodes. A query that fails is its strategies' failure, and no other's.
  void ask_for_usage(Snapshot& snapshot);
  Result<std::string> prometheus_token(const PrometheusProvider& provider);
  [[nodiscard]] TimePoint now() const { return options_.clock != nullptr ? options_.clock->now() : SystemClock().now(); }
  void tell(const CycleResult& result);
  void write_event(const Removal& removal, std::string_view type, std::string_view reason, std::string_view note);
  void write_event_about(json::Object regarding, std::string_view type, std::string_view action, std::string_view reason,
                         std::string_view note);

  client::Client client_;
  DeschedulerOptions options_;
  std::shared_ptr<metrics::Registry> metrics_;
  std::map<std::string, Amounts, std::less<>> smoothed_usage_;  ///< Of nodes, over cycles.
  Memory memory_;
  ReadObjects known_;
  std::set<std::string> warned_;
  std::optional<std::string> policy_text_;  ///< As it was last read; nullopt: not yet.
  std::string policy_problem_;              ///< Told already.
  std::uint64_t events_ = 0;
  std::atomic<bool> is_stopped_ = false;
};

/// The plan, or what was done, as a table for people. `is_plan`: nothing was done. Of the pods that stay at most `most_kept` are listed.
std::string to_text(const CycleResult& result, bool is_plan, std::size_t most_kept);
json::Value to_json(const CycleResult& result, bool is_plan);

}  // namespace berth::descheduler
