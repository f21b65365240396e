#include "simulator/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace berth::simulator {
namespace {

double cut(double value) { return std::floor(value * 1e6 + 0.5) / 1e6; }

/// "12 s", "3m20s", "0.4 s".
std::string show_seconds(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  return format_go_duration(std::chrono::seconds(std::llround(seconds)));
}

/// Eight heights of a bar, as a line of the values' course.
std::string sparkline(const std::vector<double>& values, double top) {
  static constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t kWidth = 48;
  std::string out;
  const std::size_t width = std::min(kWidth, values.size());
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t from = i * values.size() / width, to = std::max(from + 1, (i + 1) * values.size() / width);
    double sum = 0;
    for (std::size_t k = from; k < to; ++k) sum += values[k];
    const double value = sum / static_cast<double>(to - from);
    const double height = top > 0 ? value / top * 7.999 : 0;
    out += kBars[static_cast<std::size_t>(std::clamp(height, 0.0, 7.0))];
  }
  return out;
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

template <typename Value>
void add_course(std::string& out, const Outcome& outcome, std::string_view name, std::string_view unit, Value value, double top = 0) {
  std::vector<double> values;
  for (const Sample& sample : outcome.samples) values.push_back(value(sample));
  if (values.empty()) return;
  const double most = *std::ranges::max_element(values);
  double sum = 0;
  for (const double one : values) sum += one;
  out +=
      fmt::format("  {:<18} {}  {:.0f}{} on average, {:.0f}{} at most, {:.0f}{} at the end\n", name,
                  sparkline(values, top > 0 ? top : most), sum / static_cast<double>(values.size()), unit, most, unit, values.back(), unit);
}

void add_counts(std::string& out, const char* title, const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (const auto& [name, count] : counts)
    if (count > 0) sorted.emplace_back(-count, name);
  if (sorted.empty()) return;
  std::ranges::sort(sorted);
  out += fmt::format("{}\n", title);
  for (const auto& [count, name] : sorted) out += fmt::format("  {:>8}  {}\n", -count, name);
}

std::string gang_row(std::string_view queue, const GangCount& count) {
  return fmt::format("  {:<20} {:>6} {:>8} {:>9} {:>5}  {:>9} {:>9} {:>9}  {:>8.1f}%\n", queue, count.arrived, count.started,
                     count.finished, count.anew, show_seconds(count.wait_mean()), show_seconds(count.wait_at(0.5)),
                     show_seconds(count.wait_at(0.99)), count.held_percent());
}

void add_gangs(std::string& out, const Outcome& outcome) {
  if (outcome.gangs.empty()) return;
  GangCount all;
  for (const auto& [queue, count] : outcome.gangs) all.add(count);
  out += fmt::format("  {:<20} {:>6} {:>8} {:>9} {:>5}  {:>9} {:>9} {:>9}  {:>9}\n", "Gangs", "came", "started", "finished", "anew",
                     "wait:mean", "median", "99%", all.counted() == kGpu ? "idle GPUs" : "idle CPU");
  for (const auto& [queue, count] : outcome.gangs) out += gang_row(queue, count);
  if (outcome.gangs.size() > 1) out += gang_row("all", all);
  out += "  (idle: of what gangs held, while partners were missing)\n\n";
}

void add_happenings(std::string& out, const Outcome& outcome) {
  constexpr std::size_t kMost = 24;
  std::vector<const Happening*> told;
  for (const Happening& one : outcome.happenings)
    if (one.kind == "fault" || one.kind == "change") told.push_back(&one);
  if (told.empty()) return;
  out += "What happened\n";
  for (std::size_t i = 0; i < std::min(told.size(), kMost); ++i) out += fmt::format("  {:>9}  {}\n", show_time(told[i]->at), told[i]->text);
  if (told.size() > kMost) out += fmt::format("  {:>9}  {} more (--json has all)\n", "…", told.size() - kMost);
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// Pod-minutes spent without a node, by reason.
std::map<std::string, std::int64_t> pending_minutes(const Outcome& outcome) {
  std::map<std::string, double> minutes;
  for (std::size_t i = 1; i < outcome.samples.size(); ++i) {
    const double span = static_cast<double>((outcome.samples[i].at - outcome.samples[i - 1].at).count()) / 6e7;
    for (const auto& [reason, count] : outcome.samples[i].pending_by_reason) minutes[reason] += span * static_cast<double>(count);
  }
  std::map<std::string, std::int64_t> out;
  for (const auto& [reason, amount] : minutes) out[reason] = std::llround(amount);
  return out;
}

/// Whose the cost is, the dearest first.
void add_costs(std::string& out, const Outcome& outcome, const char* title, const std::map<std::string, double>& costs) {
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<double, std::string>> sorted;
  double all = 0, rest = 0;
  for (const auto& [name, cost] : costs) sorted.emplace_back(cost, name), all += cost;
  if (sorted.empty()) return;
  std::ranges::sort(sorted, std::greater{});
  out += fmt::format("{}\n", title);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (i < kMost)
      out += fmt::format("  {:>12}  {:>3.0f}%  {}\n", money(sorted[i].first, outcome), 100 * sorted[i].first / all, sorted[i].second);
    else
      rest += sorted[i].first;
  if (rest > 0) out += fmt::format("  {:>12}  {:>3.0f}%  {} others\n", money(rest, outcome), 100 * rest / all, sorted.size() - kMost);
}

json::Object to_json(const std::map<std::string, GangCount>& gangs) {
  json::Object out;
  const auto hours = [](double amount) { return cut(amount / 3.6e6); };
  for (const auto& [queue, count] : gangs)
    out[queue] = json::Object{
        {"arrived", count.arrived},
        {"started", count.started},
        {"finished", count.finished},
        {"anew", count.anew},
        {"wait", json::Object{{"mean", cut(count.wait_mean())}, {"p50", cut(count.wait_at(0.5))}, {"p99", cut(count.wait_at(0.99))}}},
        {"waitingForPartnersPercent", cut(count.held_percent())},
        {"gpuHoursAtWork", hours(count.worked[kGpu])},
        {"cpuHoursAtWork", hours(count.worked[kCpu])}};
  return out;
}

}  // namespace

std::string show_time(Duration at) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at).count();
  const std::string clock = seconds % 60 != 0 ? fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
                                              : fmt::format("{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60);
  return seconds >= 86400 ? fmt::format("{}d {}", seconds / 86400, clock) : clock;
}

std::string money(double amount, const Outcome& outcome) {
  return fmt::format("{:.2f} {}", amount, outcome.currency.empty() ? "units" : outcome.currency);
}

std::vector<std::string> verdict_of(const Outcome& outcome) {
  std::vector<std::string> out;
  std::set<std::string> broken;
  for (const CheckFailure& failure : outcome.failures) broken.insert(failure.name);
  std::int64_t refused = 0;
  for (const auto& [message, count] : outcome.refusals) refused += count;
  std::string failed;
  if (!broken.empty()) failed = counted(static_cast<std::int64_t>(broken.size()), "check does not hold", "checks do not hold");
  if (refused > 0) failed += (failed.empty() ? "" : ", ") + counted(refused, "object was refused", "objects were refused");
  if (!failed.empty())
    out.push_back(failed + ".");
  else if (outcome.checks > 0)
    out.push_back(outcome.checks == 1 ? "The check holds." : fmt::format("All {} checks hold.", outcome.checks));
  const Sample last = outcome.samples.empty() ? Sample{} : outcome.samples.back();
  out.push_back(last.pending == 0 ? "At the end every pod has a node."
                                  : counted(last.pending, "pod has no node at the end.", "pods have no node at the end."));
  if (outcome.waits > 0)
    out.push_back(fmt::format("A pod waits {} for its node in the median, {} for 99%, {} at worst.", show_seconds(outcome.wait_p50),
                              show_seconds(outcome.wait_p99), show_seconds(outcome.wait_max)));
  std::int64_t left = 0;
  for (const auto& [cause, count] : last.evictions) left += count;
  if (left > 0) out.push_back(counted(left, "pod had to leave its node.", "pods had to leave their nodes."));
  if (last.nodes > last.ready_nodes)
    out.push_back(fmt::format("{} of {} nodes are not ready at the end.", last.nodes - last.ready_nodes, last.nodes));
  if (last.cost > 0) out.push_back(fmt::format("It costs {}.", money(last.cost, outcome)));
  return out;
}

std::string to_text(const Outcome& outcome) {
  std::string out = fmt::format("{}{}: {} from {}, seed {}\n", outcome.title, outcome.variant.empty() ? "" : " (" + outcome.variant + ")",
                                format_go_duration(outcome.duration), format_rfc3339(outcome.start), outcome.seed);
  const Sample last = outcome.samples.empty() ? Sample{} : outcome.samples.back();
  out += fmt::format("  {} pods came, {} were placed, {} finished; {} run, {} wait for a node, {} start, {} failed\n", last.created,
                     last.bound, last.finished, last.running, last.pending, last.starting, last.failed);
  out += fmt::format("  {} nodes, {} ready", last.nodes, last.ready_nodes);
  if (last.cost > 0) out += fmt::format("; cost {}, {} an hour at the end", money(last.cost, outcome), money(last.price_per_hour, outcome));
  out += "\n\n";
  add_course(
      out, outcome, "cpu requested", "%", [](const Sample& s) { return percent(s.requested[kCpu], s.allocatable[kCpu]); }, 100);
  add_course(
      out, outcome, "memory requested", "%", [](const Sample& s) { return percent(s.requested[kMemory], s.allocatable[kMemory]); }, 100);
  add_course(
      out, outcome, "cpu used", "%", [](const Sample& s) { return percent(s.used[kCpu], s.allocatable[kCpu]); }, 100);
  add_course(out, outcome, "running pods", "", [](const Sample& s) { return static_cast<double>(s.running); });
  add_course(out, outcome, "waiting pods", "", [](const Sample& s) { return static_cast<double>(s.pending); });
  add_course(out, outcome, "ready nodes", "", [](const Sample& s) { return static_cast<double>(s.ready_nodes); });
  if (outcome.waits > 0)
    out += fmt::format("\n  From creation to node: {} in the median, {} for 99%, {} at worst\n", show_seconds(outcome.wait_p50),
                       show_seconds(outcome.wait_p99), show_seconds(outcome.wait_max));
  out += "\n";
  add_gangs(out, outcome);
  add_costs(out, outcome, "Cost by pool (nodes without one by their instance type)", last.cost_by_pool);
  add_costs(out, outcome, "Cost by workload (idle: what no pod asks for)", last.cost_by_workload);
  add_counts(out, "Minutes that pods waited, by what kept them from most nodes", pending_minutes(outcome));
  std::map<std::string, std::int64_t> evictions = last.evictions;
  add_counts(out, "Pods that had to leave, by cause", evictions);
  std::map<std::string, std::int64_t> asked;
  for (const auto& [component, count] : outcome.component_evictions) asked["asked for by the " + component] = count;
  add_counts(out, "  of which", asked);
  add_happenings(out, outcome);
  for (const std::string& note : outcome.notes) out += fmt::format("note: {}\n", note);
  for (const auto& [message, count] : outcome.refusals)
    out += fmt::format("REFUSED {}{}\n", message, count > 1 ? fmt::format(" ({} times)", count) : "");
  for (const CheckFailure& failure : outcome.failures)
    out += fmt::format("FAILED at {}: {}{}\n", show_time(failure.at), failure.name,
                       failure.message.starts_with(failure.name) ? failure.message.substr(failure.name.size()) : ": " + failure.message);
  return out;
}

json::Value to_json(const Outcome& outcome) {
  json::Object figures;
  for (const Figure& figure : figures_of(outcome))
    figures[figure.unit.empty() ? figure.name : figure.name + " (" + figure.unit + ")"] = cut(figure.value);
  json::Array series, happenings, failures;
  for (const Sample& sample : outcome.samples) series.push_back(sample.to_json());
  for (const Happening& one : outcome.happenings)
    happenings.push_back(json::Object{{"time", cut(static_cast<double>(one.at.count()) / 1e6)}, {"kind", one.kind}, {"text", one.text}});
  for (const CheckFailure& failure : outcome.failures)
    failures.push_back(
        json::Object{{"name", failure.name}, {"time", cut(static_cast<double>(failure.at.count()) / 1e6)}, {"message", failure.message}});
  json::Object refused, minutes;
  for (const auto& [message, count] : outcome.refusals) refused[message] = count;
  for (const auto& [reason, count] : pending_minutes(outcome)) minutes[reason] = count;
  json::Object asked;
  for (const auto& [component, count] : outcome.component_evictions) asked[component] = count;
  json::Array notes;
  for (const std::string& note : outcome.notes) notes.emplace_back(note);
  json::Object out{{"title", outcome.title},
                   {"seed", outcome.seed},
                   {"start", format_rfc3339(outcome.start)},
                   {"duration", format_go_duration(outcome.duration)},
                   {"ok", outcome.ok()},
                   {"figures", std::move(figures)},
                   {"pendingMinutes", std::move(minutes)},
                   {"evictionsBy", std::move(asked)},
                   {"failures", std::move(failures)},
                   {"refused", std::move(refused)},
                   {"notes", std::move(notes)},
                   {"series", std::move(series)},
                   {"events", std::move(happenings)}};
  if (!outcome.variant.empty()) out["variant"] = outcome.variant;
  if (!outcome.gangs.empty()) out["gangs"] = to_json(outcome.gangs);
  if (outcome.dropped_happenings > 0) out["droppedEvents"] = outcome.dropped_happenings;
  return out;
}

std::string to_csv(const Outcome& outcome) {
  std::string out =
      "time_s,nodes,nodes_ready,pods_pending,pods_starting,pods_running,pods_succeeded,pods_failed,pods_created,pods_bound,pods_finished,"
      "cpu_requested,memory_requested,gpu_requested,cpu_used,memory_used,evicted_api,evicted_preemption,evicted_taint,evicted_pressure,"
      "evicted_lost_node,wait_p50_s,wait_p99_s,price_per_hour,cost\n";
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  for (const Sample& s : outcome.samples) {
    const auto evicted = [&](const char* cause) {
      const auto found = s.evictions.find(cause);
      return found == s.evictions.end() ? 0 : found->second;
    };
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{},{},{:.3f},{:.3f},{:.4f},{:.4f}\n",
                       std::chrono::duration_cast<std::chrono::seconds>(s.at).count(), s.nodes, s.ready_nodes, s.pending, s.starting,
                       s.running, s.succeeded, s.failed, s.created, s.bound, s.finished, share(s.requested[kCpu], s.allocatable[kCpu]),
                       share(s.requested[kMemory], s.allocatable[kMemory]), share(s.requested[kGpu], s.allocatable[kGpu]),
                       share(s.used[kCpu], s.allocatable[kCpu]), share(s.used[kMemory], s.allocatable[kMemory]), evicted("api"),
                       evicted("preemption"), evicted("taint"), evicted("pressure"), evicted("lostNode"), s.wait_p50, s.wait_p99,
                       s.price_per_hour, s.cost);
  }
  return out;
}

}  // namespace berth::simulator
