#include "simulator/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/plot.h"
#include "simulator/report.h"

namespace berth::simulator {
namespace {

constexpr std::string_view kStyle =
    R"css(:root{color-scheme:light dark;--ink:#1c2430;--dim:#667;--paper:#fff;--card:#f5f7fa;--line:#dde3ea;--bad:#b3261e;--good:#1b7f4b;
--c0:#2563eb;--c1:#d97706;--c2:#059669;--c3:#dc2626;--c4:#7c3aed;--c5:#0891b2;--c6:#be185d;--c7:#65a30d}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--dim:#9aa5b4;--paper:#12161c;--card:#1a2029;--line:#2c3542;--bad:#ff8a80;--good:#6fd6a0;
--c0:#6ea0ff;--c1:#f5b041;--c2:#4ad9a4;--c3:#ff7b72;--c4:#b69cff;--c5:#5ad1ea;--c6:#ff8dc0;--c7:#b5d85a}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
main{max-width:1360px;margin:0 auto;padding:24px 20px 60px}h1{font-size:26px;margin:0}h2{font-size:18px;margin:34px 0 10px}p.sub{color:var(--dim);margin:2px 0 20px}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px}.cards div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px}
.cards b{display:block;font-size:22px;font-variant-numeric:tabular-nums}.cards span{color:var(--dim);font-size:13px}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr));gap:14px}.small{grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr))}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px}figcaption{font-weight:600;margin-bottom:4px}figcaption small{color:var(--dim);font-weight:400}
svg{width:100%;height:auto;display:block}.grid{stroke:var(--line);fill:none}.tick{fill:var(--dim);font-size:12px}h2 small{color:var(--dim);font-weight:400}.mark{stroke:var(--dim);stroke-dasharray:3 3;fill:none}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.dashed{stroke-dasharray:5 3}.area{stroke:none;opacity:.75}.band{stroke:none;opacity:.2}
.legend{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:13px;color:var(--dim)}.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right}
.number{fill:var(--ink);font-size:11px;font-weight:600}
.verdict{border:1px solid var(--line);border-left:6px solid var(--good);border-radius:8px;background:var(--card);padding:10px 16px;margin:0 0 16px}.verdict.fails{border-left-color:var(--bad)}
.verdict b{display:block;font-size:19px}.verdict p{margin:4px 0 0}ol.marks{columns:320px;margin:0 0 14px;padding-left:28px;font-size:14px}ol.marks time{font-variant-numeric:tabular-nums;color:var(--dim);margin-right:6px}
summary{cursor:pointer;font-size:18px;font-weight:600;margin:34px 0 10px}details table{width:auto;min-width:320px}
.wide{overflow-x:auto}.bad{color:var(--bad)}.good{color:var(--good)}ul.fails{padding-left:20px}code{font-size:13px}
)css";

std::string colour_rules() {
  std::string out;
  for (int i = 0; i < 8; ++i)
    out += fmt::format(".line.c{0}{{stroke:var(--c{0})}}.area.c{0},.band.c{0}{{fill:var(--c{0})}}i.c{0}{{background:var(--c{0})}}", i);
  return out;
}

std::string page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>{}</title>\n<style>{}{}</style></head>\n"
      "<body><main>\n{}</main></body></html>\n",
      escaped(title), kStyle, colour_rules(), body);
}

double percent_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

template <typename Value>
Course course(const Outcome& outcome, const char* name, Value value) {
  Course out{name, {}, {}, {}};
  for (const Sample& sample : outcome.samples) out.values.push_back(value(sample));
  return out;
}

using Named = std::map<std::string, double>;

/// The largest names over all samples, the rest in one.
std::vector<Course> courses_by_name(const std::vector<Named>& samples) {
  Named sums;
  for (const Named& sample : samples)
    for (const auto& [name, count] : sample) sums[name] += count;
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, sum] : sums)
    if (sum > 0) sorted.emplace_back(-sum, name);
  std::ranges::sort(sorted);
  constexpr std::size_t kMost = 7;
  std::vector<Course> out;
  std::vector<double> rest(samples.size(), 0);
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    Course one{sorted[k].second, {}, {}, {}};
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto found = samples[i].find(sorted[k].second);
      const double value = found == samples[i].end() ? 0.0 : found->second;
      one.values.push_back(value);
      if (k >= kMost) rest[i] += value;
    }
    if (k < kMost) out.push_back(std::move(one));
  }
  if (sorted.size() > kMost) out.push_back({"other", std::move(rest), {}, {}});
  return out;
}

std::vector<Named> named_counts(const Outcome& outcome, std::map<std::string, std::int64_t> Sample::*of) {
  std::vector<Named> out;
  for (const Sample& sample : outcome.samples) out.emplace_back((sample.*of).begin(), (sample.*of).end());
  return out;
}

/// Sums since the start as what an hour cost in each span.
std::vector<Named> named_rates(const Outcome& outcome, std::map<std::string, double> Sample::*of) {
  std::vector<Named> out(outcome.samples.size());
  for (std::size_t i = 1; i < out.size(); ++i) {
    const Sample &now = outcome.samples[i], &before = outcome.samples[i - 1];
    const double hours = static_cast<double>((now.at - before.at).count()) / 3.6e9;
    for (const auto& [name, sum] : now.*of) {
      const auto was = (before.*of).find(name);
      if (hours > 0) out[i][name] = std::max(0.0, sum - (was == (before.*of).end() ? 0 : was->second)) / hours;
    }
  }
  if (out.size() > 1) out[0] = out[1];
  return out;
}

/// What was done to the cluster: lines in every plot, numbered as `marks_list` numbers them.
std::vector<std::pair<Duration, std::string>> marks_of(const Outcome& outcome) {
  constexpr std::size_t kMost = 40;
  std::vector<std::pair<Duration, std::string>> out;
  for (const Happening& one : outcome.happenings)
    if ((one.kind == "fault" || one.kind == "change") && out.size() < kMost) out.emplace_back(one.at, show_time(one.at) + " " + one.text);
  return out;
}

std::string marks_list(const Outcome& outcome) {
  std::string out;
  for (const auto& [at, text] : marks_of(outcome)) out += "<li>" + escaped(text) + "</li>";
  return out.empty() ? out
                     : "<p class=\"sub\">The numbered lines are what was done to the cluster:</p><ol class=\"marks\">" + out + "</ol>\n";
}

Plot plot_of(const Outcome& outcome, const char* title, const char* unit) {
  Plot out;
  out.title = title;
  out.unit = unit;
  for (const Sample& sample : outcome.samples) out.times.push_back(sample.at);
  out.marks = marks_of(outcome);
  return out;
}

std::string plots(const Outcome& outcome) {
  Plot use = plot_of(outcome, "Utilisation", "% of allocatable");
  use.top = 100;
  use.courses = {
      course(outcome, "cpu requested", [](const Sample& s) { return percent_of(s.requested[kCpu], s.allocatable[kCpu]); }),
      course(outcome, "memory requested", [](const Sample& s) { return percent_of(s.requested[kMemory], s.allocatable[kMemory]); }),
      course(outcome, "cpu used", [](const Sample& s) { return percent_of(s.used[kCpu], s.allocatable[kCpu]); }),
      course(outcome, "memory used", [](const Sample& s) { return percent_of(s.used[kMemory], s.allocatable[kMemory]); })};
  use.courses[2].is_dashed = use.courses[3].is_dashed = true;
  if (std::ranges::any_of(outcome.samples, [](const Sample& s) { return s.allocatable[kGpu] > 0; }))
    use.courses.push_back(
        course(outcome, "gpu requested", [](const Sample& s) { return percent_of(s.requested[kGpu], s.allocatable[kGpu]); }));
  Plot pods = plot_of(outcome, "Pods", "");
  pods.courses = {course(outcome, "running", [](const Sample& s) { return static_cast<double>(s.running); }),
                  course(outcome, "waiting for a node", [](const Sample& s) { return static_cast<double>(s.pending); }),
                  course(outcome, "starting", [](const Sample& s) { return static_cast<double>(s.starting); })};
  Plot pending = plot_of(outcome, "Pods without a node, by reason", "");
  pending.is_stacked = true;
  pending.courses = courses_by_name(named_counts(outcome, &Sample::pending_by_reason));
  Plot evictions = plot_of(outcome, "Pods that had to leave, by cause", "since the start");
  evictions.is_stacked = true;
  evictions.courses = courses_by_name(named_counts(outcome, &Sample::evictions));
  Plot nodes = plot_of(outcome, "Nodes", "");
  nodes.courses = {course(outcome, "all", [](const Sample& s) { return static_cast<double>(s.nodes); }),
                   course(outcome, "ready", [](const Sample& s) { return static_cast<double>(s.ready_nodes); })};
  Plot waits = plot_of(outcome, "From creation to node", "seconds, of the pods of each span");
  waits.courses = {course(outcome, "median", [](const Sample& s) { return s.wait_p50; }),
                   course(outcome, "99%", [](const Sample& s) { return s.wait_p99; })};
  const std::string unit = outcome.currency.empty() ? "units" : outcome.currency;
  std::vector<Plot> all = {std::move(use), std::move(pods), std::move(pending), std::move(evictions), std::move(nodes), std::move(waits)};
  if (!outcome.samples.empty() && outcome.samples.back().cost > 0) {
    all.push_back(plot_of(outcome, "Cost", (unit + " since the start").c_str()));
    all.back().courses = {course(outcome, "cost", [](const Sample& s) { return s.cost; })};
    all.push_back(plot_of(outcome, "Cost of an hour", unit.c_str()));
    all.back().courses = {course(outcome, "per hour", [](const Sample& s) { return s.price_per_hour; })};
    for (const auto& [title, of] : {std::pair("Cost of an hour, by pool", &Sample::cost_by_pool),
                                    std::pair("Cost of an hour, by workload", &Sample::cost_by_workload)}) {
      all.push_back(plot_of(outcome, title, unit.c_str()));
      all.back().is_stacked = true;
      all.back().courses = courses_by_name(named_rates(outcome, of));
    }
  }
  std::string out, empty;
  for (const Plot& one : all) {
    const std::string drawn = to_svg(one);
    out += drawn;
    if (drawn.empty()) empty += (empty.empty() ? "" : "; ") + one.title;
  }
  return "<div class=\"plots\">" + out + "</div>\n" +
         (empty.empty() ? "" : "<p class=\"sub\">Not drawn, for there were none: " + escaped(empty) + ".</p>\n");
}

std::string figure_text(double value, const std::string& unit) {
  return (std::abs(value) >= 1000 || value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value)) +
         (unit.empty() ? "" : " " + unit);
}

/// "24h" for 24h0m0s.
std::string length_text(Duration length) {
  std::string out = format_go_duration(length);
  for (const std::string_view tail : {"m0s", "h0m"})
    if (out.ends_with(tail)) out.resize(out.size() - 2);
  return out;
}

std::string failures_of(const Outcome& outcome, const std::string& who) {
  std::string out;
  for (const auto& [message, count] : outcome.refusals)
    out += fmt::format("<li class=\"bad\">{}refused: {}{}</li>", escaped(who), escaped(message),
                       count > 1 ? fmt::format(" ({} times)", count) : "");
  for (const CheckFailure& failure : outcome.failures)
    out += fmt::format("<li class=\"bad\">{}at {}: {} — <code>{}</code></li>", escaped(who), show_time(failure.at), escaped(failure.name),
                       escaped(failure.message));
  return out;
}

std::string happenings_table(const Outcome& outcome) {
  constexpr std::size_t kMost = 500;
  std::string rows;
  std::size_t count = 0;
  for (const Happening& one : outcome.happenings)
    if (one.kind != "eviction" && ++count <= kMost)
      rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", show_time(one.at), escaped(one.kind), escaped(one.text));
  if (rows.empty()) return {};
  if (count > kMost) rows += fmt::format("<tr><td></td><td></td><td>{} more</td></tr>", count - kMost);
  return "<h2>What happened</h2><div class=\"wide\"><table><tr><th>time</th><th>what</th><th></th></tr>\n" + rows + "</table></div>\n";
}

/// ", 9 nodes, 3 changes and faults, 4 checks": what was asked.
std::string asked_of(const Outcome& outcome) {
  const auto counted = [](std::size_t count, const char* one, const char* many) {
    return count == 0 ? "" : fmt::format(", {} {}", count, count == 1 ? one : many);
  };
  const std::size_t marks = marks_of(outcome).size();
  return counted(outcome.samples.empty() ? 0 : static_cast<std::size_t>(outcome.samples.front().nodes), "node", "nodes at the start") +
         counted(marks, "fault or change", "faults and changes") + counted(outcome.checks, "check", "checks");
}

std::string headline(const Outcome& outcome) {
  std::string out = outcome.ok() ? "<div class=\"verdict\">" : "<div class=\"verdict fails\">";
  const std::vector<std::string> words = verdict_of(outcome);
  for (std::size_t i = 0; i < words.size(); ++i)
    out += i == 0 ? fmt::format("<b>{} {}</b>", outcome.ok() ? "✓" : "✕", escaped(words[i])) : (i == 1 ? "<p>" : " ") + escaped(words[i]);
  return out + (words.size() > 1 ? "</p></div>\n" : "</div>\n");
}

std::string tile(const Figure& figure, const Outcome& outcome) {
  const bool is_bad = figure.name == "pending at the end" && figure.value > 0;
  return fmt::format("<div><b{}>{}</b><span>{}</span></div>", is_bad ? " class=\"bad\"" : "",
                     figure.name == "cost" ? escaped(money(figure.value, outcome)) : figure_text(figure.value, figure.unit),
                     escaped(figure.name));
}

/// The few that an operator asks for first.
std::string tiles(const Outcome& outcome) {
  std::string out;
  const std::vector<Figure> figures = figures_of(outcome);
  for (const std::string_view name :
       {"pending at the end", "pending at most", "wait for a node, 99%", "evictions", "cpu requested", "cost"}) {
    const auto found = std::ranges::find(figures, name, &Figure::name);
    if (found != figures.end() && (name != "cost" || found->value > 0)) out += tile(*found, outcome);
  }
  return "<div class=\"cards\">" + out + "</div>\n";
}

std::string all_figures(const Outcome& outcome) {
  std::string rows;
  for (const Figure& figure : figures_of(outcome))
    if (figure.name != "cost" || figure.value > 0)  // Or nobody gave prices.
      rows += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td></tr>\n", escaped(figure.name),
                          figure.name == "cost" ? escaped(money(figure.value, outcome)) : figure_text(figure.value, figure.unit));
  return "<details><summary>All figures</summary><table>" + rows + "</table></details>\n";
}

std::string estimate_text(const Estimate& one) {
  return figure_text(one.mean, "") + (one.half_width ? " ± " + figure_text(*one.half_width, "") : "");
}

/// Mean and interval of one value over the runs of a side, sample by sample.
template <typename Value>
Course course_over(const Side& side, Value value) {
  Course out{side.name, {}, {}, {}};
  std::size_t count = SIZE_MAX;
  for (const Outcome& outcome : side.outcomes) count = std::min(count, outcome.samples.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> values;
    for (const Outcome& outcome : side.outcomes) values.push_back(value(outcome.samples[i]));
    const Estimate one = estimate(values);
    out.values.push_back(one.mean);
    out.low.push_back(std::max(one.mean - one.half_width.value_or(0), 0.0));
    out.high.push_back(one.mean + one.half_width.value_or(0));
  }
  return out;
}

/// One small plot a side, all to one scale, in the side's colour.
template <typename Value>
std::string multiples(const std::vector<Side>& sides, const char* title, const char* unit, double top, Value value) {
  std::string out = fmt::format("<h2>{} <small>{}</small></h2><div class=\"plots small\">", escaped(title), escaped(unit));
  std::vector<Course> courses;
  double most = 0;
  for (const Side& side : sides) {
    courses.push_back(course_over(side, value));
    for (const double high : courses.back().high) most = std::max(most, high);
  }
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (sides[i].outcomes.empty()) continue;
    Plot plot = plot_of(sides[i].outcomes.front(), sides[i].name.c_str(), "");
    plot.width = 420;
    plot.height = 150;
    plot.top = top > 0 ? top : std::max(most * 1.05, 1.0);
    plot.courses = {courses[i]};
    plot.courses.front().name.clear();  // The plot's title has it.
    out += to_svg(plot);
  }
  return out + "</div>\n";
}

}  // namespace

std::string to_html(const Outcome& outcome) {
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"sub\">Simulated: {} from {}, seed {}{}.</p>\n", escaped(outcome.title),
                                 length_text(outcome.duration), format_rfc3339(outcome.start), outcome.seed, asked_of(outcome));
  body += headline(outcome);
  if (const std::string failures = failures_of(outcome, ""); !failures.empty())
    body += "<h2 class=\"bad\">What does not hold</h2><ul class=\"fails\">" + failures + "</ul>\n";
  body += tiles(outcome) + "<h2>Over time</h2>\n" + marks_list(outcome) + plots(outcome) + all_figures(outcome) + happenings_table(outcome);
  for (const std::string& note : outcome.notes) body += "<p class=\"sub\">" + escaped(note) + "</p>";
  return page(outcome.title, body);
}

std::string to_html(const std::vector<Side>& sides) {
  if (sides.empty() || sides.front().outcomes.empty()) return page("comparison", "");
  const Outcome& first = sides.front().outcomes.front();
  std::string names, failures, rows;
  for (const Side& side : sides) {
    names += (names.empty() ? "" : " · ") + side.name;
    for (const Outcome& outcome : side.outcomes) failures += failures_of(outcome, fmt::format("{}, seed {}, ", side.name, outcome.seed));
  }
  std::string body =
      fmt::format("<h1>{}: {}</h1>\n<p class=\"sub\">{} over {}{}</p>\n", escaped(first.title), escaped(names),
                  sides.front().outcomes.size() == 1 ? "one run of each" : fmt::format("{} runs of each", sides.front().outcomes.size()),
                  length_text(first.duration),
                  sides.front().outcomes.size() == 1 ? "." : ", the same seeds; ± and bands are the 95% confidence of the mean.");
  body += failures.empty() ? "<div class=\"verdict\">" : "<div class=\"verdict fails\"><b>✕ Something does not hold.</b>";
  for (const std::string& verdict : verdicts_of(sides)) body += "<p>" + escaped(verdict) + "</p>";
  body += "</div>\n";
  body += failures.empty() ? "" : "<h2 class=\"bad\">Failed</h2><ul class=\"fails\">" + failures + "</ul>\n";
  body += "<div class=\"wide\"><table><tr><th></th>";
  for (const Side& side : sides) body += fmt::format("<th class=\"n\">{}</th>", escaped(side.name));
  for (std::size_t i = 1; i < sides.size(); ++i)
    body += fmt::format("<th class=\"n\">{} − {}</th><th></th>", escaped(sides[i].name), escaped(sides.front().name));
  body += "</tr>\n";
  for (const ComparedFigure& figure : compared_figures(sides)) {
    if (figure.name == "cost" && std::ranges::all_of(figure.sides, [](const Estimate& one) { return one.mean == 0; })) continue;
    body += fmt::format("<tr><td>{}{}</td>", escaped(figure.name), figure.unit.empty() ? "" : " (" + figure.unit + ")");
    for (const Estimate& one : figure.sides) body += fmt::format("<td class=\"n\">{}</td>", estimate_text(one));
    for (std::size_t i = 1; i < sides.size(); ++i) {
      const std::string& verdict = figure.verdicts[i];
      body += fmt::format("<td class=\"n\">{}</td><td class=\"{}\">{}</td>", estimate_text(figure.differences[i]),
                          verdict == "better"  ? "good"
                          : verdict == "worse" ? "bad"
                                               : "",
                          verdict);
    }
    body += "</tr>\n";
  }
  body += "</table></div>\n";
  body += marks_list(first);
  body += multiples(sides, "CPU requested", "% of allocatable", 100,
                    [](const Sample& s) { return percent_of(s.requested[kCpu], s.allocatable[kCpu]); });
  if (first.samples.back().allocatable[kGpu] > 0)
    body += multiples(sides, "GPUs requested", "% of allocatable", 100,
                      [](const Sample& s) { return percent_of(s.requested[kGpu], s.allocatable[kGpu]); });
  body += multiples(sides, "Pods without a node", "", 0, [](const Sample& s) { return static_cast<double>(s.pending); });
  body += multiples(sides, "Nodes", "", 0, [](const Sample& s) { return static_cast<double>(s.nodes); });
  body += multiples(sides, "Pods that had to leave", "since the start", 0, [](const Sample& s) {
    std::int64_t sum = 0;
    for (const auto& [cause, count] : s.evictions) sum += count;
    return static_cast<double>(sum);
  });
  if (first.samples.back().cost > 0)
    body += multiples(sides, "Cost", ((first.currency.empty() ? "units" : first.currency) + " since the start").c_str(), 0,
                      [](const Sample& s) { return s.cost; });
  return page(first.title, body);
}

}  // namespace berth::simulator
