#include <algorithm>
#include <charconv>

#include "controllers/common.h"
#include "controllers/machines.h"

namespace berth::controllers {
namespace {

using json::get_string;

constexpr std::string_view kDeleteMachine = "machine.openshift.io/delete-machine";
constexpr std::string_view kOldDeleteMachine = "machine.openshift.io/cluster-api-delete-machine";
/// A mark and the replicas that go with it come by different watches: so long a surplus may wait for its mark.
constexpr std::int64_t kBurst = 500;  ///< Machines that one step makes at most.
constexpr Duration kMarkDelay = std::chrono::milliseconds(500);

struct Machine {
  ObjectRef object;
  bool is_marked = false, has_node = false, is_ready = false, is_failed = false;
  TimePoint created{}, ready_since{};
};

class MachineSetController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "machineset-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().machine_set, kinds().machine, kinds().node}; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().machine_set) return sink.add(event.object().key());
    if (event.kind == kinds().machine) {
      for (const ObjectRef& machine : {event.before, event.after})
        if (machine && machine->controller_kind() == "MachineSet") sink.add(machine->ns() + "/" + machine->controller_name());
      if (event.after && event.after->controller_uid().empty())
        cache.for_each_in(kinds().machine_set, event.after->ns(), [&](const ObjectRef& set) { sink.add(set->key()); });
      return;
    }
    const auto [ns, name] = split_key(get_string(*event.object().parsed(), {"metadata", "annotations", "machine.openshift.io/machine"}));
    if (const ObjectRef machine = cache.get(kinds().machine, ns, name); machine && machine->controller_kind() == "MachineSet")
      sink.add(ns + "/" + machine->controller_name());
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef set = cache.get(kinds().machine_set, ns, name);
    if (!set) {
      surplus_since_.erase(key);
      return plan;
    }
    const auto parsed = set->parsed();
    const json::Value& document = *parsed;
    const model::Selector selector = label_selector_of(document);
    ObjectClaim claim = claim_objects(kinds().machine_set, *set, selector, kinds().machine, cache);
    plan.writes = std::move(claim.writes);
    std::vector<Machine> machines;
    for (const ObjectRef& object : claim.objects)
      if (!object->is_deleting()) machines.push_back(read(object, cache));
    const std::int64_t wanted = json::get_int(document, {"spec", "replicas"}, 1);
    const auto have = static_cast<std::int64_t>(machines.size());
    if (!set->is_deleting() && !selector.is_nothing()) {
      if (auto write = describe_capacity(*set, document)) plan.writes.push_back(std::move(*write));
      if (have < wanted) create(plan, *set, document, std::min(wanted - have, burst_of(*set, kBurst)));
      if (have > wanted) remove(plan, key, document, machines, static_cast<std::size_t>(have - wanted), now);
    }
    if (have <= wanted) surplus_since_.erase(key);
    if (auto write = patch_status(kinds().machine_set, *set, document, status_of(document, machines, now)))
      plan.writes.insert(plan.writes.begin(), std::move(*write));
    return plan;
  }

 private:
  static Machine read(const ObjectRef& object, const Cache& cache) {
    const auto parsed = object->parsed();
    const json::Value& document = *parsed;
    Machine out{.object = object};
    const json::Object& annotations = json::get_object(document, {"metadata", "annotations"});
    out.is_marked = annotations.contains(kDeleteMachine) || annotations.contains(kOldDeleteMachine);
    out.is_failed = get_string(document, {"status", "phase"}) == "Failed";
    out.created = read_time(document, {"metadata", "creationTimestamp"});
    const ObjectRef node = cache.get(kinds().node, "", get_string(document, {"status", "nodeRef", "name"}));
    out.has_node = node != nullptr;
    if (!node) return out;
    const auto node_document_parsed = node->parsed();
    const json::Value& node_document = *node_document_parsed;
    if (const json::Value* ready = find_condition(node_document, "Ready"); ready != nullptr && get_string(*ready, {"status"}) == "True") {
      out.is_ready = true;
      out.ready_since = read_time(*ready, {"lastTransitionTime"});
    }
    return out;
  }

  static std::optional<Write> describe_capacity(const Object& set, const json::Value& document) {
    for (const auto& [key, value] : json::get_object(document, {"metadata", "annotations"}))
      if (key == "machine.openshift.io/vCPU" || key == "capacity.cluster-autoscaler.kubernetes.io/cpu") return std::nullopt;
    std::string_view type;
    for (const char* field : {"instanceType", "vmSize", "machineType"})
      if (type.empty()) type = get_string(document, {"spec", "template", "spec", "providerSpec", "value", field});
    const InstanceSize size = instance_size(type);
    json::Object annotations{{"machine.openshift.io/vCPU", std::to_string(size.cores)},
                             {"machine.openshift.io/memoryMb", std::to_string(size.memory_mib)}};
    if (json::find(document, {"metadata", "annotations", "machine.openshift.io/GPU"}) == nullptr)
      annotations["machine.openshift.io/GPU"] = "0";
    return patch_object(kinds().machine_set, set, {{"metadata", json::Object{{"annotations", std::move(annotations)}}}});
  }

  static void create(Plan& plan, const Object& set, const json::Value& document, std::int64_t count) {
    json::Object metadata{{"generateName", set.name() + "-"}, {"ownerReferences", json::Array{owner_reference(kinds().machine_set, set)}}};
    for (const char* field : {"labels", "annotations"})
      if (const json::Value* value = json::find(document, {"spec", "template", "metadata", field})) metadata[field] = *value;
    json::Object body{{"apiVersion", "machine.openshift.io/v1beta1"}, {"kind", "Machine"}, {"metadata", std::move(metadata)}};
    if (const json::Value* spec = json::find(document, {"spec", "template", "spec"})) body["spec"] = *spec;
    for (std::int64_t i = 0; i < count; ++i) {
      Write write = create_object(kinds().machine, set.ns(), body);
      write.slow_start = true;
      write.on_failure = note_about(kinds().machine_set, set, "Warning", "FailedCreate", "Error creating: {}");
      plan.add(std::move(write), set.text_bytes());
    }
  }

  void remove(Plan& plan, const std::string& key, const json::Value& document, std::vector<Machine>& machines, std::size_t count,
              TimePoint now) {
    const std::string_view policy = get_string(document, {"spec", "deletePolicy"});
    std::ranges::stable_sort(machines, [&](const Machine& a, const Machine& b) {
      if (a.is_marked != b.is_marked) return a.is_marked;
      if (a.is_failed != b.is_failed) return a.is_failed;
      if (a.has_node != b.has_node) return b.has_node;
      if (policy == "Oldest") return a.created < b.created;
      return policy == "Newest" && a.created > b.created;
    });
    const TimePoint since = surplus_since_.try_emplace(key, now).first->second;
    for (std::size_t i = 0; i < count; ++i) {
      if (!machines[i].is_marked && since + kMarkDelay > now) {
        plan.requeue_after = since + kMarkDelay - now;
        return;
      }
      if (plan.is_full()) return;
      plan.writes.push_back(delete_object(kinds().machine, *machines[i].object));
    }
  }

  static json::Object status_of(const json::Value& document, const std::vector<Machine>& machines, TimePoint now) {
    const model::Labels labels = model::Labels::from_json(json::find(document, {"spec", "template", "metadata", "labels"}));
    const Duration min_ready = seconds_at(document, {"spec", "minReadySeconds"});
    std::int64_t labelled = 0, ready = 0, available = 0;
    for (const Machine& machine : machines) {
      labelled += std::ranges::all_of(labels.pairs(), [&](const auto& pair) {
        const std::string* value = machine.object->labels().get(pair.first);
        return value != nullptr && *value == pair.second;
      });
      ready += machine.is_ready;
      available += machine.is_ready && machine.ready_since + min_ready <= now;
    }
    json::Object status = json::get_object(document, {"status"});
    const auto set = [&status](std::string_view field, std::int64_t count) {
      if (count != 0)
        status[field] = count;
      else
        status.erase(field);
    };
    status["replicas"] = static_cast<std::int64_t>(machines.size());
    set("fullyLabeledReplicas", labelled);
    set("readyReplicas", ready);
    set("availableReplicas", available);
    set("observedGeneration", json::get_int(document, {"metadata", "generation"}));
    return status;
  }

  std::map<std::string, TimePoint> surplus_since_;  ///< By set: since when it has more machines than it should.
};

}  // namespace

InstanceSize instance_size(std::string_view type) {
  const std::size_t dot = type.find('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  std::string_view size = type.substr(dot + 1);
  std::int64_t cores = 0;
  if (size == "large") {
    cores = 2;
  } else if (size.ends_with("xlarge")) {
    size.remove_suffix(6);
    std::int64_t times = 1;
    const auto [end, wrong] = std::from_chars(size.data(), size.data() + size.size(), times);
    if (!size.empty() && (wrong != std::errc() || end != size.data() + size.size() || times < 1 || times > 64)) return {};
    cores = 4 * times;
  } else {
    return {};
  }
  const std::int64_t per_core = type[0] == 'c' ? 2048 : type[0] == 'r' || type[0] == 'x' ? 8192 : 4096;
  return {cores, cores * per_core};
}

ControllerPtr make_machine_set_controller() { return std::make_unique<MachineSetController>(); }

}  // namespace berth::controllers
