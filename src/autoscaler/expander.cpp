#include "autoscaler/expander.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>
#include <regex>

#include "base/config_reader.h"

namespace berth::autoscaler {
namespace {

/// Keeps the options whose value is lowest.
template <typename Value>
void keep_lowest(std::vector<ExpansionOption>& options, Value value_of) {
  if (options.empty()) return;
  auto lowest = value_of(options.front());
  for (const ExpansionOption& option : options) lowest = std::min(lowest, value_of(option));
  std::erase_if(options, [&](const ExpansionOption& option) { return value_of(option) != lowest; });
}

/// Unused fraction of CPU plus that of memory, over the capacity of all its nodes (expander/waste).
double waste_of(const ExpansionOption& option) {
  double cpu = 0, memory = 0;
  for (const PodPtr& pod : option.pods) {
    cpu += static_cast<double>(pod->info->wanted().cpu_milli);
    memory += static_cast<double>(pod->info->wanted().memory_bytes);
  }
  const auto capacity = [&](std::string_view name, bool milli) {
    const model::Quantity* found = model::find_resource(option.node_template->node->capacity, name);
    if (found == nullptr) return 0.0;
    return static_cast<double>(milli ? found->milli_value() : found->value()) * static_cast<double>(option.nodes);
  };
  const double all_cpu = capacity("cpu", true), all_memory = capacity("memory", false);
  return (all_cpu > 0 ? (all_cpu - cpu) / all_cpu : 1) + (all_memory > 0 ? (all_memory - memory) / all_memory : 1);
}

struct Priorities {
  std::vector<std::pair<std::int64_t, std::regex>> rules;
};

Result<Priorities> parse_priorities(const std::string& text) {
  Priorities out;
  const auto read_rule = [&](const std::string& key, const config::Reader& patterns) {
    std::int64_t priority = 0;
    const auto [end, wrong] = std::from_chars(key.data(), key.data() + key.size(), priority);
    if (wrong != std::errc() || end != key.data() + key.size()) return patterns.problem(fmt::format("\"{}\" is not a number", key));
    for (const config::Reader& item : patterns.items()) {
      if (!item.is_present() || !item.value()->is_string()) {
        item.problem("must be a regular expression");
        continue;
      }
      // The regular expression library reports what is wrong by throwing: caught here, at its border.
      try {
        out.rules.emplace_back(priority, std::regex(item.value()->get_string().c_str(), std::regex::ECMAScript));
      } catch (const std::regex_error&) {
        item.problem(fmt::format("\"{}\" is not a regular expression", json::as_view(*item.value())));
      }
    }
  };
  const auto read = config::read_text(text, {.file = "priorities"}, [&](const config::Reader& root) {
    out = {};
    if (!root.is_object() || root.value()->get_object().empty()) return root.problem("must be a map of priorities to lists of patterns");
    for (const auto& [key, patterns] : root.members()) read_rule(key, patterns);
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

void keep_highest_priority(std::vector<ExpansionOption>& options, const std::optional<std::string>& priorities,
                           std::vector<std::string>& warnings) {
  if (!priorities) {
    warnings.emplace_back("Priority expander config map cluster-autoscaler-priority-expander not found");
    return;
  }
  const auto parsed = parse_priorities(*priorities);
  if (!parsed) {
    warnings.push_back(fmt::format("Wrong configuration for priority expander: {}. Ignoring update.", parsed.error().message));
    return;
  }
  std::int64_t highest = -1;
  std::vector<std::int64_t> found;
  for (const ExpansionOption& option : options) {
    std::int64_t best = -1;
    for (const auto& [priority, pattern] : parsed->rules)
      if (std::regex_search(option.group, pattern)) best = std::max(best, priority);
    if (best < 0)
      warnings.push_back(fmt::format(
          "Priority expander: node group {} not found in priority expander configuration. The group won't be used.", option.group));
    found.push_back(best);
    highest = std::max(highest, best);
  }
  if (highest < 0) {
    warnings.emplace_back("Priority expander: no priorities info found for any of the expansion options. No options filtered.");
    return;
  }
  std::vector<ExpansionOption> kept;
  for (std::size_t i = 0; i < options.size(); ++i)
    if (found[i] == highest) kept.push_back(std::move(options[i]));
  options = std::move(kept);
}

}  // namespace

std::optional<ExpansionOption> choose(std::vector<ExpansionOption> options, const std::vector<Expander>& expanders,
                                      const std::optional<std::string>& priorities, std::uint64_t seed,
                                      std::vector<std::string>* warnings) {
  std::vector<std::string> said;
  for (const Expander expander : expanders) {
    if (options.size() < 2) break;
    switch (expander) {
      case Expander::kRandom:
        break;  // What is left at the end is drawn anyway.
      case Expander::kLeastWaste:
        keep_lowest(options, waste_of);
        break;
      case Expander::kMostPods:
        keep_lowest(options, [](const ExpansionOption& option) { return -static_cast<std::int64_t>(option.pods.size()); });
        break;
      case Expander::kLeastNodes:
        keep_lowest(options, [](const ExpansionOption& option) { return option.nodes; });
        break;
      case Expander::kPriority:
        keep_highest_priority(options, priorities, said);
        break;
    }
    if (expander == Expander::kRandom) break;
  }
  if (warnings != nullptr) warnings->insert(warnings->end(), said.begin(), said.end());
  if (options.empty()) return std::nullopt;
  std::mt19937_64 random(seed);
  return std::move(options[random() % options.size()]);
}

}  // namespace berth::autoscaler
