// /debug/api_priority_and_fairness (apiserver/pkg/util/flowcontrol/apf_controller_debug.go).
#include <fmt/format.h>

#include "apiserver/flow/controller.h"
#include "base/mutex.h"

namespace berth::apiserver::flow {
namespace {

using Row = std::vector<std::string>;

/// Cells divided by ",\t", the tabs widened to columns of at least eight.
std::string tabulated(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max({widths[i], row[i].size() + 2, std::size_t{8}});
  }
  std::string out;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      const std::string cell = is_last ? row[i] : row[i] + ",";
      out += cell;
      if (!is_last) out.append(widths[i] - cell.size(), ' ');
    }
    out += '\n';
  }
  return out;
}

std::string rfc3339(std::chrono::steady_clock::time_point when) {
  const auto since = std::chrono::steady_clock::now() - when;
  return format_rfc3339_micro(SystemClock().now() - std::chrono::duration_cast<Duration>(since));
}

std::vector<std::shared_ptr<Level>> by_level_name(std::vector<std::shared_ptr<Level>> levels) {
  std::ranges::sort(levels, {}, [](const auto& level) { return level->name; });
  return levels;
}

}  // namespace

std::string Controller::dump_priority_levels() const {
  std::vector<Row> rows{{"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
                         "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"}};
  const MutexLock lock(mutex_);
  for (const auto& level : by_level_name(levels_)) {
    const bool is_idle = level->queue.empty() && level->executing == 0;
    rows.push_back({level->name, std::to_string(level->queue.active().size()), is_idle ? "true" : "false",
                    level->is_going ? "true" : "false", std::to_string(level->queue.size()), std::to_string(level->executing),
                    std::to_string(level->dispatched_count), std::to_string(level->rejected_count), std::to_string(level->late_count),
                    "0"});
  }
  return tabulated(rows);
}

std::string Controller::dump_queues() const {
  std::vector<Row> rows{{"PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
                         "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"}};
  const MutexLock lock(mutex_);
  for (const auto& level : by_level_name(levels_)) {
    for (const auto& [index, queue] : level->queue.active()) {
      const auto seats = std::to_string(queue.seats);
      rows.push_back({level->name, std::to_string(index), std::to_string(queue.entries.size()), "0", "0",
                      fmt::format("{:.8f}ss", queue.entries.front().start / 1e6), seats, seats, fmt::format("{:.8f}ss", queue.work / 1e6)});
    }
  }
  return tabulated(rows);
}

std::string Controller::dump_requests(bool with_details) const {
  std::vector<Row> rows{{"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
                         "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"}};
  const Row details{"UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"};
  if (with_details) rows[0].insert(rows[0].end(), details.begin(), details.end());
  const MutexLock lock(mutex_);
  for (const auto& level : by_level_name(levels_)) {
    for (const auto& [index, queue] : level->queue.active()) {
      int place = 0;
      for (const auto& [start, waiting] : queue.entries) {
        if (waiting.request == nullptr) continue;
        const Work& work = *waiting.request;
        Row row{level->name,
                work.where.schema->config.name,
                std::to_string(index),
                std::to_string(place++),
                work.where.flow,
                rfc3339(waiting.since),
                std::to_string(waiting.seats),
                "0",
                "0s",
                "0001-01-01T00:00:00Z"};
        if (with_details) {
          const auto asked = work.describe ? work.describe() : Description();
          for (const auto& cell :
               {asked.user, asked.verb, asked.path, asked.ns, asked.name, asked.api_version, asked.resource, asked.subresource})
            row.push_back(cell);
        }
        rows.push_back(std::move(row));
      }
    }
  }
  return tabulated(rows);
}

}  // namespace berth::apiserver::flow
