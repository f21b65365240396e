// kube-scheduler's flags as OpenShift's master-config.yaml gives them (kubernetesMasterConfig.schedulerArguments, schedulerArgs; SPEC E1,
// C5).
#pragma once
#include <string>
#include <vector>

#include "base/config_arguments.h"
#include "scheduler/config/config.h"

namespace berth::scheduler::config {

using berth::config::Arguments;

/// The file that the arguments name (`config` or `policy-config-file`); empty when none. `base_dir`: where a relative path begins.
std::string file_of(const Arguments& arguments, const std::string& base_dir);
/// Applies the others over `config`: scheduler-name, algorithm-provider, disablePreemption (the documents' word), the weight of symmetric
/// affinity, leader election. Flags that kube-scheduler knows and that have nothing to act on here are told in config.notes. The error
/// lists every problem, a line each, with its place in the file.
Result<void> apply(const Arguments& arguments, SchedulerConfig& config);

}  // namespace berth::scheduler::config
