// The manifests that a question is about.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::placement {
class Cluster;
}

namespace berth::cli {

/// Objects of files as `kubectl apply` takes them, for a question that is about their pods. What the API server could not read (a quantity
/// that is none) is an error. Told on standard error, with file and line: a field that its kind does not have, with what was probably
/// meant, and a kind that nobody knows, about which nothing is asked; and what the API server would refuse.
Result<std::vector<json::Value>> read_pod_manifests(const std::vector<std::string>& files);

/// Tells on standard error, once each, of priority classes of completed pods that the cluster does not have.
void tell_unknown_priorities(const std::vector<std::string>& class_names, const placement::Cluster& cluster);

}  // namespace berth::cli
