// Nodes, neighbours and namespaces, in all that Filter plugins look at, while a seed changes one thing after the other: what each plugin
// says of the pods that wait, and whom the change wakes (told_cluster.h).
#include <fmt/format.h>

#include "tests/placement/lives/told_cluster.h"

namespace berth::placement::testing {
namespace {

using berth::testing::Dice;
using berth::testing::LongLife;
using enum ClusterEvent;

constexpr std::array<const char*, 3> kApps = {"web", "db", "cache"};
constexpr std::array<const char*, 3> kSpaces = {"default", "team-a", "team-b"};
constexpr std::array<const char*, 4> kKeys = {"kubernetes.io/hostname", "zone", "zone", "rack"};
constexpr std::array<const char*, 4> kNumbers = {"0", "1", "2", "3"};
constexpr std::array<const char*, 3> kEffects = {"NoSchedule", "NoExecute", "PreferNoSchedule"};

class Makers {
 public:
  explicit Makers(Dice& dice) : dice_(dice) {}

  json::Object node_labels(const std::string& name) {
    json::Object out = {{"kubernetes.io/hostname", name}};
    if (dice_.chance(85)) out["zone"] = dice_.chance(50) ? "a" : "b";
    if (dice_.chance(60)) out["rack"] = std::string("r") + dice_.of(kNumbers);
    if (dice_.chance(50)) out["disk"] = dice_.chance(50) ? "ssd" : "hdd";
    if (dice_.chance(50)) out["size"] = std::to_string(dice_.below(5));
    if (dice_.chance(50)) out["pool"] = dice_.chance(50) ? "a" : "b";
    return out;
  }
  json::Object room() {
    json::Object out = {{"cpu", std::to_string(1 + dice_.below(4))},
                        {"memory", fmt::format("{}Gi", 1 + dice_.below(4))},
                        {"pods", dice_.chance(75) ? "10" : "1"}};
    if (dice_.chance(60)) out["ephemeral-storage"] = fmt::format("{}Gi", 1 + dice_.below(3));
    if (dice_.chance(50)) out["example.com/gpu"] = std::to_string(dice_.below(3));
    if (dice_.chance(30)) out["example.com/nothing"] = "1";
    return out;
  }
  json::Array taints() {
    json::Array out;
    for (int i = dice_.chance(60) ? 1 + dice_.below(2) : 0; i > 0; --i)
      out.push_back(
          {{"key", dice_.chance(60) ? "dedicated" : "spot"}, {"value", dice_.chance(50) ? "x" : ""}, {"effect", dice_.of(kEffects)}});
    return out;
  }
  json::Array features() {
    json::Array out;
    if (dice_.chance(50)) out.push_back("RestartAllContainersOnContainerExits");
    if (dice_.chance(50)) out.push_back("UserNamespacesHostNetworkSupport");
    return out;
  }
  json::Value node(const std::string& name) {
    json::Value out = {{"kind", "Node"}, {"metadata", {{"name", name}, {"labels", node_labels(name)}}}};
    json::set(out, {"spec"}, {{"unschedulable", dice_.chance(15)}, {"taints", taints()}});
    json::set(out, {"status"}, {{"allocatable", room()}, {"declaredFeatures", features()}});
    return out;
  }
  json::Value space(const std::string& name) {
    return {{"kind", "Namespace"}, {"metadata", {{"name", name}, {"labels", {{"env", dice_.chance(50) ? "prod" : "dev"}}}}}};
  }
  json::Object pod_labels() {
    json::Object out;
    if (dice_.chance(85)) out["app"] = dice_.of(kApps);
    if (dice_.chance(40)) out["tier"] = dice_.chance(50) ? "gold" : "silver";
    return out;
  }
  json::Object requests() {
    json::Object out;
    if (dice_.chance(80)) out["cpu"] = fmt::format("{}m", 400 * (1 + dice_.below(7)));
    if (dice_.chance(60)) out["memory"] = fmt::format("{}Mi", 600 * (1 + dice_.below(5)));
    if (dice_.chance(20)) out["ephemeral-storage"] = fmt::format("{}Gi", 1 + dice_.below(3));
    if (dice_.chance(25)) out["example.com/gpu"] = std::to_string(1 + dice_.below(2));
    if (dice_.chance(15)) out["example.com/nothing"] = "1";
    return out;
  }
  json::Array tolerations() {
    json::Array out;
    for (const char* key : {"dedicated", "spot", "node.kubernetes.io/unschedulable"}) {
      if (!dice_.chance(30)) continue;
      json::Object one = {{"key", key}, {"operator", dice_.chance(50) ? "Exists" : "Equal"}};
      if (dice_.chance(40)) one["value"] = "x";
      if (dice_.chance(50)) one["effect"] = dice_.of(kEffects);
      out.push_back(std::move(one));
    }
    if (dice_.chance(5)) out.push_back(json::Object{{"operator", "Exists"}});
    return out;
  }
  /// `waits`: with what keeps a pod off nodes.
  json::Value pod(const std::string& name, const std::string& uid, bool waits) {
    json::Object container = {{"name", "c"}, {"resources", {{"requests", requests()}}}};
    if (dice_.chance(25))
      container["ports"] = json::Array{{{"containerPort", 80},
                                        {"hostPort", 8000 + dice_.below(2)},
                                        {"protocol", dice_.chance(80) ? "TCP" : "UDP"},
                                        {"hostIP", dice_.chance(60) ? "" : "10.0.0.1"}}};
    json::Value out = {{"kind", "Pod"},
                       {"metadata", {{"name", name}, {"namespace", dice_.of(kSpaces)}, {"uid", uid}, {"labels", pod_labels()}}}};
    json::Object spec = {{"schedulerName", "default-scheduler"}, {"tolerations", tolerations()}};
    if (dice_.chance(10)) container["restartPolicyRules"] = json::Array{{{"action", "RestartAllContainers"}}};
    if (dice_.chance(10)) spec["hostUsers"] = false, spec["hostNetwork"] = true;
    if (dice_.chance(15))
      spec["initContainers"] =
          json::Array{{{"name", "i"}, {"resources", {{"requests", requests()}}}, {"restartPolicy", dice_.chance(50) ? "Always" : "Never"}}};
    if (dice_.chance(10)) spec["overhead"] = json::Object{{"cpu", "200m"}};
    spec["containers"] = json::Array{std::move(container)};
    json::Object affinity;
    if (dice_.chance(waits ? 25 : 10)) affinity["podAffinity"] = terms();
    if (dice_.chance(waits ? 25 : 20)) affinity["podAntiAffinity"] = terms();
    if (waits) put_node_choice(spec, affinity);
    spec["affinity"] = std::move(affinity);
    if (waits && dice_.chance(35)) spec["topologySpreadConstraints"] = spread();
    json::set(out, {"spec"}, std::move(spec));
    return out;
  }

 private:
  json::Value selector() {
    if (dice_.chance(8)) return json::Object();
    if (dice_.chance(25))
      return {{"matchExpressions",
               json::Array{{{"key", "app"}, {"operator", dice_.chance(50) ? "NotIn" : "In"}, {"values", json::Array{dice_.of(kApps)}}}}}};
    return {{"matchLabels", {{"app", dice_.of(kApps)}}}};
  }
  json::Value terms() {
    json::Array out;
    for (int i = dice_.chance(20) ? 2 : 1; i > 0; --i) {
      json::Object one = {{"topologyKey", dice_.of(kKeys)}, {"labelSelector", selector()}};
      if (dice_.chance(20)) one["namespaces"] = json::Array{dice_.of(kSpaces)};
      if (dice_.chance(25)) one["namespaceSelector"] = dice_.chance(30) ? json::Object() : json::Object{{"matchLabels", {{"env", "prod"}}}};
      out.push_back(std::move(one));
    }
    return {{"requiredDuringSchedulingIgnoredDuringExecution", std::move(out)}};
  }
  void put_node_choice(json::Object& spec, json::Object& affinity) {
    if (dice_.chance(20)) spec["nodeSelector"] = json::Object{{"disk", dice_.chance(50) ? "ssd" : "hdd"}};
    if (!dice_.chance(25)) return;
    json::Array all;
    for (int i = dice_.chance(30) ? 2 : 1; i > 0; --i) {
      json::Object term;
      if (dice_.chance(25))
        term["matchFields"] = json::Array{
            {{"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{json::Value("n" + std::string(dice_.of(kNumbers)))}}}};
      if (dice_.chance(80)) term["matchExpressions"] = json::Array{requirement()};
      all.push_back(std::move(term));
    }
    affinity["nodeAffinity"] = {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", std::move(all)}}}};
  }
  json::Value requirement() {
    switch (dice_.below(5)) {
      case 0:
        return {{"key", "size"}, {"operator", dice_.chance(50) ? "Gt" : "Lt"}, {"values", json::Array{"2"}}};
      case 1:
        return {{"key", "rack"}, {"operator", dice_.chance(50) ? "Exists" : "DoesNotExist"}};
      case 2:
        return {{"key", "disk"}, {"operator", "NotIn"}, {"values", json::Array{"hdd"}}};
      default:
        return {{"key", "zone"}, {"operator", "In"}, {"values", json::Array{dice_.chance(50) ? "a" : "b"}}};
    }
  }
  json::Array spread() {
    json::Array out;
    for (int i = dice_.chance(25) ? 2 : 1; i > 0; --i) {
      json::Object one = {{"maxSkew", 1 + dice_.below(2)},
                          {"topologyKey", dice_.of(kKeys)},
                          {"whenUnsatisfiable", dice_.chance(85) ? "DoNotSchedule" : "ScheduleAnyway"},
                          {"labelSelector", selector()}};
      if (dice_.chance(20)) one["minDomains"] = 1 + dice_.below(3);
      if (dice_.chance(30)) one["nodeTaintsPolicy"] = dice_.chance(70) ? "Honor" : "Ignore";
      if (dice_.chance(30)) one["nodeAffinityPolicy"] = dice_.chance(50) ? "Honor" : "Ignore";
      if (dice_.chance(20)) one["matchLabelKeys"] = json::Array{"tier"};
      out.push_back(std::move(one));
    }
    return out;
  }

  Dice& dice_;
};

Profile profile_of(std::uint64_t seed) {
  Profile out = default_profile(seed % 4 == 0 ? Era::k120 : Era::k136);
  if (seed % 4 != 1) return out;
  out.args.fit.ignored_resources = {"example.com/nothing"};
  model::NodeSelectorTerm term;
  term.expressions.push_back({"pool", model::Requirement::Op::kIn, {"a"}});
  out.args.added_affinity = model::NodeAffinity{};
  out.args.added_affinity->required = model::NodeSelector{{term}};
  out.args.spread.system_defaulting = false;
  model::TopologySpreadConstraint constraint;
  constraint.topology_key = "zone";
  constraint.max_skew = 1;
  constraint.is_hard = true;
  out.args.spread.default_constraints = {constraint};
  return out;
}

std::set<std::string> node_plugins(const Profile& profile) {
  std::set<std::string> out;
  for (const auto& use : profile.filter)
    if (use.name.find("Volume") == std::string::npos && use.name.find("Limits") == std::string::npos && use.name != "DynamicResources")
      out.insert(use.name);
  return out;
}

class Life {
 public:
  Life(LongLife& told, std::uint64_t seed)
      : dice_(seed), makers_(dice_), cluster_(told, profile_of(seed), node_plugins(profile_of(seed)), kWaiting) {
    told.tell(fmt::format("== seed {}", seed));
    // Of the pods that nobody's spec spreads, the profile's constraints count those of the same service.
    if (seed % 4 == 1)
      cluster_.begin_with(
          {{"kind", "Service"}, {"metadata", {{"name", "s"}, {"namespace", "default"}}}, {"spec", {{"selector", {{"app", "web"}}}}}});
  }
  void run(int steps) {
    for (const char* name : kSpaces) cluster_.begin_with(makers_.space(name));
    for (const char* number : kNumbers) cluster_.begin_with(makers_.node("n" + std::string(number)));
    for (std::size_t i = 0; i < kWaiting; ++i) come(i);
    for (int i = 0; i < steps; ++i) {
      const int what = dice_.below(100);
      if (what < 45)
        change_node();
      else if (what < 80)
        change_neighbour();
      else if (what < 85)
        change_space();
      else if (what < 92)
        change_own(some());
      else
        come(some());
    }
  }

 private:
  static constexpr std::size_t kWaiting = 5;
  std::size_t some() { return static_cast<std::size_t>(dice_.below(kWaiting)); }
  void come(std::size_t i) {
    const std::string name = fmt::format("p{}", i);
    cluster_.wait(i, makers_.pod(name, fmt::format("uid-{}-{}", name, ++uids_), true));
  }
  void change_node() {
    const std::string name = "n" + std::string(dice_.of(kNumbers));
    const json::Value* there = cluster_.find("Node", "", name);
    if (there == nullptr) return cluster_.change({}, makers_.node(name), kNodeAdded);
    const json::Value before = *there;
    json::Value now = before;
    switch (dice_.below(7)) {
      case 0:
        return cluster_.change(before, {}, kNodeDeleted);
      case 1:
        json::set(now, {"status", "allocatable"}, makers_.room());
        return cluster_.change(before, now, kNodeAllocatable);
      case 2:
        json::set(now, {"status", "declaredFeatures"}, makers_.features());
        return cluster_.change(before, now, kNodeFeatures);
      case 3:
        json::set(now, {"spec", "taints"}, makers_.taints());
        return cluster_.change(before, now, kNodeTaints);
      case 4: {
        const bool was = json::get_bool(before, {"spec", "unschedulable"});
        json::set(now, {"spec", "unschedulable"}, json::Value(!was));
        return cluster_.change(before, now, was ? kNodeTaints : kNodeCordoned);
      }
      default:
        json::set(now, {"metadata", "labels"}, makers_.node_labels(name));
        return cluster_.change(before, now, kNodeLabels);
    }
  }
  void change_neighbour() {
    const std::string number = dice_.of(kNumbers), name = "r" + number;
    const json::Value* there = nullptr;
    for (const char* space : kSpaces)
      if (there == nullptr) there = cluster_.find("Pod", space, name);
    if (there == nullptr) {
      json::Value now = makers_.pod(name, fmt::format("uid-{}-{}", name, ++uids_), false);
      json::set(now, {"spec", "nodeName"}, json::Value("n" + std::string(dice_.of(kNumbers))));
      return cluster_.change({}, now, kAssignedPodAdded);
    }
    const json::Value before = *there;
    json::Value now = before;
    if (dice_.chance(40)) return cluster_.change(before, {}, kAssignedPodDeleted);
    if (dice_.chance(60)) {
      json::set(now, {"metadata", "labels"}, makers_.pod_labels());
      return cluster_.change(before, now, kAssignedPodLabels);
    }
    json::set(json::find(now, {"spec", "containers"})->get_array()[0], {"resources", "requests"}, makers_.requests());
    cluster_.change(before, now, kAssignedPodResized);
  }
  void change_space() {
    const json::Value now = makers_.space(dice_.of(kSpaces));
    const json::Value* there = cluster_.find("Namespace", "", json::get_string(now, {"metadata", "name"}));
    const json::Value before = there == nullptr ? json::Value() : *there;
    cluster_.change(before, there != nullptr && dice_.chance(15) ? json::Value() : now, kNamespaces);
  }
  void change_own(std::size_t i) {
    json::Value now = cluster_.pending(i).document;
    switch (dice_.below(3)) {
      case 0:
        json::set(now, {"metadata", "labels"}, makers_.pod_labels());
        return cluster_.change_own(i, std::move(now), kOwnLabels);
      case 1:
        json::set(now, {"spec", "tolerations"}, makers_.tolerations());
        return cluster_.change_own(i, std::move(now), kOwnTolerations);
      default:
        json::set(json::find(now, {"spec", "containers"})->get_array()[0], {"resources", "requests"}, makers_.requests());
        return cluster_.change_own(i, std::move(now), kOwnScaledDown);
    }
  }

  Dice dice_;
  Makers makers_;
  ToldCluster cluster_;
  int uids_ = 0;
};

TEST(PlacementLives, WhomAChangeWakesIsAsRecorded) {
  LongLife told("tests/placement/lives/waking.txt", 1, 12'000);
  for (std::uint64_t seed = 1; seed <= 24; ++seed) Life(told, seed).run(100);
  told.expect_as_recorded();
  for (std::uint64_t seed = 1001; seed <= 1000 + ToldCluster::more_seeds() && !::testing::Test::HasFailure(); ++seed) {
    LongLife other("tests/placement/lives/waking.txt", seed);
    Life(other, seed).run(100);
  }
}

}  // namespace
}  // namespace berth::placement::testing
