// Replays the openb trace on berth's engine with the plugin GpuShare (examples/plugin), as the artifact of "Beware of Fragmentation"
// (USENIX ATC '23) does on its simulator, and prints the columns of its table: GPUs given away in percent of all, when the pods that came
// asked for 90 to 130%.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <map>
#include <thread>

#include "berth/plugin.h"
#include "placement/trial.h"
#include "tests/support/stored_pods.h"
#include "trace.h"

namespace openb {
namespace {

using berth::Result;
using berth::model::NodeView;
using berth::model::PodView;
using namespace berth::placement;
namespace json = berth::json;

/// The paper's six in its order, and our own.
constexpr const char* kPolicies[] = {"Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD", "CuttingStock"};
constexpr int kFirstPercent = 90, kLastPercent = 130, kStep = 10, kColumns = (kLastPercent - kFirstPercent) / kStep + 1;
constexpr std::int32_t kFirstSeed = 42;
/// Chance is part of the policy Random: a seed's figure is the mean of so many runs.
constexpr int kRandomRuns = 5;
using Row = std::array<double, kColumns>;

/// The pods that usually come: of the trace's kinds the most frequent ones that make up 95%.
json::Value typical_pods(const Trace& trace) {
  constexpr double kPercent = 95;
  using Kind = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string>;  // CPU, thousandths, GPUs, models.
  std::map<Kind, std::int64_t> counts;
  for (const Pod& pod : trace.pods) ++counts[{pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.gpu_spec}];
  std::vector<std::pair<std::int64_t, Kind>> kinds;
  for (const auto& [kind, count] : counts) kinds.emplace_back(count, kind);
  std::ranges::sort(kinds, std::greater<>());
  const auto all = static_cast<double>(trace.pods.size());
  double covered = 0;
  std::size_t used = 0;
  while (covered < kPercent * all / 100) covered += static_cast<double>(kinds[used++].first);
  json::Array out;
  for (std::size_t i = 0; i < used; ++i) {
    const auto& [cpu, milli, gpus, models] = kinds[i].second;
    const double popularity = static_cast<double>(kinds[i].first) / all;
    json::Array list;
    for (std::size_t at = 0; at < models.size();) {
      const std::size_t end = std::min(models.find('|', at), models.size());
      if (end > at) list.emplace_back(models.substr(at, end - at));
      at = end + 1;
    }
    out.push_back(json::Object{{"cpu", fmt::format("{}m", cpu)},
                               {"gpuMilli", milli},
                               {"gpuCount", gpus},
                               {"gpuModels", std::move(list)},
                               {"popularity", used < kinds.size() ? popularity / (covered / all) : popularity}});
  }
  return out;
}

/// berth's default profile, GpuShare scoring alone.
Result<FrameworkPtr> framework_for(const std::string& policy, const json::Value& typical, std::uint64_t seed) {
  Profile profile = default_profile(Era::k136);
  profile.pre_score.clear();
  profile.post_filter.clear();
  profile.pre_filter.push_back({"GpuShare", 0});
  profile.filter.push_back({"GpuShare", 0});
  profile.score = {{"GpuShare", 1}};
  profile.reserve.push_back({"GpuShare", 0});
  json::Object args = {{"policy", policy}, {"seed", static_cast<std::int64_t>(seed)}};
  if (policy != "Random" && policy != "DotProd" && policy != "GpuClustering" && policy != "GpuPacking" && policy != "BestFit")
    args["typicalPods"] = typical;
  profile.args.own["GpuShare"] = std::move(args);
  return Framework::create(std::move(profile));
}

berth::model::NodeViewPtr node_view(const Node& node, std::int32_t rank) {
  const std::string name = fmt::format("{:04}-{}", rank, node.name);
  json::Object labels = {{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}};
  if (!node.model.empty()) labels["alibabacloud.com/gpu-card-model"] = node.model;
  const json::Object amounts = {{"cpu", fmt::format("{}m", node.cpu_milli)},
                                {"memory", fmt::format("{}Mi", node.memory_mib)},
                                {"pods", "1001"},
                                {"alibabacloud.com/gpu-count", fmt::format("{}", node.gpus)}};
  return std::make_shared<NodeView>(NodeView::parse(json::Object{{"kind", "Node"},
                                                                 {"metadata", {{"name", name}, {"labels", labels}}},
                                                                 {"status", {{"allocatable", amounts}, {"capacity", amounts}}}}));
}

PodView pod_view(const Pod& pod) {
  json::Object annotations;
  if (pod.gpus > 0) {
    annotations["alibabacloud.com/gpu-count"] = fmt::format("{}", pod.gpus);
    annotations["alibabacloud.com/gpu-milli"] = fmt::format("{}", pod.gpu_milli);
    if (!pod.gpu_spec.empty()) annotations["alibabacloud.com/gpu-card-model"] = pod.gpu_spec;
  }
  const json::Object requests = {{"cpu", fmt::format("{}m", pod.cpu_milli)}, {"memory", fmt::format("{}Mi", pod.memory_mib)}};
  const json::Object container = {
      {"name", "main"}, {"image", "tensorflow:latest"}, {"resources", {{"requests", requests}, {"limits", requests}}}};
  return PodView::parse(json::Object{{"kind", "Pod"},
                                     {"metadata", {{"name", pod.name}, {"namespace", "default"}, {"annotations", annotations}}},
                                     {"spec", {{"schedulerName", "default-scheduler"}, {"containers", json::Array{container}}}}});
}

/// The mean of what was given away while the pods that had come asked for about so many percent.
class Curve {
 public:
  explicit Curve(std::int64_t gpu_milli) : whole_(static_cast<double>(gpu_milli)), sums_(kLastPercent + 2) {}
  void add(std::int64_t arrived, std::int64_t given) {
    const auto percent = static_cast<std::size_t>(std::nearbyint(static_cast<double>(arrived) * 100 / whole_));
    if (percent >= sums_.size()) return;
    sums_[percent].first += std::nearbyint(static_cast<double>(given) * 10000 / whole_) / 100;
    ++sums_[percent].second;
  }
  [[nodiscard]] Row row() const {
    Row out{};
    for (int i = 0; i < kColumns; ++i) {
      const auto at = static_cast<std::size_t>(kFirstPercent + i * kStep);
      std::pair<double, int> found = sums_[at];
      // A trace of few pods may jump over it: then what its neighbours have, or else what there was before.
      if (found.second == 0) found = {sums_[at - 1].first + sums_[at + 1].first, sums_[at - 1].second + sums_[at + 1].second};
      for (std::size_t before = at; found.second == 0 && before > 0;) found = sums_[--before];
      out[static_cast<std::size_t>(i)] = found.second == 0 ? std::nan("") : std::nearbyint(found.first / found.second * 100) / 100;
    }
    return out;
  }

 private:
  double whole_;
  std::vector<std::pair<double, int>> sums_;
};

struct Run {
  std::string policy;
  std::int32_t seed = kFirstSeed;
  int repetition = 0;
};

Result<Row> replay(const Trace& trace, const json::Value& typical, const Run& run) {
  const auto chance = static_cast<std::uint64_t>(run.seed) * 1000 + static_cast<std::uint64_t>(run.repetition);
  const auto framework = framework_for(run.policy, typical, chance);
  if (!framework) return std::unexpected(framework.error());
  const Arrivals arrivals = arrivals_of(trace, run.seed);
  berth::testing::StoredPods stored(static_cast<std::uint64_t>(run.seed));
  if (!stored.error().empty()) return berth::invalid(stored.error());
  Cluster cluster(Era::k136);
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) cluster.upsert_node(node_view(trace.nodes[i], arrivals.node_rank[i]));
  TrialOptions options;
  options.engine.seed = chance;
  options.engine.tie_break = run.policy == "Random" ? EngineOptions::TieBreak::kRandom : EngineOptions::TieBreak::kFirstByName;
  Trial trial(cluster, Profiles(*framework), options);
  Curve curve(trace.gpu_milli);
  std::int64_t arrived = 0, given = 0;
  for (std::size_t i = 0; i < arrivals.pods.size(); ++i) {
    const Pod& pod = trace.pods[arrivals.pods[i]];
    const auto view = std::make_shared<PodView>(stored.bare(pod_view(pod), fmt::format("{}-{}", pod.name, i)));
    const Placement placed = trial.place(PodInfo::make(view, Era::k136));
    if (placed.status.is_error()) return berth::invalid(fmt::format("{}: {}", pod.name, placed.status.message()));
    arrived += pod.total_gpu_milli();
    if (placed.is_placed()) given += pod.total_gpu_milli();
    curve.add(arrived, given);
  }
  return curve.row();
}

/// All runs, by as many threads as there are cores; each by itself, so that their order is no matter.
Result<std::vector<Row>> replay_all(const Trace& trace, const std::vector<Run>& runs) {
  const json::Value typical = typical_pods(trace);
  std::vector<Result<Row>> rows(runs.size(), Row{});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < runs.size(); at = next++) rows[at] = replay(trace, typical, runs[at]);
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), runs.size()); ++i)
    threads.emplace_back(work);
  work();
  threads.clear();
  std::vector<Row> out;
  for (const auto& row : rows) {
    if (!row) return std::unexpected(row.error());
    out.push_back(*row);
  }
  return out;
}

void print(const Trace& trace, const std::vector<std::string>& policies, const std::vector<Run>& runs, const std::vector<Row>& rows,
           int seeds) {
  fmt::print("workload,policy,runs");
  for (int i = 0; i < kColumns; ++i) fmt::print(",allocated_percent_at_{}_percent_arrived", kFirstPercent + i * kStep);
  fmt::print("\n");
  for (std::size_t policy = 0; policy < policies.size(); ++policy) {
    Row sums{};
    int count = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].policy != policies[policy]) continue;
      ++count;
      for (std::size_t column = 0; column < sums.size(); ++column) sums[column] += rows[i][column];
    }
    const auto number = std::ranges::find(kPolicies, policies[policy]) - std::begin(kPolicies);
    fmt::print("{},{:02}-{},{}", trace.workload, number + 1, policies[policy], seeds);
    for (const double sum : sums) {
      const double mean = std::nearbyint(sum / count * 100) / 100;
      fmt::print("{}", std::isnan(mean) ? std::string(",") : fmt::format(",{}", mean));
    }
    fmt::print("\n");
  }
}

int run(int argc, char** argv) {
  CLI::App app(
      "Replays a GPU trace (openb) under the policies of \"Beware of Fragmentation\", USENIX ATC '23, and prints the GPUs given away in "
      "percent "
      "of all, when the pods that came asked for 90 to 130% of them",
      "examples/simulate/openb/run");
  std::string nodes_file, pods_file;
  int seeds = 10;
  std::vector<std::string> policies;
  app.add_option("NODES", nodes_file, "nodes: sn,cpu_milli,memory_mib,gpu,model (.csv or .csv.gz)")->required();
  app.add_option("PODS", pods_file, "pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec] (.csv or .csv.gz)")->required();
  app.add_option("--seeds", seeds, "orders of arrival: seeds 42, 43 and so on")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--policy", policies, "only these, and others that GpuShare knows")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  if (policies.empty()) policies.assign(std::begin(kPolicies), std::end(kPolicies));
  const auto trace = read_trace(nodes_file, pods_file);
  if (!trace) {
    fmt::print(stderr, "error: {}\n", trace.error().message);
    return 2;
  }
  if (!berth::plugin::register_linked()) return 2;
  std::vector<Run> runs;
  for (const std::string& policy : policies)
    for (std::int32_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed)
      for (int i = 0; i < (policy == "Random" ? kRandomRuns : 1); ++i) runs.push_back({policy, seed, i});
  const auto rows = replay_all(*trace, runs);
  if (!rows) {
    fmt::print(stderr, "error: {}\n", rows.error().message);
    return 2;
  }
  print(*trace, policies, runs, *rows, seeds);
  return 0;
}

}  // namespace
}  // namespace openb

int main(int argc, char** argv) { return openb::run(argc, argv); }
