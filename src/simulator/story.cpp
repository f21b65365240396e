#include "simulator/story.h"

#include <fmt/format.h>

#include "autoscaler/cluster_cache.h"
#include "model/kinds.h"
#include "model/topology_labels.h"
#include "pools/crds.h"
#include "simulator/gangs.h"

namespace berth::simulator {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);
/// Kinds that are defined are served by then.
constexpr Duration kServed = std::chrono::seconds(5);
constexpr const char* kMachines = "openshift-machine-api";

json::Object object_of(const AmountTexts& texts) {
  json::Object out;
  for (const auto& [key, text] : texts) out[key] = text;
  return out;
}

/// Sets a text, making the objects on the way.
void put(json::Value& root, json::Path path, const std::string& text) { json::set(root, path, json::Value(boost::json::string(text))); }

const model::KindInfo* kind_of_object(const json::Value& object) {
  const std::string_view version = json::get_string(object, {"apiVersion"});
  const std::size_t slash = version.find('/');
  return model::find_kind(slash == std::string_view::npos ? "" : version.substr(0, slash),
                          slash == std::string_view::npos ? version : version.substr(slash + 1), json::get_string(object, {"kind"}));
}

/// Where objects of a kind are written.
struct Target {
  model::Gvr gvr;
  std::string kind;
  bool is_namespaced = false;
};
std::optional<Target> target_of(const json::Value& object) {
  if (const model::KindInfo* kind = kind_of_object(object); kind != nullptr && !kind->is_virtual)
    return Target{kind->gvr(), std::string(kind->kind), kind->namespaced};
  for (const pools::OwnKind& one : pools::own_kinds())
    if (one.kind == json::get_string(object, {"kind"}) && json::get_string(object, {"apiVersion"}) == one.gvr.group + "/" + one.gvr.version)
      return Target{one.gvr, std::string(one.kind), false};
  return std::nullopt;
}
std::optional<Target> target_of(const std::string& group, const std::string& resource) {
  if (const model::KindInfo* kind = model::find_resource(group, resource))
    return Target{kind->gvr(), std::string(kind->kind), kind->namespaced};
  for (const pools::OwnKind& one : pools::own_kinds())
    if (one.gvr.group == group && one.gvr.resource == resource) return Target{one.gvr, std::string(one.kind), false};
  return std::nullopt;
}

json::Value make_node(const NodeSet& set, std::int64_t number) {
  const std::string name = fmt::format("{}-{}", set.name, number);
  json::Object labels{{"kubernetes.io/hostname", name},
                      {"beta.kubernetes.io/os", "linux"},
                      {"beta.kubernetes.io/arch", "amd64"},
                      {"kubernetes.io/os", "linux"},
                      {"kubernetes.io/arch", "amd64"},
                      {"node.kubernetes.io/instance-type", set.instance_type},
                      {model::kZoneLabel.present, set.zones[static_cast<std::size_t>(number - 1) % set.zones.size()]},
                      {model::kRegionLabel.present, set.region}};
  for (const auto& [key, text] : set.labels) labels[key] = text;
  model::complete_topology_labels(labels);
  json::Object annotations = object_of(set.annotations);
  annotations["sim.berth.dev/fleet"] = "default";
  std::vector<std::string> parts;
  for (const auto& [resource, text] : set.capacity) parts.push_back(fmt::format("{}={}", resource, text));
  annotations["sim.berth.dev/capacity"] = fmt::format("{}", fmt::join(parts, ","));
  json::Object spec{{"providerID", "simulated://" + name}};
  if (!set.taints.empty()) spec["taints"] = set.taints;
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"metadata", json::Object{{"name", name}, {"labels", std::move(labels)}, {"annotations", std::move(annotations)}}},
                      {"spec", std::move(spec)}};
}

json::Value make_machine_set(const NodeGroup& group) {
  const NodeSet& set = group.nodes;
  const auto capacity = [&](const char* name) {
    const auto found = set.capacity.find(name);
    return found == set.capacity.end() ? std::string() : found->second;
  };
  json::Object annotations{{autoscaler::kMinSize, std::to_string(group.min)},
                           {autoscaler::kMaxSize, std::to_string(group.max)},
                           {"capacity.cluster-autoscaler.kubernetes.io/cpu", capacity("cpu")},
                           {"capacity.cluster-autoscaler.kubernetes.io/memory", capacity("memory")},
                           {"capacity.cluster-autoscaler.kubernetes.io/maxPods", capacity("pods")},
                           {"capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk", capacity("ephemeral-storage")}};
  if (!capacity("nvidia.com/gpu").empty()) {
    annotations["capacity.cluster-autoscaler.kubernetes.io/gpu-type"] = "nvidia.com/gpu";
    annotations["capacity.cluster-autoscaler.kubernetes.io/gpu-count"] = capacity("nvidia.com/gpu");
  }
  json::Object selector{{"machine.openshift.io/cluster-api-cluster", "simulated"},
                        {"machine.openshift.io/cluster-api-machineset", set.name}};
  json::Object labels = object_of(set.labels);
  labels["node.kubernetes.io/instance-type"] = set.instance_type;
  json::Object machine{
      {"metadata", json::Object{{"labels", std::move(labels)}}},
      {"providerSpec", json::Object{{"value", json::Object{{"instanceType", set.instance_type},
                                                           {"placement", json::Object{{"availabilityZone", set.zones.front()},
                                                                                      {"region", set.region}}}}}}}};
  if (!set.taints.empty()) machine["taints"] = set.taints;
  return json::Object{
      {"apiVersion", "machine.openshift.io/v1beta1"},
      {"kind", "MachineSet"},
      {"metadata", json::Object{{"name", set.name}, {"namespace", kMachines}, {"annotations", std::move(annotations)}}},
      {"spec", json::Object{{"replicas", set.count},
                            {"selector", json::Object{{"matchLabels", selector}}},
                            {"template", json::Object{{"metadata", json::Object{{"labels", selector}}}, {"spec", std::move(machine)}}}}}};
}

}  // namespace

/// A workload whose arrivals are under way.
struct Story::Source {
  const Workload* workload = nullptr;
  ArrivalStream stream;
  Random random;
  std::int64_t count = 0;
  std::size_t row = 0;
};

Story::Story(const Scenario& scenario, Cluster& cluster, std::function<void(std::string, std::string)> tell)
    : scenario_(scenario), cluster_(cluster), tell_(std::move(tell)) {}
Story::~Story() { lifeline_.end(); }

Duration Story::now() const { return std::chrono::duration_cast<Duration>(cluster_.loop().now() - start_); }

void Story::at(Duration when, std::function<void()> what) { cluster_.loop().schedule_at(start_ + when, lifeline_.guard(std::move(what))); }

void Story::submit(client::Call call, const std::string& what, bool may_exist) {
  if (on_change) on_change();
  if (!cluster_.is_running("server")) {
    // Who creates something while the server is away tries again.
    cluster_.loop().schedule_after(kRetry,
                                   lifeline_.guard([this, call = std::move(call), what, may_exist] { submit(call, what, may_exist); }));
    return;
  }
  call.answer = client::Answer::kNone;
  const auto answer = cluster_.client().call_and_wait(std::move(call));
  if (answer || (may_exist && answer.error().code == 409)) return;
  // One kind of refusal is one line, whatever the names in it.
  constexpr std::size_t kMostKinds = 20;
  if (refusals_.size() < kMostKinds || refusals_.contains(what + ": " + answer.error().message))
    ++refusals_[what + ": " + answer.error().message];
}

void Story::make_namespace(const std::string& name, const json::Value& as) {
  if (name.empty() || !namespaces_.insert(name).second) return;
  client::Call call{.verb = "create", .gvr = {"", "v1", "namespaces"}};
  call.body = json::serialize(
      as.is_object() ? as
                     : json::Value(json::Object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", json::Object{{"name", name}}}}));
  submit(std::move(call), "namespace " + name, true);
  // Its controller would make it; pods may come before the controller has.
  client::Call account{.verb = "create", .gvr = {"", "v1", "serviceaccounts"}, .ns = name};
  account.body = R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})";
  submit(std::move(account), "service account of " + name, true);
}

void Story::create(json::Value object, const std::string& default_ns, bool may_exist) {
  const std::optional<Target> kind = target_of(object);
  const std::string_view name = json::get_string(object, {"metadata", "name"});
  if (!kind) {
    ++refusals_[fmt::format("{} {}: not a kind that the API server knows", json::get_string(object, {"apiVersion"}),
                            json::get_string(object, {"kind"}))];
    return;
  }
  if (kind->kind == "Namespace") return make_namespace(std::string(name), object);
  client::Call call{.verb = "create", .gvr = kind->gvr};
  if (kind->is_namespaced) {
    call.ns = json::get_string(object, {"metadata", "namespace"}, default_ns);
    make_namespace(call.ns);
  }
  const std::string what = fmt::format("{} {}", kind->kind, name);
  call.body = json::serialize(object);
  submit(std::move(call), what, may_exist);
}

void Story::apply(const json::Value& object) {
  const std::optional<Target> kind = target_of(object);
  if (!kind) return create(object, "default");
  client::Call call{.verb = "patch", .gvr = kind->gvr, .name = std::string(json::get_string(object, {"metadata", "name"}))};
  if (kind->is_namespaced) {
    call.ns = json::get_string(object, {"metadata", "namespace"}, "default");
    make_namespace(call.ns);
  }
  call.query = "fieldManager=simulator&force=true";
  call.content_type = "application/apply-patch+yaml";
  call.body = json::serialize(object);
  const std::string what = fmt::format("{} {}", kind->kind, call.name);
  submit(std::move(call), what);
}

void Story::remove(const std::string& group, const std::string& resource, const std::string& ns, const std::string& name) {
  const std::optional<Target> kind = target_of(group, resource);
  if (!kind) return;
  client::Call call{.verb = "delete", .gvr = kind->gvr, .ns = ns, .name = name};
  if (resource != "pods") call.body = R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})";
  if (!cluster_.is_running("server")) return at(now() + kRetry, [this, group, resource, ns, name] { remove(group, resource, ns, name); });
  call.answer = client::Answer::kNone;
  (void)cluster_.client().call_and_wait(std::move(call));  // What is gone already needs nothing.
}

void Story::patch(const std::string& group, const std::string& resource, const std::string& ns, const std::string& name, json::Value body) {
  const std::optional<Target> kind = target_of(group, resource);
  if (!kind) return;
  client::Call call{.verb = "patch", .gvr = kind->gvr, .ns = ns, .name = name};
  call.content_type = "application/merge-patch+json";
  call.body = json::serialize(body);
  submit(std::move(call), fmt::format("{} {}", kind->kind, name));
}

void Story::make_nodes(const NodeSet& set) {
  std::int64_t& made = added_[set.name];
  for (std::int64_t i = 0; i < set.count; ++i) create(make_node(set, ++made), "");
}

void Story::make_group(const NodeGroup& group) { create(make_machine_set(group), kMachines); }

void Story::set_up() {
  make_namespace("default");
  for (const Workload& workload : scenario_.workloads) make_namespace(workload.ns);
  for (const NodeSet& set : scenario_.nodes) make_nodes(set);
  for (const NodeGroup& group : scenario_.groups) make_group(group);
  if (scenario_.autoscaler) create(scenario_.autoscaler->object, "");
  if (!scenario_.pools) return;
  // Their runner would define these kinds; pools come before it.
  for (const json::Value& definition : pools::definitions()) create(definition, "");
  cluster_.loop().schedule_after(kServed, lifeline_.guard([this] {
    for (const json::Value& object : scenario_.pools->objects) create(object, "");
  }));
}

void Story::begin() {
  start_ = cluster_.loop().now();
  // Machines that are there from the start were booted before it.
  for (const NodeGroup& group : scenario_.groups)
    patch("machine.openshift.io", "machinesets", kMachines, group.nodes.name,
          json::Object{{"metadata",
                        json::Object{{"annotations", json::Object{{"sim.berth.dev/boot-delay", format_go_duration(group.boot_delay)}}}}}});
  for (const Workload& workload : scenario_.workloads) start_workload(workload);
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i) start_fault(scenario_.faults[i], i);
  for (const PlannedChange& change : scenario_.changes)
    for (const Duration when : change.at) at(when, [this, &change] { carry_out(change); });
}

void Story::start_workload(const Workload& workload) {
  const Duration day_offset = scenario_.start.time_since_epoch() % Duration(std::chrono::hours(24));
  const std::string stream = fmt::format("{}/{}", workload.ns, workload.name);
  auto source =
      std::make_shared<Source>(&workload, ArrivalStream(workload.arrivals, Random(scenario_.seed, stream), day_offset, scenario_.duration),
                               Random(scenario_.seed, stream + "/lengths"));
  arm(source);
}

/// Waits for the next arrival alone: a million of them are never timers at once.
void Story::arm(const std::shared_ptr<Source>& source) {
  const Workload& workload = *source->workload;
  if (!workload.trace.empty()) {
    if (source->row >= workload.trace.size() || workload.trace[source->row].at >= scenario_.duration) return;
    at(workload.trace[source->row].at, [this, source] {
      const std::vector<TraceRow>& rows = source->workload->trace;
      const Duration when = rows[source->row].at;
      while (source->row < rows.size() && rows[source->row].at == when) arrive(*source, rows[source->row++]);
      arm(source);
    });
    return;
  }
  const auto next = source->stream.next();
  if (!next) return;
  at(*next, [this, source] {
    arrive(*source);
    arm(source);
  });
}

void Story::arrive(Source& source) {
  const Workload& workload = *source.workload;
  ++arrivals_;
  ++source.count;
  const std::string name = workload.has_arrivals ? fmt::format("{}-{}", workload.name, source.count) : workload.name;
  const std::optional<Duration> length = workload.run_for ? std::optional(workload.run_for->draw(source.random)) : std::nullopt;
  if (workload.kind == Workload::Kind::kObjects) {
    create_all(workload.objects, workload.ns);
    if (length) at(now() + *length, [this, &workload] { remove_all(workload.objects, workload.ns); });
    return;
  }
  json::Value object = workload.object;
  put(object, {"metadata", "name"}, name);
  if (workload.kind == Workload::Kind::kDeployment) {
    if (workload.has_arrivals) {
      put(object, {"spec", "selector", "matchLabels", "app"}, name);
      put(object, {"spec", "template", "metadata", "labels", "app"}, name);
    }
    create(std::move(object), workload.ns);
    create_all(workload.objects, workload.ns);
    if (length) at(now() + *length, [this, &workload, name] { remove("apps", "deployments", workload.ns, name); });
    return;
  }
  if (workload.gang)
    return gangs->arrive(workload, workload.ns, name, std::move(object), workload.gang->size, length.value_or(Duration(0)));
  const bool is_job = workload.kind == Workload::Kind::kJob;
  if (length) {
    const std::string text = format_go_duration(*length);
    if (is_job)
      put(object, {"spec", "template", "metadata", "annotations", "sim.berth.dev/run-for"}, text);
    else
      put(object, {"metadata", "annotations", "sim.berth.dev/run-for"}, text);
  }
  if (!is_job && length) keep_track(workload.ns, name, workload.keep_finished);
  create(std::move(object), workload.ns);
}

void Story::arrive(Source& source, const TraceRow& row) {
  const Workload& workload = *source.workload;
  ++arrivals_;
  ++source.count;
  const std::string ns = row.ns.empty() ? workload.ns : row.ns;
  const std::string name = row.name.empty() ? fmt::format("{}-{}", workload.name, source.count) : row.name;
  json::Value pod = workload.object;
  put(pod, {"metadata", "name"}, name);
  std::optional<Duration> length = row.run_for;
  if (!length && workload.run_for) length = workload.run_for->draw(source.random);
  if (length && !workload.gang) {
    put(pod, {"metadata", "annotations", "sim.berth.dev/run-for"}, format_go_duration(*length));
    keep_track(ns, name, workload.keep_finished);
  }
  if (!row.priority_class.empty()) put(pod, {"spec", "priorityClassName"}, row.priority_class);
  if (json::Value* containers = json::find(pod, {"spec", "containers"});
      !row.requests->empty() && containers != nullptr && containers->is_array())
    for (const auto& [resource, text] : *row.requests) {
      put(containers->get_array()[0], {"resources", "requests", resource}, text);
      // Extended resources are asked for by their limit.
      if (resource.find('/') != std::string::npos) put(containers->get_array()[0], {"resources", "limits", resource}, text);
    }
  if (workload.gang)
    return gangs->arrive(workload, ns, name, std::move(pod), std::max(row.size, workload.gang->size), length.value_or(Duration(0)));
  create(std::move(pod), ns);
}

void Story::keep_track(const std::string& ns, const std::string& name, Duration keep_finished) {
  own_pods_[ns + "/" + name] = keep_finished;
}

void Story::pod_is_over(std::string_view ns, std::string_view name) {
  const auto found = own_pods_.find(fmt::format("{}/{}", ns, name));
  if (found == own_pods_.end()) return;
  at(now() + found->second, [this, ns = std::string(ns), name = std::string(name)] { remove("", "pods", ns, name); });
  own_pods_.erase(found);
}

void Story::create_all(const std::vector<json::Value>& objects, const std::string& ns) {
  for (const json::Value& object : objects) create(object, ns);
}

void Story::remove_all(const std::vector<json::Value>& objects, const std::string& ns) {
  for (const json::Value& object : objects)
    if (const std::optional<Target> kind = target_of(object))
      remove(kind->gvr.group, kind->gvr.resource,
             kind->is_namespaced ? std::string(json::get_string(object, {"metadata", "namespace"}, ns)) : "",
             std::string(json::get_string(object, {"metadata", "name"})));
}

}  // namespace berth::simulator
