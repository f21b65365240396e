// The manifests that a question is about.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::cli {

/// Objects of files as `kubectl apply` takes them, for a question that is about their pods. A field that its kind does not have, and a kind
/// that nobody knows, is told on standard error, with file, line, and what was probably meant: nothing is asked about it.
Result<std::vector<json::Value>> read_pod_manifests(const std::vector<std::string>& files);

}  // namespace berth::cli
