#include "placement/numa/holdings.h"

#include <fmt/format.h>

#include <charconv>

#include "placement/numa/number_list.h"

namespace berth::placement::numa {

namespace {

std::string list_of(NodeSet nodes) {
  const auto numbers = numbers_of(nodes);
  return number_list({numbers.begin(), numbers.end()});
}

/// 0: it is no list of NUMA nodes.
NodeSet set_in(std::string_view text) {
  const auto numbers = parse_number_list(text, "NUMA nodes");
  NodeSet out = 0;
  if (numbers && !numbers->empty() && *numbers->rbegin() < kMostNodes)
    for (const int number : *numbers) out |= NodeSet{1} << number;
  return out;
}

std::string_view next_word(std::string_view& text) {
  const std::string_view out = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), out.size() + 1));
  return out;
}

}  // namespace

std::string text_of(const std::vector<NodeSet>& sets) {
  std::string out;
  for (const NodeSet one : sets) out += (out.empty() ? "" : " ") + list_of(one);
  return out;
}

std::vector<NodeSet> node_sets_in(std::string_view text) {
  std::vector<NodeSet> out;
  while (!text.empty())
    if (const NodeSet one = set_in(next_word(text)); one != 0) out.push_back(one);
  return out;
}

std::string text_of(const std::vector<Holding>& holdings) {
  std::string out;
  for (const Holding& one : holdings)
    out += fmt::format("{}{}:{}={}", out.empty() ? "" : " ", list_of(one.nodes), one.resource, one.amount);
  return out;
}

std::vector<Holding> holdings_in(std::string_view text) {
  std::vector<Holding> out;
  while (!text.empty()) {
    const std::string_view part = next_word(text);
    const std::size_t colon = part.find(':'), equals = part.rfind('=');
    if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon) continue;
    Holding one{.nodes = set_in(part.substr(0, colon)), .resource = std::string(part.substr(colon + 1, equals - colon - 1)), .amount = 0};
    const auto [end, error] = std::from_chars(part.data() + equals + 1, part.data() + part.size(), one.amount);
    if (error == std::errc() && end == part.data() + part.size() && one.nodes != 0 && one.amount >= 0 && !one.resource.empty())
      out.push_back(std::move(one));
  }
  return out;
}

}  // namespace berth::placement::numa
