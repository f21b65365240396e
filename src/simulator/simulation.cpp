#include "simulator/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pools/catalogue.h"
#include "simulator/invariants.h"
#include "simulator/recording.h"
#include "simulator/replay.h"
#include "simulator/story.h"
#include "simulator/usage.h"

namespace berth::simulator {
namespace {

/// Before the scenario's time begins: nodes become ready, controllers fill their caches.
constexpr Duration kWarmUp = std::chrono::minutes(2);
constexpr std::size_t kMostHappenings = 200'000;

Duration sample_interval(const Scenario& scenario) {
  if (scenario.record.every > Duration(0)) return scenario.record.every;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(scenario.duration / 288).count();
  return std::chrono::seconds(seconds < 60 ? std::max<std::int64_t>(seconds, 10) : seconds / 60 * 60);
}

/// When samples are taken, the end last.
std::vector<Duration> sample_times(const Scenario& scenario, const Checker& checker) {
  std::vector<Duration> times = checker.wanted_times();
  for (Duration at{}; at < scenario.duration; at += sample_interval(scenario)) times.push_back(at);
  times.push_back(scenario.duration);
  std::ranges::sort(times);
  times.erase(std::ranges::unique(times).begin(), times.end());
  return times;
}

std::map<std::string, double> prices_of(const Scenario& scenario) {
  std::map<std::string, double> prices = scenario.prices;
  const auto add = [&](const NodeSet& set) {
    if (set.price_per_hour > 0) prices[set.instance_type] = set.price_per_hour;
  };
  for (const NodeSet& set : scenario.nodes) add(set);
  for (const NodeGroup& group : scenario.groups) add(group.nodes);
  for (const PlannedChange& change : scenario.changes) add(change.node_set);
  if (scenario.pools)
    for (const pools::InstanceType& type : scenario.pools->instance_types->types)
      for (const pools::Offering& one : type.offerings) prices[fmt::format("{}/{}/{}", type.name, one.zone, one.capacity_type)] = one.price;
  return prices;
}

ClusterOptions cluster_options(const Scenario& scenario) {
  ClusterOptions out;
  out.start = scenario.start - kWarmUp;
  out.seed = scenario.seed + 1;  // 0 means the machine's chance to the API server.
  out.scheduler = scenario.scheduler;
  out.controllers = scenario.controllers;
  out.fleet = scenario.fleet;
  out.autoscaler = scenario.autoscaler;
  out.descheduler = scenario.descheduler;
  out.pools = scenario.pools;
  out.gangs = scenario.gangs;
  return out;
}

void sum_up(Outcome& out, const Census& census, Cluster& cluster, const Story& story) {
  std::vector<float> waits = census.waits();
  std::ranges::sort(waits);
  out.waits = static_cast<std::int64_t>(waits.size());
  if (!waits.empty()) {
    double sum = 0;
    for (const float wait : waits) sum += wait;
    out.wait_mean = sum / static_cast<double>(waits.size());
    out.wait_p50 = waits[waits.size() / 2];
    out.wait_p99 = waits[std::min(waits.size() - 1, waits.size() * 99 / 100)];
    out.wait_max = waits.back();
  }
  for (const char* component : {"descheduler", "autoscaler", "pools"})
    out.component_evictions[component] = cluster.link(component).evictions();
  out.refusals = story.refusals();
  out.arrivals = story.arrivals();
}

/// What holds in every cluster that starts empty, whatever the scenario asserts.
void check_always(const Scenario& scenario, const Census& census, const Sample& sample, Outcome& out) {
  if (!scenario.initial.empty() || sample.overcommitted_nodes == 0) return;
  for (const CheckFailure& failure : out.failures)
    if (failure.name == "no node has more requested than it has") return;
  out.failures.push_back({"no node has more requested than it has", sample.at, census.overcommitted()});
}

}  // namespace

// Longer than a screen: the life of a run, in its order.
Result<Outcome> run(const Scenario& scenario, const RunOptions& options) {
  Outcome out;
  out.title = scenario.title;
  out.currency = scenario.currency;
  out.checks = scenario.checks.size();
  out.seed = scenario.seed;
  out.duration = scenario.duration;
  out.start = scenario.start;
  auto replay =
      scenario.replay.empty() ? Result<std::unique_ptr<Replay>>(nullptr) : Replay::load(scenario.replay, scenario.replays_workloads);
  if (!replay) return std::unexpected(replay.error());
  auto created = Cluster::create(cluster_options(scenario));
  if (!created) return std::unexpected(created.error());
  Cluster& cluster = **created;
  if (options.writes_heartbeats) cluster.write_heartbeats();
  if (options.on_cluster) options.on_cluster(cluster);
  Census census(cluster.loop(), scenario.start, prices_of(scenario));
  Usage usage(census, scenario.start, scenario.workloads);
  usage.connect(cluster);
  cluster.metrics_handler = &usage;
  const auto tell = [&](Happening happening) {
    // Faults and changes begin and end.
    if (happening.kind == "fault" || happening.kind == "change") census.trouble_from_outside();
    if (out.happenings.size() < kMostHappenings)
      out.happenings.push_back(std::move(happening));
    else
      ++out.dropped_happenings;
  };
  Story story(scenario, cluster, [&](std::string kind, std::string text) { tell({story.now(), std::move(kind), std::move(text)}); });
  Gangs gangs(story, scenario.gangs);
  story.gangs = &gangs;
  census.on_pod_stage = [&](PodStage stage, std::string_view ns, std::string_view name, const Amounts& requests) {
    gangs.see(stage, ns, name, requests);
  };
  story.on_change = [&] { census.change_from_outside(); };
  if (scenario.record.events) census.on_happening = tell;
  census.on_pod_over = [&](std::string_view ns, std::string_view name) { story.pod_is_over(ns, name); };
  std::unique_ptr<RecordingWriter> recording;
  if (!options.recording_file.empty()) {
    auto opened = RecordingWriter::open(options.recording_file, scenario.start, "berth simulate " + scenario.title);
    if (!opened) return std::unexpected(opened.error());
    recording = std::move(*opened);
  }
  RecordingTap tap(cluster.loop(), scenario.start, recording.get());
  for (const std::string_view name : kLinkedComponents) cluster.link(name).on_event = [&](std::string_view event) { tap.add_event(event); };
  cluster.on_server = [&](apiserver::ObjectCache* cache) {
    census.attach(cache);
    if (recording) tap.attach(cache);
  };

  if (auto started = cluster.start("server"); !started) return std::unexpected(started.error());
  story.set_up();
  for (std::string& note : load_dump(scenario.initial, story)) out.notes.push_back(std::move(note));
  if (*replay)
    for (std::string& note : (*replay)->set_up(story)) out.notes.push_back(std::move(note));
  Checker checker(scenario.checks);
  std::optional<Invariants> invariants;
  if (checker.wants_invariants())
    invariants.emplace(cluster, options.judged_eviction_rate.value_or(scenario.controllers.node_lifecycle.eviction_rate));
  if (auto started = cluster.start_components(); !started) return std::unexpected(started.error());
  cluster.loop().run_until(scenario.start);
  story.begin();
  if (*replay) (*replay)->begin(story);

  for (const Duration at : sample_times(scenario, checker)) {
    cluster.loop().run_until(scenario.start + at);
    Sample sample = census.sample();
    sample.used = usage.total();
    json::Value known = sample.to_json();
    if (invariants) known.as_object()["broken"] = invariants->now();
    checker.look(known, at, at == scenario.duration);
    check_always(scenario, census, sample, out);
    if (options.on_progress) options.on_progress({at, scenario.duration, sample.running, sample.pending, sample.nodes});
    out.samples.push_back(std::move(sample));
  }
  out.failures.insert(out.failures.end(), checker.failures().begin(), checker.failures().end());
  sum_up(out, census, cluster, story);
  out.gangs = gangs.counts();
  for (const std::string_view name : kLinkedComponents) cluster.link(name).on_event = nullptr;
  census.on_happening = nullptr;
  cluster.on_server = nullptr;
  census.attach(nullptr);
  tap.attach(nullptr);
  if (recording)
    if (auto closed = recording->close(); !closed) return std::unexpected(closed.error());
  return out;
}

namespace {

/// What gangs' users go by; `gpus` and `cpus`: in thousandths, on average.
void add_gangs(const Outcome& outcome, double gpus, double cpus, std::vector<Figure>& out) {
  if (outcome.gangs.empty()) return;
  GangCount all;
  for (const auto& [queue, count] : outcome.gangs) all.add(count);
  const Resource counted = all.counted();
  const double capacity = (counted == kGpu ? gpus : cpus) * static_cast<double>(outcome.duration.count()) / 1e6;
  const std::string what = counted == kGpu ? "gpu" : "cpu";
  out.insert(out.end(), {{"gangs started", "", static_cast<double>(all.started), false},
                         {"gangs finished", "", static_cast<double>(all.finished), false},
                         {"gangs that came anew", "", static_cast<double>(all.anew), true},
                         {"wait of a gang, mean", "s", all.wait_mean(), true},
                         {"wait of a gang, median", "s", all.wait_at(0.5), true},
                         {"wait of a gang, 99%", "s", all.wait_at(0.99), true},
                         {what + " at work in gangs", "%", capacity > 0 ? 100 * all.worked[counted] / capacity : 0, false},
                         {"held for partners", "%", all.held_percent(), true}});
}

}  // namespace

std::vector<Figure> figures_of(const Outcome& outcome) {
  // Means over time: samples are not all of one length.
  const auto mean = [&](auto value) {
    double sum = 0, length = 0;
    for (std::size_t i = 1; i < outcome.samples.size(); ++i) {
      const auto span = static_cast<double>((outcome.samples[i].at - outcome.samples[i - 1].at).count());
      sum += span * (value(outcome.samples[i - 1]) + value(outcome.samples[i])) / 2;
      length += span;
    }
    return length > 0 ? sum / length : 0;
  };
  const auto share_of = [](const Amounts& part, const Amounts& whole, Resource resource) {
    return whole[resource] > 0 ? 100.0 * static_cast<double>(part[resource]) / static_cast<double>(whole[resource]) : 0.0;
  };
  static const Sample kNone;
  const Sample& last = outcome.samples.empty() ? kNone : outcome.samples.back();
  std::int64_t evictions = 0, peak_nodes = 0, peak_pending = 0;
  for (const auto& [cause, count] : last.evictions) evictions += count;
  bool has_gpu = false;
  for (const Sample& sample : outcome.samples) {
    peak_nodes = std::max(peak_nodes, sample.nodes);
    peak_pending = std::max(peak_pending, sample.pending);
    has_gpu |= sample.allocatable[kGpu] > 0;
  }
  std::vector<Figure> out = {
      {"pods created", "", static_cast<double>(last.created), false},
      {"pods placed", "", static_cast<double>(last.bound), false},
      {"pods finished", "", static_cast<double>(last.finished), false},
      {"pending at the end", "", static_cast<double>(last.pending), true},
      {"pending at most", "", static_cast<double>(peak_pending), true},
      {"pending on average", "", mean([](const Sample& s) { return static_cast<double>(s.pending); }), true},
      {"wait for a node, mean", "s", outcome.wait_mean, true},
      {"wait for a node, median", "s", outcome.wait_p50, true},
      {"wait for a node, 99%", "s", outcome.wait_p99, true},
      {"wait for a node, longest", "s", outcome.wait_max, true},
      {"cpu requested", "%", mean([&](const Sample& s) { return share_of(s.requested, s.allocatable, kCpu); }), false},
      {"memory requested", "%", mean([&](const Sample& s) { return share_of(s.requested, s.allocatable, kMemory); }), false},
      {"cpu used", "%", mean([&](const Sample& s) { return share_of(s.used, s.allocatable, kCpu); }), false},
      {"evictions", "", static_cast<double>(evictions), true},
      {"nodes on average", "", mean([](const Sample& s) { return static_cast<double>(s.nodes); }), true},
      {"nodes at most", "", static_cast<double>(peak_nodes), true},
      {"cost", outcome.currency, last.cost, true}};
  add_gangs(outcome, mean([&](const Sample& s) { return static_cast<double>(s.allocatable[kGpu]); }),
            mean([&](const Sample& s) { return static_cast<double>(s.allocatable[kCpu]); }), out);
  if (has_gpu)
    out.insert(out.begin() + 12,
               {"gpu requested", "%", mean([&](const Sample& s) { return share_of(s.requested, s.allocatable, kGpu); }), false});
  return out;
}

}  // namespace berth::simulator
