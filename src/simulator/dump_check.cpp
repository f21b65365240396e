// What is odd about a dump, said before it is run.
#include <fmt/format.h>

#include <map>
#include <set>

#include "simulator/scenario_values.h"

namespace berth::simulator {
namespace {

using json::get_string;

constexpr std::size_t kMostNamed = 3;

/// "a, b, c and 4 more"
std::string some_of(const std::set<std::string>& names) {
  std::string out;
  std::size_t told = 0;
  for (const std::string& name : names) {
    if (told++ == kMostNamed) return fmt::format("{} and {} more", out, names.size() - kMostNamed);
    out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

/// The controllers of pods that are not among the objects, as "ReplicaSet default/web-1".
std::set<std::string> missing_controllers(const std::vector<json::Value>& objects, const std::set<std::string>& there) {
  std::set<std::string> out;
  for (const json::Value& object : objects) {
    if (get_string(object, {"kind"}) != "Pod") continue;
    const std::string_view ns = get_string(object, {"metadata", "namespace"});
    for (const json::Value& owner : json::get_array(object, {"metadata", "ownerReferences"})) {
      const std::string_view kind = get_string(owner, {"kind"});
      // A mirror pod's node, and custom controllers, make nothing here.
      if (!json::get_bool(owner, {"controller"}) || kind == "Node") continue;
      const std::string key = fmt::format("{} {}/{}", kind, ns, get_string(owner, {"name"}));
      if (!there.contains(key)) out.insert(key);
    }
  }
  return out;
}

}  // namespace

void check_dump(const config::Reader& at, const std::vector<json::Value>& objects) {
  std::map<std::string, std::string> uids;
  std::set<std::string> mixed, cut_off, there, kinds;
  for (const json::Value& object : objects) {
    const std::string kind(get_string(object, {"kind"})), uid(get_string(object, {"metadata", "uid"}));
    const std::string key =
        fmt::format("{} {}/{}", kind, get_string(object, {"metadata", "namespace"}), get_string(object, {"metadata", "name"}));
    kinds.insert(kind);
    there.insert(key);
    const auto [known, is_new] = uids.try_emplace(key, uid);
    if (!is_new && !uid.empty() && !known->second.empty() && known->second != uid) mixed.insert(key);
    if (kind == "Pod" && json::get_array(object, {"spec", "containers"}).empty()) cut_off.insert(key);
  }
  if (objects.empty()) return;
  if (!cut_off.empty()) at.problem(fmt::format("{}: no spec.containers: the dump seems to be cut off", some_of(cut_off)));
  if (!mixed.empty())
    at.problem(
        fmt::format("{}: two objects of one name with two uids: the dump is of several clusters, or of several moments", some_of(mixed)));
  if (!kinds.contains("Node")) at.note("no Nodes in the dump: its pods on nodes are left out");
  if (const auto missing = missing_controllers(objects, there); !missing.empty())
    at.note(fmt::format("the dump has pods of {}, and not these themselves: nobody replaces such a pod", some_of(missing)));
  for (const char* kind : {"PodDisruptionBudget", "PriorityClass"})
    if (!kinds.contains(kind)) at.note(fmt::format("no {} in the dump: the simulation goes without", kind));
}

}  // namespace berth::simulator
