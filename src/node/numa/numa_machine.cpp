#include "node/numa/numa_machine.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "node/numa/shared.h"

namespace berth::node::numa {
namespace {

std::string first_line_of(const std::string& path) {
  std::ifstream in(path);
  std::string out;
  std::getline(in, out);
  return out;
}

std::optional<std::int64_t> amount_in(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end == text.data() || out < 0) return std::nullopt;
  return out;
}

/// "Node 0 MemTotal:       18704600 kB".
std::optional<std::int64_t> memory_of(const std::string& folder) {
  std::ifstream in(folder + "/meminfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("MemTotal:");
    if (at == std::string::npos) continue;
    std::string_view rest = std::string_view(line).substr(at + 9);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (const auto kib = amount_in(rest)) return *kib * 1024;
  }
  return std::nullopt;
}

/// As resources are named: hugepages-2Mi, hugepages-1Gi.
std::string huge_pages_name(std::int64_t kib) {
  const char* unit = "Ki";
  for (const char* larger : {"Mi", "Gi"}) {
    if (kib % 1024 != 0) break;
    kib /= 1024;
    unit = larger;
  }
  return fmt::format("hugepages-{}{}", kib, unit);
}

std::map<std::string, std::int64_t> huge_pages_of(const std::string& folder) {
  std::map<std::string, std::int64_t> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/hugepages", error)) {
    constexpr std::string_view kBegin = "hugepages-";
    const std::string name = entry.path().filename();
    if (!name.starts_with(kBegin)) continue;
    const auto kib = amount_in(std::string_view(name).substr(kBegin.size()));
    const auto pages = amount_in(first_line_of(entry.path().string() + "/nr_hugepages"));
    if (kib && pages) out[huge_pages_name(*kib)] = *kib * 1024 * *pages;
  }
  return out;
}

}  // namespace

Result<NumaMachine> read_numa_machine(const std::string& root, std::int64_t memory_bytes) {
  NumaMachine out;
  const std::string online = root + "/node/online";
  if (!std::filesystem::exists(online)) {
    out.memory[0]["memory"] = memory_bytes;
    return out;
  }
  const auto numbers = parse_number_list(first_line_of(online), "NUMA nodes");
  if (!numbers || numbers->empty()) return fail(ErrorCode::kUnavailable, fmt::format("{}: a list of NUMA nodes is wanted", online));
  if (*numbers->rbegin() >= kMostNodes)
    return fail(ErrorCode::kUnavailable, fmt::format("{}: NUMA nodes are numbered up to {} here", online, kMostNodes - 1));
  out.layout.nodes = 0;
  for (const int number : *numbers) {
    const std::string folder = fmt::format("{}/node/node{}", root, number);
    out.layout.nodes |= NodeSet{1} << number;
    std::istringstream distances(first_line_of(folder + "/distance"));
    for (std::int64_t one = 0; distances >> one;) out.layout.distances[number].push_back(one);
    const auto total = memory_of(folder);
    if (!total) return fail(ErrorCode::kUnavailable, fmt::format("{}/meminfo: MemTotal is wanted", folder));
    out.memory[number] = huge_pages_of(folder);
    std::int64_t rest = *total;
    for (const auto& [type, bytes] : out.memory[number]) rest -= bytes;
    out.memory[number]["memory"] = rest;
  }
  return out;
}

}  // namespace berth::node::numa
