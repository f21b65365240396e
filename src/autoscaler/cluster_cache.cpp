#include "autoscaler/cluster_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "autoscaler/provider.h"
#include "autoscaler/provisioning_request.h"
#include "base/split.h"
#include "model/topology_labels.h"
#include "placement/cluster_kinds.h"

namespace berth::autoscaler {
namespace {

using json::get_string;

constexpr std::string_view kCapacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/";
constexpr std::string_view kPriorityConfigMap = "cluster-autoscaler-priority-expander";
constexpr std::string_view kPriceConfigMap = "cluster-autoscaler-price-expander";

std::string key_of(std::string_view kind, std::string_view ns, std::string_view name) { return fmt::format("{}/{}/{}", kind, ns, name); }

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || wrong != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

/// The annotations of one MachineSet, read as a node's capacity. Each reader is false when the text is malformed.
struct CapacityReader {
  const json::Value& set;
  json::Object capacity;

  [[nodiscard]] std::string_view annotation(std::string_view prefix, std::string_view name) const {
    return get_string(set, {"metadata", "annotations", fmt::format("{}{}", prefix, name)});
  }
  bool quantity(std::string_view name, std::string_view resource) {
    const std::string_view text = annotation(kCapacityPrefix, name);
    if (text.empty()) return true;
    if (!model::Quantity::parse(text)) return false;
    capacity[resource] = text;
    return true;
  }
  bool number(std::string_view prefix, std::string_view name, std::string_view resource, std::string_view suffix = {}) {
    const std::string_view text = annotation(prefix, name);
    if (text.empty() || capacity.contains(resource)) return true;
    const auto parsed = parse_number(text);
    if (!parsed) return false;
    if (*parsed > 0) capacity[resource] = fmt::format("{}{}", *parsed, suffix);
    return true;
  }
  bool read() {
    constexpr std::string_view kOld = "machine.openshift.io/";
    std::string gpu(annotation(kCapacityPrefix, "gpu-type"));
    const bool has_driver = !annotation(kCapacityPrefix, "dra-driver").empty();
    const bool counts_gpus = !gpu.empty() || !has_driver;
    if (gpu.empty()) gpu = "nvidia.com/gpu";
    const bool ok = quantity("cpu", "cpu") && number(kOld, "vCPU", "cpu") && quantity("memory", "memory") &&
                    number(kOld, "memoryMb", "memory", "Mi") && quantity("ephemeral-disk", "ephemeral-storage") &&
                    (!counts_gpus || (number(kCapacityPrefix, "gpu-count", gpu) && number(kOld, "GPU", gpu))) &&
                    number(kCapacityPrefix, "maxPods", "pods") && number(kOld, "maxPods", "pods");
    if (!capacity.contains("pods")) capacity["pods"] = "110";
    return ok && capacity.contains("cpu") && capacity.contains("memory");
  }
};

/// "a=b,c=d" into an object.
void add_labels(std::string_view text, json::Object& labels) {
  for (const std::string_view part : split(text, ','))
    if (const std::size_t equals = part.find('='); equals != std::string_view::npos)
      labels[part.substr(0, equals)] = part.substr(equals + 1);
}

/// "key=value:Effect,key:Effect"
void add_taints(std::string_view text, json::Array& taints) {
  for (const std::string_view part : split(text, ',')) {
    const std::size_t colon = part.rfind(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view left = part.substr(0, colon);
    const std::size_t equals = left.find('=');
    taints.push_back(json::Object{{"key", left.substr(0, equals)},
                                  {"value", equals == std::string_view::npos ? std::string_view() : left.substr(equals + 1)},
                                  {"effect", part.substr(colon + 1)}});
  }
}

/// Where a machine of the provider's spec would stand, as its node's labels say it.
void add_place(const json::Value& provider, json::Object& labels) {
  const auto add = [&labels](std::string_view label, std::initializer_list<std::string_view> values) {
    for (const std::string_view value : values)
      if (!value.empty()) labels[label] = value;
  };
  add(model::kZoneLabel.present, {get_string(provider, {"availabilityZone"}), get_string(provider, {"zone"}),
                                  get_string(provider, {"placement", "availabilityZone"})});
  add(model::kRegionLabel.present,
      {get_string(provider, {"location"}), get_string(provider, {"region"}), get_string(provider, {"placement", "region"})});
  add("node.kubernetes.io/instance-type",
      {get_string(provider, {"machineType"}), get_string(provider, {"vmSize"}), get_string(provider, {"instanceType"})});
}

/// What may be scaled, in the order of looking for a group's place.
struct ScalableKind {
  std::string_view kind;  ///< As kept.
  model::Gvr scalable, machines;
};
const std::vector<ScalableKind>& scalable_kinds() {
  static const model::Gvr capi{"cluster.x-k8s.io", "v1beta1", "machines"};
  static const std::vector<ScalableKind> all = {
      {"MachineSet", {"machine.openshift.io", "v1beta1", "machinesets"}, {"machine.openshift.io", "v1beta1", "machines"}},
      {"cluster.x-k8s.io/MachineDeployment", {"cluster.x-k8s.io", "v1beta1", "machinedeployments"}, capi},
      {"cluster.x-k8s.io/MachineSet", {"cluster.x-k8s.io", "v1beta1", "machinesets"}, capi},
  };
  return all;
}
bool is_scalable(std::string_view kind) {
  return std::ranges::any_of(scalable_kinds(), [&](const ScalableKind& one) { return one.kind == kind; });
}
bool is_machine(std::string_view kind) { return kind == "Machine" || kind == "cluster.x-k8s.io/Machine"; }

/// With the group in front where that is Cluster API's.
std::string scoped_kind(const json::Value& object) {
  const std::string_view kind = get_string(object, {"kind"});
  const bool is_bare = get_string(object, {"apiVersion"}).starts_with(kClusterApi) && !kind.starts_with(kClusterApi);
  return is_bare ? fmt::format("{}{}", kClusterApi, kind) : std::string(kind);
}

/// A bound as either annotation has it; empty: neither has.
std::string_view bound_of(const json::Value& scalable, std::string_view name) {
  for (const std::string_view prefix : {kMachineApi, kClusterApi})
    if (const auto text = get_string(scalable, {"metadata", "annotations", fmt::format("{}{}", prefix, name)}); !text.empty()) return text;
  return {};
}

/// Of the labels that its nodes get (kMachineClassLabel).
std::string node_class_of(const json::Value& scalable) {
  json::Object labels = json::get_object(scalable, {"spec", "template", "spec", "metadata", "labels"});
  add_labels(get_string(scalable, {"metadata", "annotations", fmt::format("{}labels", kCapacityPrefix)}), labels);
  return std::string(get_string(json::Value(std::move(labels)), {kMachineClassLabel}));
}

/// What a machine in phase Failed says of it, in OpenShift's words or Cluster API's.
std::string failure_of(const json::Value& machine) {
  const auto either = [&](std::string_view one, std::string_view other) {
    const std::string_view text = get_string(machine, {"status", one});
    return std::string(text.empty() ? get_string(machine, {"status", other}) : text);
  };
  const std::string reason = either("errorReason", "failureReason"), message = either("errorMessage", "failureMessage");
  if (reason.empty() && message.empty()) return "Failed";
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

}  // namespace

const std::vector<WatchedKind>& watched_kinds() {
  static const std::vector<WatchedKind> all = [] {
    std::vector<WatchedKind> out;
    // Of attachments and priorities pods and nodes tell enough.
    for (const placement::ClusterResource& one : placement::kClusterResources)
      if (one.kind != "VolumeAttachment" && one.kind != "PriorityClass")
        out.push_back({one.kind, {std::string(one.group), std::string(one.versions[0]), std::string(one.plural)}});
    out.insert(out.end(), {
                              {"DaemonSet", {"apps", "v1", "daemonsets"}},
                              {"Job", {"batch", "v1", "jobs"}},
                              {"ClusterAutoscaler", {"autoscaling.openshift.io", "v1", "clusterautoscalers"}},
                              {"PodTemplate", {"", "v1", "podtemplates"}},
                              {"ProvisioningRequest", {"autoscaling.x-k8s.io", "v1", "provisioningrequests"}},
                              {"Machine", {"machine.openshift.io", "v1beta1", "machines"}},
                              {"MachineSet", {"machine.openshift.io", "v1beta1", "machinesets"}},
                              {"cluster.x-k8s.io/Machine", {"cluster.x-k8s.io", "v1beta1", "machines"}},
                              {"cluster.x-k8s.io/MachineSet", {"cluster.x-k8s.io", "v1beta1", "machinesets"}},
                              {"cluster.x-k8s.io/MachineDeployment", {"cluster.x-k8s.io", "v1beta1", "machinedeployments"}},
                          });
    return out;
  }();
  return all;
}

std::string group_id(std::string_view kind, std::string_view ns, std::string_view name) { return key_of(kind, ns, name); }

std::pair<std::string, std::string> split_group_id(std::string_view id) {
  const std::size_t first = id.find('/'), last = id.rfind('/');
  if (first == std::string_view::npos || first == last) return {};
  return {std::string(id.substr(first + 1, last - first - 1)), std::string(id.substr(last + 1))};
}

model::NodeViewPtr template_of(const json::Value& machine_set) {
  CapacityReader reader{machine_set, {}};
  if (!reader.read()) return nullptr;
  json::Object labels{{"kubernetes.io/arch", "amd64"}, {"kubernetes.io/os", "linux"}, {"node-role.kubernetes.io/worker", ""}};
  if (const json::Value* provider = json::find(machine_set, {"spec", "template", "spec", "providerSpec", "value"}))
    add_place(*provider, labels);
  for (const auto& [key, value] : json::get_object(machine_set, {"spec", "template", "spec", "metadata", "labels"})) labels[key] = value;
  add_labels(reader.annotation(kCapacityPrefix, "labels"), labels);
  model::complete_topology_labels(labels);
  json::Array taints = json::get_array(machine_set, {"spec", "template", "spec", "taints"});
  add_taints(reader.annotation(kCapacityPrefix, "taints"), taints);
  const json::Value node =
      json::Object{{"metadata", json::Object{{"name", "template"}, {"labels", std::move(labels)}}},
                   {"spec", json::Object{{"taints", std::move(taints)}}},
                   {"status", json::Object{{"capacity", reader.capacity},
                                           {"allocatable", reader.capacity},
                                           {"conditions", json::Array{json::Object{{"type", "Ready"}, {"status", "True"}}}}}}};
  return std::make_shared<const model::NodeView>(model::NodeView::parse(node));
}

Slices template_slices_of(const json::Value& machine_set) {
  constexpr std::int64_t kMostDevices = 128;  // Of one slice.
  const CapacityReader reader{machine_set, {}};
  const std::string_view driver = reader.annotation(kCapacityPrefix, "dra-driver");
  const std::int64_t count = parse_number(reader.annotation(kCapacityPrefix, "gpu-count")).value_or(0);
  if (driver.empty() || count == 0) return {};
  json::Array devices;
  for (std::int64_t i = 0; i < std::min(count, kMostDevices); ++i)
    devices.push_back(
        json::Object{{"name", fmt::format("gpu-{}", i)}, {"attributes", json::Object{{"type", json::Object{{"string", "gpu"}}}}}});
  json::Object pool{{"name", "template"}, {"generation", 1}, {"resourceSliceCount", 1}};
  json::Object spec{{"driver", driver}, {"nodeName", "template"}, {"pool", std::move(pool)}, {"devices", std::move(devices)}};
  return {json::Object{{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "ResourceSlice"},
                       {"metadata", json::Object{{"name", fmt::format("template-{}", driver)}}},
                       {"spec", std::move(spec)}}};
}

GroupOverrides overrides_of(const json::Value& machine_set) {
  constexpr std::string_view kOptions = "autoscaling-options-";
  GroupOverrides out;
  for (const auto& [key, value] : json::get_object(machine_set, {"metadata", "annotations"})) {
    const std::string_view name(key.data(), key.size());
    const std::string_view prefix = name.starts_with(kClusterApi) ? kClusterApi : kMachineApi;
    const std::string_view option = name.substr(std::min(name.size(), prefix.size() + kOptions.size()));
    if (!name.starts_with(prefix) || !name.substr(prefix.size()).starts_with(kOptions) || !value.is_string() || value.get_string().empty())
      continue;
    std::string text(json::as_view(value));
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto read_share = [&](std::optional<double>& target) {
      double share = 0;
      const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), share);
      if (wrong == std::errc() && end == text.data() + text.size() && share >= 0 && share <= 1) return void(target = share);
      out.problems.push_back(fmt::format("annotation {}: \"{}\" is not a share from 0 to 1", name, text));
    };
    const auto read_duration = [&](std::optional<Duration>& target) {
      target = parse_go_duration(text);
      if (target && *target < Duration::zero()) target.reset();
      if (!target) out.problems.push_back(fmt::format("annotation {}: \"{}\" is not a duration", name, text));
    };
    if (option == "scaledownutilizationthreshold") read_share(out.utilization_threshold);
    if (option == "scaledowngpuutilizationthreshold") read_share(out.gpu_utilization_threshold);
    if (option == "scaledownunneededtime") read_duration(out.unneeded_time);
    if (option == "scaledownunreadytime") read_duration(out.unready_time);
    if (option == "maxnodeprovisiontime") read_duration(out.max_node_provision_time);
  }
  return out;
}

ClusterCache::Machine ClusterCache::parse_machine(const json::Value& machine, bool is_cluster_api) {
  Machine out;
  out.ns = get_string(machine, {"metadata", "namespace"});
  for (const json::Value& owner : json::get_array(machine, {"metadata", "ownerReferences"}))
    if (get_string(owner, {"kind"}) == "MachineSet")
      out.set = key_of(is_cluster_api ? "cluster.x-k8s.io/MachineSet" : "MachineSet", out.ns, get_string(owner, {"name"}));
  out.node = get_string(machine, {"status", "nodeRef", "name"});
  out.provider_id = get_string(machine, {"spec", "providerID"});
  const json::Object& annotations = json::get_object(machine, {"metadata", "annotations"});
  out.is_leaving = !get_string(machine, {"metadata", "deletionTimestamp"}).empty() || annotations.contains(kDeleteMachine) ||
                   annotations.contains(kOldDeleteMachine) || annotations.contains(kClusterApiDeleteMachine);
  if (get_string(machine, {"status", "phase"}) == "Failed") out.failure = failure_of(machine);
  return out;
}

void ClusterCache::upsert_node(model::NodeViewPtr node) {
  const std::string& name = node->name();
  if (moves_.see_node(*node)) moves_.changed();
  if (!nodes_.contains(name)) catch_up();
  const auto annotation = [&](std::string_view key) {
    const std::string* text = node->meta.annotation(key);
    return text == nullptr ? std::string() : *text;
  };
  if (std::string machine = annotation(kMachineAnnotation); !machine.empty()) node_of_machine_[std::move(machine)] = name;
  if (const std::string machine = annotation("cluster.x-k8s.io/machine"); !machine.empty())
    node_of_machine_[annotation("cluster.x-k8s.io/cluster-namespace") + "/" + machine] = name;
  if (!node->provider_id.empty()) node_of_provider_id_[node->provider_id] = name;
  nodes_[name] = NodeFacts::of(*node, accelerator_label_);
  totals_.reset();
  cluster_.upsert_node(std::move(node));
}

void ClusterCache::set_accelerator_label(const std::string& label) {
  if (label == accelerator_label_) return;
  accelerator_label_ = label;
  for (auto& [name, facts] : nodes_)
    if (const placement::NodeInfo* node = cluster_.find_node(name); node != nullptr && node->node != nullptr)
      facts = NodeFacts::of(*node->node, label);
  totals_.reset();
}

void ClusterCache::see_request(const json::Value& request) {
  const std::string ns(get_string(request, {"metadata", "namespace"})), name(get_string(request, {"metadata", "name"}));
  const auto known = requests_.find(ns + "/" + name);
  const auto template_of = [&](std::string_view wanted) { return find("PodTemplate", ns, wanted); };
  auto parsed = std::make_shared<const ProvisioningRequest>(
      ProvisioningRequest::parse(request, era_, template_of, known == requests_.end() ? nullptr : known->second.get()));
  requests_[ns + "/" + name] = std::move(parsed);
}

void ClusterCache::see_template(std::string_view ns, std::string_view name) {
  for (auto& [key, known] : requests_) {
    if (known->ns != ns || std::ranges::find(known->sets, name, &ProvisioningRequest::PodSet::template_name) == known->sets.end()) continue;
    const auto template_of = [&](std::string_view wanted) { return find("PodTemplate", ns, wanted); };
    if (const json::Value* document = find("ProvisioningRequest", ns, known->name))
      known = std::make_shared<const ProvisioningRequest>(ProvisioningRequest::parse(*document, era_, template_of));
  }
}

void ClusterCache::upsert(const json::Value& object) {
  const std::string kind = scoped_kind(object);
  const std::string_view ns = get_string(object, {"metadata", "namespace"}), name = get_string(object, {"metadata", "name"});
  if (kind == "Node") {
    kept_[key_of(kind, "", name)] = object;
    return upsert_node(std::make_shared<const model::NodeView>(model::NodeView::parse(object)));
  }
  if (kind == "Pod") return upsert_pod(Pod::parse(object, era_, false));
  if (is_machine(kind)) {
    machines_[fmt::format("{}/{}", ns, name)] = parse_machine(object, kind.starts_with(kClusterApi));
  } else if (is_scalable(kind)) {
    kept_[key_of(kind, ns, name)] = object;
  } else if (kind == "ClusterAutoscaler") {
    if (name == "default") cluster_autoscaler_ = object;
  } else if (kind == "DaemonSet") {
    daemons_[fmt::format("{}/{}", ns, name)] = daemon_pod(object, era_);
  } else if (kind == "ProvisioningRequest" || kind == "PodTemplate") {
    kept_[key_of(kind, ns, name)] = object;
    kind == "PodTemplate" ? see_template(ns, name) : see_request(object);
  } else if (kind == "Job") {
    jobs_.insert(fmt::format("{}/{}", ns, name));
  } else if (kind == "PodGroup") {
    // Others have a kind of that name too.
    if (const std::string_view version = get_string(object, {"apiVersion"}); version.empty() || version.starts_with("scheduling.k8s.io/"))
      pods_.groups.upsert(std::make_shared<const placement::PodGroup>(placement::PodGroup::parse(object)));
  } else if (kind == "ConfigMap") {
    if (name == kPriorityConfigMap) priorities_ = std::string(get_string(object, {"data", "priorities"}));
    if (name == kPriceConfigMap) prices_ = std::string(get_string(object, {"data", "prices"}));
  } else {
    if (kind == "ResourceSlice") {
      // Which node it is of never changes.
      if (const std::string_view node = get_string(object, {"spec", "nodeName"}); !node.empty())
        slices_[std::string(node)][std::string(name)] = object;
    }
    (void)cluster_.upsert(object);
  }
}

void ClusterCache::remove(std::string_view kind, std::string_view ns, std::string_view name) {
  const std::string key = fmt::format("{}/{}", ns, name);
  if (kind == "Node") {
    catch_up();
    totals_.reset();
    cluster_.remove_node(name);
    if (moves_.node_gone(std::string(name), true)) moves_.changed();
    if (const auto found = nodes_.find(name); found != nodes_.end()) nodes_.erase(found);
    std::erase_if(node_of_machine_, [&](const auto& entry) { return entry.second == name; });
    std::erase_if(node_of_provider_id_, [&](const auto& entry) { return entry.second == name; });
    kept_.erase(key_of(kind, "", name));
  } else if (kind == "Pod") {
    remember(mark_of(key), std::nullopt);
    put_off(key, nullptr, std::nullopt);
  } else if (is_machine(kind)) {
    machines_.erase(key);
  } else if (is_scalable(kind)) {
    kept_.erase(key_of(kind, ns, name));
    read_groups_.clear();
  } else if (kind == "ClusterAutoscaler") {
    if (name == "default") cluster_autoscaler_ = json::Value();
  } else if (kind == "DaemonSet") {
    daemons_.erase(key);
  } else if (kind == "ProvisioningRequest" || kind == "PodTemplate") {
    kept_.erase(key_of(kind, ns, name));
    if (kind == "PodTemplate")
      see_template(ns, name);
    else
      requests_.erase(key);
  } else if (kind == "Job") {
    jobs_.erase(key);
  } else if (kind == "PodGroup") {
    pods_.groups.remove(key);
  } else if (kind == "ConfigMap") {
    if (name == kPriorityConfigMap) priorities_.reset();
    if (name == kPriceConfigMap) prices_.reset();
  } else {
    if (kind == "ResourceSlice")
      for (auto& [node, slices] : slices_) slices.erase(std::string(name));
    (void)cluster_.remove(kind, ns, name);
  }
}

const json::Value* ClusterCache::find(std::string_view kind, std::string_view ns, std::string_view name) const {
  const auto found = kept_.find(key_of(kind, ns, name));
  return found == kept_.end() ? nullptr : &found->second;
}

Instance ClusterCache::instance_of(const std::string& key, const Machine& machine) const {
  Instance out{.id = key, .node = machine.node, .is_leaving = machine.is_leaving};
  if (out.node.empty())
    if (const auto found = node_of_machine_.find(key); found != node_of_machine_.end()) out.node = found->second;
  if (out.node.empty() && !machine.provider_id.empty())
    if (const auto found = node_of_provider_id_.find(machine.provider_id); found != node_of_provider_id_.end()) out.node = found->second;
  // What had a node may be broken; that it never will have one is said of others alone.
  if (out.node.empty()) out.failure = machine.failure;
  return out;
}

void ClusterCache::mark_incomplete_nodes(const std::vector<NodeGroup>& groups) {
  for (const NodeGroup& group : groups)
    for (const Instance& instance : group.instances) {
      const auto node = nodes_.find(instance.node);
      if (node == nodes_.end()) continue;
      const auto has = slices_.find(instance.node);
      const bool lacks_slices = std::ranges::any_of(group.template_slices, [&](const json::Value& wanted) {
        return has == slices_.end() || std::ranges::none_of(has->second, [&](const auto& entry) {
                 return get_string(entry.second, {"spec", "driver"}) == get_string(wanted, {"spec", "driver"});
               });
      });
      if (std::exchange(node->second.lacks_slices, lacks_slices) != lacks_slices) totals_.reset();
    }
}

const NodeTotals& ClusterCache::totals() {
  if (!totals_) totals_ = NodeTotals::of(nodes_);
  return *totals_;
}

Snapshot ClusterCache::snapshot() {
  catch_up();
  Snapshot out{.cluster = &cluster_, .pod_sets = &pods_, .nodes = &nodes_, .jobs = jobs_, .priorities = priorities_, .prices = prices_};
  for (const auto& [key, info] : daemons_) {
    out.daemons.push_back(info);
    out.daemon_sets.insert(key);
  }
  out.groups = all_groups(out.problems);
  std::erase_if(out.groups, [](const NodeGroup& group) { return !group.node_class.empty(); });
  mark_incomplete_nodes(out.groups);
  out.totals = &totals();
  out.slices = &slices_;
  out.moves = &moves_;
  for (const auto& [key, request] : requests_) out.requests.push_back(request);
  std::ranges::stable_sort(out.requests, {}, [](const auto& request) { return request->created; });
  return out;
}

Snapshot ClusterCache::snapshot(ProviderState told) {
  if (told.gpu_label) set_accelerator_label(*told.gpu_label);
  Snapshot out = snapshot();
  out.left_alone = std::move(told.left_alone);
  out.pod_prices = std::move(told.pod_prices);
  out.groups = std::move(told.groups);
  // NodePools buy from these.
  std::erase_if(out.groups, [](const NodeGroup& group) { return !group.node_class.empty(); });
  std::ranges::move(told.problems, std::back_inserter(out.problems));
  // What this marks changes the sums over nodes: those of before are gone.
  mark_incomplete_nodes(out.groups);
  out.totals = &totals();
  return out;
}

std::vector<NodeGroup> ClusterCache::groups_of_pools(std::vector<std::string>& problems) const {
  std::vector<NodeGroup> out = all_groups(problems);
  std::erase_if(out, [](const NodeGroup& group) { return group.node_class.empty(); });
  return out;
}

std::vector<NodeGroup> ClusterCache::all_groups(std::vector<std::string>& problems) const {
  std::vector<NodeGroup> out;
  std::multimap<std::string, const std::pair<const std::string, Machine>*> by_scalable;
  for (const auto& machine : machines_) by_scalable.emplace(scaled_by(machine.second.set), &machine);
  for (const ScalableKind& kind : scalable_kinds()) {
    const std::string first = fmt::format("{}/", kind.kind);
    for (auto at = kept_.lower_bound(first); at != kept_.end() && at->first.starts_with(first); ++at) {
      if (scaled_by(at->first) != at->first) continue;
      auto group = group_of(kind.kind, at->second, problems);
      if (!group) continue;
      const auto [begin, end] = by_scalable.equal_range(at->first);
      for (auto machine = begin; machine != end; ++machine)
        group->instances.push_back(instance_of(machine->second->first, machine->second->second));
      std::ranges::sort(group->instances, {}, &Instance::id);
      out.push_back(std::move(*group));
    }
  }
  std::ranges::stable_sort(out, {}, &NodeGroup::id);
  return out;
}

std::string ClusterCache::scaled_by(const std::string& set) const {
  if (const auto found = kept_.find(set); found != kept_.end() && set.starts_with(kClusterApi))
    for (const json::Value& owner : json::get_array(found->second, {"metadata", "ownerReferences"}))
      if (get_string(owner, {"kind"}) == "MachineDeployment")
        return key_of("cluster.x-k8s.io/MachineDeployment", get_string(found->second, {"metadata", "namespace"}),
                      get_string(owner, {"name"}));
  return set;
}

std::optional<NodeGroup> ClusterCache::group_of(std::string_view kind, const json::Value& scalable,
                                                std::vector<std::string>& problems) const {
  const std::string_view min = bound_of(scalable, "cluster-api-autoscaler-node-group-min-size");
  const std::string_view max = bound_of(scalable, "cluster-api-autoscaler-node-group-max-size");
  if (!get_string(scalable, {"metadata", "deletionTimestamp"}).empty()) return std::nullopt;
  const std::string_view plain = kind.substr(kind.rfind('/') == std::string_view::npos ? 0 : kind.rfind('/') + 1);
  const std::string id = group_id(plain, get_string(scalable, {"metadata", "namespace"}), get_string(scalable, {"metadata", "name"}));
  const std::string node_class = node_class_of(scalable);
  if (max.empty() && !node_class.empty())
    problems.push_back(
        fmt::format("{}: {} {} may not buy from it: how many machines it may have at most is not said (a MachineAutoscaler, "
                    "or the annotation {})",
                    id, "MachineNodeClass", node_class, kMaxSize));
  if (max.empty()) return std::nullopt;
  // A minimum that cannot be read is not none: nodes would be taken that somebody meant to keep.
  const std::optional<std::int64_t> low = min.empty() ? 0 : parse_number(min), high = parse_number(max);
  if (!low || !high || *low > *high)
    problems.push_back(fmt::format("{}: sizes from \"{}\" to \"{}\" make no sense: it is not scaled", id, min, max));
  if (!low || !high || *low > *high || *high < 1) return std::nullopt;
  NodeGroup out{.id = id, .min = *low, .max = *high, .target = json::get_int(scalable, {"spec", "replicas"}, 1)};
  // Nothing of a set changes but its revision does; without one (a file's) it is read anew.
  const std::string_view revision = get_string(scalable, {"metadata", "resourceVersion"});
  ReadGroup& read = read_groups_[id];
  if (revision.empty() || read.revision != revision) {
    read = {std::string(revision), template_of(scalable), {}, overrides_of(scalable), node_class, {}};
    const std::string_view price = get_string(scalable, {"metadata", "annotations", kPriceAnnotation});
    double amount = 0;
    if (const auto [end, wrong] = std::from_chars(price.data(), price.data() + price.size(), amount); wrong == std::errc() && amount >= 0)
      read.price_per_hour = amount;
    else if (!price.empty())
      read.overrides.problems.push_back(fmt::format("annotation {}: \"{}\" is not a price such as 0.096", kPriceAnnotation, price));
    if (read.template_node != nullptr) read.template_slices = template_slices_of(scalable);
  }
  out.template_node = read.template_node;
  out.template_slices = read.template_slices;
  out.overrides = read.overrides;
  out.node_class = read.node_class;
  out.price_per_hour = read.price_per_hour;
  return out;
}

GroupPlace ClusterCache::place_of(std::string_view group) const {
  const auto [ns, name] = split_group_id(group);
  const std::string_view wanted = group.substr(0, group.find('/'));
  const ScalableKind* found = &scalable_kinds().front();
  for (const ScalableKind& kind : scalable_kinds())
    if (kind.kind.ends_with(wanted) && kept_.contains(key_of(kind.kind, ns, name))) {
      found = &kind;
      break;
    }
  return {found->scalable, found->machines, ns, name};
}

}  // namespace berth::autoscaler
