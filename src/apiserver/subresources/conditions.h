// Conditions of pods, as Kubernetes' own helpers set them (pkg/api/v1/pod/util.go).
#pragma once
#include "base/clock.h"
#include "base/json.h"

namespace berth::apiserver {

/// Sets the condition of that type; lastTransitionTime moves only when the status does.
void set_condition(json::Value& object, std::string_view type, std::string_view status, std::string_view reason, std::string_view message,
                   TimePoint now, bool with_probe_time);

}  // namespace berth::apiserver
