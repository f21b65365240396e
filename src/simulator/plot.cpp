#include "simulator/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/report.h"

namespace berth::simulator {
namespace {

constexpr int kLeft = 46, kRight = 14, kTop = 18, kBottom = 20;
constexpr double kBetweenNumbers = 24;
/// Classes c0 … c7 of the page's style.
constexpr std::size_t kColours = 8;
/// More points than this are not seen at any width.
constexpr std::size_t kMostPoints = 700;

/// A step of 1, 2 or 5 times a power of ten, so that about four make the whole.
double nice_step(double top) {
  double step = 1;
  while (step * 5 < top) step *= 10;
  while (step > top) step /= 10;
  for (const double factor : {5.0, 2.0, 1.0})
    if (top / (step * factor) >= 2.5) return step * factor;
  return step / 2;
}

std::string number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e6) return fmt::format("{:.0f}", value);
  if (std::abs(value) >= 1e6) return fmt::format("{:.1f}M", value / 1e6);
  return fmt::format("{:.{}f}", value, std::abs(value) < 1 ? 2 : 1);
}

Duration time_step(Duration length) {
  using std::chrono::hours;
  using std::chrono::minutes;
  for (const Duration step : std::initializer_list<Duration>{minutes(1), minutes(5), minutes(10), minutes(30), hours(1), hours(2), hours(4),
                                                             hours(6), hours(12), hours(24), hours(48)})
    if (length / step <= 8) return step;
  return hours(168);
}

struct Axes {
  const Plot& plot;
  double top = 1;
  Duration first{}, last{};
  [[nodiscard]] double x(Duration at) const {
    const double length = static_cast<double>(std::max<std::int64_t>((last - first).count(), 1));
    return kLeft + static_cast<double>((at - first).count()) / length * (plot.width - kLeft - kRight);
  }
  [[nodiscard]] double y(double value) const {
    return plot.height - kBottom - std::clamp(value / top, 0.0, 1.0) * (plot.height - kTop - kBottom);
  }
};

/// Those that stand close together share their numbers' place: "2–4".
std::string draw_marks(const Axes& axes) {
  std::string out;
  const auto& marks = axes.plot.marks;
  for (std::size_t i = 0; i < marks.size(); ++i)
    out += fmt::format(R"(<path class="mark" d="M{0:.1f} {1}V{2}"><title>{3}</title></path>)", axes.x(marks[i].first), kTop - 4,
                       axes.plot.height - kBottom, escaped(marks[i].second));
  for (std::size_t first = 0, next = 0; first < marks.size(); first = next) {
    const double x = axes.x(marks[first].first);
    for (next = first + 1; next < marks.size() && axes.x(marks[next].first) - x < kBetweenNumbers;) ++next;
    const std::string words = next == first + 1 ? fmt::format("{}", first + 1) : fmt::format("{}–{}", first + 1, next);
    out += fmt::format(R"(<text class="number" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x, kTop - 6, words);
  }
  return out;
}

std::string draw_axes(const Axes& axes) {
  const Plot& plot = axes.plot;
  std::string out;
  const double step = nice_step(axes.top);
  for (double value = 0; value <= axes.top * 1.0001; value += step)
    out += fmt::format(R"(<path class="grid" d="M{} {:.1f}H{}"/><text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft,
                       axes.y(value), plot.width - kRight, kLeft - 5, axes.y(value) + 3.5, number(value));
  const Duration length = axes.last - axes.first, tick = time_step(length);
  for (Duration at{}; at <= length; at += tick)
    // The last one's text would reach beyond the edge.
    out += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="{}">{}</text>)",
                       std::min(axes.x(axes.first + at), static_cast<double>(plot.width - 2)), plot.height - 5,
                       axes.x(axes.first + at) > plot.width - 30 ? "end" : "middle",
                       tick >= std::chrono::hours(24) ? fmt::format("{}d", at / Duration(std::chrono::hours(24))) : show_time(at));
  return out + draw_marks(axes);
}

/// The indexes to draw: all, or evenly some, the last among them.
std::vector<std::size_t> drawn_points(std::size_t count) {
  std::vector<std::size_t> out;
  const std::size_t step = count / kMostPoints + 1;
  for (std::size_t i = 0; i < count; i += step) out.push_back(i);
  if (count > 0 && out.back() != count - 1) out.push_back(count - 1);
  return out;
}

std::string path_of(const Axes& axes, const std::vector<std::size_t>& points, const std::vector<double>& values) {
  std::string out;
  for (const std::size_t i : points)
    if (i < values.size()) out += fmt::format("{}{:.1f} {:.1f}", out.empty() ? "M" : "L", axes.x(axes.plot.times[i]), axes.y(values[i]));
  return out;
}

std::string area_of(const Axes& axes, const std::vector<std::size_t>& points, const std::vector<double>& low,
                    const std::vector<double>& high) {
  std::string out = path_of(axes, points, high);
  for (auto i = points.rbegin(); i != points.rend(); ++i)
    if (*i < low.size()) out += fmt::format("L{:.1f} {:.1f}", axes.x(axes.plot.times[*i]), axes.y(low[*i]));
  return out.empty() ? out : out + "Z";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Control characters have no place in HTML.
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string to_svg(const Plot& plot) {
  if (plot.courses.empty()) return {};
  Axes axes{plot, plot.top, plot.times.empty() ? Duration(0) : plot.times.front(), plot.times.empty() ? Duration(1) : plot.times.back()};
  std::vector<double> sums(plot.times.size(), 0);
  double most = 0;
  for (const Course& course : plot.courses)
    for (std::size_t i = 0; i < course.values.size() && i < sums.size(); ++i) {
      sums[i] += course.values[i];
      most = std::max({most, plot.is_stacked ? sums[i] : course.values[i], i < course.high.size() ? course.high[i] : 0.0});
    }
  if (axes.top <= 0) axes.top = most > 0 ? most * 1.05 : 1;
  const std::vector<std::size_t> points = drawn_points(plot.times.size());
  std::string drawn, legend;
  std::vector<double> base(plot.times.size(), 0);
  for (std::size_t k = 0; k < plot.courses.size(); ++k) {
    const Course& course = plot.courses[k];
    const std::size_t colour = k % kColours;
    if (plot.is_stacked) {
      std::vector<double> upper = base;
      for (std::size_t i = 0; i < upper.size() && i < course.values.size(); ++i) upper[i] += course.values[i];
      drawn += fmt::format(R"(<path class="area c{}" d="{}"><title>{}</title></path>)", colour, area_of(axes, points, base, upper),
                           escaped(course.name));
      base = std::move(upper);
    } else {
      if (!course.low.empty())
        drawn += fmt::format(R"(<path class="band c{}" d="{}"/>)", colour, area_of(axes, points, course.low, course.high));
      drawn += fmt::format(R"(<path class="line c{}{}" d="{}"><title>{}</title></path>)", colour, course.is_dashed ? " dashed" : "",
                           path_of(axes, points, course.values), escaped(course.name));
    }
    if (!course.name.empty()) legend += fmt::format(R"(<span><i class="c{}"></i>{}</span>)", colour, escaped(course.name));
  }
  return fmt::format(
      R"(<figure><figcaption>{0}{1}</figcaption><svg viewBox="0 0 {2} {3}" role="img" aria-label="{0}">{4}{5}</svg><div class="legend">{6}</div></figure>)"
      "\n",
      escaped(plot.title), plot.unit.empty() ? "" : " <small>" + escaped(plot.unit) + "</small>", plot.width, plot.height, draw_axes(axes),
      drawn, legend);
}

}  // namespace berth::simulator
