// Values of a scenario, each with its unit: times, rates, amounts. What has none is refused with its place.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/config_reader.h"
#include "simulator/arrivals.h"
#include "simulator/scenario.h"

namespace berth::simulator {

/// "90s", "1h30m", "7d"; nullopt with a problem when it is none, without a problem when absent. Negative ones are refused.
std::optional<Duration> read_span(const config::Reader& at);
/// The same as a text; the error says what is wrong.
Result<Duration> parse_span(std::string_view text);
/// "120/h", "2/m", "0.5/s", "3/day": a number of things an hour; a price likewise.
std::optional<double> read_rate(const config::Reader& at);
/// "10%" as 0.1.
std::optional<double> read_share(const config::Reader& at);
/// A whole number of things; negative ones are refused.
std::int64_t read_count(const config::Reader& parent, std::string_view name, std::int64_t fallback);
/// Resource amounts: cpu in cores or millicores, bytes with a unit, other resources counted.
AmountTexts read_amounts(const config::Reader& at);
void read_amount_into(AmountTexts& into, const config::Reader& at, const std::string& resource);
/// A map of texts: labels, annotations.
AmountTexts read_texts(const config::Reader& at);
/// "6h", or a list of such, in order.
std::vector<Duration> read_times(const config::Reader& at);
/// A map of times of the day ("9h", "09:30") to values.
template <typename Read>
std::vector<std::pair<Duration, double>> read_day(const config::Reader& at, Read read);
std::optional<Duration> parse_time_of_day(std::string_view text);
/// Adds `arrivals:`'s fields to those of `at` that are there.
Arrivals read_arrivals(const config::Reader& at);
/// "20m", or a map with mean, or min and max, or median and p95.
std::optional<Lengths> read_lengths(const config::Reader& at);
NodeChoice read_node_choice(const config::Reader& at);
/// YAML of a file beside the scenario, or an inline list or object.
std::vector<json::Value> read_objects(const config::Reader& at, const std::string& directory);
/// Says of a cluster's dump what no cluster has: one object with two uids (several clusters, or moments), pods without containers (the file
/// is cut off); and notes what is missing in it.
void check_dump(const config::Reader& at, const std::vector<json::Value>& objects);
std::string resolve(const std::string& directory, const std::string& file);

template <typename Read>
std::vector<std::pair<Duration, double>> read_day(const config::Reader& at, Read read) {
  std::vector<std::pair<Duration, double>> curve;
  for (const auto& [key, value] : at.members()) {
    const auto time = parse_time_of_day(key);
    if (!time) {
      value.problem(fmt::format("\"{}\" is not a time of the day such as 9h or 09:30, before 24h", key));
      continue;
    }
    if (const auto amount = read(value)) curve.emplace_back(*time, *amount);
  }
  std::ranges::sort(curve);
  for (std::size_t i = 1; i < curve.size(); ++i)
    if (curve[i].first == curve[i - 1].first) at.problem("two values for one time of the day");
  if (curve.empty() && at.is_present()) at.problem("empty: at least one time of the day is needed");
  return curve;
}

}  // namespace berth::simulator
