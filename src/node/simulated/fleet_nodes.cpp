// What a fleet's Node objects are made of: addresses, labels, resources, status. The rest of a node's life is in fleet.cpp.
#include "base/split.h"
#include "model/quantity.h"
#include "model/topology_labels.h"
#include "node/eviction/policies.h"
#include "node/simulated/fleet_state.h"

namespace berth::node::simulated {
namespace {

json::Object to_object(const std::map<std::string, std::string>& map) {
  json::Object out;
  for (const auto& [key, value] : map) out[key] = value;
  return out;
}

/// What a kubelet would add to a node that was made without it.
json::Object missing_topology_labels(const json::Value& node) {
  const json::Object& there = json::get_object(node, {"metadata", "labels"});
  json::Object labels = there;
  model::complete_topology_labels(labels);
  for (const auto& [key, value] : there) labels.erase(key);
  return labels;
}

/// Which number a node's addresses are made of: by its annotation, by the range its pods have, or by the address that it told; nullopt: its
/// addresses are not a fleet's.
std::optional<int> index_of(const json::Value& node) {
  const std::string_view number = json::get_string(node, {"metadata", "annotations", kIndexAnnotation});
  int index = -1;
  if (std::from_chars(number.data(), number.data() + number.size(), index).ec == std::errc() && index >= 0 && index < kMostNodes)
    return index;
  if (const auto of_range = index_of_pod_range(std::string(json::get_string(node, {"spec", "podCIDR"})))) return of_range;
  for (const json::Value& address : json::get_array(node, {"status", "addresses"}))
    if (json::get_string(address, {"type"}) == "InternalIP") return index_of_address(std::string(json::get_string(address, {"address"})));
  return std::nullopt;
}

eviction::ResourceList capacity_of(const NodeTemplate& node) {
  eviction::ResourceList capacity;
  for (const auto& [name, text] : node.capacity)
    if (const auto quantity = model::Quantity::parse(text)) capacity.emplace(name, *quantity);
  return capacity;
}

/// Fleets of other names begin elsewhere, so that two that start at once do not take the same numbers before they see each other's nodes.
int first_index(const std::string& fleet) {
  return fleet == "default" ? 0 : static_cast<int>(std::hash<std::string>{}(fleet) % (kFirstOutOfPrivate / 250)) * 250;
}

}  // namespace

std::vector<std::string> overreserved(const FleetOptions& options, const NodeTemplate& node) {
  if (!options.reserves_resources) return {};
  const auto resources = eviction::offer_resources(capacity_of(node), eviction::reservation_settings(options.kubelet));
  return resources ? resources->invalid : std::vector<std::string>{};
}

bool Fleet::has_number(const json::Value& node) { return index_of(node).has_value(); }

int Fleet::free_index(int wanted) const {
  if (wanted >= 0 && !indexes_.contains(wanted)) return wanted;
  // Behind the one given last: a number that is taken moves all that come after it, and none of them should look through those before.
  int index = last_index_ ? *last_index_ + 1 : first_index(options_.name);
  for (auto at = indexes_.lower_bound(index); at != indexes_.end() && at->first == index; ++at) ++index;
  if (index < kMostNodes) return index;
  index = 0;
  for (auto at = indexes_.begin(); at != indexes_.end() && at->first == index; ++at) ++index;
  return index;
}

void Fleet::take_index(int index, int change) {
  if (const int users = indexes_[index] += change; users <= 0) indexes_.erase(index);
}

void Fleet::observe_stranger(const json::Value& document) {
  const std::string name(json::get_string(document, {"metadata", "name"}));
  forget_stranger(name);
  const std::optional<int> index = index_of(document);
  if (!index) return;
  strangers_.emplace(name, *index);
  take_index(*index, 1);
}

void Fleet::forget_stranger(std::string_view name) {
  const auto found = strangers_.find(std::string(name));
  if (found == strangers_.end()) return;
  take_index(found->second, -1);
  strangers_.erase(found);
}

void Fleet::add_node(const NodeSpec& spec, TimePoint now) {
  if (nodes_.contains(spec.name)) return;
  auto node = std::make_shared<Node>();
  node->arrival = ++arrivals_;
  node->spec = spec;
  node->spec.index = free_index((first_index(options_.name) + spec.index) % kMostNodes);
  node->ready_since = now;
  start_node(std::move(node), now);
}

bool Fleet::adopt_node(const json::Value& document, const NodeTemplate& defaults, TimePoint now) {
  if (!owns(document)) return false;
  const std::string name(json::get_string(document, {"metadata", "name"}));
  if (nodes_.contains(name)) return true;
  auto node = std::make_shared<Node>();
  node->arrival = ++arrivals_;
  node->spec.name = name;
  NodeTemplate t = defaults;
  for (const auto& [key, value] : json::get_object(document, {"status", "capacity"}))
    if (value.is_string()) t.capacity[std::string(key)] = json::as_view(value);
  if (!json::get_object(document, {"status", "allocatable"}).empty()) t.allocatable.clear();
  for (const auto& [key, value] : json::get_object(document, {"status", "allocatable"}))
    if (value.is_string()) t.allocatable[std::string(key)] = json::as_view(value);
  const std::string_view own = json::get_string(document, {"metadata", "annotations", kCapacityAnnotation});
  if (!own.empty() && t.allocatable.empty()) t.allocatable = t.capacity;
  for (const std::string_view part : words(own, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || !model::Quantity::parse(part.substr(equals + 1))) continue;
    t.capacity[std::string(part.substr(0, equals))] = part.substr(equals + 1);
    t.allocatable[std::string(part.substr(0, equals))] = part.substr(equals + 1);
  }
  node->spec.node_template = std::move(t);
  forget_stranger(name);
  node->spec.index = free_index(index_of(document).value_or(-1));
  node->needs_create = false;
  node->uid = json::get_string(document, {"metadata", "uid"});
  node->ready_since = now;
  for (const json::Value& condition : json::get_array(document, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "Ready" && json::get_string(condition, {"status"}) == "True")
      node->ready_since = parse_rfc3339(json::get_string(condition, {"lastTransitionTime"})).value_or(now);
  see_labels(*node, document);
  node->missing_labels = missing_topology_labels(document);
  node->is_dead = is_marked_dead(document);
  start_node(node, now);
  see_numa(node, document);
  return true;
}

/// What the node offers to pods, by the core that real nodes use.
void Fleet::offer(Node& node) const {
  if (!options_.reserves_resources) return;
  NodeTemplate t = *node.spec.node_template;
  eviction::ResourceList capacity = capacity_of(t);
  const eviction::ReservationSettings settings = eviction::reservation_settings(options_.kubelet);
  if (const auto cores = capacity.find("cpu"); settings.pods_per_core > 0 && cores != capacity.end())
    capacity["pods"] = model::Quantity::from_value(std::min(cores->second.value() * settings.pods_per_core, settings.max_pods));
  else if (settings.max_pods != eviction::kDefaultMaxPods)
    capacity["pods"] = model::Quantity::from_value(settings.max_pods);
  const auto resources = eviction::offer_resources(capacity, settings);
  if (!resources) return;  // Refused where options are read.
  if (const auto pods = capacity.find("pods"); pods != capacity.end()) t.capacity["pods"] = pods->second.to_string();
  t.allocatable.clear();
  for (const auto& [name, quantity] : resources->allocatable)
    t.allocatable[name] = resources->reservation.contains(name) ? quantity.to_string() : t.capacity[name];
  node.spec.node_template = std::move(t);
  if (const auto memory = resources->cgroup.find("memory"); memory != resources->cgroup.end())
    node.pods_memory_limit = static_cast<std::uint64_t>(memory->second.value());
}

std::string Fleet::node_body(const Node& node) const {
  const NodeTemplate& t = *node.spec.node_template;
  json::Object labels{{"kubernetes.io/hostname", node.spec.name},
                      {"kubernetes.io/os", "linux"},
                      {"kubernetes.io/arch", "amd64"},
                      {"beta.kubernetes.io/os", "linux"},
                      {"beta.kubernetes.io/arch", "amd64"},
                      {"node.kubernetes.io/instance-type", t.instance_type},
                      {model::kZoneLabel.present, node.spec.zone},
                      {model::kRegionLabel.present, node.spec.region}};
  for (const auto& [key, value] : t.labels) labels[key] = value;
  model::complete_topology_labels(labels);
  json::Object annotations = to_object(t.annotations);
  annotations[kFleetAnnotation] = options_.name;
  annotations[kIndexAnnotation] = std::to_string(node.spec.index);
  json::Object spec{{"podCIDR", node.pod_cidr()},
                    {"podCIDRs", json::Array{json::Value(node.pod_cidr())}},
                    {"providerID", "simulated://" + node.spec.name}};
  if (!t.taints.empty()) spec["taints"] = t.taints;
  json::Object body;
  body["apiVersion"] = "v1";
  body["kind"] = "Node";
  body["metadata"] = json::Object{{"name", node.spec.name}, {"labels", std::move(labels)}, {"annotations", std::move(annotations)}};
  body["spec"] = std::move(spec);
  body["status"] =
      json::Object{{"capacity", to_object(t.capacity)}, {"allocatable", to_object(t.allocatable.empty() ? t.capacity : t.allocatable)}};
  return json::serialize(body);
}

std::string Fleet::node_status_body(const Node& node, TimePoint now) const {
  const NodeTemplate& t = *node.spec.node_template;
  json::Array conditions;
  const auto add = [&](std::string_view type, bool is, std::string_view reason, std::string_view message, TimePoint since) {
    conditions.push_back(json::Object{{"type", type},
                                      {"status", is ? "True" : "False"},
                                      {"reason", reason},
                                      {"message", message},
                                      {"lastHeartbeatTime", format_rfc3339(now)},
                                      {"lastTransitionTime", format_rfc3339(since)}});
  };
  const auto add_pressure = [&](eviction::NodeCondition condition, std::string_view type, std::string_view bad_reason, std::string_view bad,
                                std::string_view good_reason, std::string_view good) {
    const bool is = std::ranges::find(node.pressure, condition) != node.pressure.end();
    const TimePoint since = node.pressure_since[static_cast<std::size_t>(condition)];
    add(type, is, is ? bad_reason : good_reason, is ? bad : good, since == TimePoint{} ? node.ready_since : since);
  };
  add_pressure(eviction::NodeCondition::kMemoryPressure, "MemoryPressure", "KubeletHasInsufficientMemory",
               "kubelet has insufficient memory available", "KubeletHasSufficientMemory", "kubelet has sufficient memory available");
  add_pressure(eviction::NodeCondition::kDiskPressure, "DiskPressure", "KubeletHasDiskPressure", "kubelet has disk pressure",
               "KubeletHasNoDiskPressure", "kubelet has no disk pressure");
  add_pressure(eviction::NodeCondition::kPidPressure, "PIDPressure", "KubeletHasInsufficientPID", "kubelet has insufficient PID available",
               "KubeletHasSufficientPID", "kubelet has sufficient PID available");
  add("Ready", true, "KubeletReady", "kubelet is posting ready status", node.ready_since);
  json::Object status;
  status["capacity"] = to_object(t.capacity);
  status["allocatable"] = to_object(t.allocatable.empty() ? t.capacity : t.allocatable);
  status["conditions"] = std::move(conditions);
  status["addresses"] = json::Array{
      json::Object{{"type", "InternalIP"}, {"address", options_.kubelet_address.empty() ? node.host_ip() : options_.kubelet_address}},
      json::Object{{"type", "Hostname"}, {"address", node.spec.name}}};
  if (options_.kubelet_port) status["daemonEndpoints"] = json::Object{{"kubeletEndpoint", json::Object{{"Port", options_.kubelet_port}}}};
  const std::string id = fmt::format("{:032x}", std::hash<std::string>{}(node.spec.name));
  status["nodeInfo"] = json::Object{{"machineID", id},
                                    {"systemUUID", id},
                                    {"bootID", id},
                                    {"kernelVersion", "6.1.0-simulated"},
                                    {"osImage", "Simulated node"},
                                    {"containerRuntimeVersion", "simulated://1.0"},
                                    {"kubeletVersion", options_.kubelet_version},
                                    {"kubeProxyVersion", options_.kubelet_version},
                                    {"operatingSystem", "linux"},
                                    {"architecture", "amd64"}};
  status["declaredFeatures"] = json::Array{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"};
  return json::serialize(json::Object{{"status", std::move(status)}});
}

std::string Fleet::lease_body(const Node& node, TimePoint now, const std::string& heartbeats) const {
  const std::string& name = node.spec.name;
  std::string out;
  out.reserve(400 + 3 * name.size());
  const auto say = [&out](auto... parts) { (out.append(parts), ...); };
  say(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":")", name, R"(","namespace":"kube-node-lease",)");
  // A Lease that was steady is told that it is not any more; others have no annotations at all.
  if (!heartbeats.empty() || node.was_steady)
    say(R"("annotations":{")", kHeartbeatsAnnotation, "\":", heartbeats.empty() ? "null" : '"' + heartbeats + '"', "},");
  say(R"("ownerReferences":[{"apiVersion":"v1","kind":"Node","name":")", name, R"(","uid":")", node.uid,
      R"("}]},"spec":{"holderIdentity":")", name, R"(","leaseDurationSeconds":)",
      std::to_string(options_.kubelet.node_lease_duration_seconds), R"(,"renewTime":")", format_rfc3339_micro(now), "\"}}");
  return out;
}

}  // namespace berth::node::simulated
