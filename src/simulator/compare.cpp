#include "simulator/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/mutex.h"
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

std::string show(const Estimate& one) {
  return one.half_width ? fmt::format("{} ± {}", show(one.mean), show(*one.half_width)) : show(one.mean);
}

double kept(double value) { return std::floor(value * 1e6 + 0.5) / 1e6; }
json::Value kept(const std::optional<double>& value) { return value ? json::Value(kept(*value)) : json::Value(nullptr); }

/// Neither good nor bad by themselves.
bool is_judged(std::string_view figure) { return figure != "pods created" && figure != "nodes on average" && figure != "nodes at most"; }

/// By what people choose a configuration, what matters most first; of what is left no verdict speaks.
constexpr std::array<std::string_view, 12> kDeciding = {"gangs finished",
                                                        "wait of a gang, mean",
                                                        "held for partners",
                                                        "pending at the end",
                                                        "wait for a node, mean",
                                                        "pending on average",
                                                        "cost",
                                                        "evictions",
                                                        "pods finished",
                                                        "pods placed",
                                                        "wait for a node, longest",
                                                        "pending at most"};

/// A difference that is worth a word where one run is all there is.
bool is_notable(double before, double difference) { return std::abs(difference) > std::max(std::abs(before) * 0.02, 1e-9); }

std::string verdict_between(const std::vector<ComparedFigure>& figures, std::size_t side, const std::string& name, const std::string& first,
                            bool is_one_run) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> better, worse;
  for (const std::string_view wanted : kDeciding) {
    const auto figure = std::ranges::find(figures, wanted, &ComparedFigure::name);
    if (figure == figures.end()) continue;
    const double before = figure->sides.front().mean, difference = figure->differences[side].mean;
    if (is_one_run ? !is_notable(before, difference) : figure->verdicts[side].empty()) continue;
    const bool is_better = (difference < 0) == figure->less_is_better;
    std::vector<std::string>& list = is_better ? better : worse;
    if (list.size() < kMost)
      list.push_back(fmt::format("{} {} → {}{}", figure->name, show(before), show(figure->sides[side].mean),
                                 figure->unit.empty() ? "" : " " + figure->unit));
  }
  const std::string_view more_seeds = is_one_run ? "; one run of each: more of them (--seeds 5) tell whether that is chance" : "";
  if (better.empty() && worse.empty())
    return fmt::format("Between {} and {} no difference can be told{}.", name, first,
                       is_one_run ? " by one run (--seeds 5 tells more)" : "");
  if (worse.empty()) return fmt::format("{} is better than {}: {}{}.", name, first, fmt::join(better, "; "), more_seeds);
  if (better.empty()) return fmt::format("{} is worse than {}: {}{}.", name, first, fmt::join(worse, "; "), more_seeds);
  return fmt::format("{} against {}: better: {}. Worse: {}{}.", name, first, fmt::join(better, "; "), fmt::join(worse, "; "), more_seeds);
}

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
  Mutex mutex;
  std::size_t next = 0, first_running = 0;
  bool has_failed = false;
  // One run after the other: nothing of one is another's, so that it does not matter who plays it, nor when.
  const auto play = [&] {
    for (;;) {
      MutexLock lock(mutex);
      if (next == count || has_failed) return;
      const std::size_t mine = next++;
      lock.unlock();
      const Variant& variant = variants[mine / each];
      Scenario scenario = variant.scenario;
      scenario.seed += mine % each;
      RunOptions run_options;
      if (options.on_progress)
        run_options.on_progress = [&, mine, who = fmt::format("{}, seed {}: ", variant.name, scenario.seed)](const Progress& progress) {
          const MutexLock told(mutex);
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
    ComparedFigure one{first.name, first.unit, first.less_is_better, {}, {}, {}};
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
      const bool is_clear = difference.half_width && std::abs(difference.mean) > *difference.half_width;
      one.verdicts.emplace_back(!is_clear              ? ""
                                : !is_judged(one.name) ? (difference.mean < 0 ? "less" : "more")
                                                       : ((difference.mean < 0) == first.less_is_better ? "better" : "worse"));
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> verdicts_of(const std::vector<Side>& sides) {
  std::vector<std::string> out;
  const std::vector<ComparedFigure> figures = compared_figures(sides);
  for (std::size_t i = 1; i < sides.size(); ++i)
    out.push_back(verdict_between(figures, i, sides[i].name, sides.front().name, sides.front().outcomes.size() < 2));
  return out;
}

std::string to_text(const std::vector<Side>& sides) {
  if (sides.empty()) return {};
  const std::vector<Outcome>& runs = sides.front().outcomes;
  const bool has_interval = runs.size() > 1;
  std::string out;
  for (const std::string& verdict : verdicts_of(sides)) out += verdict + "\n";
  out += has_interval ? fmt::format("\n{} runs of each, seeds {} to {}; ± is the 95% confidence interval of the mean\n\n", runs.size(),
                                    runs.front().seed, runs.back().seed)
                      : fmt::format("\nOne run of each, seed {}\n\n", runs.front().seed);
  out += fmt::format("{:<30}", "");
  for (const Side& side : sides) out += fmt::format("{:>22}", side.name);
  for (std::size_t i = 1; i < sides.size(); ++i) out += fmt::format("  {:<24}", fmt::format("{} - {}", sides[i].name, sides.front().name));
  out += "\n";
  for (const ComparedFigure& figure : compared_figures(sides)) {
    out += fmt::format("{:<30}", figure.unit.empty() ? figure.name : fmt::format("{} ({})", figure.name, figure.unit));
    // The width of "±" is one, its length two.
    for (const Estimate& one : figure.sides) out += fmt::format("{:>{}}", show(one), has_interval ? 23 : 22);
    for (std::size_t i = 1; i < figure.differences.size(); ++i)
      out += fmt::format("  {:<24}",
                         fmt::format("{}{}", show(figure.differences[i]), figure.verdicts[i].empty() ? "" : " " + figure.verdicts[i]));
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
