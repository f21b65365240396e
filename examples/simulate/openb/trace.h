// The openb trace as CSV files, plain or gzipped, and the order in which its pods arrive.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace openb {

struct Node {
  std::string name, model;
  std::int64_t cpu_milli = 0, memory_mib = 0, gpus = 0;
};

struct Pod {
  std::string name;
  std::string gpu_spec;  ///< Models that will do, a bar between; empty: any.
  std::int64_t cpu_milli = 0, memory_mib = 0, gpus = 0;
  std::int64_t gpu_milli = 0;  ///< Of each GPU; 0 without GPUs.
  [[nodiscard]] std::int64_t total_gpu_milli() const { return gpus * gpu_milli; }
};

struct Trace {
  std::string workload;        ///< The pods' file without folder and suffix.
  std::vector<Node> nodes;     ///< By name.
  std::vector<Pod> pods;       ///< By name.
  std::int64_t gpu_milli = 0;  ///< Of the nodes.
};

/// Columns are found by the names in the first line: of nodes sn, cpu_milli, memory_mib, gpu, model; of pods name, cpu_milli, memory_mib,
/// num_gpu, gpu_milli and, where there is one, gpu_spec. Others are left alone. The error names file and line.
berth::Result<Trace> read_trace(const std::string& nodes_file, const std::string& pods_file);

/// What the paper's simulator makes of a trace and a seed: all pods in random order, then drawn again until 130% of the GPUs are asked for
/// (or, where they ask for more, random ones left out), and a random order of the nodes, by which equals are told apart.
struct Arrivals {
  std::vector<std::size_t> pods;        ///< Places in Trace::pods.
  std::vector<std::int32_t> node_rank;  ///< By place in Trace::nodes: the lowest goes first.
};
Arrivals arrivals_of(const Trace& trace, std::int32_t seed);

}  // namespace openb
