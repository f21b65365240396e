#include "placement/numa/holdings.h"

#include <fmt/format.h>

#include <charconv>

#include "placement/numa/number_list.h"

namespace berth::placement::numa {

std::string text_of(const std::vector<Holding>& holdings) {
  std::string out;
  for (const Holding& one : holdings) {
    const auto numbers = numbers_of(one.nodes);
    out += fmt::format("{}{}:{}={}", out.empty() ? "" : " ", number_list({numbers.begin(), numbers.end()}), one.resource, one.amount);
  }
  return out;
}

std::vector<Holding> holdings_in(std::string_view text) {
  std::vector<Holding> out;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t colon = part.find(':'), equals = part.rfind('=');
    if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon) continue;
    const auto numbers = parse_number_list(part.substr(0, colon), "NUMA nodes");
    Holding one{.nodes = 0, .resource = std::string(part.substr(colon + 1, equals - colon - 1)), .amount = 0};
    const auto [end, error] = std::from_chars(part.data() + equals + 1, part.data() + part.size(), one.amount);
    if (!numbers || numbers->empty() || *numbers->rbegin() >= kMostNodes || error != std::errc() || end != part.data() + part.size() ||
        one.amount < 0 || one.resource.empty())
      continue;
    for (const int number : *numbers) one.nodes |= NodeSet{1} << number;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace berth::placement::numa
