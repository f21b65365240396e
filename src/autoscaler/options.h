// What a ClusterAutoscaler object says, with its defaults (SPEC H1; the cluster autoscaler's flags).
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "placement/profile.h"

namespace berth::config {
class Reader;
}

namespace berth::autoscaler {

/// How one of several groups that would help is chosen.
enum class Expander { kRandom, kLeastWaste, kMostPods, kLeastNodes, kPriority, kPrice, kGrpc };

struct Bounds {
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
};

struct GpuLimit {
  std::string type;  ///< A value of the node label cluster-api/accelerator, or a resource's name (nvidia.com/gpu, amd.com/gpu).
  Bounds bounds;
};

struct Options {
  Duration scan_interval = std::chrono::seconds(10);
  std::int64_t max_nodes_total = 0;  ///< 0: no limit. Counts every node of the cluster.
  Bounds cores, memory_bytes;        ///< Over every node of the cluster.
  std::vector<GpuLimit> gpus;

  bool scale_down_enabled = true;
  Duration delay_after_add = std::chrono::minutes(10);
  Duration delay_after_delete = std::chrono::seconds(10);
  Duration delay_after_failure = std::chrono::minutes(3);
  Duration unneeded_time = std::chrono::minutes(10);
  Duration unready_time = std::chrono::minutes(20);
  double utilization_threshold = 0.5;                         ///< Of CPU and memory.
  double gpu_utilization_threshold = 0.5;                     ///< Of GPUs, on nodes that have some: no field says it.
  std::string accelerator_label = "cluster-api/accelerator";  ///< What nodes with GPUs are labelled with, as the provider says.
  std::set<std::string> gpu_types;                            ///< That label's values that metrics tell; empty: all.
  bool cordon_before_terminating = false;

  Duration max_node_provision_time = std::chrono::minutes(15);
  Duration new_pod_scale_up_delay{0};
  Duration max_pod_grace_period = std::chrono::seconds(600);
  Duration max_pod_eviction_time = std::chrono::minutes(2);
  Duration max_deletion_delay = std::chrono::minutes(2);  ///< By annotations delay-deletion.cluster-autoscaler.kubernetes.io/….
  std::int64_t pod_priority_threshold = -10;
  bool must_exceed_threshold = false;  ///< Of the documents (003 §4.7.1): a pod at the threshold holds nodes, and adds none.
  bool skip_nodes_with_local_storage = true;
  bool ignore_daemonsets_utilization = false;
  bool ignore_mirror_pods_utilization = false;
  bool balance_similar_node_groups = false;
  std::vector<std::string> balancing_ignored_labels;
  std::vector<Expander> expanders = {Expander::kLeastWaste};  ///< One after the other; what is left is drawn.

  bool enforce_min_sizes = false;  ///< Groups below their minimum grow to it without a pod that needs them.
  /// Requests of this processorInstance alone; best-effort-atomic-scale-up is for who has none.
  std::string check_capacity_processor_instance;
  /// 0: faults alone; 1: what is done; 2: each pass; 4: why pods and nodes stay as they are; 6: how each group is.
  std::int64_t log_verbosity = 1;
  int max_scale_down_parallelism = 10;
  int max_drain_parallelism = 1;
  int max_bulk_soft_taints = 10;
  Duration initial_backoff = std::chrono::minutes(5), max_backoff = std::chrono::minutes(30), backoff_reset = std::chrono::hours(3);

  /// Pods of this priority may add nodes.
  [[nodiscard]] bool may_add_nodes(std::int64_t priority) const {
    return must_exceed_threshold ? priority > pod_priority_threshold : priority >= pod_priority_threshold;
  }
  /// Takes over what the scheduler's release says of this: 1.20 is the documents'.
  void follow(placement::Era era) { must_exceed_threshold = era == placement::Era::k120; }

  /// Of the object; what it leaves out keeps its default. Problems are the reader's.
  static Options read(const config::Reader& cluster_autoscaler);
  /// The same of an object of the API, which may have fields of later versions: these are in `notes`, with what has no effect here.
  static Result<Options> parse(const json::Value& cluster_autoscaler, std::vector<std::string>* notes = nullptr);
};

}  // namespace berth::autoscaler
