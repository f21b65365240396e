// Warnings about pods and what stands in them (pkg/api/pod/warnings.go). Within src/model; others call write_warnings (warnings.h).
#pragma once
#include <string>
#include <vector>

#include "model/validation/validation.h"

namespace berth::model {

/// Of a pod, or of the template at `at`.
void pod_warnings(const json::Value& pod, const validation::Path* at, std::vector<std::string>& out);
/// Of the template at `where`, which is at `at`.
void template_warnings(const json::Value& doc, json::Path where, const validation::Path& at, std::vector<std::string>& out);
/// Of a JobSpec.
void job_spec_warnings(const json::Value& spec, const validation::Path& at, std::vector<std::string>& out);
/// Of a pod's name, which becomes its hostname.
void surprising_hostname_warning(const json::Value& pod, std::vector<std::string>& out);
/// Of the name of a workload whose pods are called after it.
void surprising_name_warning(const json::Value& doc, std::vector<std::string>& out);
/// An update that leaves the spec alone. `old` is null at creation.
bool says_nothing_new(const json::Value* old, const json::Value& doc);
/// Rules::warnings of a workload with its template at spec.template; of one whose pods are called after it.
void workload_warnings(const json::Value* old, const json::Value& doc, std::vector<std::string>& out);
void named_workload_warnings(const json::Value* old, const json::Value& doc, std::vector<std::string>& out);
/// Of a claim's spec.
void claim_warnings(const json::Value& spec, const validation::Path& at, std::vector<std::string>& out);
/// Of the terms of a node selector.
void node_terms_warnings(const json::Value& selector, const validation::Path& at, std::vector<std::string>& out);
/// What replaces a label of nodes that is no longer set; empty for all others.
std::string_view old_node_label(std::string_view key);

}  // namespace berth::model
