// Configuration files and what becomes of each, word for word (told.txt beside this): every problem that is told, or else the notes, and in
// what the profiles, their arguments and the page /configz differ from those without a file. BERTH_RECORD=1 writes the answers anew.
#include "tests/support/told.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "scheduler/config/arguments.h"
#include "scheduler/config/config.h"
#include "scheduler/config/shown.h"

namespace berth::scheduler::config {
namespace {

using placement::PluginUse;
using placement::Profile;

constexpr std::pair<const char*, std::vector<PluginUse> Profile::*> kPoints[] = {{"preEnqueue", &Profile::pre_enqueue},
                                                                                 {"queueSort", &Profile::queue_sort},
                                                                                 {"preFilter", &Profile::pre_filter},
                                                                                 {"filter", &Profile::filter},
                                                                                 {"postFilter", &Profile::post_filter},
                                                                                 {"preScore", &Profile::pre_score},
                                                                                 {"score", &Profile::score},
                                                                                 {"reserve", &Profile::reserve},
                                                                                 {"permit", &Profile::permit},
                                                                                 {"preBind", &Profile::pre_bind},
                                                                                 {"bind", &Profile::bind},
                                                                                 {"postBind", &Profile::post_bind}};

using Lines = std::map<std::string, std::string>;

/// A line a leaf; entries of lists go by their names, where they have some.
void flatten(const json::Value& value, const std::string& path, Lines& out) {
  if (value.is_object() && !value.get_object().empty()) {
    for (const auto& [name, member] : value.get_object()) flatten(member, path + "." + std::string(name.data(), name.size()), out);
  } else if (value.is_array() && !value.get_array().empty()) {
    std::size_t i = 0;
    for (const json::Value& one : value.get_array()) {
      const auto name = json::get_string(one, {"name"});
      flatten(one, fmt::format("{}[{}]", path, name.empty() ? std::to_string(i) : std::string(name)), out);
      ++i;
    }
  } else {
    out[path] = json::serialize(value);
  }
}

std::string points(const std::vector<placement::UtilizationShapePoint>& shape) {
  std::string out;
  for (const auto& one : shape) out += fmt::format("{}:{} ", one.utilization, one.score);
  return out;
}

std::string weights(const std::vector<placement::ResourceWeight>& resources) {
  std::string out;
  for (const auto& one : resources) out += fmt::format("{}:{} ", one.name, one.weight);
  return out;
}

void add_profile(const Profile& profile, const std::string& at, Lines& out) {
  out[at + "name"] = profile.scheduler_name;
  for (const auto& [point, list] : kPoints) {
    std::string uses;
    for (const PluginUse& use : profile.*list) uses += use.weight != 0 ? fmt::format("{}:{} ", use.name, use.weight) : use.name + " ";
    out[at + point] = uses;
  }
  const auto& args = profile.args;
  out[at + "all filters"] = std::to_string(static_cast<int>(profile.always_check_all_filters));
  out[at + "fit"] = fmt::format("{} {} {} {} {}", args.fit.ignored_resources, args.fit.ignored_resource_groups,
                                static_cast<int>(args.fit.strategy), weights(args.fit.resources), points(args.fit.shape));
  out[at + "weights"] = fmt::format("{}| {}| {}", weights(args.balanced.resources), weights(args.least_allocated.resources),
                                    weights(args.most_allocated.resources));
  out[at + "ratio"] = points(args.ratio.shape) + "| " + weights(args.ratio.resources);
  out[at + "spread"] = fmt::format("{} {}", args.spread.system_defaulting, args.spread.default_constraints.size());
  out[at + "inter-pod"] = fmt::format("{} {}", args.inter_pod_affinity.hard_pod_affinity_weight,
                                      args.inter_pod_affinity.ignore_preferred_terms_of_existing_pods);
  out[at + "preemption"] = fmt::format("{} {} {}", args.preemption.min_candidate_nodes_percentage,
                                       args.preemption.min_candidate_nodes_absolute, args.preemption.budgets_are_hard);
  out[at + "volume binding"] = fmt::format("{} {}", args.volume_binding.bind_timeout_seconds, points(args.volume_binding.shape));
  out[at + "node label"] = fmt::format("{} {} {} {}", args.node_label.present_labels, args.node_label.absent_labels,
                                       args.node_label.present_labels_preference, args.node_label.absent_labels_preference);
  out[at + "service"] = fmt::format("{} {}", args.service_affinity.affinity_labels, args.service_affinity.anti_affinity_labels_preference);
  out[at + "added affinity"] = std::to_string(static_cast<int>(args.added_affinity.has_value()));
}

Lines facts(const SchedulerConfig& config) {
  Lines out;
  flatten(shown(config), "shown", out);
  for (std::size_t i = 0; i < config.profiles.size(); ++i) add_profile(config.profiles[i], fmt::format("profile {} ", i), out);
  out["era"] = config.era == placement::Era::k120 ? "1.20" : "1.36";
  out["election"] = fmt::format("{} {} {}", config.leader_election.leader_elect, config.leader_election.resource_name,
                                config.leader_election.resource_namespace);
  return out;
}

std::string told(std::string text) {
  const auto flags = testing::take_flags(text);
  auto config = parse(text, {.file = "f"});
  if (!config) return config.error().message + "\n";
  Arguments arguments;
  for (const auto& [name, value] : flags) {
    auto& one = arguments[name];
    one.place = "--" + name;
    if (value) one.values.push_back(*value);
  }
  if (!flags.empty())
    if (const auto done = scheduler::config::apply(arguments, *config); !done) return done.error().message + "\n";
  std::string out;
  for (const std::string& note : config->notes) out += "note: " + note + "\n";
  const Lines now = facts(*config), plain = facts(default_config(config->era));
  for (const auto& [path, value] : now)
    if (const auto before = plain.find(path); before == plain.end() || before->second != value) out += path + " = " + value + "\n";
  for (const auto& [path, value] : plain)
    if (!now.contains(path) && !path.starts_with("shown.profiles")) out += "no " + path + "\n";
  return out.empty() ? "as without a file\n" : out;
}

/// Calls for each map of the document, with its path, while it has one field more than it should. Not for what nobody reads: arguments of
/// plugins that have none, and of a Policy's entries that need none.
void with_stranger(json::Value& whole, json::Value& at, const std::string& path, const std::function<void(const std::string&)>& each) {
  if (at.is_array())
    for (std::size_t i = 0; i < at.get_array().size(); ++i) with_stranger(whole, at.get_array()[i], fmt::format("{}[{}]", path, i), each);
  if (!at.is_object()) return;
  at.get_object()["unheardOf"] = 1;
  each(path);
  at.get_object().erase("unheardOf");
  std::vector<std::string> names;
  for (const auto& [name, member] : at.get_object()) names.emplace_back(name);
  for (const std::string& name : names) with_stranger(whole, at.get_object()[name], path + "." + name, each);
}

/// Of every file that is taken: one field more, in whichever of its maps, and it is not.
TEST(SchedulerFiles, AFieldThatNobodyKnowsIsRefusedWhereverItStands) {
  constexpr std::array<std::string_view, 5> kUnread = {".profiles[0].pluginConfig[0].args", ".profiles[0].pluginConfig[1].args",
                                                       ".profiles[0].pluginConfig[2].args", ".predicates[4].argument.labelsPresence",
                                                       ".priorities[3].argument.labelPreference"};
  int refused = 0;
  std::set<std::string> taken;
  testing::expect_told("tests/scheduler/config/told.txt", [&](const std::string& text) {
    auto document = json::parse_yaml(text);
    if (document && text.find("flags:\n") == std::string::npos && parse(text, {.file = "f"}))
      with_stranger(*document, *document, "", [&](const std::string& path) {
        const auto config = parse(json::serialize(*document), {.file = "f"});
        const bool is_refused = !config && config.error().message.find("unheardOf") != std::string::npos;
        const bool is_read = !std::ranges::any_of(kUnread, [&](std::string_view one) { return path == one; });
        if (!is_refused && is_read) taken.insert(fmt::format("{}: {}", path, config ? "" : config.error().message));
        refused += is_refused ? 1 : 0;
      });
    return told(text);
  });
  EXPECT_EQ(taken, (std::set<std::string>{}));
  EXPECT_GE(refused, 100);
}

TEST(SchedulerFiles, WhatBecomesOfEachIsWrittenDown) { testing::expect_told("tests/scheduler/config/told.txt", told); }

}  // namespace
}  // namespace berth::scheduler::config
