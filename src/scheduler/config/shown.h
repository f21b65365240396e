// The configuration in force as /configz shows it: kubescheduler.config.k8s.io/v1 with every default filled in.
#pragma once
#include "base/json.h"
#include "scheduler/config/config.h"

namespace berth::scheduler::config {

/// The whole document, as kube-scheduler 1.36 shows it for the same file (apis/config/v1 defaults and merging of plugin sets). Of Policy
/// and of v1alpha1 and v1beta1 files, whose plugins have no v1 form, each profile's final lists by extension point.
json::Value shown(const SchedulerConfig& config);

}  // namespace berth::scheduler::config
