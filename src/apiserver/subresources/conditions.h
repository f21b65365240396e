// Conditions of pods, as Kubernetes' own helpers set them (pkg/api/v1/pod/util.go).
#pragma once
#include "apiserver/cache/object_part.h"
#include "base/clock.h"
#include "base/json.h"

namespace berth::apiserver {

/// As model/conditions.h, of a pod: with the time of a probe, and without an empty reason or message.
void set_pod_condition(json::Value& pod, std::string_view type, std::string_view status, std::string_view reason, std::string_view message,
                       TimePoint now);

/// What a pod's binding and its mark of an eviction have to do with: who it is, whether it goes, its labels, node, gates and status.
Take marked_part(std::string_view parent, std::string_view key);

}  // namespace berth::apiserver
