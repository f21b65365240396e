#include "whatif/outrun.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace berth::whatif {
namespace {

constexpr std::array<std::string_view, 5> kScaled = {"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job"};

/// What decides on a node beside its pods.
std::string fingerprint(const model::NodeView& node) {
  std::uint64_t hash = 1469598103934665603ULL;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0xFF) * 1099511628211ULL;
  };
  for (const auto& [key, value] : node.labels().pairs()) add(key), add(value);
  for (const model::Taint& taint : node.taints) {
    // These two come and go with the node's readiness, which is told apart.
    if (taint.key.starts_with("node.kubernetes.io/")) continue;
    add(taint.key), add(taint.value), add(taint.effect);
  }
  for (const auto& [name, quantity] : node.allocatable) add(name), add(quantity.to_string());
  return fmt::format("{:016x}", hash);
}

bool is_ready(const model::NodeView& node) {
  return std::ranges::none_of(node.conditions, [](const model::NodeCondition& one) { return one.type == "Ready" && one.status != "True"; });
}

json::Object state_of(const placement::NodeInfo& node) {
  return {{"uid", node.node->meta.uid},
          {"pods", static_cast<std::int64_t>(node.pods.size())},
          {"cpuMilli", node.requested.cpu_milli},
          {"memoryBytes", node.requested.memory_bytes},
          {"ready", is_ready(*node.node)},
          {"schedulable", !node.node->unschedulable},
          {"fingerprint", fingerprint(*node.node)}};
}

/// null: it is not there.
json::Value state_of(std::string_view kind, std::string_view key, const placement::Cluster& cluster, const Tables& present) {
  if (kind == "Node") {
    const placement::NodeInfo* node = cluster.find_node(key);
    return node == nullptr || node->node == nullptr ? json::Value() : json::Value(state_of(*node));
  }
  if (kind == "Pod") {
    const auto pod = present.pods.find(std::string(key));
    if (pod == present.pods.end()) return nullptr;
    return json::Object{
        {"uid", pod->second.view().meta.uid}, {"node", pod->second.node}, {"deleting", pod->second.view().meta.is_deleting}};
  }
  if (kind == "PodDisruptionBudget") {
    const Budget* budget = present.budgets.find(key);
    if (budget == nullptr) return nullptr;
    return json::Object{{"uid", json::get_string(budget->document, {"metadata", "uid"})}, {"allowed", budget->allowed()}};
  }
  const auto object = present.objects.find(fmt::format("{}/{}", kind, key));
  if (object == present.objects.end()) return nullptr;
  return json::Object{{"uid", json::get_string(*object->second, {"metadata", "uid"})},
                      {"replicas", json::get_int(*object->second, {"spec", kind == "Job" ? "parallelism" : "replicas"}, 1)}};
}

/// "on node-3", "without a node"
std::string place_of(const json::Value& pod) {
  const std::string_view node = json::get_string(pod, {"node"});
  return node.empty() ? std::string("without a node") : fmt::format("on {}", node);
}

std::string change_of_node(const json::Value& was, const json::Value& is) {
  std::vector<std::string> out;
  const auto flag = [&](std::string_view key, std::string_view yes, std::string_view no) {
    if (json::get_bool(was, {key}) != json::get_bool(is, {key})) out.emplace_back(json::get_bool(is, {key}) ? yes : no);
  };
  flag("ready", "is ready", "is not ready");
  flag("schedulable", "is schedulable", "is cordoned");
  if (json::get_string(was, {"fingerprint"}) != json::get_string(is, {"fingerprint"}))
    out.emplace_back("has other labels, taints or amounts");
  const std::int64_t pods = json::get_int(is, {"pods"}), before = json::get_int(was, {"pods"});
  if (pods != before)
    out.push_back(fmt::format("has {} pods (was: {})", pods, before));
  else if (json::get_int(was, {"cpuMilli"}) != json::get_int(is, {"cpuMilli"}) ||
           json::get_int(was, {"memoryBytes"}) != json::get_int(is, {"memoryBytes"}))
    out.emplace_back("has other pods");
  return fmt::format("{}", fmt::join(out, ", "));
}

bool is_another(const json::Value& was, const json::Value& is) {
  const std::string_view old_uid = json::get_string(was, {"uid"}), uid = json::get_string(is, {"uid"});
  return !old_uid.empty() && !uid.empty() && old_uid != uid;
}

std::string change_of(std::string_view kind, const json::Value& was, const json::Value& is) {
  if (is_another(was, is)) return "is another one of that name";
  if (kind == "Node") return change_of_node(was, is);
  if (kind == "Pod") {
    if (json::get_string(was, {"node"}) != json::get_string(is, {"node"}))
      return fmt::format("is {} (was {})", place_of(is), place_of(was));
    return !json::get_bool(was, {"deleting"}) && json::get_bool(is, {"deleting"}) ? "is being deleted" : "";
  }
  const std::string_view key = kind == "PodDisruptionBudget" ? "allowed" : "replicas";
  const std::int64_t before = json::get_int(was, {key}), now = json::get_int(is, {key});
  if (before == now) return "";
  return kind == "PodDisruptionBudget" ? fmt::format("allows {} evictions (was: {})", now, before)
                                       : fmt::format("wants {} pods (was: {})", now, before);
}

std::string lower_case(std::string_view kind) {
  std::string out(kind);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// A line a row of the answer, of what it tells to do or to expect.
std::vector<std::string> rows_of(const json::Value& answer, std::string_view list) {
  std::vector<std::string> out;
  for (const json::Value& one : json::get_array(answer, {list})) {
    const auto text = [&](std::string_view key) { return json::get_string(one, {key}); };
    if (list == "moves")
      out.push_back(fmt::format("{} goes to {}", text("pod"), text("to")));
    else if (list == "pending")
      out.push_back(fmt::format("{} has no node", text("pod")));
    else if (list == "evictions")
      out.push_back(fmt::format("{} is {} from {}", text("pod"), text("outcome"), text("node")));
    else
      out.push_back(fmt::format("the loss of {} leaves {} pods pending, {} lost, {} refused, {} budgets broken", text("lost"),
                                json::get_int(one, {"pendingCount"}), json::get_int(one, {"lostPodsCount"}),
                                json::get_int(one, {"blockedCount"}), json::get_array(one, {"broken"}).size()));
  }
  std::ranges::sort(out);
  return out;
}

std::string serialized(const json::Value& root, json::Path path) {
  const json::Value* value = json::find(root, path);
  return value == nullptr ? std::string() : json::serialize(*value);
}

}  // namespace

void Moment::see(const json::Value& object) {
  const std::string_view text = json::get_string(object, {"metadata", "resourceVersion"});
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  revision = std::max(revision, number);
  const auto stamp = [&](std::string_view time) {
    // Of this form stamps have the order of their times.
    if (time.size() == 20 && time.back() == 'Z' && time > newest) newest = time;
  };
  stamp(json::get_string(object, {"metadata", "creationTimestamp"}));
  for (const json::Value& condition : json::get_array(object, {"status", "conditions"})) {
    stamp(json::get_string(condition, {"lastHeartbeatTime"}));
    stamp(json::get_string(condition, {"lastTransitionTime"}));
  }
}

json::Object Moment::to_json() const {
  json::Object out;
  if (revision > 0) out["revision"] = std::to_string(revision);
  if (!newest.empty()) out["newest"] = newest;
  return out;
}

json::Array seen_by(const json::Value& answer, const json::Value& question, const placement::Cluster& cluster, const Tables& present) {
  std::map<std::string_view, std::set<std::string>> keys;
  const auto take = [&](std::string_view kind, const json::Value& one, std::string_view key) {
    if (const std::string_view text = json::get_string(one, {key}); !text.empty()) keys[kind].emplace(text);
  };
  for (const char* list : {"moves", "pending", "evictions"})
    for (const json::Value& one : json::get_array(answer, {list})) {
      take("Pod", one, "pod");
      for (const char* node : {"from", "to", "node"}) take("Node", one, node);
      take("PodDisruptionBudget", one, "budget");
    }
  for (const json::Value& one : json::get_array(answer, {"nodes"})) take("Node", one, "name");
  for (const json::Value& one : json::get_array(answer, {"budgets"})) take("PodDisruptionBudget", one, "budget");
  for (const json::Value& change : json::get_array(question, {"changes"}))
    for (const std::string_view kind : kScaled) {
      const std::string_view named = json::get_string(change, {"scale"});
      const std::size_t kind_end = std::ranges::count(named, '/') == 2 ? named.find('/') + 1 : 0;
      if (!named.empty()) keys[kind].emplace(named.substr(kind_end));
    }
  json::Array out;
  for (const auto& [kind, names] : keys)
    for (const std::string& name : names) {
      json::Value state = state_of(kind, name, cluster, present);
      if (state.is_null()) continue;  // It came with the question.
      json::Object entry{{"kind", kind}, {"name", name}};
      for (const auto& [key, value] : state.get_object()) entry[key] = value;
      out.push_back(std::move(entry));
    }
  return out;
}

std::vector<std::string> changed_since(const json::Array& seen, const placement::Cluster& cluster, const Tables& present) {
  std::vector<std::string> out;
  std::size_t gone = 0;
  for (const json::Value& was : seen) {
    const std::string_view kind = json::get_string(was, {"kind"}), name = json::get_string(was, {"name"});
    const json::Value is = state_of(kind, name, cluster, present);
    const std::string words = is.is_null() ? std::string("is gone") : change_of(kind, was, is);
    gone += is.is_null() || is_another(was, is);
    if (!words.empty()) out.push_back(fmt::format("{} {} {}", lower_case(kind), name, words));
  }
  if (!seen.empty() && gone == seen.size())
    out.insert(out.begin(), "nothing that the answer speaks of is here: it is perhaps another cluster's");
  return out;
}

std::vector<std::string> differences(const json::Value& then, const json::Value& now) {
  constexpr std::size_t kMostShown = 5;
  std::vector<std::string> out;
  for (const std::string_view list : {"moves", "pending", "evictions", "each"}) {
    const std::vector<std::string> before = rows_of(then, list), after = rows_of(now, list);
    std::vector<std::string> gone, come;
    std::ranges::set_difference(before, after, std::back_inserter(gone));
    std::ranges::set_difference(after, before, std::back_inserter(come));
    for (const auto& [rows, words] : {std::pair(&gone, "no more"), std::pair(&come, "new")}) {
      for (std::size_t i = 0; i < std::min(kMostShown, rows->size()); ++i) out.push_back(fmt::format("{}: {}", words, (*rows)[i]));
      if (rows->size() > kMostShown) out.push_back(fmt::format("{}: and {} more of its {}", words, rows->size() - kMostShown, list));
    }
  }
  if (serialized(then, {"pack", "steps"}) != serialized(now, {"pack", "steps"})) out.emplace_back("the plan's steps are others");
  if (serialized(then, {"capacity", "total"}) != serialized(now, {"capacity", "total"}))
    out.push_back(
        fmt::format("{} of the pod fit (was: {})", json::get_int(now, {"capacity", "total"}), json::get_int(then, {"capacity", "total"})));
  return out;
}

}  // namespace berth::whatif
