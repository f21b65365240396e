// The parts of a DeschedulerPolicy's reader that its two versions share. Internal to this folder.
#pragma once
#include "base/config_reader.h"
#include "descheduler/policy.h"

namespace berth::descheduler {

using config::Reader;

/// Not negative; nullopt when absent. A problem otherwise.
std::optional<std::uint64_t> read_unsigned(const Reader& at, std::string_view name);
Namespaces read_namespaces(const Reader& at);
std::optional<model::Selector> read_label_selector(const Reader& at);
std::set<std::string, std::less<>> read_set(const Reader& at, std::string_view name);
/// `nodeAffinityType`: not empty, each one a type there is.
std::vector<std::string> read_node_affinity_types(const Reader& at);
Thresholds read_thresholds(const Reader& at);
/// The rules of both utilization strategies; `at` has thresholds and, for LowNodeUtilization, targetThresholds.
void check_utilization(const Reader& at, const Plugin& plugin);
void check_states(const Reader& at, const Plugin& plugin);
void read_version_1(const Reader& root, Policy& policy);
void read_version_2(const Reader& root, Policy& policy);

}  // namespace berth::descheduler
