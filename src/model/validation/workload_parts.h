// What the specs and statuses of workloads have in common. Within src/model only.
#pragma once
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "model/validation/validation.h"

namespace berth::model::validation {

/// Counters of a kind's status: none is negative; those in `within_replicas` count some of the replicas.
struct StatusCounters {
  std::vector<std::string_view> counters, within_replicas;
  std::string_view more_available_than_ready;  ///< What is said of it; empty: it may be.
};
void status_counters(const StatusCounters& known, const Value& old, const Value& doc, Errors& errors);

/// The spec, or an empty one.
const Value& spec_of(const Value& doc);
/// spec.selector is there, well-formed, not empty, and matches the template's labels. A DaemonSet's missing one only matches nothing. False
/// when it is not well-formed.
bool selector_of_template(const Value& spec, const Path& at, std::string_view word, Errors& errors);
void selector_and_template(const Value& spec, const Path& at, std::string_view word, Errors& errors);
void restart_always(const Value& spec, const Path& at, std::string_view kind, Errors& errors);
std::int64_t as_percent_or_zero(const Value* value);
/// A rolling update cannot take more than there is.
void not_over_all(const Value& value, const Path& at, Errors& errors);
/// A strategy with its fields' Go names, as Kubernetes shows it.
Value shown_strategy(const Value& spec, std::string_view key, std::initializer_list<std::pair<std::string_view, std::string_view>> fields);
void immutable_selector(const Value& old, const Value& doc, Errors& errors);

/// metav1.Conditions of a status (apimachinery, ValidateConditions).
void conditions(const json::Array& list, const Path& at, Errors& errors);
void pod_group_spec(const Value& spec, const Path& at, Errors& errors);
/// A Workload's spec.podGroupTemplates.
void pod_group_templates(const json::Array& list, const Path& at, Errors& errors);
/// A Workload's spec.controllerRef.
void controller_reference(const Value& reference, const Path& at, Errors& errors);
/// A PodGroup's status.resourceClaimStatuses.
void group_claim_statuses(const Value& pod_group, const Path& at, Errors& errors);
/// As immutable(), in the form of rules that are tags: the value is not shown. A null is as good as nothing.
void unchanged(const Value& old, const Value& doc, json::Path where, const Path& at, Errors& errors);

}  // namespace berth::model::validation
