// Who else writes in a scheduler's world: users, kubelets, provisioners, drivers.
#include <fmt/format.h>

#include "tests/scheduler/lives/life.h"

namespace berth::scheduler::lives {
namespace {

constexpr std::array<const char*, 4> kNodeNames = {"n0", "n1", "n2", "n3"};
constexpr int kPodNames = 10;

json::Value object(const char* kind, const std::string& name, bool has_namespace = true) {
  json::Value out{{"kind", kind}, {"metadata", {{"name", name}}}};
  if (has_namespace) json::set(out, {"metadata", "namespace"}, json::Value("default"));
  return out;
}

}  // namespace

std::string Life::some(const std::string& resource) {
  const auto names = server.names(resource);
  if (names.empty()) return {};
  const std::string& key = dice.of(names);
  return key.substr(key.find('/') == std::string::npos ? 0 : key.find('/') + 1);
}

void Life::edit(const std::string& resource, const std::string& name, const std::function<void(json::Value&)>& change) {
  const bool has_namespace = server.find(resource, "default", name) != nullptr;
  json::Value document = *server.find(resource, has_namespace ? "default" : "", name);
  change(document);
  server.put(resource, std::move(document));
}

void Life::make_pod() {
  const std::string name = fmt::format("p{}", dice.below(kPodNames));
  if (server.find("pods", "default", name) != nullptr) return;
  constexpr std::array<const char*, 6> kCpus = {"500m", "1", "1", "1500m", "2", "3"};
  constexpr std::array<const char*, 3> kApps = {"a", "b", "c"};
  json::Value pod = object("Pod", name);
  json::Object labels{{"app", dice.of(kApps)}};
  json::set(pod, {"metadata", "labels"}, labels);
  if (dice.chance(50)) json::set(pod, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(clock_.time)));
  json::set(pod, {"spec", "schedulerName"}, json::Value(subject.profiles.back().scheduler_name));
  if (subject.profiles.size() > 1 && !dice.chance(25))
    json::set(pod, {"spec", "schedulerName"}, json::Value(subject.profiles.front().scheduler_name));
  if (dice.chance(4)) json::set(pod, {"spec", "schedulerName"}, json::Value("another"));
  json::set(pod, {"spec", "priority"}, json::Value(5 * dice.below(3)));
  json::Object container{{"name", "c"}, {"image", "i"}};
  if (!dice.chance(5)) container["resources"] = json::Object{{"requests", json::Object{{"cpu", dice.of(kCpus)}}}};
  if (dice.chance(10))
    container["ports"] = json::Array{json::Object{{"containerPort", 80}, {"hostPort", 8000 + dice.below(2)}, {"protocol", "TCP"}}};
  json::set(pod, {"spec", "containers"}, json::Array{std::move(container)});
  if (dice.chance(12)) json::set(pod, {"spec", "nodeSelector"}, json::Object{{"disk", "ssd"}});
  if (dice.chance(10)) json::set(pod, {"spec", "tolerations"}, json::Array{json::Object{{"key", "old"}, {"operator", "Exists"}}});
  if (dice.chance(8)) json::set(pod, {"spec", "schedulingGates"}, json::Array{json::Object{{"name", "example.com/gate"}}});
  if (dice.chance(8)) json::set(pod, {"spec", "preemptionPolicy"}, json::Value("Never"));
  const json::Object selector{{"matchLabels", json::Object{{"app", dice.of(kApps)}}}};
  const json::Array terms{json::Object{{"labelSelector", selector}, {"topologyKey", dice.chance(80) ? "kubernetes.io/hostname" : "zone"}}};
  if (dice.chance(10))
    json::set(pod,
              {"spec", "affinity", dice.chance(70) ? "podAntiAffinity" : "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
              terms);
  if (dice.chance(6))
    json::set(pod, {"spec", "topologySpreadConstraints"},
              json::Array{json::Object{{"maxSkew", 1},
                                       {"topologyKey", dice.chance(70) ? "zone" : "nowhere"},
                                       {"whenUnsatisfiable", "DoNotSchedule"},
                                       {"labelSelector", selector}}});
  if (subject.dress) subject.dress(*this, pod);
  server.put("pods", std::move(pod));
}

void Life::edit_pod() {
  const std::string name = some("pods");
  if (name.empty() || !json::get_string(*server.find("pods", "default", name), {"spec", "nodeName"}).empty()) return;
  edit("pods", name, [this](json::Value& pod) {
    switch (dice.below(7)) {
      case 0:
        return json::set(pod, {"metadata", "labels", "app"}, json::Value(dice.chance(50) ? "a" : "d"));
      case 1:
        return json::set(pod, {"metadata", "annotations", "note"}, json::Value(std::to_string(dice.below(3))));
      case 2:
        return json::set(pod, {"spec", "tolerations"}, json::Array{json::Object{{"operator", "Exists"}}});
      case 3: {
        json::Value& container = json::find(pod, {"spec", "containers"})->get_array()[0];
        return json::set(container, {"resources", "requests"}, json::Object{{"cpu", dice.chance(50) ? "250m" : "2"}});
      }
      case 4:
        return json::set(pod, {"metadata", "ownerReferences"},
                         json::Array{json::Object{{"kind", "ReplicaSet"}, {"name", "r"}, {"uid", "r"}, {"controller", true}}});
      case 5:
        return json::set(pod, {"spec", "nodeSelector"}, json::Object{{"disk", dice.chance(70) ? "ssd" : "hdd"}});
      default:
        return json::set(pod, {"status", "phase"}, json::Value("Pending"));
    }
  });
}

/// Labels, and a resize with all that a kubelet says of it.
void Life::edit_placed_pod() {
  const std::string name = some("pods");
  if (name.empty() || json::get_string(*server.find("pods", "default", name), {"spec", "nodeName"}).empty()) return;
  edit("pods", name, [this](json::Value& pod) {
    json::Value& container = json::find(pod, {"spec", "containers"})->get_array()[0];
    const json::Object requests{{"cpu", dice.chance(60) ? "300m" : "1200m"}};
    switch (dice.below(7)) {
      case 0:
        return json::set(pod, {"metadata", "labels", "app"}, json::Value(dice.chance(50) ? "a" : "d"));
      case 1:
        return json::set(pod, {"metadata", "annotations", "note"}, json::Value(std::to_string(dice.below(3))));
      case 2:
        return json::set(container, {"resources", "requests"}, requests);
      case 3:
        return json::set(
            pod, {"status", "containerStatuses"},
            json::Array{json::Object{{"name", "c"}, {"allocatedResources", requests}, {"resources", {{"requests", requests}}}}});
      case 4:
        return json::set(pod, {"status", "conditions"},
                         json::Array{json::Object{
                             {"type", "PodResizePending"}, {"status", "True"}, {"reason", dice.chance(50) ? "Infeasible" : "Deferred"}}});
      case 5:
        return json::set(pod, {"status", "startTime"}, json::Value(format_rfc3339(clock_.time)));
      default:
        json::erase(pod, {"status", "conditions"});
        json::erase(pod, {"status", "containerStatuses"});
    }
  });
}

void Life::open_gate() {
  for (const std::string& key : server.names("pods")) {
    const std::string name = key.substr(key.find('/') + 1);
    if (json::get_array(*server.find("pods", "default", name), {"spec", "schedulingGates"}).empty()) continue;
    return edit("pods", name, [](json::Value& pod) { json::erase(pod, {"spec", "schedulingGates"}); });
  }
}

void Life::bind_elsewhere() {
  const std::string name = some("pods"), node = some("nodes");
  if (name.empty() || node.empty() || !json::get_string(*server.find("pods", "default", name), {"spec", "nodeName"}).empty()) return;
  edit("pods", name, [&](json::Value& pod) { json::set(pod, {"spec", "nodeName"}, json::Value(node)); });
}

void Life::nominate_elsewhere() {
  const std::string name = some("pods");
  if (name.empty() || !json::get_string(*server.find("pods", "default", name), {"spec", "nodeName"}).empty()) return;
  edit("pods", name, [&](json::Value& pod) {
    if (dice.chance(40))
      json::erase(pod, {"status", "nominatedNodeName"});
    else
      json::set(pod, {"status", "nominatedNodeName"}, json::Value(dice.of(kNodeNames)));
  });
}

void Life::delete_pod() {
  if (const std::string name = some("pods"); !name.empty()) server.remove("pods", "default", name);
}

void Life::run_nodes() {
  for (const std::string& key : server.names("pods")) {
    const std::string name = key.substr(key.find('/') + 1);
    const json::Value& pod = *server.find("pods", "default", name);
    if (json::get_string(pod, {"spec", "nodeName"}).empty()) continue;
    if (json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr) {
      if (is_restful_ || dice.chance(60)) server.erase("pods", "default", name);
    } else if (const auto phase = json::get_string(pod, {"status", "phase"}); phase.empty() || phase == "Pending") {
      edit("pods", name, [this](json::Value& one) {
        json::set(one, {"status", "phase"}, json::Value("Running"));
        json::set(one, {"status", "startTime"}, json::Value(format_rfc3339(clock_.time)));
      });
    } else if (!is_restful_ && phase == "Running" && dice.chance(15)) {
      edit("pods", name, [this](json::Value& one) {
        json::set(one, {"status", "phase"}, json::Value(dice.chance(50) ? "Succeeded" : "Failed"));
      });
    }
  }
}

void Life::make_node() {
  const std::string name = dice.of(kNodeNames);
  if (server.find("nodes", "", name) != nullptr) return;
  json::Value node = object("Node", name, false);
  json::set(
      node, {"metadata", "labels"},
      json::Object{{"kubernetes.io/hostname", name}, {"zone", dice.chance(50) ? "z0" : "z1"}, {"disk", dice.chance(50) ? "ssd" : "hdd"}});
  json::set(node, {"status", "allocatable"},
            json::Object{{"cpu", std::to_string(2 + dice.below(3))}, {"memory", "8Gi"}, {"pods", dice.chance(70) ? "10" : "2"}});
  if (subject.extenders) {
    json::set(node, {"status", "allocatable", "example.com/fpga"}, json::Value("4"));
    json::set(node, {"status", "allocatable", "example.com/nic"}, json::Value("4"));
  }
  server.put("nodes", std::move(node));
}

void Life::edit_node() {
  const std::string name = some("nodes");
  if (name.empty()) return;
  edit("nodes", name, [this](json::Value& node) {
    switch (dice.below(9)) {
      case 0:
        return json::set(node, {"status", "allocatable", "cpu"}, json::Value(std::to_string(1 + dice.below(4))));
      case 1:
        return json::set(node, {"metadata", "labels", "disk"}, json::Value(dice.chance(50) ? "ssd" : "hdd"));
      case 2:
        return json::set(node, {"spec", "taints"}, json::Array{json::Object{{"key", "old"}, {"effect", "NoSchedule"}}});
      case 3:
        return (void)json::erase(node, {"spec", "taints"});
      case 4:
        return json::set(node, {"spec", "unschedulable"}, json::Value(!json::get_bool(node, {"spec", "unschedulable"})));
      case 5:
        return json::set(node, {"status", "conditions"},
                         json::Array{json::Object{{"type", "Ready"}, {"status", dice.chance(50) ? "True" : "False"}}});
      case 6:
        return json::set(node, {"metadata", "annotations", "note"}, json::Value(std::to_string(dice.below(3))));
      case 7:
        return json::set(node, {"status", "images"},
                         json::Array{json::Object{{"names", json::Array{"i"}}, {"sizeBytes", 1000 * dice.below(3)}}});
      default:
        return json::set(node, {"status", "nodeInfo", "bootID"}, json::Value(std::to_string(dice.below(9))));
    }
  });
}

void Life::delete_node() {
  const std::string name = some("nodes");
  if (!name.empty() && server.names("nodes").size() > 1) server.erase("nodes", "", name);
}

void Life::make_budget() {
  const std::string name = fmt::format("b{}", dice.below(2));
  if (server.find("poddisruptionbudgets", "default", name) != nullptr && dice.chance(40))
    return server.erase("poddisruptionbudgets", "default", name);
  json::Value budget = object("PodDisruptionBudget", name);
  json::set(budget, {"spec", "selector", "matchLabels", "app"}, json::Value(dice.chance(50) ? "a" : "b"));
  json::set(budget, {"status", "disruptionsAllowed"}, json::Value(dice.below(2)));
  server.put("poddisruptionbudgets", std::move(budget));
}

void Life::make_group() {
  const std::string name = fmt::format("g{}", dice.below(3));
  json::Value group = object("PodGroup", name);
  if (const json::Value* there = server.find("podgroups", "default", name)) group = *there;
  if (dice.chance(85))
    json::set(group, {"spec", "schedulingPolicy", "gang", "minCount"}, json::Value(1 + dice.below(4)));
  else
    json::set(group, {"spec", "schedulingPolicy"}, json::Object{{"basic", json::Object()}});
  json::set(group, {"spec", "priority"}, json::Value(5 * dice.below(3)));
  if (dice.chance(25))
    json::set(group, {"spec", "schedulingConstraints", "topology"},
              json::Array{json::Object{{"key", dice.chance(80) ? "zone" : "nowhere"}}});
  if (dice.chance(20)) json::erase(group, {"spec", "schedulingConstraints"});
  if (dice.chance(25)) json::set(group, {"spec", "disruptionMode"}, json::Value(dice.chance(50) ? "PodGroup" : "Pod"));
  if (dice.chance(8))
    json::set(group, {"metadata", "annotations", placement::kRequiredTopology}, json::Value(dice.chance(50) ? "zone,," : "zone"));
  if (dice.chance(40)) json::set(group, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(clock_.time)));
  server.put("podgroups", std::move(group));
}

void Life::delete_group() {
  if (const std::string name = some("podgroups"); !name.empty()) server.erase("podgroups", "default", name);
}

void Life::make_storage() {
  if (server.names("storageclasses").empty()) {
    for (const auto& [name, provisioner] : {std::pair{"local", "kubernetes.io/no-provisioner"}, std::pair{"made", "csi.example.com"}}) {
      json::Value made = object("StorageClass", name, false);
      made.get_object()["provisioner"] = provisioner;
      made.get_object()["volumeBindingMode"] = "WaitForFirstConsumer";
      server.put("storageclasses", std::move(made));
    }
  }
  const bool is_volume = dice.chance(40);
  const char* resource = is_volume ? "persistentvolumes" : "persistentvolumeclaims";
  const std::string name = fmt::format("{}{}", is_volume ? "v" : "c", dice.below(4)), ns = is_volume ? "" : "default";
  if (server.find(resource, ns, name) != nullptr) {
    if (dice.chance(30)) server.erase(resource, ns, name);
    return;
  }
  json::Value made = object(is_volume ? "PersistentVolume" : "PersistentVolumeClaim", name, !is_volume);
  json::set(made, {"spec", "storageClassName"}, json::Value(is_volume || dice.chance(50) ? "local" : "made"));
  json::set(made, {"spec", "accessModes"}, json::Array{"ReadWriteOnce"});
  if (is_volume) {
    json::set(made, {"spec", "capacity", "storage"}, json::Value("1Gi"));
    json::set(made, {"status", "phase"}, json::Value("Available"));
  } else {
    json::set(made, {"spec", "resources", "requests", "storage"}, json::Value("1Gi"));
  }
  server.put(resource, std::move(made));
}

/// Claims that have a node or a volume get what they asked for, or have their node taken back.
void Life::provision() {
  constexpr const char* kNode = "volume.kubernetes.io/selected-node";
  for (const std::string& key : server.names("persistentvolumeclaims")) {
    const std::string name = key.substr(key.find('/') + 1);
    const json::Value& claim = *server.find("persistentvolumeclaims", "default", name);
    if (json::find(claim, {"metadata", "annotations", "pv.kubernetes.io/bind-completed"}) != nullptr) continue;
    std::string volume = json::find(claim, {"metadata", "annotations", kNode}) != nullptr ? "made-for-" + name : "";
    for (const std::string& one : server.names("persistentvolumes"))
      if (json::get_string(*server.find("persistentvolumes", "", one), {"spec", "claimRef", "name"}) == name) volume = one;
    if (volume.empty() || (!is_restful_ && dice.chance(40))) continue;
    const bool fails = !is_restful_ && volume.starts_with("made") && dice.chance(30);
    edit("persistentvolumeclaims", name, [&](json::Value& one) {
      if (fails && dice.chance(50)) json::set(one, {"metadata", "annotations", "other"}, json::Value("x"));
      if (fails) return (void)json::erase(one, {"metadata", "annotations", kNode});
      json::set(one, {"metadata", "annotations", "pv.kubernetes.io/bind-completed"}, json::Value("yes"));
      json::set(one, {"spec", "volumeName"}, json::Value(volume));
      json::set(one, {"status", "phase"}, json::Value("Bound"));
    });
    if (fails || server.find("persistentvolumes", "", volume) != nullptr) continue;
    json::Value made = object("PersistentVolume", volume, false);
    made.get_object()["spec"] = json::Object{{"storageClassName", "made"},
                                             {"accessModes", json::Array{"ReadWriteOnce"}},
                                             {"capacity", json::Object{{"storage", "1Gi"}}},
                                             {"claimRef", json::Object{{"namespace", "default"}, {"name", name}}}};
    json::set(made, {"status", "phase"}, json::Value("Bound"));
    server.put("persistentvolumes", std::move(made));
  }
}

void Life::make_devices() {
  if (server.names("deviceclasses").empty()) {
    json::Value made = object("DeviceClass", "gpu", false);
    made.get_object()["spec"] = json::Object{{"extendedResourceName", "d.example.com/gpu"}};
    server.put("deviceclasses", std::move(made));
  }
  const std::string node = dice.of(kNodeNames), slice = "s-" + node;
  if (dice.chance(60)) {
    if (server.find("resourceslices", "", slice) != nullptr && dice.chance(30)) return server.erase("resourceslices", "", slice);
    json::Array devices;
    for (int i = 1 + dice.below(2); i > 0; --i) {
      json::Object device{{"name", fmt::format("d{}", i)}};
      if (dice.chance(35)) {
        device["bindsToNode"] = true;
        device["bindingConditions"] = json::Array{"example.com/ready"};
        device["bindingFailureConditions"] = json::Array{"example.com/broken"};
      }
      devices.push_back(std::move(device));
    }
    json::Value made = object("ResourceSlice", slice, false);
    made.get_object()["spec"] = json::Object{{"driver", "d.example.com"},
                                             {"nodeName", node},
                                             {"pool", json::Object{{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
                                             {"devices", std::move(devices)}};
    server.put("resourceslices", std::move(made));
    return;
  }
  const std::string name = fmt::format("rc{}", dice.below(3));
  if (server.find("resourceclaims", "default", name) != nullptr) {
    if (dice.chance(30)) server.remove("resourceclaims", "default", name);
    return;
  }
  json::Value made = object("ResourceClaim", name);
  json::set(made, {"spec", "devices", "requests"},
            json::Array{json::Object{
                {"name", "r"}, {"exactly", json::Object{{"deviceClassName", "gpu"}, {"allocationMode", "ExactCount"}, {"count", 1}}}}});
  server.put("resourceclaims", std::move(made));
}

/// Drivers say that devices are ready or broken; what nobody uses any more is given back by the controller.
void Life::tend_devices() {
  for (const std::string& key : server.names("resourceclaims")) {
    const std::string name = key.substr(key.find('/') + 1);
    const json::Value& claim = *server.find("resourceclaims", "default", name);
    const json::Value* allocation = json::find(claim, {"status", "allocation"});
    if (allocation == nullptr || (!is_restful_ && dice.chance(40))) continue;
    bool is_used = false;
    for (const json::Value& one : json::get_array(claim, {"status", "reservedFor"})) {
      const json::Value* pod = server.find("pods", "default", std::string(json::get_string(one, {"name"})));
      is_used = is_used ||
                (pod != nullptr && json::get_string(*pod, {"metadata", "uid"}) == json::get_string(one, {"uid"}) &&
                 json::get_string(*pod, {"status", "phase"}) != "Succeeded" && json::get_string(*pod, {"status", "phase"}) != "Failed");
    }
    const bool is_marked = json::find(claim, {"metadata", "deletionTimestamp"}) != nullptr;
    if (!is_used && (is_marked || dice.chance(30))) {
      if (is_marked) {
        server.erase("resourceclaims", "default", name);
        continue;
      }
      edit("resourceclaims", name, [](json::Value& one) { json::erase(one, {"status"}); });
      continue;
    }
    json::Array statuses;
    for (const json::Value& device : json::get_array(*allocation, {"devices", "results"})) {
      if (json::get_array(device, {"bindingConditions"}).empty()) continue;
      const char* type = !is_restful_ && dice.chance(25) ? "example.com/broken" : "example.com/ready";
      statuses.push_back(json::Object{{"driver", *json::find(device, "driver")},
                                      {"pool", *json::find(device, "pool")},
                                      {"device", *json::find(device, "device")},
                                      {"conditions", json::Array{json::Object{{"type", type}, {"status", "True"}, {"reason", "Said"}}}}});
    }
    if (statuses.empty()) continue;
    if (const json::Value* said = json::find(claim, {"status", "devices"}); said != nullptr && json::equal(*said, json::Value(statuses)))
      continue;
    edit("resourceclaims", name, [&](json::Value& one) { json::set(one, {"status", "devices"}, statuses); });
  }
}

void Life::make_neighbours() {
  if (dice.chance(50)) {
    if (server.find("services", "default", "s") != nullptr && dice.chance(40)) return server.erase("services", "default", "s");
    json::Value service = object("Service", "s");
    json::set(service, {"spec", "selector", "app"}, json::Value(dice.chance(50) ? "a" : "b"));
    server.put("services", std::move(service));
    return;
  }
  json::Value space = object("Namespace", "default", false);
  json::set(space, {"metadata", "labels", "env"}, json::Value(dice.chance(50) ? "prod" : "dev"));
  server.put("namespaces", std::move(space));
}

}  // namespace berth::scheduler::lives
