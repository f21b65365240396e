#include "simulator/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "simulator/report.h"

namespace berth::simulator {
namespace {

/// Student's t, two-sided 95%, by degrees of freedom.
double student95(std::size_t degrees) {
  static constexpr std::array<double, 30> kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                                    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                                    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees == 0 ? 0 : degrees <= kTable.size() ? kTable[degrees - 1] : 1.96;
}

std::string show(double value) { return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value); }

std::string show(const Estimate& one, bool has_interval) {
  return has_interval ? fmt::format("{} ± {}", show(one.mean), show(one.half_width)) : show(one.mean);
}

double kept(double value) { return std::floor(value * 1e6 + 0.5) / 1e6; }

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  Estimate out;
  if (values.empty()) return out;
  for (const double value : values) out.mean += value;
  out.mean /= static_cast<double>(values.size());
  if (values.size() < 2) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  const auto count = static_cast<double>(values.size());
  out.half_width = student95(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return out;
}

Result<std::vector<Side>> compare(const std::vector<Variant>& variants, std::int64_t seeds, const CompareOptions& options) {
  const auto each = static_cast<std::size_t>(std::max<std::int64_t>(seeds, 0)), count = variants.size() * each;
  std::vector<std::optional<Result<Outcome>>> done(count);
  std::mutex mutex;
  std::size_t next = 0, first_running = 0;
  bool has_failed = false;
  // One run after the other: nothing of one is another's, so that it does not matter who plays it, nor when.
  const auto play = [&] {
    for (;;) {
      std::unique_lock lock(mutex);
      if (next == count || has_failed) return;
      const std::size_t mine = next++;
      lock.unlock();
      const Variant& variant = variants[mine / each];
      Scenario scenario = variant.scenario;
      scenario.seed += mine % each;
      RunOptions run_options;
      if (options.on_progress)
        run_options.on_progress = [&, mine, who = fmt::format("{}, seed {}: ", variant.name, scenario.seed)](const Progress& progress) {
          const std::lock_guard told(mutex);
          if (mine == first_running) options.on_progress(who, progress);
        };
      Result<Outcome> outcome = run(scenario, run_options);
      lock.lock();
      has_failed |= !outcome;
      if (!outcome)
        outcome = fail(outcome.error().code, fmt::format("{}: {}", variant.name, outcome.error().message));
      else
        outcome->variant = variant.name;
      done[mine] = std::move(outcome);
      while (first_running < count && done[first_running]) ++first_running;
    }
  };
  {
    const std::size_t wanted = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    while (helpers.size() + 1 < std::min(wanted, count)) helpers.emplace_back(play);
    play();
  }
  std::vector<Side> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % each == 0) out.push_back({variants[i / each].name, {}});
    if (!done[i]) continue;  // After a failure, which is told below or was before.
    if (!*done[i]) return std::unexpected(done[i]->error());
    out.back().outcomes.push_back(std::move(**done[i]));
  }
  return out;
}

std::vector<ComparedFigure> compared_figures(const std::vector<Side>& sides) {
  std::vector<ComparedFigure> out;
  std::vector<std::vector<std::vector<Figure>>> figures;  // By side and seed.
  for (const Side& side : sides) {
    figures.emplace_back();
    for (const Outcome& outcome : side.outcomes) figures.back().push_back(figures_of(outcome));
  }
  if (figures.empty() || figures.front().empty()) return out;
  for (const Figure& first : figures.front().front()) {
    ComparedFigure one{first.name, first.unit, {}, {}, {}};
    std::vector<std::vector<double>> values;
    for (const auto& runs : figures) {
      values.emplace_back();
      for (const auto& run : runs)
        for (const Figure& figure : run)
          if (figure.name == first.name) values.back().push_back(figure.value);
      one.sides.push_back(estimate(values.back()));
      std::vector<double> differences;
      for (std::size_t i = 0; i < std::min(values.back().size(), values.front().size()); ++i)
        differences.push_back(values.back()[i] - values.front()[i]);
      const Estimate difference = estimate(differences);
      one.differences.push_back(difference);
      // Without a second seed nobody knows; with no spread at all every difference is one.
      const bool is_clear = differences.size() >= 2 && std::abs(difference.mean) > difference.half_width;
      const bool is_judged = first.name != "pods created" && first.name != "nodes on average" && first.name != "nodes at most";
      one.verdicts.emplace_back(!is_clear    ? ""
                                : !is_judged ? (difference.mean < 0 ? "less" : "more")
                                             : ((difference.mean < 0) == first.less_is_better ? "better" : "worse"));
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::string to_text(const std::vector<Side>& sides) {
  if (sides.empty()) return {};
  const bool has_interval = sides.front().outcomes.size() > 1;
  std::string out = fmt::format("{} runs of each, seeds {} to {}{}\n\n", sides.front().outcomes.size(), sides.front().outcomes.front().seed,
                                sides.front().outcomes.back().seed, has_interval ? "; ± is the 95% confidence interval of the mean" : "");
  out += fmt::format("{:<30}", "");
  for (const Side& side : sides) out += fmt::format("{:>22}", side.name);
  for (std::size_t i = 1; i < sides.size(); ++i) out += fmt::format("  {:<24}", fmt::format("{} - {}", sides[i].name, sides.front().name));
  out += "\n";
  for (const ComparedFigure& figure : compared_figures(sides)) {
    out += fmt::format("{:<30}", figure.unit.empty() ? figure.name : fmt::format("{} ({})", figure.name, figure.unit));
    // The width of "±" is one, its length two.
    for (const Estimate& one : figure.sides) out += fmt::format("{:>{}}", show(one, has_interval), has_interval ? 23 : 22);
    for (std::size_t i = 1; i < figure.differences.size(); ++i)
      out += fmt::format("  {:<24}", fmt::format("{}{}", show(figure.differences[i], has_interval),
                                                 figure.verdicts[i].empty() ? "" : " " + figure.verdicts[i]));
    while (out.ends_with(' ')) out.pop_back();
    out += "\n";
  }
  for (const Side& side : sides)
    for (const Outcome& outcome : side.outcomes) {
      for (const auto& [message, count] : outcome.refusals)
        out += fmt::format("REFUSED in {}, seed {}: {}\n", side.name, outcome.seed, message);
      for (const CheckFailure& failure : outcome.failures)
        out += fmt::format("FAILED in {}, seed {} at {}: {}\n", side.name, outcome.seed, show_time(failure.at), failure.message);
    }
  return out;
}

json::Value to_json(const std::vector<Side>& sides) {
  json::Array figures, runs;
  for (const ComparedFigure& figure : compared_figures(sides)) {
    json::Array each;
    for (std::size_t i = 0; i < sides.size(); ++i)
      each.push_back(json::Object{{"name", sides[i].name},
                                  {"mean", kept(figure.sides[i].mean)},
                                  {"confidence95", kept(figure.sides[i].half_width)},
                                  {"difference", kept(figure.differences[i].mean)},
                                  {"differenceConfidence95", kept(figure.differences[i].half_width)},
                                  {"verdict", figure.verdicts[i]}});
    figures.push_back(json::Object{{"name", figure.name}, {"unit", figure.unit}, {"variants", std::move(each)}});
  }
  for (const Side& side : sides)
    for (const Outcome& outcome : side.outcomes) runs.push_back(to_json(outcome));
  return json::Object{{"figures", std::move(figures)}, {"runs", std::move(runs)}};
}

std::string to_csv(const std::vector<Side>& sides) {
  std::string out = "variant,seed,figure,unit,value\n";
  for (const Side& side : sides)
    for (const Outcome& outcome : side.outcomes)
      for (const Figure& figure : figures_of(outcome))
        out += fmt::format("\"{}\",{},\"{}\",{},{:.6f}\n", side.name, outcome.seed, figure.name, figure.unit, figure.value);
  return out;
}

}  // namespace berth::simulator
