// Containers of a fleet whose programs are run in earnest: what starts, what is to be stopped, how they end.
#include "node/simulated/fleet_state.h"

namespace berth::node::simulated {

/// Brings the programs in line with the containers: a new run of a container is a start, a run that is over a stop.
void Fleet::follow_programs(Pod& pod) {
  if (!options_.runs_programs) return;
  const PodSpec& spec = pod.sim.spec();
  for (std::size_t i = 0; i < spec.containers.size(); ++i) {
    const auto& role = pod.sim.behaviour().containers[i].role;
    if (!role) continue;
    const ContainerRecord& record = pod.sim.state().containers[i];
    const bool runs = !pod.is_gone && record.state.kind == ContainerState::Kind::kRunning && !pod.sim.is_stopping();
    const auto known = pod.programs.find(i);
    if (known != pod.programs.end() && (!runs || known->second.container_id != record.container_id)) {
      ProgramOrder stop = std::move(known->second);
      stop.is_start = false;
      pod.programs.erase(known);
      program_orders_.push_back(std::move(stop));
    }
    if (!runs || pod.programs.contains(i)) continue;
    ProgramOrder start{true, spec.ns, spec.name, spec.uid, i, spec.containers[i].name, record.container_id, *role};
    pod.programs.emplace(i, start);
    program_orders_.push_back(std::move(start));
  }
}

std::optional<ProgramOrder> Fleet::next_program() {
  if (program_orders_.empty()) return std::nullopt;
  ProgramOrder order = std::move(program_orders_.front());
  program_orders_.pop_front();
  return order;
}

void Fleet::program_wrote(const ProgramOrder& start, std::string_view text) {
  if (const auto pod = pods_.find(start.uid); pod != pods_.end()) pod->second->sim.add_output(start.container, start.container_id, text);
}

void Fleet::program_ended(const ProgramOrder& start, int exit_code, TimePoint now) {
  const auto found = pods_.find(start.uid);
  if (found == pods_.end()) return;
  const PodRef pod = found->second;
  pod->sim.end_program(start.container, start.container_id, exit_code, now);
  pod->is_dirty = true;
  touch(pod, now);
}

}  // namespace berth::node::simulated
