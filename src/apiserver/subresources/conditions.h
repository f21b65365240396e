// Conditions of pods, as Kubernetes' own helpers set them (pkg/api/v1/pod/util.go).
#pragma once
#include "base/clock.h"
#include "base/json.h"

namespace berth::apiserver {

/// As model/conditions.h, of a pod: with the time of a probe, and without an empty reason or message.
void set_pod_condition(json::Value& pod, std::string_view type, std::string_view status, std::string_view reason, std::string_view message,
                       TimePoint now);

}  // namespace berth::apiserver
