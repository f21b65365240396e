#include "node/cpus/cpu_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "node/numa/shared.h"

namespace berth::node::cpus {
namespace {

constexpr std::string_view kProcessors = "processors";

std::optional<std::string> line_of(const std::string& path) {
  std::ifstream in(path);
  std::string out;
  if (!std::getline(in, out)) return std::nullopt;
  return out;
}

/// The NUMA node that the processor's folder links to; 0 where the kernel knows of none.
int numa_node_of(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node"))
      if (const auto number = numa::number_in(std::string_view(name).substr(4)); number && *number < numa::kMostNodes) return *number;
  }
  return 0;
}

}  // namespace

CpuSet CpuTopology::all() const {
  CpuSet out;
  for (const Cpu& one : cpus) out.insert(one.id);
  return out;
}

std::size_t CpuTopology::count(int Cpu::*level) const {
  std::set<int> out;
  for (const Cpu& one : cpus) out.insert(one.*level);
  return out.size();
}

int CpuTopology::threads_per_core() const {
  if (cpus.empty()) return 1;
  return static_cast<int>(std::ranges::count(cpus, cpus.front().core, &Cpu::core));
}

Result<CpuTopology> read_cpu_topology(const std::string& root) {
  const std::string online = root + "/cpu/online";
  const auto text = line_of(online);
  const auto ids = text ? numa::parse_number_list(*text, kProcessors) : Result<CpuSet>(fail(ErrorCode::kUnavailable, "it cannot be read"));
  if (!ids) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", online, ids.error().message));
  CpuTopology out;
  for (const int id : *ids) {
    const std::string folder = fmt::format("{}/cpu/cpu{}", root, id);
    Cpu cpu{id, id, 0, numa_node_of(folder), id};
    if (const auto siblings = numa::parse_number_list(line_of(folder + "/topology/thread_siblings_list").value_or(""), kProcessors);
        siblings && !siblings->empty())
      cpu.core = *siblings->begin();
    if (const auto sharing = numa::parse_number_list(line_of(folder + "/cache/index3/shared_cpu_list").value_or(""), kProcessors);
        sharing && !sharing->empty())
      cpu.cache = *sharing->begin();
    cpu.socket = numa::number_in(line_of(folder + "/topology/physical_package_id").value_or("")).value_or(0);
    out.cpus.push_back(cpu);
  }
  if (out.cpus.empty()) return fail(ErrorCode::kUnavailable, online + ": no processor is online");
  return out;
}

}  // namespace berth::node::cpus
