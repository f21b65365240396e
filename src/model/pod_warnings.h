// Warnings about pods and what stands in them (pkg/api/pod/warnings.go). Within src/model; others call write_warnings (warnings.h).
#pragma once
#include <string>
#include <vector>

#include "model/validation/validation.h"

namespace berth::model {

/// Of a pod, or of the template at `at`.
void pod_warnings(const json::Value& pod, const validation::Path* at, std::vector<std::string>& out);
/// Of a claim's spec.
void claim_warnings(const json::Value& spec, const validation::Path& at, std::vector<std::string>& out);
/// Of the terms of a node selector.
void node_terms_warnings(const json::Value& selector, const validation::Path& at, std::vector<std::string>& out);
/// What replaces a label of nodes that is no longer set; empty for all others.
std::string_view old_node_label(std::string_view key);

}  // namespace berth::model
