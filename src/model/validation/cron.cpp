// Cron schedules: five fields, names, ranges, steps, lists, and the @ words (robfig/cron's ParseStandard).
#include <fmt/format.h>

#include <charconv>

#include "base/go_duration.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

struct Field {
  const char* name;
  int low, high;
  std::vector<std::string_view> names;  ///< First stands for `low`.
};

std::optional<int> value_of(std::string_view text, const Field& field) {
  for (std::size_t i = 0; i < field.names.size(); ++i) {
    std::string lower(text);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower == field.names[i]) return field.low + static_cast<int>(i);
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string check_part(std::string_view part, const Field& field) {
  const std::size_t slash = part.find('/');
  const std::string_view range = part.substr(0, slash);
  if (slash != std::string_view::npos) {
    const std::string_view step = part.substr(slash + 1);
    const auto value = value_of(step, Field{"", 0, 0, {}});
    if (!value) return fmt::format("failed to parse int from {}: strconv.Atoi: parsing \"{}\": invalid syntax", step, step);
    if (*value == 0) return fmt::format("step of range should be a positive number: {}", part);
  }
  if (range == "*" || range == "?") return {};
  const std::size_t dash = range.find('-');
  const std::string_view low_text = range.substr(0, dash);
  const auto low = value_of(low_text, field);
  if (!low) return fmt::format("failed to parse int from {}: strconv.Atoi: parsing \"{}\": invalid syntax", low_text, low_text);
  int high = *low;
  if (dash != std::string_view::npos) {
    const std::string_view high_text = range.substr(dash + 1);
    const auto value = value_of(high_text, field);
    if (!value) return fmt::format("failed to parse int from {}: strconv.Atoi: parsing \"{}\": invalid syntax", high_text, high_text);
    high = *value;
  }
  if (*low < field.low) return fmt::format("beginning of range ({}) below minimum ({}): {}", *low, field.low, part);
  if (high > field.high) return fmt::format("end of range ({}) above maximum ({}): {}", high, field.high, part);
  if (*low > high) return fmt::format("beginning of range ({}) beyond end of range ({}): {}", *low, high, part);
  return {};
}

}  // namespace

std::string check_cron_schedule(std::string_view text) {
  static const Field kFields[] = {{"minute", 0, 59, {}},
                                  {"hour", 0, 23, {}},
                                  {"day of month", 1, 31, {}},
                                  {"month", 1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
                                  {"day of week", 0, 6, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}};
  if (text.starts_with("@")) {
    for (const std::string_view word : {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
      if (text == word) return {};
    if (text.starts_with("@every ")) {
      const auto every = parse_duration_ns(text.substr(7));
      return every ? "" : fmt::format("failed to parse duration {}: {}", text, every.error());
    }
    return fmt::format("unrecognized descriptor: {}", text);
  }
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \t", start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  if (text.empty()) return "empty spec string";
  if (parts.size() != 5) return fmt::format("expected exactly 5 fields, found {}: [{}]", parts.size(), fmt::join(parts, " "));
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t start = 0; start <= parts[i].size();) {
      const std::size_t end = std::min(parts[i].find(',', start), parts[i].size());
      if (const std::string why = check_part(parts[i].substr(start, end - start), kFields[i]); !why.empty()) return why;
      start = end + 1;
    }
  return {};
}

}  // namespace berth::model::validation
