// The query of pods/log (PodLogOptions).
#pragma once
#include <optional>
#include <string_view>

#include "apiserver/request/request_info.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// What is wrong with the options, before anybody looks for the pod: 400 for what is no number or time, 422 for what Kubernetes'
/// ValidatePodLogOptions refuses.
std::optional<model::ApiStatus> check_log_options(const Query& query, std::string_view pod);

}  // namespace berth::apiserver
