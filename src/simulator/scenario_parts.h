// The parts of a scenario, a function each; all problems are the reader's.
#pragma once
#include "simulator/scenario_values.h"

namespace berth::simulator {

/// What files and names a scenario's parts are read with.
struct PartContext {
  std::string directory;
  Duration duration{};
  std::vector<std::string>* notes = nullptr;
};

/// Says so when all of it is after the scenario's end: it is no mistake in a scenario that is made shorter for a try.
void note_what_never_comes(const config::Reader& at, const Arrivals& when, const PartContext& context);
NodeSet read_node_set(const config::Reader& at, const PartContext& context);
NodeGroup read_node_group(const config::Reader& at, const PartContext& context);
Workload read_workload(const config::Reader& at, const PartContext& context);
Fault read_fault(const config::Reader& at, const PartContext& context);
PlannedChange read_change(const config::Reader& at, const PartContext& context);
Check read_check(const config::Reader& at, const PartContext& context);
/// A file's name, or the document itself.
std::optional<scheduler::config::SchedulerConfig> read_scheduler(const config::Reader& at, const PartContext& context);
std::shared_ptr<const descheduler::Policy> read_descheduler_policy(const config::Reader& at, const PartContext& context);
/// `trace:` of a workload: a CSV file with its columns and units.
std::vector<TraceRow> read_trace(const config::Reader& at, const PartContext& context);

}  // namespace berth::simulator
