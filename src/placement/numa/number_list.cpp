#include "placement/numa/number_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <vector>

#include "base/split.h"

namespace berth::placement::numa {
namespace {

constexpr int kMost = 65536;

}  // namespace

std::optional<int> number_in(std::string_view text) {
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0 || out >= kMost) return std::nullopt;
  return out;
}

Result<std::set<int>> parse_number_list(std::string_view text, std::string_view of) {
  std::set<int> out;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.empty()) return out;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = number_in(part.substr(0, dash)), last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *first > *last) return invalid(fmt::format("\"{}\": a list of {} such as 0-3,8 is wanted", text, of));
    for (int one = *first; one <= *last; ++one) out.insert(one);
  }
  return out;
}

std::string number_list(const std::set<int>& numbers) {
  std::vector<std::string> parts;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int first = *at;
    int last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    parts.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace berth::placement::numa
