// Groups of pods in random clusters: never half a gang, never more on a node than it has, and all gangs that fit are placed.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "parity/gangs.h"

namespace berth::scheduler {
namespace {

struct Dice {
  std::mt19937 random;
  std::int64_t roll(std::int64_t from, std::int64_t to) { return std::uniform_int_distribution<std::int64_t>(from, to)(random); }
};

constexpr std::array<std::string_view, 3> kClasses = {"low", "mid", "high"};

json::Value random_scenario(std::uint32_t seed) {
  Dice dice{std::mt19937(seed)};
  json::Array nodes, steps;
  const std::int64_t node_count = dice.roll(1, 6);
  for (std::int64_t i = 0; i < node_count; ++i)
    nodes.push_back(json::Object{{"name", "n" + std::to_string(i)},
                                 {"cpu", dice.roll(1, 8)},
                                 {"zone", "z" + std::to_string(i / 3)},
                                 {"rack", "r" + std::to_string(i / 2)},
                                 {"labels", json::Object()},
                                 {"taints", json::Array()}});
  const std::int64_t step_count = dice.roll(1, 4);
  for (std::int64_t s = 0; s < step_count; ++s) {
    json::Array groups, pods;
    const std::string name = "g" + std::to_string(s);
    const std::int64_t count = dice.roll(1, 8);
    const std::string_view priority = kClasses[static_cast<std::size_t>(dice.roll(0, 2))];
    json::Object group{{"name", name}, {"minCount", dice.roll(1, count)}, {"priorityClassName", priority}};
    if (dice.roll(0, 2) == 0) group["topologyKey"] = dice.roll(0, 1) == 0 ? "rack" : "zone";
    if (dice.roll(0, 1) == 0) group["disruptionMode"] = "PodGroup";
    groups.emplace_back(group);
    for (std::int64_t i = 0; i < count; ++i)
      pods.push_back(json::Object{
          {"name", name + "-" + std::to_string(i)}, {"cpu", dice.roll(1, 3)}, {"group", name}, {"priorityClassName", priority}});
    for (std::int64_t i = dice.roll(0, 3); i > 0; --i)
      pods.push_back(json::Object{{"name", "s" + std::to_string(s) + "-" + std::to_string(i)},
                                  {"cpu", dice.roll(1, 2)},
                                  {"priorityClassName", kClasses[static_cast<std::size_t>(dice.roll(0, 2))]}});
    steps.push_back(json::Object{{"groups", groups}, {"pods", pods}});
  }
  return json::Object{{"nodes", nodes},
                      {"priorityClasses", json::Object{{"low", 100}, {"mid", 500}, {"high", 1000}}},
                      {"existing", json::Array()},
                      {"steps", steps}};
}

struct Member {
  std::string group;
  std::int64_t cpu = 0;
};

/// What is wrong after a step; empty: nothing.
std::string judge(const json::Value& scenario, const json::Object& places) {
  std::map<std::string, Member> members;
  std::map<std::string, std::int64_t> least, room;
  std::map<std::string, std::string> zones, racks, keys;
  for (const json::Value& node : json::get_array(scenario, {"nodes"})) {
    const std::string name(json::get_string(node, {"name"}));
    room[name] = json::get_int(node, {"cpu"});
    zones[name] = json::get_string(node, {"zone"});
    racks[name] = json::get_string(node, {"rack"});
  }
  for (const json::Value& step : json::get_array(scenario, {"steps"})) {
    for (const json::Value& group : json::get_array(step, {"groups"})) {
      least[std::string(json::get_string(group, {"name"}))] = json::get_int(group, {"minCount"});
      keys[std::string(json::get_string(group, {"name"}))] = json::get_string(group, {"topologyKey"});
    }
    for (const json::Value& pod : json::get_array(step, {"pods"}))
      members[std::string(json::get_string(pod, {"name"}))] = {std::string(json::get_string(pod, {"group"})), json::get_int(pod, {"cpu"})};
  }
  std::map<std::string, std::int64_t> placed, gone;
  std::map<std::string, std::set<std::string>> domains;
  for (const auto& [pod, where] : places) {
    const Member& member = members.at(std::string(pod));
    const std::string node(json::as_view(where));
    if (node == "gone") ++gone[member.group];
    if (node == "gone" || node == "pending") continue;
    ++placed[member.group];
    if (!member.group.empty() && !keys[member.group].empty())
      domains[member.group].insert(keys[member.group] == "zone" ? zones[node] : racks[node]);
    if ((room[node] -= member.cpu) < 0) return "more on " + node + " than it has";
  }
  for (const auto& [group, count] : placed)
    if (!group.empty() && gone[group] == 0 && count < least[group]) return "half of " + group;
  for (const auto& [group, there] : domains)
    if (there.size() > 1) return group + " in two domains";
  return {};
}

TEST(PodGroups, NeverHalfAGangAndNeverTooMuchOnANode) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const json::Value scenario = random_scenario(seed);
    for (const json::Value& places : parity::play_gangs(scenario))
      ASSERT_EQ(judge(scenario, places.get_object()), "") << "seed " << seed << ": " << json::serialize(scenario);
  }
}

}  // namespace
}  // namespace berth::scheduler
