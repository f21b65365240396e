#include "autoscaler/expander.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <random>

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
  std::vector<std::pair<std::int64_t, std::unique_ptr<re2::RE2>>> rules;
  std::vector<std::string> problems;  ///< Patterns that are none: the other rules stand.
};

/// Go's other spelling of a named group, `(?<name>…)`, as every RE2 knows it.
std::string with_named_groups(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      out += pattern.substr(i++, 2);
    } else if (pattern.substr(i).starts_with("(?<") && i + 3 < pattern.size() && pattern[i + 3] != '=' && pattern[i + 3] != '!') {
      out += "(?P<";
      i += 2;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

Result<Priorities> parse_priorities(const std::string& text) {
  const auto document = json::parse_yaml(text);
  if (!document || !document->is_object() || document->get_object().empty())
    return invalid("it is not a map of priorities to lists of patterns");
  re2::RE2::Options quiet;
  quiet.set_log_errors(false);
  Priorities out;
  for (const auto& [key, list] : document->get_object()) {
    const std::string_view name(key.data(), key.size());
    std::int64_t priority = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), priority);
    if (wrong != std::errc() || end != name.data() + name.size() || !list.is_array()) {
      out.problems.push_back(fmt::format("priority \"{}\" is not a number with a list of patterns", name));
      continue;
    }
    for (const json::Value& pattern : list.get_array()) {
      if (!pattern.is_string()) {
        out.problems.push_back(fmt::format("priority {}: {} is not a string", priority, json::serialize(pattern)));
        continue;
      }
      auto compiled = std::make_unique<re2::RE2>(with_named_groups(json::as_view(pattern)), quiet);
      if (compiled->ok())
        out.rules.emplace_back(priority, std::move(compiled));
      else
        out.problems.push_back(
            fmt::format("priority {}: \"{}\" is not a regular expression: {}", priority, json::as_view(pattern), compiled->error()));
    }
  }
  return out;
}

void keep_highest_priority(std::vector<ExpansionOption>& options, const std::optional<std::string>& priorities,
                           std::vector<Warning>& warnings) {
  constexpr std::string_view kInvalid = "PriorityConfigMapInvalid";
  if (!priorities) return warnings.push_back({kInvalid, "Priority expander config map cluster-autoscaler-priority-expander not found"});
  const auto parsed = parse_priorities(*priorities);
  if (!parsed) {
    warnings.push_back({kInvalid, fmt::format("Wrong configuration for priority expander: {}. Ignoring update.", parsed.error().message)});
    return;
  }
  for (const std::string& problem : parsed->problems)
    warnings.push_back({kInvalid, fmt::format("Wrong configuration for priority expander: {}. The other rules stand.", problem)});
  constexpr std::int64_t kNone = INT64_MIN;
  std::vector<std::int64_t> found;
  for (const ExpansionOption& option : options) {
    std::int64_t best = kNone;
    for (const auto& [priority, pattern] : parsed->rules)
      if (re2::RE2::PartialMatch(option.group, *pattern)) best = std::max(best, priority);
    if (best == kNone)
      warnings.push_back(
          {"PriorityConfigMapNotMatchedGroup",
           fmt::format("Priority expander: node group {} not found in priority expander configuration. The group won't be used.",
                       option.group)});
    found.push_back(best);
  }
  // Priorities below -1 choose nothing, as in the cluster autoscaler.
  const std::int64_t highest = *std::ranges::max_element(found);
  if (highest < -1)
    return warnings.push_back({"PriorityConfigMapNoGroupMatched",
                               "Priority expander: no priorities info found for any of the expansion options. No options filtered."});
  std::vector<ExpansionOption> kept;
  for (std::size_t i = 0; i < options.size(); ++i)
    if (found[i] == highest) kept.push_back(std::move(options[i]));
  options = std::move(kept);
}

/// What an hour costs, of what pods ask for and of nodes that nobody has priced (cloudprovider/gce's, as the default).
struct PriceTable {
  std::map<std::string, double, std::less<>> prices = {
      {"cpu", 0.033174}, {"memory", 0.004446}, {"nvidia.com/gpu", 0.7}, {"amd.com/gpu", 0.7}};

  void read(const std::optional<std::string>& text, std::vector<Warning>& warnings) {
    constexpr std::string_view kInvalid = "PriceConfigMapInvalid";
    if (!text) return;
    // A text that begins with a brace would be read as JSON, whose keys have quotes.
    const auto document = json::parse_yaml("# prices\n" + *text);
    if (!document || !document->is_object())
      return warnings.push_back(
          {kInvalid, "Wrong configuration for price expander: it is not a map of names to prices. Built-in prices hold."});
    for (const auto& [key, value] : document->get_object()) {
      const std::string name(key.data(), key.size());
      if (value.is_number() && value.to_number<double>() >= 0)
        prices[name] = value.to_number<double>();
      else
        warnings.push_back(
            {kInvalid, fmt::format("Wrong configuration for price expander: the price of {} is not a number of at least 0. The "
                                   "other prices stand.",
                                   name)});
    }
  }
  [[nodiscard]] double of(std::string_view name) const {
    const auto found = prices.find(name);
    return found == prices.end() ? 0 : found->second;
  }
  [[nodiscard]] double of(const placement::Resource& amounts) const {
    double out = static_cast<double>(amounts.cpu_milli) / 1000 * of("cpu");
    out += static_cast<double>(amounts.memory_bytes) / (1LL << 30) * of("memory");
    for (const auto& [name, amount] : amounts.scalars) out += static_cast<double>(amount) * of(name);
    return out;
  }
  [[nodiscard]] double of_node(const ExpansionOption& option) const {
    if (option.price_per_hour) return *option.price_per_hour;
    if (const auto group = prices.find(option.group); group != prices.end()) return group->second;
    const model::NodeView& node = *option.node_template->node;
    for (const char* label : {"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"})
      if (const std::string* type = node.labels().get(label))
        if (const auto known = prices.find(*type); known != prices.end()) return known->second;
    return of(placement::Resource::from_list(node.capacity));
  }
};

/// The price of an option's nodes over that of what its pods ask for: helping more pods may cost more (expander/price).
void keep_cheapest(std::vector<ExpansionOption>& options, const ExpanderInput& input, std::vector<Warning>& warnings) {
  PriceTable table;
  table.read(input.prices, warnings);
  const auto said = [&](const PodPtr& pod) { return input.pod_prices.find(shape_of(pod->info->wanted())); };
  const auto is_priced = [&](const PodPtr& pod) { return said(pod) != input.pod_prices.end(); };
  const bool are_all_priced = !input.pod_prices.empty() && std::ranges::all_of(options, [&](const ExpansionOption& option) {
    return std::ranges::all_of(option.pods, is_priced);
  });
  keep_lowest(options, [&](const ExpansionOption& option) {
    double pods = 0;
    for (const PodPtr& pod : option.pods) pods += are_all_priced ? said(pod)->second : table.of(pod->info->wanted());
    // Pods that ask for nothing still have to be somewhere.
    constexpr double kLeast = 1e-6;
    return static_cast<double>(option.nodes) * table.of_node(option) / std::max(pods, kLeast);
  });
}

void keep_asked(std::vector<ExpansionOption>& options, const ExpanderInput& input, std::vector<Warning>& warnings) {
  constexpr std::string_view kFailed = "GrpcExpanderFailed";
  if (!input.ask)
    return warnings.push_back({kFailed, "Expander grpc: there is nobody to ask: --grpc-expander-url is not set. No options filtered."});
  const auto chosen = input.ask(options);
  if (!chosen) return warnings.push_back({kFailed, fmt::format("Expander grpc: {}. No options filtered.", chosen.error().message)});
  const auto is_chosen = [&](const ExpansionOption& option) { return std::ranges::find(*chosen, option.group) != chosen->end(); };
  if (std::ranges::none_of(options, is_chosen))
    return warnings.push_back(
        {kFailed, fmt::format("Expander grpc: the answer names none of the groups: [{}]. No options filtered.", fmt::join(*chosen, " "))});
  std::erase_if(options, [&](const ExpansionOption& option) { return !is_chosen(option); });
}

}  // namespace

double usual_price(const placement::Resource& amounts) { return PriceTable().of(amounts); }

std::string shape_of(const placement::Resource& wanted) {
  std::string out = fmt::format("{}m {}", wanted.cpu_milli, wanted.memory_bytes);
  for (const auto& [name, amount] : wanted.scalars) out += fmt::format(" {}={}", name, amount);
  return out;
}

std::vector<ExpansionOption> narrow(std::vector<ExpansionOption> options, const std::vector<Expander>& expanders,
                                    const ExpanderInput& input, std::vector<Warning>& warnings) {
  for (const Expander expander : expanders) {
    if (options.size() < 2) break;
    switch (expander) {
      case Expander::kRandom:
        return options;  // What is left at the end is drawn anyway.
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
        keep_highest_priority(options, input.priorities, warnings);
        break;
      case Expander::kPrice:
        keep_cheapest(options, input, warnings);
        break;
      case Expander::kGrpc:
        keep_asked(options, input, warnings);
        break;
    }
  }
  return options;
}

ExpansionOption draw(std::vector<ExpansionOption> options, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return std::move(options[random() % options.size()]);
}

}  // namespace berth::autoscaler
