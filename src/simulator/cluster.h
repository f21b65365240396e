// A whole cluster under a virtual clock, on one thread: API server on a memory store, every controller, scheduler, autoscaler, descheduler,
// simulated nodes. What happens is a function of the calls and the seed.
//
//   Cluster ── server (memory store, no threads)
//     ├─ Link ─ scheduler      ├─ Link ─ controllers (a clock of their own)
//     ├─ Link ─ nodes          ├─ Link ─ autoscaler, pools └─ Link ─ descheduler
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>

#include "apiserver/server.h"
#include "autoscaler/runner.h"
#include "client/client.h"
#include "client/informer.h"
#include "controllers/manager.h"
#include "descheduler/descheduler.h"
#include "node/simulated/simulated_nodes.h"
#include "scheduler/scheduler.h"
#include "simulator/link.h"
#include "simulator/scenario.h"

namespace berth::pools {
class Runner;
}

namespace berth::simulator {

struct ClusterOptions {
  TimePoint start{};
  std::uint64_t seed = 1;
  scheduler::config::SchedulerConfig scheduler;
  controllers::ManagerOptions controllers;
  node::simulated::FleetOptions fleet;
  std::optional<AutoscalerSetting> autoscaler;
  std::optional<DeschedulerSetting> descheduler;
  std::optional<PoolsSetting> pools;
  GangPolicy gangs = GangPolicy::kBerth;
};

/// Those that speak to the server through a Link.
inline constexpr std::array<std::string_view, 6> kLinkedComponents = {"scheduler",  "controllers", "nodes",
                                                                      "autoscaler", "descheduler", "pools"};

class Cluster {
 public:
  /// Makes the API server; nothing else runs yet. The error names what of the options is wrong.
  static Result<std::unique_ptr<Cluster>> create(ClusterOptions options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Everything that the options name.
  Result<void> start_components();
  /// "server", "scheduler", …: gone at once, as a killed process; and back. Starting what runs, and stopping what does not, does nothing.
  void stop(std::string_view component);
  Result<void> start(std::string_view component);
  [[nodiscard]] bool is_running(std::string_view component) const;
  /// From now on, and after every restart. A scheduler that runs is restarted.
  Result<void> set_scheduler(scheduler::config::SchedulerConfig config);
  void set_descheduler(std::shared_ptr<const descheduler::Policy> policy);
  /// Of the controllers' clock, from their next start on.
  void set_clock_ahead(Duration ahead) { controller_loop_.set_ahead(ahead); }
  /// While they are not steady, nodes write every heartbeat: for faults that heartbeats meet.
  void set_steady_heartbeats(bool steady);
  /// Never steady; before the start.
  void write_heartbeats() { steady_ = may_be_steady_ = false; }

  /// "scheduler", "controllers", "nodes", "autoscaler", "descheduler", "pools"; "user" is client()'s.
  Link& link(std::string_view component);
  /// Straight to the server, whatever the faults; answers within the call. Fails while the server is down.
  client::Client& client() { return *client_; }
  VirtualLoop& loop() { return loop_; }
  /// Null while the server is down.
  apiserver::ObjectCache* cache() { return api_ ? &api_->cache() : nullptr; }
  /// Called whenever the server has started (and before it is stopped with null): who watches the cache itself begins anew.
  std::function<void(apiserver::ObjectCache*)> on_server;
  /// Of the scheduler (SchedulerOptions::on_preemption); set before its start.
  decltype(scheduler::SchedulerOptions::on_preemption) on_preemption;
  /// Answers metrics.k8s.io; set before the first start. Outlives the cluster.
  net::Handler* metrics_handler = nullptr;
  /// Null before start.
  node::simulated::SimulatedNodes* nodes() { return nodes_.get(); }
  scheduler::Scheduler* scheduler() { return scheduler_.get(); }
  /// How often the controllers were started.
  [[nodiscard]] std::int64_t controller_starts() const { return controller_starts_; }

 private:
  explicit Cluster(ClusterOptions options);
  Result<void> start_server();
  Result<void> start_scheduler();
  Result<void> start_autoscaler();
  void start_controllers();
  void start_nodes();
  void start_descheduler();
  Result<void> start_pools();
  void deschedule();

  ClusterOptions options_;
  VirtualLoop loop_;
  SkewedLoop controller_loop_{loop_};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<apiserver::ApiServer> api_;
  std::uint64_t starts_ = 0;
  std::map<std::string, std::shared_ptr<Link>, std::less<>> links_;
  std::shared_ptr<Link> client_link_;
  std::unique_ptr<client::Client> client_, node_client_, scheduler_client_, autoscaler_client_, pools_client_;
  metrics::Registry controller_metrics_, autoscaler_metrics_;
  std::unique_ptr<node::simulated::SimulatedNodes> nodes_;
  std::unique_ptr<controllers::ControllerManager> manager_;
  std::unique_ptr<client::InformerFactory> informers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<autoscaler::Runner> autoscaler_;
  std::shared_ptr<pools::Runner> pools_;
  std::unique_ptr<descheduler::Descheduler> descheduler_;
  TimerId descheduler_timer_ = TimerId::kNone;
  std::int64_t controller_starts_ = 0;
  bool steady_ = true, may_be_steady_ = true;
};

}  // namespace berth::simulator
