#include "descheduler/snapshot.h"

#include <algorithm>

#include "base/json_scan.h"
#include "placement/resource.h"

namespace berth::descheduler {
namespace {

PodPtr read_pod(const json::Value& document, placement::Era era) { return Pod::parse(document, era, true); }

model::NodeViewPtr read_node(const json::Value& document) {
  return std::make_shared<const model::NodeView>(model::NodeView::parse(document));
}

}  // namespace

bool prefers_no_eviction(const Pod& pod) {
  return pod.view().meta.annotation("descheduler.alpha.kubernetes.io/prefer-no-eviction") != nullptr;
}

std::int64_t amount_of(std::string_view resource, const model::Quantity& quantity) {
  return resource == "cpu" ? quantity.milli_value() : quantity.value();
}

Amounts requests_of(const placement::PodInfo& pod) {
  const placement::Resource& total = pod.request.total;
  Amounts out = {{"cpu", total.cpu_milli}, {"memory", total.memory_bytes}, {"ephemeral-storage", total.ephemeral_storage_bytes}};
  for (const auto& [name, amount] : total.scalars) out[name] = amount;
  return out;
}

Amounts capacity_of(const model::NodeView& node) {
  Amounts out;
  for (const auto& [name, quantity] : node.allocatable.empty() ? node.capacity : node.allocatable) out[name] = amount_of(name, quantity);
  return out;
}

bool is_ready(const model::NodeView& node) {
  return std::ranges::none_of(node.conditions,
                              [](const auto& condition) { return condition.type == "Ready" && condition.status != "True"; });
}

void Snapshot::add(const json::Value& object) {
  const auto kind = json::get_string(object, {"kind"});
  if (kind == "PodMetrics" || kind == "NodeMetrics") return add_usage(object);
  if (kind != "Pod") {
    if (kind == "ReplicaSet" || kind == "ReplicationController" || kind == "StatefulSet")
      template_labels[std::string(json::get_string(object, {"metadata", "uid"}))] =
          model::Labels::from_json(json::find(object, {"spec", "template", "metadata", "labels"}));
    if (kind == "PodGroup" && json::get_string(object, {"apiVersion"}).starts_with("scheduling.k8s.io/")) {
      auto group = std::make_shared<const placement::PodGroup>(placement::PodGroup::parse(object));
      groups[group->key()] = std::move(group);
    }
    if (kind == "Node")
      add(read_node(object));
    else
      cluster.upsert(object);
    return;
  }
  add(read_pod(object, cluster.era()));
}

void Snapshot::add(PodPtr pod) {
  cluster.upsert_pod(pod->info);
  const std::string key = pod->key();
  pods.insert_or_assign(key, std::move(pod));
}

std::optional<TimePoint> ready_changed(const model::NodeView& node) {
  std::optional<TimePoint> out;
  for (const model::NodeCondition& condition : node.conditions)
    if (condition.type == "Ready")
      if (const auto since = parse_rfc3339(condition.last_transition)) out = since;
  return out;
}

template <typename T>
template <typename Read>
T ReadObjects::Known<T>::get(std::string_view text, const Read& read) {
  static const json::PathScanner scanner({"metadata.uid", "metadata.resourceVersion"});
  std::array<std::string_view, 2> raw;
  const bool is_named = scanner.scan(text, raw) && raw[0].size() > 2 && raw[1].size() > 2;
  // Without both nothing tells whether it is the same.
  if (!is_named) return read(json::parse(text).value_or(json::Value()));
  std::string uid(raw[0]);
  const auto found = before.find(uid);
  if (found != before.end() && found->second.first == raw[1]) {
    auto known = before.extract(found);
    return asked.insert_or_assign(std::move(known.key()), std::move(known.mapped())).first->second.second;
  }
  T out = read(json::parse(text).value_or(json::Value()));
  asked.insert_or_assign(std::move(uid), std::pair(std::string(raw[1]), out));
  return out;
}

PodPtr ReadObjects::pod(std::string_view text, placement::Era era) {
  return pods_.get(text, [era](const json::Value& document) { return read_pod(document, era); });
}

model::NodeViewPtr ReadObjects::node(std::string_view text) { return nodes_.get(text, read_node); }

void ReadObjects::forget_others() {
  pods_.before = std::exchange(pods_.asked, {});
  nodes_.before = std::exchange(nodes_.asked, {});
}

std::optional<model::Labels> Snapshot::replacement_labels(const model::PodView& pod) const {
  const model::OwnerReference* owner = pod.meta.controller();
  const auto found = owner == nullptr ? template_labels.end() : template_labels.find(owner->uid);
  if (found == template_labels.end()) return std::nullopt;
  if (owner->kind != "StatefulSet") return found->second;
  // Those that its controller adds to each pod.
  auto pairs = *found->second.pairs();
  for (const std::string_view key : {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash"})
    if (const std::string* value = pod.meta.labels.get(key)) pairs.emplace_back(key, *value);
  return model::Labels(std::move(pairs));
}

void Snapshot::finish() {
  members_placed.clear();
  for (const auto& [key, pod] : pods)
    if (!pod->facts.group.empty() && !pod->node().empty() && !pod->view().is_terminal()) members_placed[pod->facts.group].push_back(pod);
  pods_by_node.clear();
  pods_by_owner.clear();
  for (const auto& [key, pod] : pods) {
    if (!pod->node().empty()) pods_by_node[pod->node()].push_back(pod);
    for (const auto& owner : pod->owners()) pods_by_owner[owner.uid].push_back(pod);
  }
}

void Snapshot::add_usage(const json::Value& metrics) {
  const std::string ns(json::get_string(metrics, {"metadata", "namespace"}));
  const std::string name(json::get_string(metrics, {"metadata", "name"}));
  const auto add = [](Amounts& to, const json::Value* usage) {
    for (const auto& [resource, quantity] : model::parse_resource_list(usage)) to[resource] += amount_of(resource, quantity);
  };
  if (ns.empty()) return add(node_usage[name], json::find(metrics, "usage"));
  auto& usage = pod_usage[ns + "/" + name];
  for (const json::Value& container : json::get_array(metrics, {"containers"})) add(usage, json::find(container, "usage"));
}

}  // namespace berth::descheduler
