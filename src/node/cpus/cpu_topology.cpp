#include "node/cpus/cpu_topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

namespace berth::node::cpus {
namespace {

constexpr int kMostCpus = 65536;

std::optional<std::string> line_of(const std::string& path) {
  std::ifstream in(path);
  std::string out;
  if (!std::getline(in, out)) return std::nullopt;
  return out;
}

std::optional<int> number_in(std::string_view text) {
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0 || out >= kMostCpus) return std::nullopt;
  return out;
}

/// The NUMA node that the processor's folder links to; 0 where the kernel knows of none.
int numa_node_of(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node"))
      if (const auto number = number_in(std::string_view(name).substr(4))) return *number;
  }
  return 0;
}

}  // namespace

Result<CpuSet> parse_cpu_list(std::string_view text) {
  CpuSet out;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t dash = part.find('-');
    const auto first = number_in(part.substr(0, dash)), last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *first > *last || (comma != std::string_view::npos && rest.empty()))
      return invalid(fmt::format("\"{}\": a list of processors such as 0-3,8 is wanted", text));
    for (int cpu = *first; cpu <= *last; ++cpu) out.insert(cpu);
  }
  return out;
}

std::string cpu_list(const CpuSet& cpus) {
  std::vector<std::string> parts;
  for (auto at = cpus.begin(); at != cpus.end();) {
    const int first = *at;
    int last = first;
    while (++at != cpus.end() && *at == last + 1) last = *at;
    parts.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

CpuSet CpuTopology::all() const {
  CpuSet out;
  for (const Cpu& one : cpus) out.insert(one.id);
  return out;
}

int CpuTopology::threads_per_core() const {
  if (cpus.empty()) return 1;
  return static_cast<int>(std::ranges::count(cpus, cpus.front().core, &Cpu::core));
}

Result<CpuTopology> read_cpu_topology(const std::string& root) {
  const std::string online = root + "/cpu/online";
  const auto text = line_of(online);
  const auto ids = text ? parse_cpu_list(*text) : Result<CpuSet>(fail(ErrorCode::kUnavailable, "it cannot be read"));
  if (!ids) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", online, ids.error().message));
  CpuTopology out;
  for (const int id : *ids) {
    const std::string folder = fmt::format("{}/cpu/cpu{}", root, id);
    Cpu cpu{id, id, 0, numa_node_of(folder)};
    if (const auto siblings = parse_cpu_list(line_of(folder + "/topology/thread_siblings_list").value_or(""));
        siblings && !siblings->empty())
      cpu.core = *siblings->begin();
    cpu.socket = number_in(line_of(folder + "/topology/physical_package_id").value_or("")).value_or(0);
    out.cpus.push_back(cpu);
  }
  if (out.cpus.empty()) return fail(ErrorCode::kUnavailable, online + ": no processor is online");
  return out;
}

}  // namespace berth::node::cpus
