// A MachineSet that the cluster autoscaler makes larger and smaller: never beyond its bounds, a machine soon for a pod that waits, none
// taken from under a pod that may not be moved, and no mark left by who died in the middle of it.
#include <algorithm>

#include "tests/world/subjects/scaling.h"

namespace berth::world {
namespace {

using std::chrono::seconds;

constexpr const char* kNs = "groups";
constexpr const char* kMachineNs = "openshift-machine-api";
constexpr const char* kGroup = "burst";
constexpr std::int64_t kLeast = 1, kMost = 4;
/// From the last fault until more is wanted, until it must be there, and until less is.
constexpr Duration kGrown = seconds(30), kPromised = seconds(150), kShrunk = seconds(170);
const model::Gvr kScalers{"autoscaling.openshift.io", "v1", "clusterautoscalers"},
    kBounds{"autoscaling.openshift.io", "v1beta1", "machineautoscalers"}, kMachineSets{"machine.openshift.io", "v1beta1", "machinesets"};

class GroupSubject final : public ScalingSubject {
 public:
  GroupSubject(World& world, Chronicle& chronicle) : ScalingSubject(world, chronicle, kNs) {}

  void set_up() override {
    begin("machinist");
    hand_->make(gvr::kNamespaces, "", make_namespace(kMachineNs));
    hand_->make(kScalers, "",
                document(R"({"apiVersion":"autoscaling.openshift.io/v1","kind":"ClusterAutoscaler","metadata":{"name":"default"},"spec":)"
                         R"({"scaleDown":{"enabled":true,"delayAfterAdd":"2s","delayAfterDelete":"1s","delayAfterFailure":"5s",)"
                         R"("unneededTime":"3s"}}})"));
    json::Value set = document(fmt::format(
        R"({{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineSet","metadata":{{"name":"{0}","namespace":"{1}","annotations":)"
        R"({{"sim.berth.dev/boot-delay":"2s","machine.openshift.io/vCPU":"2","machine.openshift.io/memoryMb":"8192"}}}},)"
        R"("spec":{{"replicas":1,"selector":{{"matchLabels":{{"set":"{0}"}}}},"template":{{"metadata":{{"labels":{{"set":"{0}"}}}},)"
        R"("spec":{{"metadata":{{"labels":{{"group":"{0}"}}}},"taints":[{{"key":"berth.dev/group","effect":"NoSchedule"}}]}}}}}}}})",
        kGroup, kMachineNs));
    hand_->make(kMachineSets, kMachineNs, std::move(set));
    hand_->make(kBounds, kMachineNs,
                document(fmt::format(
                    R"({{"apiVersion":"autoscaling.openshift.io/v1beta1","kind":"MachineAutoscaler","metadata":{{"name":"{0}"}},"spec":)"
                    R"({{"minReplicas":{1},"maxReplicas":{2},"scaleTargetRef":{{"apiVersion":"machine.openshift.io/v1beta1",)"
                    R"("kind":"MachineSet","name":"{0}"}}}}}})",
                    kGroup, kLeast, kMost)));
    make_pods("moves", json::Object(), spec_on_group());
    make_pods("stays", json::Object{{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"}}, spec_on_group());
  }

  void act(std::uint64_t which, double share) override {
    if (share < 0.8) return scale(static_cast<int>(which % (kMost + 1)));
    // It comes back elsewhere, perhaps.
    for (const auto& name : chronicle_.names("pods", kNs))
      if (name.starts_with("stays")) hand_->try_remove(gvr::kPods, kNs, name);
  }

  void see(const Seen& seen) override {
    if (seen.resource == "machinesets" && seen.name == kGroup && !seen.now.is_null()) see_size(seen);
    if (seen.resource == "machines" && seen.is_new() && !seen.now.is_null()) see_machine(seen);
    if (seen.resource == "nodes") see_node(seen);
    if (seen.resource == "pods" && seen.ns == kNs) note_binding(seen);
  }

  void heal() override {
    auto& loop = world_.loop();
    loop.schedule_after(kGrown, [this] { scale(kMost - 1); });
    loop.schedule_after(kPromised, [this] { judge_pods(kMost, "two and a half minutes after the last fault"); });
    loop.schedule_after(kShrunk, [this] { scale(0); });
  }

  void judge_rest() override {
    judge_pods(1, "at rest");
    std::int64_t nodes = 0, machines = 0;
    chronicle_.for_each("machines", kMachineNs, [&](const std::string& name, const json::Value& machine) {
      ++machines;
      if (is_leaving(machine)) find(fmt::format("machine {} is told to go and does not, at rest", name));
    });
    chronicle_.for_each("nodes", "", [&](const std::string& name, const json::Value& node) {
      if (!is_of_group(node)) return;
      ++nodes;
      for (const auto& taint : json::get_array(node, {"spec", "taints"}))
        if (json::get_string(taint, {"key"}) == "ToBeDeletedByClusterAutoscaler")
          find(fmt::format("node {} is marked to be deleted, and is there at rest", name));
    });
    if (machines != kLeast || nodes != kLeast)
      find(fmt::format("{} machines and {} nodes for one pod at rest, the least is {}", machines, nodes, kLeast));
  }

 private:
  static bool is_of_group(const json::Value& node) { return json::get_string(node, {"metadata", "labels", "group"}) == kGroup; }

  static json::Value spec_on_group() {
    json::Value spec = pod_spec("1500m");
    json::set(spec, {"nodeSelector"}, json::Object{{"group", kGroup}});
    json::set(spec, {"tolerations"}, document(R"([{"key":"berth.dev/group","operator":"Exists"}])"));
    return spec;
  }

  void see_size(const Seen& seen) {
    const auto replicas = json::get_int(seen.now, {"spec", "replicas"});
    if (replicas < kLeast || replicas > kMost)
      find(fmt::format("{}: {} replicas, and there may be {} to {}", seen.words(), replicas, kLeast, kMost));
  }

  /// Who makes machines may have to ask twice when he is not told what became of it.
  void see_machine(const Seen& seen) {
    std::int64_t machines = 0;
    chronicle_.for_each("machines", kMachineNs, [&](const std::string&, const json::Value& one) { machines += !is_leaving(one); });
    const auto most = kMost + world_.doubts(fmt::format("/apis/machine.openshift.io/v1beta1/namespaces/{}/machines", kMachineNs));
    if (machines > most) find(fmt::format("{}: there are {} machines, and may be {}", seen.words(), machines, most));
  }

  /// Told to go, or gone: no pod that was there for long and may not be moved.
  void see_node(const Seen& seen) {
    if (!is_of_group(seen.before) || !is_ready(seen.before)) return;
    const bool goes = seen.now.is_null() || seen.is_new() || (is_leaving(seen.now) && !is_leaving(seen.before));
    if (goes) judge_end(seen);
  }
};

}  // namespace

std::unique_ptr<Subject> make_group_subject(World& world, Chronicle& chronicle) { return std::make_unique<GroupSubject>(world, chronicle); }

}  // namespace berth::world
