// A cluster over virtual time for the keeper's tests: an API of documents, a scheduler that places, nodes that start.
#pragma once
#include "pools/keeper.h"
#include "tests/pools/builder.h"

namespace berth::pools::tests {

/// RFC 7386.
inline void merge(json::Value& into, const json::Value& patch) {
  if (!patch.is_object()) {
    into = patch;
    return;
  }
  if (!into.is_object()) into = json::Object{};
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null())
      into.get_object().erase(key);
    else
      merge(into.get_object()[key], value);
  }
}

class FakeCluster {
 public:
  FakeCluster() {
    auto profiles = placement::Profiles::create({placement::default_profile(placement::Era::k136)});
    options_.profiles = *profiles;
    keeper_.emplace(small_catalogue(), options_);
    add(read("{apiVersion: sim.berth.dev/v1alpha1, kind: SimulatedNodeClass, metadata: {name: default}, spec: {bootDelay: 1s}}"));
  }

  void add(json::Value document) {
    const std::string key = key_of(document);
    if (json::find(document, {"metadata", "uid"}) == nullptr || json::get_string(document, {"metadata", "uid"}).empty())
      json::set(document, {"metadata", "uid"}, json::Value(fmt::format("uid-{}", ++uids_)));
    json::set(document, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(now_)));
    if (json::get_string(document, {"kind"}) == "Pod")
      json::set(document, {"status", "conditions"},
                json::Array{json::Object{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}});
    put(key, std::move(document));
  }
  void scale(const std::string& app, int from, int to, const std::string& cpu, const std::string& more = "{}") {
    for (int i = from; i < to; ++i) add(pod(fmt::format("{}-{}", app, i), cpu, "1Gi", more));
    for (int i = to; i < from; ++i) drop(fmt::format("Pod/default/{}-{}", app, i));
  }
  /// A second each.
  void run(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_ += std::chrono::seconds(1);
      start_nodes();
      schedule();
      run_machines();
      const PassResult result = keeper_->step(now_);
      for (const Write& write : result.writes) apply(write);
      for (const MachineWrite& write : result.machines) apply(write);
      for (const Told& one : result.events) events_.push_back(fmt::format("{} {} {}: {}", one.kind, one.name, one.reason, one.message));
      writes_ = result.writes.size();
    }
  }
  [[nodiscard]] std::size_t count(const std::string& kind) const {
    return static_cast<std::size_t>(std::ranges::count_if(documents_, [&](const auto& one) { return one.first.starts_with(kind + "/"); }));
  }
  [[nodiscard]] std::string types() const {
    std::map<std::string, int> out;
    for (const auto& [key, one] : documents_)
      if (key.starts_with("Node/")) ++out[std::string(json::get_string(one, {"metadata", "labels", kInstanceTypeLabel}))];
    std::string text;
    for (const auto& [type, number] : out) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, type);
    return text;
  }
  [[nodiscard]] std::size_t waiting() const {
    return static_cast<std::size_t>(std::ranges::count_if(documents_, [](const auto& one) {
      return one.first.starts_with("Pod/") && json::get_string(one.second, {"spec", "nodeName"}).empty();
    }));
  }
  [[nodiscard]] bool told(std::string_view what) const {
    return std::ranges::any_of(events_, [&](const std::string& one) { return one.find(what) != std::string::npos; });
  }
  [[nodiscard]] json::Value* first(const std::string& kind) {
    const auto at = documents_.lower_bound(kind + "/");
    return at == documents_.end() || !at->first.starts_with(kind + "/") ? nullptr : &at->second;
  }
  void change(const std::string& key, const std::string& patch) {
    json::Value document = documents_.at(key);
    merge(document, read(patch));
    put(key, std::move(document));
  }
  void remove(const std::string& key) { apply_delete(key); }
  /// As if the process had ended and begun anew.
  void restart() {
    keeper_.emplace(small_catalogue(), options_);
    for (const auto& [key, one] : documents_) keeper_->cache().upsert(one);
  }
  [[nodiscard]] Keeper& keeper() { return *keeper_; }
  /// Of the Machine API: nodes of that many processors.
  void add_machine_set(const std::string& name, int cpu, int most, const std::string& price, const std::string& labels = "") {
    add(read(
        fmt::format("{{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, metadata: {{name: {0}, namespace: machines, "
                    "annotations: {{capacity.cluster-autoscaler.kubernetes.io/cpu: '{1}', "
                    "capacity.cluster-autoscaler.kubernetes.io/memory: 16Gi, "
                    "machine.openshift.io/cluster-api-autoscaler-node-group-min-size: '0', "
                    "machine.openshift.io/cluster-api-autoscaler-node-group-max-size: '{2}', berth.dev/price-per-hour: '{3}'}}}}, spec: "
                    "{{replicas: 0, template: {{spec: {{metadata: {{labels: {{berth.dev/machine-node-class: local{4}}}}}, taints: [{{key: "
                    "of-set, effect: PreferNoSchedule}}]}}}}}}}}",
                    name, cpu, most, price, labels)));
  }
  void end_pods() {
    std::vector<std::string> keys;
    for (const auto& [key, one] : documents_)
      if (key.starts_with("Pod/")) keys.push_back(key);
    for (const std::string& key : keys) drop(key);
  }
  [[nodiscard]] TimePoint now() const { return now_; }
  void ready_delay(bool never) { nodes_start_ = !never; }

  std::size_t writes_ = 0;
  std::size_t evictions_ = 0;
  std::vector<std::string> events_;
  std::map<std::string, json::Value> documents_;

 private:
  static std::string key_of(const json::Value& document) {
    const std::string ns(json::get_string(document, {"metadata", "namespace"}));
    return fmt::format("{}/{}{}", json::get_string(document, {"kind"}), ns.empty() ? "" : ns + "/",
                       json::get_string(document, {"metadata", "name"}));
  }
  static std::string key_of(const Write& write) {
    const std::string kind = write.gvr == kNodes ? "Node" : write.gvr == kNodePools ? "NodePool" : write.gvr == kPods ? "Pod" : "NodeClaim";
    return fmt::format("{}/{}{}", kind, write.ns.empty() ? "" : write.ns + "/", write.name);
  }
  void put(const std::string& key, json::Value document) {
    json::set(document, {"metadata", "resourceVersion"}, json::Value(fmt::format("{}", ++revision_)));
    keeper_->cache().upsert(document);
    documents_[key] = std::move(document);
    settle(key);
  }
  void drop(const std::string& key) {
    const auto at = documents_.find(key);
    if (at == documents_.end()) return;
    keeper_->cache().remove(json::get_string(at->second, {"kind"}), json::get_string(at->second, {"metadata", "namespace"}),
                            json::get_string(at->second, {"metadata", "name"}));
    documents_.erase(at);
  }
  /// What is to go and has no finalizer left goes.
  void settle(const std::string& key) {
    const json::Value& document = documents_.at(key);
    if (json::find(document, {"metadata", "deletionTimestamp"}) != nullptr && json::get_array(document, {"metadata", "finalizers"}).empty())
      drop(key);
  }
  void apply_delete(const std::string& key) {
    const auto at = documents_.find(key);
    if (at == documents_.end()) return;
    if (json::get_array(at->second, {"metadata", "finalizers"}).empty()) return drop(key);
    json::Value document = at->second;
    if (json::find(document, {"metadata", "deletionTimestamp"}) == nullptr)
      json::set(document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(now_)));
    put(key, std::move(document));
  }
  void apply(const Write& write) {
    const std::string key = key_of(write);
    switch (write.kind) {
      case Write::Kind::kCreate:
        if (!documents_.contains(key)) add(write.body);
        return;
      case Write::Kind::kPatch:
      case Write::Kind::kPatchStatus:
        if (const auto at = documents_.find(key); at != documents_.end()) {
          json::Value document = at->second, patch = write.body;
          const std::string_view expected = json::get_string(patch, {"metadata", "resourceVersion"});
          if (!expected.empty() && expected != json::get_string(document, {"metadata", "resourceVersion"})) return;  // A conflict.
          merge(document, patch);
          put(key, std::move(document));
        }
        return;
      case Write::Kind::kDelete:
        return apply_delete(key);
      case Write::Kind::kEvict: {
        if (!documents_.contains(key)) return;
        if (refuses_evictions_) return;
        ++evictions_;
        json::Value next = documents_.at(key);
        drop(key);
        json::erase(next, {"spec", "nodeName"});
        json::set(next, {"metadata", "name"}, json::Value(fmt::format("{}-e{}", write.name.substr(0, write.name.find("-e")), evictions_)));
        json::set(next, {"metadata", "uid"}, json::Value(""));
        json::set(next, {"status"}, json::Object{{"phase", "Pending"}});
        add(std::move(next));
        return;
      }
    }
  }
  void apply(const MachineWrite& write) {
    machine_writes_.push_back(write);
    if (!machine_error_.empty()) return keeper_->machine_write_failed(write, machine_error_);
    if (write.is_external) return;
    const std::string key = write.group;
    const std::int64_t replicas = json::get_int(documents_.at(key), {"spec", "replicas"});
    if (write.kind != MachineWrite::Kind::kRemove) return change(key, fmt::format("{{spec: {{replicas: {}}}}}", write.to));
    change(key, fmt::format("{{spec: {{replicas: {}}}}}", replicas - 1));
    change("Machine/" + write.instance, "{metadata: {annotations: {machine.openshift.io/delete-machine: now}}}");
    apply_delete("Machine/" + write.instance);
  }
  /// Machines of sets, their nodes a second later; a machine that goes waits for its node.
  void run_machines() {
    std::vector<json::Value> sets, machines;
    for (const auto& [key, one] : documents_) {
      if (key.starts_with("MachineSet/")) sets.push_back(one);
      if (key.starts_with("Machine/")) machines.push_back(one);
    }
    for (const json::Value& machine : machines) {
      const std::string name(json::get_string(machine, {"metadata", "name"})), key = "Machine/machines/" + name;
      const bool is_going = json::find(machine, {"metadata", "deletionTimestamp"}) != nullptr;
      const bool has_node = documents_.contains("Node/" + name);
      if (is_going && has_node) apply_delete("Node/" + name);
      if (is_going && !has_node) change(key, "{metadata: {finalizers: null}}");
      if (is_going || has_node || !machines_start_) continue;
      const std::string cpu(json::get_string(machine, {"metadata", "annotations", "cpu"}));
      add(read(
          fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {0}, annotations: {{machine.openshift.io/machine: machines/{0}}}, "
                      "labels: {{kubernetes.io/hostname: {0}, kubernetes.io/arch: amd64, kubernetes.io/os: linux, "
                      "berth.dev/machine-node-class: local}}}}, spec: {{taints: [{{key: of-set, effect: PreferNoSchedule}}]}}, status: "
                      "{{capacity: {{cpu: '{1}', memory: 16Gi, pods: '110'}}, allocatable: {{cpu: '{1}', memory: 16Gi, pods: '110'}}}}}}",
                      name, cpu)));
    }
    for (const json::Value& set : sets) {
      const std::string name(json::get_string(set, {"metadata", "name"}));
      const auto there = std::ranges::count_if(machines, [&](const json::Value& one) {
        return json::get_string(one, {"metadata", "name"}).starts_with(name + "-") &&
               json::find(one, {"metadata", "deletionTimestamp"}) == nullptr;
      });
      if (there >= json::get_int(set, {"spec", "replicas"})) continue;
      add(read(fmt::format(
          "{{apiVersion: machine.openshift.io/v1beta1, kind: Machine, metadata: {{name: {0}-{1}, namespace: machines, finalizers: "
          "[machine], annotations: {{cpu: '{2}'}}, ownerReferences: [{{kind: MachineSet, name: {0}}}]}}}}",
          name, ++uids_, json::get_string(set, {"metadata", "annotations", "capacity.cluster-autoscaler.kubernetes.io/cpu"}))));
    }
  }
  void start_nodes() {
    if (!nodes_start_) return;
    std::vector<std::string> starting;
    for (const auto& [key, one] : documents_)
      if (key.starts_with("Node/") && json::get_array(one, {"status", "conditions"}).empty()) starting.push_back(key);
    for (const std::string& key : starting) change(key, "{status: {conditions: [{type: Ready, status: 'True'}]}}");
  }
  void schedule() {
    placement::Cluster cluster(placement::Era::k136);
    for (const auto& [key, one] : documents_) (void)cluster.upsert(one);
    placement::Trial trial(cluster, options_.profiles);
    std::vector<std::pair<std::string, std::string>> bound;
    for (const auto& [key, one] : documents_) {
      if (!key.starts_with("Pod/") || !json::get_string(one, {"spec", "nodeName"}).empty()) continue;
      const auto info = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(one)), placement::Era::k136);
      if (const placement::Placement placed = trial.place(info); placed.is_placed())
        bound.emplace_back(key, trial.cluster().node(placed.node)->name);
    }
    for (const auto& [key, node] : bound)
      change(key, fmt::format("{{spec: {{nodeName: {}}}, status: {{phase: Running, conditions: []}}}}", node));
  }

  KeeperOptions options_;
  std::optional<Keeper> keeper_;
  TimePoint now_ = kNow;
  int uids_ = 0, revision_ = 0;
  bool nodes_start_ = true;

 public:
  bool refuses_evictions_ = false;
  bool machines_start_ = true;
  std::string machine_error_;  ///< What every request for machines is answered with; empty: it is done.
  std::vector<MachineWrite> machine_writes_;
};

inline constexpr const char* kEager = "{disruption: {consolidateAfter: 5s, budgets: [{nodes: '100%'}]}}";

}  // namespace berth::pools::tests
