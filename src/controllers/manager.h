// The controller manager: informers in, controllers between, a client out. What `berth up` and `berth controllers` run.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/config_arguments.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/metrics.h"
#include "client/election_times.h"
#include "client/transport.h"
#include "controllers/certificates.h"
#include "controllers/cluster.h"
#include "controllers/workloads.h"

namespace berth::model {
enum class Features : std::uint8_t;
Features preferred_features();
}  // namespace berth::model

namespace berth::controllers {

struct ManagerOptions {
  /// Controllers by Kubernetes' names; "*" stands for all. As --controllers: "*,-garbage-collector-controller".
  std::set<std::string, std::less<>> disabled;
  std::set<std::string, std::less<>> enabled_only;  ///< Empty: all.
  std::string root_ca_pem;                          ///< For kube-root-ca.crt and token secrets; empty: neither is published.
  NodeLifecycleOptions node_lifecycle;
  PodGarbageCollectorOptions pod_gc;
  HorizontalPodAutoscalerOptions horizontal_pod_autoscaler;
  ReplicaSetOptions replica_set;
  model::Features features = model::preferred_features();  ///< Of Kubernetes' features that are off there by default: which are on.
  SigningOptions signing;  ///< Without an authority, requests for certificates are approved and cleaned, not signed.
  /// MachineSets make Machines, and Machines simulated nodes (machines.h): where no machine-api-operator does.
  bool simulated_machines = false;
  bool trace = false;
  bool stands_again = false;                              ///< Having lost the Lease it waits for it: see on_lost_leadership.
  bool leader_elect = false;                              ///< With the Lease kube-system/kube-controller-manager.
  std::shared_ptr<client::Transport> election_transport;  ///< See client::LeadershipOptions::transport.
  client::ElectionTimes election = client::kOwnTimes;
  EventLoop* election_loop = nullptr;  ///< See client::LeadershipOptions::election_loop.
  std::string identity;                ///< For the Lease.
  std::uint64_t seed = 0;
};

/// kube-controller-manager's flags ("--node-monitor-grace-period=40s", "--feature-gates=A=true,B=false"), in any number. An unknown flag, a
/// malformed value, and an unknown feature gate are errors that name it; a retired gate and a flag that has no effect here are said in
/// `notes`.
Result<ManagerOptions> parse_manager_flags(const std::vector<std::string>& flags, ManagerOptions defaults, std::vector<std::string>& notes);
/// The three times of leader election fit together: after all flags.
Result<void> check_election(const ManagerOptions& options);
/// The same from master-config.yaml's kubernetesMasterConfig.controllerArguments. The error lists every problem, a line each, with its
/// place.
Result<ManagerOptions> parse_controller_arguments(const config::Arguments& arguments, ManagerOptions defaults,
                                                  std::vector<std::string>& notes);

/// The options as kube-controller-manager's /configz shows its own (KubeControllerManagerConfiguration, its internal spelling): what has an
/// effect here.
json::Value config_document(const ManagerOptions& options);

/// All controllers that the options leave on.
std::vector<ControllerPtr> make_controllers(const ManagerOptions& options);

class ControllerManager {
 public:
  virtual ~ControllerManager() = default;
  /// Lists and watches, then runs the controllers (as leader, with leader_elect). Any thread.
  virtual void start() = 0;
  /// True once the first lists are in and the controllers run. Any thread.
  [[nodiscard]] virtual bool is_running() const = 0;
  /// Called on the loop when leadership is lost: the process should end or make a new manager. With stands_again only when it comes back
  /// after another has led: where nobody has, the controllers go on where they were, with what they have seen meanwhile.
  virtual void on_lost_leadership(std::function<void()> lost) = 0;
};

/// Runs wholly on `loop`; construct and destroy it on the loop's thread, or while the loop is not running. Everything given must outlive
/// it.
std::unique_ptr<ControllerManager> make_controller_manager(std::shared_ptr<client::Transport> transport, EventLoop& loop,
                                                           ManagerOptions options, metrics::Registry* metrics);

}  // namespace berth::controllers
