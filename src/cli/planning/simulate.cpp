// berth simulate: a cluster's days in seconds, from a scenario.
#include "cli/planning/simulate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/log.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "simulator/compare.h"
#include "simulator/page.h"
#include "simulator/report.h"
#include "simulator/scenario_values.h"

namespace berth::cli {
namespace {

using simulator::Outcome;

struct SimulateFlags {
  std::string scenario, duration, json_file, csv_file, html_file, recording_file, output = "text";
  std::vector<std::string> others;
  std::int64_t seed = -1, seeds = 0;
  std::size_t threads = 0;
  bool shows_schema = false, validate_only = false, is_quiet = false, is_verbose = false;

  void add_to(CLI::App& app) {
    app.add_option("SCENARIO", scenario,
                   "The scenario, a YAML file (docs/simulate.md), or a recording or audit log, which is played again; - is standard input; "
                   "`compare` and two or more: side by side");
    app.add_option("OTHERS", others, "After `compare`: the scenarios");
    app.add_option("--seed", seed, "Instead of the scenario's")->check(CLI::NonNegativeNumber);
    app.add_option("--duration", duration, "Instead of the scenario's, such as 6h or 7d");
    app.add_option("-o,--output", output, "What standard output gets: text (a summary), json or csv")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json", "csv"}));
    app.add_option("--json", json_file, "Write figures, series and events to this file");
    app.add_option("--csv", csv_file, "Write the series to this file");
    app.add_option("--html", html_file, "Write a page with plots to this file, which needs nothing else");
    app.add_option("--seeds", seeds, "Comparisons: how many seeds, from the scenario's on")->check(CLI::Range(1, 10'000));
    app.add_option("--threads", threads, "Comparisons: how many runs at once (as many as there are processors)")->check(CLI::Range(1, 256));
    app.add_option("--recording", recording_file, "Write every change of an object to this file, for replays and the dashboard");
    app.add_flag("--schema", shows_schema, "Print the scenario files' JSON schema");
    app.add_flag("--validate", validate_only, "Only say what is wrong with the scenario");
    app.add_flag("-q,--quiet", is_quiet, "No progress on the terminal");
    app.add_flag("-v,--verbose", is_verbose, "Show the components' log");
  }
};

/// One line on a terminal that is written over and over; nothing elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_wanted) : is_shown_(is_wanted && isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() { clear(); }
  void show(const std::string& who, const simulator::Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_shown_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    const double share = static_cast<double>(progress.at.count()) / static_cast<double>(progress.duration.count());
    std::fprintf(stderr, "\r\033[K%s%s of %s (%.0f%%)  %lld nodes, %lld pods run, %lld wait", who.c_str(),
                 simulator::show_time(progress.at).c_str(), simulator::show_time(progress.duration).c_str(), share * 100,
                 static_cast<long long>(progress.nodes), static_cast<long long>(progress.running),
                 static_cast<long long>(progress.pending));
    std::fflush(stderr);
    is_dirty_ = true;
  }
  void clear() {
    if (is_dirty_) std::fputs("\r\033[K", stderr);
    is_dirty_ = false;
  }

 private:
  bool is_shown_, is_dirty_ = false;
  std::chrono::steady_clock::time_point last_{};
};

Result<void> write_file(const std::string& file, const std::string& text) {
  if (file.empty()) return {};
  if (file == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) return fail(ErrorCode::kUnavailable, fmt::format("{}: cannot be written", file));
  return {};
}

Result<simulator::Comparison> load(const SimulateFlags& flags) {
  auto comparison = [&] {
    if (flags.scenario != "-") return simulator::load_scenario(flags.scenario);
    std::string text(std::istreambuf_iterator<char>(std::cin), {});
    return simulator::parse_scenario(text, "standard input", "");
  }();
  if (!comparison) return comparison;
  for (simulator::Variant& variant : comparison->variants) {
    if (flags.seed >= 0) variant.scenario.seed = static_cast<std::uint64_t>(flags.seed);
    if (flags.duration.empty()) continue;
    const auto duration = simulator::parse_span(flags.duration);
    if (!duration) return invalid("--duration: " + duration.error().message);
    if (*duration <= Duration(0)) return invalid("--duration: must be more than 0s");
    variant.scenario.duration = *duration;
  }
  return comparison;
}

/// Writes the files that are asked for, and standard output.
template <typename Result>
std::optional<Error> write_all(const SimulateFlags& flags, const Result& result) {
  const auto json_text = [&] { return json::serialize_pretty(simulator::to_json(result)); };
  const auto csv_text = [&] { return simulator::to_csv(result); };
  if (const auto written = flags.json_file.empty() ? berth::Result<void>{} : write_file(flags.json_file, json_text()); !written)
    return written.error();
  if (const auto written = flags.csv_file.empty() ? berth::Result<void>{} : write_file(flags.csv_file, csv_text()); !written)
    return written.error();
  if (const auto written = flags.html_file.empty() ? berth::Result<void>{} : write_file(flags.html_file, simulator::to_html(result));
      !written)
    return written.error();
  const bool is_shown = flags.json_file != "-" && flags.csv_file != "-" && flags.html_file != "-";
  const std::string shown = flags.output == "json" ? json_text() : flags.output == "csv" ? csv_text() : simulator::to_text(result);
  if (is_shown) std::fwrite(shown.data(), 1, shown.size(), stdout);
  return std::nullopt;
}

/// The scenarios after `compare`, each one a side named by its file.
Result<simulator::Comparison> load_sides(const SimulateFlags& flags) {
  simulator::Comparison out;
  if (flags.others.size() < 2) return invalid("berth simulate compare A.yaml B.yaml …: two scenarios at least");
  for (const std::string& file : flags.others) {
    SimulateFlags one = flags;
    one.scenario = file;
    auto loaded = load(one);
    if (!loaded) return loaded;
    std::ranges::move(loaded->notes, std::back_inserter(out.notes));
    out.seeds = std::max(out.seeds, loaded->seeds);
    for (simulator::Variant& variant : loaded->variants) {
      const std::string stem = std::filesystem::path(file).stem().string();
      variant.name = variant.name.empty() ? stem : stem + ", " + variant.name;
      out.variants.push_back(std::move(variant));
    }
  }
  for (const simulator::Variant& variant : out.variants)
    if (variant.scenario.duration != out.variants.front().scenario.duration)
      return invalid(fmt::format("{} lasts {}, {} {}: only runs of one length can be compared (--duration)", out.variants.front().name,
                                 format_go_duration(out.variants.front().scenario.duration), variant.name,
                                 format_go_duration(variant.scenario.duration)));
  return out;
}

int run_comparison(const SimulateFlags& flags, const simulator::Comparison& comparison, ProgressLine& progress) {
  if (!flags.recording_file.empty()) return report(Error{ErrorCode::kInvalid, "--recording: of one run alone, not of a comparison"});
  const auto sides = simulator::compare(
      comparison.variants, flags.seeds > 0 ? flags.seeds : comparison.seeds,
      {.on_progress = [&](const std::string& who, const simulator::Progress& at) { progress.show(who, at); }, .threads = flags.threads});
  progress.clear();
  if (!sides) return report(sides.error());
  if (const auto error = write_all(flags, *sides)) return report(*error);
  for (const simulator::Side& side : *sides)
    for (const Outcome& outcome : side.outcomes)
      if (!outcome.ok()) return 1;
  return 0;
}

int run_one(const SimulateFlags& flags, const simulator::Scenario& scenario, ProgressLine& progress) {
  const auto outcome = simulator::run(
      scenario, {.on_progress = [&](const simulator::Progress& at) { progress.show("", at); }, .recording_file = flags.recording_file});
  progress.clear();
  if (!outcome) return report(outcome.error());
  if (const auto error = write_all(flags, *outcome)) return report(*error);
  return outcome->ok() ? 0 : 1;
}

}  // namespace

int run_simulate(const std::vector<std::string>& args) {
  CLI::App app(
      "A cluster's days in seconds, from a scenario or a recorded day: API server, scheduler, controllers, autoscaler, descheduler and "
      "simulated nodes under one virtual "
      "clock, "
      "the same from the same seed. Exit code 1: an assertion of the scenario failed, or the API server refused an object",
      "berth simulate");
  SimulateFlags flags;
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  if (flags.shows_schema)
    return std::fwrite(simulator::scenario_schema().data(), 1, simulator::scenario_schema().size(), stdout) > 0 ? 0 : 1;
  if (flags.scenario.empty())
    return report(Error{ErrorCode::kInvalid, "which scenario? berth simulate SCENARIO.yaml (examples/simulate has some)"});
  const auto comparison = flags.scenario == "compare" ? load_sides(flags) : load(flags);
  if (!comparison) return report(comparison.error());
  for (const std::string& note : comparison->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  if (flags.validate_only) {
    std::printf("the scenario is valid\n");
    return 0;
  }
  log::set_level(flags.is_verbose ? log::Level::kInfo : log::Level::kError);
  ProgressLine progress(!flags.is_quiet);
  if (comparison->variants.size() > 1 || flags.seeds > 1) return run_comparison(flags, *comparison, progress);
  return run_one(flags, comparison->variants.front().scenario, progress);
}

}  // namespace berth::cli
