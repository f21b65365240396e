// Nodes that go, and who goes with them.
#include <fmt/format.h>

#include <algorithm>

#include "model/topology_labels.h"
#include "placement/node_match.h"
#include "whatif/retries.h"
#include "whatif/steps.h"
#include "whatif/text_table.h"

namespace berth::whatif {
namespace {

constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";

/// The pod's tolerations of NoExecute taints: nullopt: it must go; else for how long it may stay, in seconds (-1: for ever).
std::optional<std::int64_t> tolerated_for(const model::PodView& pod, const model::Taint& taint) {
  std::optional<std::int64_t> out;
  for (const model::Toleration& one : pod.tolerations) {
    if (!one.tolerates(taint)) continue;
    const std::int64_t seconds = one.toleration_seconds.value_or(-1);
    if (!out || (seconds >= 0 && (*out < 0 || seconds < *out))) out = seconds;
  }
  return out;
}

/// Nobody knows of a pod on a lost node that it has ended: a StatefulSet's successor would have its name, and some Jobs want to know first.
bool waits_for_its_end(const World& world, const Record& record) {
  if (record.owner() == nullptr) return false;
  if (record.owner()->kind != "Job") return record.owner()->kind == "StatefulSet";
  const json::Value* job = world.tables().find("Job", record.view().ns(), record.owner()->name);
  return job != nullptr && verdict_of(*job, record.view(), {}).waits;
}

/// Everybody leaves a node whose NoExecute taints he does not tolerate for ever.
void evict_by_taints(World& world, const std::string& node, bool is_lost) {
  const model::NodeViewPtr view = world.node(node);
  for (const std::string& pod : world.pods_on(node)) {
    const Record& record = *world.find(pod);
    bool goes = false;
    for (const model::Taint& taint : view->taints)
      if (taint.effect == "NoExecute") goes |= tolerated_for(record.view(), taint).value_or(0) >= 0;
    if (!goes) {
      if (is_lost && !record.is_daemon() && !record.is_mirror())
        world.note(fmt::format("{} tolerates for ever that its node is unreachable: nothing takes its place", pod));
      continue;
    }
    if (record.is_daemon() || record.is_mirror()) {
      if (!is_lost) world.leave(pod, {.outcome = "deleted", .reason = world.reason(), .comes_back = false});
      continue;
    }
    const bool waits = is_lost && waits_for_its_end(world, record);
    world.leave(pod, {.outcome = "evicted",
                      .reason = world.reason(),
                      .is_parked = waits,
                      .when = waits ? fmt::format("once the lost pod is known to have ended: delete Node {} or force-delete the pod", node)
                                    : std::string()});
  }
}

std::string nearest_of(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kMost = 20'000;
  std::vector<std::string_view> views(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMost)));
  return config::suggestion(word, views);
}

std::string some_of(const std::set<std::string>& all) {
  constexpr std::size_t kMost = 10;
  std::vector<std::string> some(all.begin(), all.end());
  std::ranges::sort(some, comes_before);
  if (some.size() > kMost) some.resize(kMost);
  return fmt::format("{}{}", fmt::join(some, ", "), all.size() > kMost ? fmt::format(" and {} more", all.size() - kMost) : "");
}

/// The value that people mean by "b": "zone-b", "us-east-1b"; several when it is not clear.
std::set<std::string> values_meant(std::string_view said, const std::set<std::string>& values) {
  if (values.contains(std::string(said))) return {std::string(said)};
  std::set<std::string> out;
  for (const std::string& value : values) {
    if (said.empty() || value.size() <= said.size() || !value.ends_with(said)) continue;
    const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
    const auto is_number = [](unsigned char c) { return std::isdigit(c) != 0; };
    const auto before = static_cast<unsigned char>(value[value.size() - said.size() - 1]), first = static_cast<unsigned char>(said.front());
    if (!(is_letter(before) && is_letter(first)) && !(is_number(before) && is_number(first))) out.insert(value);
  }
  return out;
}

Result<void> choose_by_label(const World& world, std::string_view said_key, const std::string& said, std::set<std::string>& out) {
  const std::string key = label_meant(world, said_key);
  std::set<std::string> values, keys;
  for (const auto* node : world.cluster().nodes()) {
    for (const auto& [name, text] : node->labels().pairs()) keys.insert(name);
    if (const std::string* has = node->label(key)) values.insert(*has);
  }
  if (values.empty())
    return invalid(fmt::format("no node has a label \"{}\"{}; there are: {}", key,
                               nearest_of(key, std::vector<std::string>(keys.begin(), keys.end())), some_of(keys)));
  // Only where a word stands for the label, a part may stand for the value.
  const std::set<std::string> meant = key == said_key ? std::set{said} : values_meant(said, values);
  if (meant.size() > 1) return invalid(fmt::format("{}={} may be any of {}: say which", said_key, said, some_of(meant)));
  if (meant.empty() || !values.contains(*meant.begin()))
    return invalid(fmt::format("no node has {}={}{}; there are: {}", key, said,
                               nearest_of(said, std::vector<std::string>(values.begin(), values.end())), some_of(values)));
  for (const auto* node : world.cluster().nodes())
    if (const std::string* has = node->label(key); has != nullptr && *has == *meant.begin()) out.insert(node->name);
  return {};
}

Result<void> choose_one(const World& world, std::string_view which, std::set<std::string>& out) {
  if (world.node(which) != nullptr) {
    out.emplace(which);
    return {};
  }
  const std::size_t equals = which.find('=');
  if (equals != std::string_view::npos) return choose_by_label(world, which.substr(0, equals), std::string(which.substr(equals + 1)), out);
  const std::vector<std::string> names = world.node_names();
  return invalid(fmt::format("no node \"{}\"{} (a name, or KEY=VALUE of a label); there are: {}", which, nearest_of(which, names),
                             some_of(std::set<std::string>(names.begin(), names.end()))));
}

void change_node(World& world, const std::string& name, const std::function<void(model::NodeView&)>& change) {
  auto view = std::make_shared<model::NodeView>(*world.node(name));
  change(*view);
  world.put_node(std::move(view));
}

void set_label_of(model::NodeView& node, const std::string& key, const std::string* value) {
  auto pairs = *node.meta.labels.pairs();
  std::erase_if(pairs, [&](const auto& one) { return one.first == key; });
  if (value != nullptr) pairs.emplace_back(key, *value);
  std::ranges::sort(pairs);
  node.meta.labels = model::Labels(std::move(pairs));
}

}  // namespace

std::string label_meant(const World& world, std::string_view key) {
  static const std::map<std::string_view, std::vector<std::string_view>> kMeant = {
      {"zone", {std::string_view(model::kZoneLabel.present), model::kZoneLabel.old}},
      {"region", {"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"}},
      {"hostname", {"kubernetes.io/hostname"}},
      {"type", {"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}},
      {"arch", {"kubernetes.io/arch"}}};
  const auto has = [&](std::string_view label) {
    return std::ranges::any_of(world.cluster().nodes(), [&](const auto* node) { return node->label(label) != nullptr; });
  };
  const auto meant = kMeant.find(key);
  if (meant == kMeant.end() || has(key)) return std::string(key);
  for (const std::string_view label : meant->second)
    if (has(label)) return std::string(label);
  return std::string(meant->second.front());
}

std::string words_of(const std::vector<std::string>& nodes) {
  return nodes.size() == 1 ? nodes.front() : fmt::format("{} nodes", nodes.size());
}

Result<std::vector<std::string>> choose_nodes(const World& world, const json::Value& which) {
  std::set<std::string> out;
  const auto one = [&](const json::Value& value) -> Result<void> {
    if (!value.is_string()) return invalid("a node's name or KEY=VALUE of a label is wanted");
    return choose_one(world, json::as_view(value), out);
  };
  if (!which.is_array()) {
    if (auto done = one(which); !done) return std::unexpected(done.error());
  } else {
    for (const json::Value& value : which.get_array())
      if (auto done = one(value); !done) return std::unexpected(done.error());
    if (out.empty()) return invalid("an empty list names no node");
  }
  return std::vector<std::string>(out.begin(), out.end());
}

void cordon(World& world, const std::vector<std::string>& nodes, bool is_cordoned) {
  for (const std::string& node : nodes) {
    change_node(world, node, [&](model::NodeView& view) {
      view.unschedulable = is_cordoned;
      std::erase_if(view.taints, [](const model::Taint& taint) { return taint.key == kUnschedulable; });
      if (is_cordoned) view.taints.push_back({std::string(kUnschedulable), {}, "NoSchedule"});
    });
    world.node_states[node] = is_cordoned ? "cordoned" : "changed";
  }
  if (is_cordoned) return;
  keep_daemons(world, nodes);
  world.settle();
}

void drain(World& world, const std::vector<std::string>& nodes) {
  cordon(world, nodes, true);
  for (const std::string& node : nodes) {
    std::vector<std::string> left;
    std::size_t with_local_storage = 0, bare = 0;
    for (const std::string& pod : world.pods_on(node)) {
      const Record& record = *world.find(pod);
      if (record.is_mirror() || record.is_daemon()) continue;
      with_local_storage += model::has_local_storage(record.read->facts, record.view().meta, model::LocalStorageRule::kDrain);
      bare += record.owner() == nullptr;
      left.push_back(pod);
    }
    if (with_local_storage > 0)
      world.note(fmt::format("kubectl drain {} wants --delete-emptydir-data: {} of its pods have emptyDir volumes, whose content is lost",
                             node, with_local_storage));
    if (bare > 0) world.note(fmt::format("kubectl drain {} wants --force: {} of its pods have no controller", node, bare));
    // Evictions that a budget refuses are tried again once successors run.
    std::map<std::string, Refusal> refused;
    for (bool moved = true; moved && !left.empty();) {
      moved = false;
      refused.clear();
      std::vector<std::string> still;
      for (const std::string& pod : left) {
        auto why = world.evict(pod, world.reason());
        if (!why) {
          moved = true;
          continue;
        }
        refused.emplace(pod, std::move(*why));
        still.push_back(pod);
      }
      left = std::move(still);
      world.settle();
    }
    for (const auto& [pod, why] : refused) world.block(pod, why);
    world.node_states[node] = left.empty() ? "drained" : "cordoned";
  }
}

void fail_nodes(World& world, const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) {
    change_node(world, node, [&](model::NodeView& view) {
      std::erase_if(view.taints, [](const model::Taint& taint) { return taint.key == kUnreachable; });
      view.taints.push_back({std::string(kUnreachable), {}, "NoSchedule"});
      view.taints.push_back({std::string(kUnreachable), {}, "NoExecute"});
      view.conditions.change_each([](model::NodeCondition& condition) {
        if (condition.type == "Ready") condition.status = "Unknown", condition.reason = "NodeStatusUnknown";
      });
    });
    world.node_states[node] = "lost";
  }
  // Their pods stop counting as healthy all at once.
  for (const std::string& node : nodes) evict_by_taints(world, node, true);
  world.settle();
  world.unpark();
  world.settle();
}

void remove_nodes(World& world, const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) {
    for (const std::string& pod : world.pods_on(node)) {
      const Record& record = *world.find(pod);
      const bool is_its_own = record.is_daemon() || record.is_mirror();
      world.leave(pod, {.outcome = is_its_own ? "" : "evicted", .reason = world.reason(), .comes_back = !is_its_own});
    }
    world.drop_node(node);
    world.node_states[node] = "removed";
  }
  world.settle();
}

Result<void> label_nodes(World& world, const std::vector<std::string>& nodes, const json::Value& labels) {
  if (!labels.is_object() || labels.get_object().empty())
    return invalid("labels: an object such as {\"disk\": \"ssd\", \"old\": null} is wanted");
  for (const auto& [key, value] : labels.get_object())
    if (!value.is_string() && !value.is_null()) return invalid(fmt::format("labels.{}: a text or null is wanted", std::string_view(key)));
  for (const std::string& node : nodes) {
    change_node(world, node, [&](model::NodeView& view) {
      for (const auto& [key, value] : labels.get_object()) {
        const std::string text = value.is_string() ? std::string(json::as_view(value)) : std::string();
        set_label_of(view, std::string(key), value.is_string() ? &text : nullptr);
      }
    });
    world.node_states[node] = "changed";
  }
  keep_daemons(world, nodes);
  world.settle();
  return {};
}

namespace {

/// "key=value:Effect", "key:Effect", "key-", "key:Effect-".
struct TaintChange {
  model::Taint taint;
  bool is_removal = false;
};
Result<TaintChange> parse_taint_change(std::string_view text) {
  TaintChange out;
  out.is_removal = text.ends_with('-');
  if (out.is_removal) text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  out.taint.effect = colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1));
  const std::string_view head = text.substr(0, colon);
  const std::size_t equals = head.find('=');
  out.taint.key = std::string(head.substr(0, equals));
  if (equals != std::string_view::npos) out.taint.value = std::string(head.substr(equals + 1));
  static constexpr std::string_view kEffects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
  const bool is_effect = std::ranges::find(kEffects, out.taint.effect) != std::end(kEffects);
  if (out.taint.key.empty() || (!is_effect && !(out.is_removal && out.taint.effect.empty())))
    return invalid(
        fmt::format("\"{}\" is no taint: KEY=VALUE:EFFECT or KEY- is wanted, EFFECT one of NoSchedule, PreferNoSchedule, NoExecute{}", text,
                    config::suggestion(out.taint.effect, kEffects)));
  return out;
}

}  // namespace

Result<void> taint_nodes(World& world, const std::vector<std::string>& nodes, const json::Value& taints) {
  std::vector<TaintChange> changes;
  if (!taints.is_array()) return invalid("taints: a list of texts such as \"dedicated=gpu:NoSchedule\" is wanted");
  for (const json::Value& one : taints.get_array()) {
    auto change = parse_taint_change(one.is_string() ? json::as_view(one) : std::string_view());
    if (!change) return std::unexpected(change.error());
    changes.push_back(std::move(*change));
  }
  for (const std::string& node : nodes) {
    change_node(world, node, [&](model::NodeView& view) {
      for (const TaintChange& change : changes) {
        const std::size_t erased = std::erase_if(view.taints, [&](const model::Taint& one) {
          return one.key == change.taint.key && (change.taint.effect.empty() || one.effect == change.taint.effect);
        });
        if (change.is_removal && erased == 0) world.note(fmt::format("node {} has no taint {} to take away", node, change.taint.key));
        if (!change.is_removal) view.taints.push_back(change.taint);
      }
    });
    world.node_states[node] = "changed";
    evict_by_taints(world, node, false);
  }
  keep_daemons(world, nodes);
  world.settle();
  return {};
}

Result<void> set_allocatable(World& world, const std::vector<std::string>& nodes, const json::Value& resources) {
  if (!resources.is_object() || resources.get_object().empty()) return invalid("resources: an object such as {\"cpu\": \"4\"} is wanted");
  std::vector<std::pair<std::string, model::Quantity>> amounts;
  for (const auto& [key, value] : resources.get_object()) {
    const std::string text = value.is_string() ? std::string(json::as_view(value)) : json::serialize(value);
    const auto quantity = model::Quantity::parse(text);
    if (!quantity || quantity->sign() < 0) return invalid(fmt::format("resources.{}: \"{}\" is no quantity", std::string_view(key), text));
    amounts.emplace_back(std::string(key), *quantity);
  }
  for (const std::string& node : nodes) {
    change_node(world, node, [&](model::NodeView& view) {
      for (const auto& [name, quantity] : amounts) {
        view.allocatable.erase_if([&](const auto& one) { return one.first == name; });
        view.allocatable.emplace_back(name, quantity);
      }
      view.allocatable.sort({}, [](const auto& one) { return one.first; });
    });
    world.node_states[node] = "changed";
    const auto* info = world.cluster().find_node(node);
    if (info->requested.cpu_milli > info->allocatable.cpu_milli || info->requested.memory_bytes > info->allocatable.memory_bytes)
      world.note(fmt::format(
          "node {} has given away more than it would have: its pods stay while its kubelet runs, and a restart refuses some", node));
  }
  world.settle();
  return {};
}

}  // namespace berth::whatif
