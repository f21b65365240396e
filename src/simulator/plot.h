// Plots as inline SVG, with colours from the page's own style.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace berth::simulator {

/// Text as HTML text or attribute value.
std::string escaped(std::string_view text);

struct Course {
  std::string name;
  std::vector<double> values;  ///< One for each of the plot's times.
  /// A band around the values; empty, or one for each.
  std::vector<double> low, high;
  bool is_dashed = false;  ///< So that a line that runs with another shows both.
};

struct Plot {
  std::string title, unit;
  std::vector<Duration> times;
  std::vector<Course> courses;
  bool is_stacked = false;
  double top = 0;  ///< Of the axis; 0: what the values need.
  /// Lines at moments, numbered from 1 on in their order; the words are told when one points at it.
  std::vector<std::pair<Duration, std::string>> marks;
  int width = 640, height = 190;
};

/// A figure element with title, plot and legend. Times are in order. Empty where there is nothing to draw.
std::string to_svg(const Plot& plot);

}  // namespace berth::simulator
