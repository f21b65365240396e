// The scheduler's configuration: KubeSchedulerConfiguration (v1, v1beta3, v1beta2, v1beta1) and `kind: Policy`, from YAML or JSON
// (SPEC B2–B5, B9, C5). Policy and v1beta1 mean the 1.20 release's plugins and formulas, everything else today's.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "client/election_times.h"
#include "placement/profile.h"

namespace berth::scheduler::config {

/// An HTTP extender (kube-scheduler's config Extender, v1): called at the verbs that are not empty.
struct Extender {
  std::string url_prefix;
  std::string filter_verb, prioritize_verb, preempt_verb, bind_verb;
  std::int64_t weight = 0;
  bool enable_https = false;
  bool insecure_skip_verify = false;
  std::string ca_file, cert_file, key_file, server_name;
  std::string ca_data, cert_data, key_data;  ///< PEM.
  std::int64_t http_timeout_ms = 5000;
  bool node_cache_capable = false;
  struct ManagedResource {
    std::string name;
    bool ignored_by_scheduler = false;
  };
  std::vector<ManagedResource> managed_resources;
  bool ignorable = false;
};

struct LeaderElection {
  bool leader_elect = true;
  client::ElectionTimes times = client::kOwnTimes;
  /// An empty name: by the schedulers' names (lease_name).
  std::string resource_lock = "leases", resource_name, resource_namespace = "kube-system";
};

struct SchedulerConfig {
  /// At least one; the scheduler names differ.
  std::vector<placement::Profile> profiles;
  placement::Era era = placement::Era::k136;
  bool is_policy = false;
  std::int64_t percentage_of_nodes_to_score = 0;
  std::int64_t pod_initial_backoff_seconds = 1, pod_max_backoff_seconds = 10;
  std::int64_t parallelism = 16;  ///< Accepted; decisions are made by one thread.
  bool delay_cache_until_active = false;
  bool enable_profiling = true, enable_contention_profiling = true;
  LeaderElection leader_election;
  std::string kubeconfig;  ///< clientConnection.kubeconfig
  std::vector<Extender> extenders;
  std::vector<std::string> notes;  ///< What is read, well, and without effect here: for whoever starts the scheduler to say.
  json::Value source;              ///< The KubeSchedulerConfiguration as given; null without a file and for a Policy.
  json::Value document;            ///< The file's document, of either kind, repaired; null without one.
  /// Flags of the scheduler that were applied over the document, each with its value.
  std::vector<std::pair<std::string, std::string>> arguments;

  /// The profile that schedules pods of this name; null when it is another scheduler's pod.
  [[nodiscard]] const placement::Profile* profile(std::string_view scheduler_name) const;
};

struct ParseOptions {
  /// Stands before every problem: "FILE:LINE: ".
  std::string file = "config";
  /// `--compatibility`: overrides the release that the document's version means. Policy is always 1.20.
  std::optional<placement::Era> era;
};

/// The Lease that this scheduler leads by: the one that the configuration names; else kube-scheduler for the scheduler of pods that name
/// none, and for any other a Lease of its own by its name, so that schedulers side by side never wait for each other.
std::string lease_name(const SchedulerConfig& config);
/// Takes DefaultPreemption away: pods of this profile evict nobody.
void disable_preemption(placement::Profile& profile);

/// The defaults of the release: one profile, "default-scheduler".
SchedulerConfig default_config(placement::Era era);
/// Parses, defaults and validates one document. The error lists every problem, a line each, with file, line, field path and, for an unknown
/// name, the nearest valid one.
Result<SchedulerConfig> parse(std::string_view text, const ParseOptions& options);
/// As parse, for a document that is already JSON, of a recorded decision: problems have no line, and what Kubernetes takes is taken.
Result<SchedulerConfig> from_json(const json::Value& document, const ParseOptions& options);
/// Reads and parses a file.
Result<SchedulerConfig> load(const std::string& path, ParseOptions options);

}  // namespace berth::scheduler::config
