#include "controllers/common.h"
#include "controllers/machines.h"
#include "model/topology_labels.h"

namespace berth::controllers {
namespace {

using json::get_string;

constexpr std::string_view kMachineFinalizer = "machine.machine.openshift.io";
constexpr std::string_view kMachineAnnotation = "machine.openshift.io/machine";
constexpr std::string_view kNameTaken = "CreateError";

/// "cpu=4,memory=16384Mi,…" of a MachineSet's annotations, as the simulated nodes read it; by the instance type what they leave out.
std::string capacity_of(const json::Value& described, const InstanceSize& size) {
  const auto annotation = [&](std::string_view name) { return get_string(described, {"metadata", "annotations", name}); };
  std::vector<std::string> parts;
  const auto add = [&](std::string_view resource, std::string_view newer, std::string_view older, std::string_view suffix,
                       std::string_view fallback) {
    if (const auto text = annotation(newer); !text.empty()) return parts.push_back(fmt::format("{}={}", resource, text));
    if (const auto text = annotation(older); !text.empty() && text != "0")
      return parts.push_back(fmt::format("{}={}{}", resource, text, suffix));
    if (!fallback.empty()) parts.push_back(fmt::format("{}={}", resource, fallback));
  };
  add("cpu", "capacity.cluster-autoscaler.kubernetes.io/cpu", "machine.openshift.io/vCPU", "", std::to_string(size.cores));
  add("memory", "capacity.cluster-autoscaler.kubernetes.io/memory", "machine.openshift.io/memoryMb", "Mi",
      fmt::format("{}Mi", size.memory_mib));
  add("pods", "capacity.cluster-autoscaler.kubernetes.io/maxPods", "machine.openshift.io/maxPods", "", "110");
  add("ephemeral-storage", "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk", "", "", "");
  const std::string_view gpu = annotation("capacity.cluster-autoscaler.kubernetes.io/gpu-type");
  // Devices of a driver for dynamic allocation are counted by its slices.
  const bool is_driver = gpu.empty() && !annotation("capacity.cluster-autoscaler.kubernetes.io/dra-driver").empty();
  if (!is_driver)
    add(gpu.empty() ? "nvidia.com/gpu" : gpu, "capacity.cluster-autoscaler.kubernetes.io/gpu-count", "machine.openshift.io/GPU", "", "");
  return fmt::format("{}", fmt::join(parts, ","));
}

/// What the simulated nodes publish of the machine's devices: as it says, else gpu-count of those of dra-driver.
std::string devices_of(const json::Value& machine, const json::Value& described) {
  constexpr std::string_view kDevices = "sim.berth.dev/devices";
  for (const json::Value* one : {&machine, &described})
    if (const auto text = get_string(*one, {"metadata", "annotations", kDevices}); !text.empty()) return std::string(text);
  const std::string_view driver =
      get_string(described, {"metadata", "annotations", "capacity.cluster-autoscaler.kubernetes.io/dra-driver"});
  const std::string_view count = get_string(described, {"metadata", "annotations", "capacity.cluster-autoscaler.kubernetes.io/gpu-count"});
  return driver.empty() || count.empty() ? "" : fmt::format("{}={},type=gpu", driver, count);
}

class MachineController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "machine-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().machine, kinds().machine_set, kinds().node}; }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().machine) return sink.add(event.object().key());
    if (event.kind != kinds().node) return;
    const auto node_parsed = event.object().parsed();
    const json::Value& node = *node_parsed;
    if (const auto key = get_string(node, {"metadata", "annotations", kMachineAnnotation}); !key.empty()) sink.add(std::string(key));
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    const auto [ns, name] = split_key(key);
    const ObjectRef machine = cache.get(kinds().machine, ns, name);
    if (!machine) return {};
    const auto parsed = machine->parsed();
    const json::Value& document = *parsed;
    // Somebody makes real ones of these (examples/local-machines).
    if (get_string(document, {"spec", "providerSpec", "value", "kind"}) == "LocalMachine") return {};
    const ObjectRef node = cache.get(kinds().node, "", name);
    const bool owns_node = node != nullptr && get_string(*node->parsed(), {"metadata", "annotations", kMachineAnnotation}) == key;
    if (machine->is_deleting()) return end(*machine, document, owns_node ? node : nullptr);
    Plan plan;
    if (!has_finalizer(document, kMachineFinalizer)) {
      plan.writes.push_back(add_finalizer(kinds().machine, *machine, document, kMachineFinalizer));
      return plan;
    }
    if (owns_node) {
      if (get_string(document, {"spec", "providerID"}).empty())
        plan.writes.push_back(
            patch_object(kinds().machine, *machine, {{"spec", json::Object{{"providerID", provider_id(*machine)}}}}, false));
      show(plan, *machine, document, node, now);
      return plan;
    }
    // As in OpenShift that is final, whoever said so; but for a name that was taken, and may be free by now.
    if (get_string(document, {"status", "phase"}) == "Failed" && get_string(document, {"status", "errorReason"}) != kNameTaken) return plan;
    const ObjectRef set = cache.get(kinds().machine_set, ns, machine->controller_name());
    const json::Value described = set ? set->document() : document;
    if (node != nullptr) {
      show_phase(plan, *machine, document, "Failed", fmt::format("a node named {} is there already", name), now);
    } else if (const auto boots = boot_time(document, described, now); !boots) {
      show_phase(plan, *machine, document, "Provisioning", "", now);
    } else if (*boots > now) {
      show_phase(plan, *machine, document, "Provisioning", "", now);
      plan.requeue_after = *boots - now;
    } else {
      plan.writes.push_back(create_object(kinds().node, "", make_node(*machine, document, described)));
    }
    return plan;
  }

 private:
  static std::string provider_id(const Object& machine) { return fmt::format("simulated:///{}/{}", machine.ns(), machine.name()); }

  /// Nullopt: never.
  static std::optional<TimePoint> boot_time(const json::Value& document, const json::Value& set, TimePoint now) {
    std::string_view text = get_string(document, {"metadata", "annotations", kBootDelayAnnotation});
    if (text.empty()) text = get_string(set, {"metadata", "annotations", kBootDelayAnnotation});
    if (text.empty()) return now;
    if (text == "never") return std::nullopt;
    return read_time(document, {"metadata", "creationTimestamp"}) + parse_go_duration(text).value_or(Duration{0});
  }

  static json::Value make_node(const Object& machine, const json::Value& document, const json::Value& described) {
    const auto provider = [&](std::initializer_list<std::string_view> path) {
      const json::Value* value = json::find(document, {"spec", "providerSpec", "value"});
      return value == nullptr ? std::string_view() : get_string(*value, path);
    };
    json::Object labels{{"kubernetes.io/hostname", machine.name()},
                        {"kubernetes.io/arch", "amd64"},
                        {"kubernetes.io/os", "linux"},
                        {"node-role.kubernetes.io/worker", ""}};
    std::string_view type = provider({"instanceType"});
    if (type.empty()) type = provider({"vmSize"});
    if (type.empty()) type = provider({"machineType"});
    const auto label = [&](std::string_view key, std::initializer_list<std::string_view> values) {
      for (const std::string_view value : values)
        if (!value.empty()) labels[key] = value;
    };
    label(model::kZoneLabel.present, {provider({"availabilityZone"}), provider({"zone"}), provider({"placement", "availabilityZone"})});
    label(model::kRegionLabel.present, {provider({"location"}), provider({"region"}), provider({"placement", "region"})});
    label("node.kubernetes.io/instance-type", {type});
    for (const auto& [key, value] : json::get_object(document, {"spec", "metadata", "labels"})) labels[key] = value;
    model::complete_topology_labels(labels);
    json::Object annotations{{kMachineAnnotation, machine.key()},
                             {"sim.berth.dev/fleet", "default"},
                             {"sim.berth.dev/capacity", capacity_of(described, instance_size(type))}};
    if (std::string devices = devices_of(document, described); !devices.empty()) annotations["sim.berth.dev/devices"] = std::move(devices);
    return json::Object{
        {"apiVersion", "v1"},
        {"kind", "Node"},
        {"metadata", json::Object{{"name", machine.name()}, {"labels", std::move(labels)}, {"annotations", std::move(annotations)}}},
        {"spec", json::Object{{"providerID", provider_id(machine)}, {"taints", json::get_array(document, {"spec", "taints"})}}}};
  }

  static void write_status(Plan& plan, const Object& machine, const json::Value& document, json::Object status, TimePoint now) {
    json::Object before = json::get_object(document, {"status"});
    before.erase("lastUpdated");
    status.erase("lastUpdated");
    if (json::equal(before, status)) return;
    status["lastUpdated"] = format_rfc3339(now);
    if (auto write = patch_status(kinds().machine, machine, document, status)) plan.writes.push_back(std::move(*write));
  }

  static void show_phase(Plan& plan, const Object& machine, const json::Value& document, std::string_view phase, const std::string& problem,
                         TimePoint now) {
    json::Object status = json::get_object(document, {"status"});
    status["phase"] = phase;
    status.erase("nodeRef");
    if (!problem.empty()) {
      status["errorReason"] = kNameTaken;
      status["errorMessage"] = problem;
    }
    write_status(plan, machine, document, std::move(status), now);
  }

  static void show(Plan& plan, const Object& machine, const json::Value& document, const ObjectRef& node, TimePoint now) {
    const auto node_document_parsed = node->parsed();
    const json::Value& node_document = *node_document_parsed;
    const bool is_ready = condition_status(node_document, "Ready") == "True";
    json::Object status = json::get_object(document, {"status"});
    // A machine that runs stays so when its node is not ready for a while.
    if (is_ready || get_string(document, {"status", "phase"}) != "Running") status["phase"] = is_ready ? "Running" : "Provisioned";
    status["nodeRef"] = json::Object{{"kind", "Node"}, {"name", node->name()}, {"uid", node->uid()}};
    if (const json::Array& addresses = json::get_array(node_document, {"status", "addresses"}); !addresses.empty())
      status["addresses"] = addresses;
    status["providerStatus"] = json::Object{{"instanceId", machine.name()}, {"instanceState", "running"}};
    write_status(plan, machine, document, std::move(status), now);
  }

  static Plan end(const Object& machine, const json::Value& document, const ObjectRef& node) {
    Plan plan;
    if (!has_finalizer(document, kMachineFinalizer)) return plan;
    if (get_string(document, {"status", "phase"}) != "Deleting") {
      json::Object status = json::get_object(document, {"status"});
      status["phase"] = "Deleting";
      if (auto write = patch_status(kinds().machine, machine, document, status)) plan.writes.push_back(std::move(*write));
      return plan;
    }
    if (node != nullptr) {
      plan.writes.push_back(delete_object(kinds().node, *node));
      return plan;
    }
    plan.writes.push_back(remove_finalizer(kinds().machine, machine, document, kMachineFinalizer));
    return plan;
  }
};

}  // namespace

ControllerPtr make_simulated_machine_controller() { return std::make_unique<MachineController>(); }

}  // namespace berth::controllers
