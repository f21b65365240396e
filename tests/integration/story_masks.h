// What differs from one cluster and run to the next, masked as tests/controllers/stories/record.py masks it.
#pragma once
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::integration {

/// uids, times, addresses, nodes, minutes in names of CronJobs' Jobs, and the random ends of names.
std::string mask(std::string_view text);
/// What is kept of an object of `resource`: without revisions, times and what kubelet and scheduler say; masked.
json::Value shown(std::string_view resource, json::Value item);
/// [about, type, reason, message, component]
json::Value shown_event(const json::Value& item);

}  // namespace berth::integration
