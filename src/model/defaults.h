// Defaulting pieces that other parts of the model share. Within src/model only; everybody else calls apply_defaults (schema.h).
#pragma once
#include "base/json.h"

namespace berth::model::defaults {

/// Defaults a PodSpec, of a pod or a pod template (Kubernetes: SetDefaults_PodSpec and what hangs below it).
void pod_spec(json::Object& spec);

}  // namespace berth::model::defaults
