// Nodes that come, of a shape, and the daemons that come with them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "autoscaler/node_template.h"
#include "autoscaler/snapshot.h"
#include "base/config_reader.h"
#include "model/topology_labels.h"
#include "placement/node_match.h"
#include "whatif/manifests.h"
#include "whatif/steps.h"

namespace berth::whatif {
namespace {

constexpr std::int64_t kMostNodes = 100'000;

const std::string* type_of_node(const model::Labels& labels) {
  const std::string* out = labels.get("node.kubernetes.io/instance-type");
  return out != nullptr ? out : labels.get("beta.kubernetes.io/instance-type");
}
const std::string* zone_of_node(const model::Labels& labels) {
  const std::string* out = labels.get("topology.kubernetes.io/zone");
  return out != nullptr ? out : labels.get("failure-domain.beta.kubernetes.io/zone");
}

std::vector<std::string> zones_of(const World& world, const std::string* type) {
  std::set<std::string> out;
  for (const auto* node : world.cluster().nodes()) {
    const std::string* own = type_of_node(node->labels());
    if (type != nullptr && (own == nullptr || *own != *type)) continue;
    if (const std::string* zone = zone_of_node(node->labels())) out.insert(*zone);
  }
  return {out.begin(), out.end()};
}

/// "cpu=8,memory=32Gi" as the object it stands for; nullopt when it is not of that form.
std::optional<json::Value> shape_in_words(std::string_view text) {
  if (text.find('=') == std::string_view::npos) return std::nullopt;
  json::Object out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    out[part.substr(0, equals)] = std::string(part.substr(equals + 1));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return json::Value(std::move(out));
}

/// What is wrong with an amount of a node; empty when nothing is. Resources of others have a domain in their names.
std::string wrong_amount(const std::string& name, std::string_view text, const model::Quantity& quantity) {
  static constexpr std::array<std::string_view, 4> kOwn = {"cpu", "memory", "pods", "ephemeral-storage"};
  static constexpr std::array<std::string_view, 7> kFields = {"cpu",    "memory", "pods",        "ephemeral-storage",
                                                              "labels", "taints", "instanceType"};
  if (name.find('/') == std::string::npos && !name.starts_with("hugepages-") && std::ranges::find(kOwn, name) == kOwn.end()) {
    const auto whole = std::ranges::find_if(kFields, [&](std::string_view field) { return !name.empty() && field.starts_with(name); });
    return fmt::format("add.{}: no such resource or field{}; what is not Kubernetes' own has a domain in its name (nvidia.com/gpu)", name,
                       whole == kFields.end() ? config::suggestion(name, kFields) : fmt::format("; did you mean \"{}\"?", *whole));
  }
  constexpr std::int64_t kLeastMemory = 1 << 20;
  if (name == "memory" && quantity.sign() > 0 && quantity.value() < kLeastMemory)
    return fmt::format("add.memory: \"{}\" is less than a megabyte: a unit is missing perhaps (32Gi)", text);
  return {};
}

/// A node that was described by its amounts. Keys that are neither labels, taints nor instanceType are resources.
Result<Shape> described(const World& world, const json::Object& fields) {
  auto node = std::make_shared<model::NodeView>();
  std::vector<std::pair<std::string, std::string>> labels = {{"kubernetes.io/os", "linux"}};
  std::map<std::string, int> archs;
  for (const auto* one : world.cluster().nodes())
    if (const std::string* arch = one->label("kubernetes.io/arch")) ++archs[*arch];
  const auto most = std::ranges::max_element(archs, {}, [](const auto& one) { return one.second; });
  if (most != archs.end()) labels.emplace_back("kubernetes.io/arch", most->first);
  Shape out;
  bool has_pods = false;
  for (const auto& [key, value] : fields) {
    const std::string name(key);
    if (name == "labels") {
      if (!value.is_object()) return invalid("add.labels: an object is wanted");
      for (const auto& [label, text] : value.get_object()) {
        if (!text.is_string()) return invalid(fmt::format("add.labels.{}: a text is wanted", std::string_view(label)));
        std::erase_if(labels, [&](const auto& one) { return one.first == std::string_view(label); });
        labels.emplace_back(std::string(label), std::string(json::as_view(text)));
      }
      continue;
    }
    if (name == "taints") {
      for (const json::Value& taint : value.is_array() ? value.get_array() : json::Array{}) {
        const std::string_view text = taint.is_string() ? json::as_view(taint) : std::string_view();
        const std::size_t colon = text.rfind(':'), equals = text.find('=');
        if (colon == std::string_view::npos)
          return invalid(fmt::format("add.taints: \"{}\" is no taint: KEY=VALUE:EFFECT is wanted", text));
        const std::size_t key_end = std::min(equals, colon);
        node->taints.push_back({std::string(text.substr(0, key_end)),
                                equals < colon ? std::string(text.substr(equals + 1, colon - equals - 1)) : std::string(),
                                std::string(text.substr(colon + 1))});
      }
      continue;
    }
    const std::string text = value.is_string() ? std::string(json::as_view(value)) : json::serialize(value);
    if (name == "instanceType" || name == "type") {
      labels.emplace_back("node.kubernetes.io/instance-type", text);
      out.name = text;
      continue;
    }
    const auto quantity = model::Quantity::parse(text);
    if (!quantity || quantity->sign() < 0) return invalid(fmt::format("add.{}: \"{}\" is no quantity", name, text));
    if (std::string wrong = wrong_amount(name, text, *quantity); !wrong.empty()) return invalid(std::move(wrong));
    node->allocatable.emplace_back(name, *quantity);
    has_pods |= name == "pods";
  }
  for (const char* needed : {"cpu", "memory"})
    if (std::ranges::none_of(node->allocatable, [&](const auto& one) { return one.first == needed; }))
      return invalid(fmt::format("a shape of its own needs cpu and memory: {} is missing", needed));
  if (!has_pods) node->allocatable.emplace_back("pods", model::Quantity::from_value(110));
  node->allocatable.sort({}, [](const auto& one) { return one.first; });
  node->capacity = node->allocatable;
  std::ranges::sort(labels);
  node->meta.labels = model::Labels(std::move(labels));
  node->conditions.push_back({"Ready", "True", "KubeletReady"});
  out.node = std::move(node);
  if (out.name.empty()) out.name = fmt::format("{}cpu", model::find_resource(out.node->allocatable, "cpu")->to_string());
  out.zones = zones_of(world, nullptr);
  return out;
}

/// A daemon's pod for one node: it goes there or nowhere.
placement::PodInfoPtr pinned(const placement::PodInfo& daemon, const std::string& node, const placement::Cluster& cluster) {
  auto view = std::make_shared<model::PodView>(daemon.view());
  view->meta.name += "-" + node;
  view->meta.uid = fmt::format("what-if/{}/{}", view->meta.ns, view->meta.name);
  view->node_name.clear();
  const model::Requirement here{"metadata.name", model::Requirement::Op::kIn, {node}};
  if (!view->node_affinity.required || view->node_affinity.required->terms.empty()) {
    view->node_affinity.required.emplace();
    view->node_affinity.required->terms.emplace_back();
  }
  view->node_affinity.required->terms.change_each([&](model::NodeSelectorTerm& term) { term.fields = {here}; });
  const Priority priority = priority_of(view->priority_class_name, cluster);
  if (view->priority == 0) view->priority = priority.value;
  return placement::PodInfo::make(std::move(view), cluster.era());
}

bool has_pod_of(World& world, const std::string& node, const std::string& ns, const std::string& daemon_set, std::string* which = nullptr) {
  const auto* info = world.cluster().find_node(node);
  if (info == nullptr) return false;
  for (const auto& pod : info->pods) {
    const model::OwnerReference* owner = pod->view().meta.controller();
    if (owner == nullptr || owner->kind != "DaemonSet" || owner->name != daemon_set || pod->view().ns() != ns) continue;
    if (which != nullptr) *which = pod->key;
    return true;
  }
  return false;
}

/// Where no DaemonSet is known: what runs on the node that the new one is like, by daemons, comes to it too.
void copy_daemons(World& world, const Shape& shape, const std::string& node) {
  const auto* like = world.cluster().find_node(shape.like);
  if (like == nullptr) return;
  for (const placement::PodInfoPtr& pod : std::vector(like->pods)) {
    const model::OwnerReference* owner = pod->view().meta.controller();
    if (owner == nullptr || owner->kind != "DaemonSet") continue;
    auto view = std::make_shared<model::PodView>(pod->view());
    view->meta.name = fmt::format("{}-{}", owner->name, node);
    view->meta.uid = "what-if/" + view->meta.key();
    view->node_name.clear();
    view->node_affinity.required.reset();
    const auto copy = placement::PodInfo::make(std::move(view), world.cluster().era());
    if (world.add(copy, world.find(pod->key)->read->facts, "its DaemonSet puts it on the new node")) world.hold(copy->key, node);
  }
}

}  // namespace

Result<Shape> shape_of(const World& world, const json::Value& shape) {
  if (shape.is_object()) return described(world, shape.get_object());
  if (!shape.is_string()) return invalid("a shape is an instance type, a node's name, cpu=…,memory=…, or an object of these");
  const std::string text(json::as_view(shape));
  if (const auto object = shape_in_words(text)) return described(world, object->get_object());
  std::set<std::string> types;
  const auto use = [&](const placement::NodeInfo& node, const std::string& name) {
    Shape out{node.node, name, node.name, {}};
    const std::string* type = type_of_node(node.labels());
    out.zones = zones_of(world, type);
    return out;
  };
  if (const auto* node = world.cluster().find_node(text); node != nullptr && node->node != nullptr) {
    Shape out = use(*node, text + "-like");
    if (const std::string* zone = zone_of_node(node->labels())) out.zones = {*zone};
    return out;
  }
  const placement::NodeInfo* best = nullptr;
  for (const auto* node : world.cluster().nodes()) {
    const std::string* type = type_of_node(node->labels());
    if (type == nullptr) continue;
    types.insert(*type);
    if (*type == text && (best == nullptr || node->name < best->name)) best = node;
  }
  if (best != nullptr) return use(*best, text);
  const std::vector<std::string_view> known(types.begin(), types.end());
  return invalid(fmt::format("no node is called \"{}\" or has that instance type{}; {} (or describe it: cpu=8,memory=32Gi)", text,
                             config::suggestion(text, known),
                             types.empty() ? std::string("no node has a label node.kubernetes.io/instance-type")
                                           : fmt::format("there are: {}", fmt::join(types, ", "))));
}

std::string add_node(World& world, const Shape& shape, const std::string& zone) {
  std::string name;
  for (std::size_t number = 1; name.empty() || world.node(name) != nullptr; ++number) name = fmt::format("new-{}-{}", shape.name, number);
  auto view = std::make_shared<model::NodeView>(*autoscaler::node_like(*shape.node, name));
  view->meta.uid = "what-if/Node/" + name;
  if (!zone.empty()) {
    auto labels = *view->meta.labels.pairs();
    bool has_any = false;
    for (auto& [key, value] : labels)
      if (key == "topology.kubernetes.io/zone" || key == "failure-domain.beta.kubernetes.io/zone") value = zone, has_any = true;
    if (!has_any) labels.emplace_back("topology.kubernetes.io/zone", zone);
    std::ranges::sort(labels);
    view->meta.labels = model::Labels(std::move(labels));
  }
  world.put_node(std::move(view));
  world.node_states[name] = "added";
  if (!world.tables().kinds.contains("DaemonSet")) copy_daemons(world, shape, name);
  return name;
}

Result<void> add_nodes(World& world, const json::Value& change) {
  if (const json::Value* many = json::find(change, "count"); many != nullptr && (!many->is_number() || many->is_double()))
    return invalid(fmt::format("count: {} is no whole number", json::serialize(*many)));
  if (const json::Value* where = json::find(change, "zone"); where != nullptr && !where->is_string())
    return invalid(fmt::format("zone: {} is no text", json::serialize(*where)));
  const std::int64_t count = json::get_int(change, {"count"}, 1);
  if (count < 1 || count > kMostNodes) return invalid(fmt::format("count: {} is not between 1 and {}", count, kMostNodes));
  auto shape = shape_of(world, *json::find(change, "add"));
  if (!shape) return std::unexpected(shape.error());
  const std::string zone(json::get_string(change, {"zone"}));
  if (!zone.empty()) {
    const std::vector<std::string> known = zones_of(world, nullptr);
    if (std::ranges::find(known, zone) == known.end()) world.note(fmt::format("zone {} is a new one: no node is in it yet", zone));
    shape->zones = {zone};
  }
  if (shape->zones.size() > 1)
    world.note(fmt::format("the new nodes come to the zones {} in turn (\"zone\" says another)", fmt::join(shape->zones, ", ")));
  if (!world.tables().kinds.contains("DaemonSet") && !world.tables().known_whole.contains("daemonsets"))
    world.note("no daemonsets among the objects: on new nodes come copies of what daemons run on the node that they are like");
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i)
    names.push_back(add_node(world, *shape, shape->zones.empty() ? "" : shape->zones[static_cast<std::size_t>(i) % shape->zones.size()]));
  keep_daemons(world, names);
  world.settle();
  return {};
}

void keep_daemons(World& world, const std::vector<std::string>& nodes) {
  const auto& objects = world.tables().objects;
  for (auto at = objects.lower_bound("DaemonSet/"); at != objects.end() && at->first.starts_with("DaemonSet/"); ++at) {
    const json::Value& daemon_set = *at->second;
    const std::string ns(json::get_string(daemon_set, {"metadata", "namespace"})), name(json::get_string(daemon_set, {"metadata", "name"}));
    const placement::PodInfoPtr pod = autoscaler::daemon_pod(daemon_set, world.cluster().era());
    const json::Value* pod_template = json::find(daemon_set, {"spec", "template"});
    const model::PodFacts facts = facts_of_new(pod_template == nullptr ? json::Value() : *pod_template);
    for (const std::string& node : nodes) {
      const model::NodeViewPtr view = world.node(node);
      if (view == nullptr || world.node_states[node] == "lost") continue;
      const placement::NodeMatch match = placement::match_node(pod->view(), node, view->labels(), view->taints);
      std::string present;
      const bool is_there = has_pod_of(world, node, ns, name, &present);
      if (is_there && !match.may_stay)
        world.leave(present,
                    {.outcome = "deleted", .reason = fmt::format("DaemonSet {} wants no pod there any more", name), .comes_back = false});
      if (is_there || !match.belongs) continue;
      const placement::PodInfoPtr daemon = pinned(*pod, node, world.cluster());
      // Daemons tolerate that a node is not ready yet: they are there before anybody else may come.
      if (world.add(daemon, facts, fmt::format("DaemonSet {} wants a pod on {}", name, node))) world.try_now(daemon->key);
    }
  }
}

}  // namespace berth::whatif
