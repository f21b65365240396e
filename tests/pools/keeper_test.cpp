// The life of claims over virtual time: an API of documents, a scheduler that places, nodes that start. Load comes and goes, faults, rest.
#include "pools/keeper.h"

#include <gtest/gtest.h>

#include "tests/pools/builder.h"

namespace berth::pools {
namespace {

using namespace tests;

/// RFC 7386.
void merge(json::Value& into, const json::Value& patch) {
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
      const PassResult result = keeper_->step(now_);
      for (const Write& write : result.writes) apply(write);
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
    for (const auto& [key, one] : documents_) keeper_->world().upsert(one);
  }
  void end_pods() {
    std::vector<std::string> keys;
    for (const auto& [key, one] : documents_)
      if (key.starts_with("Pod/")) keys.push_back(key);
    for (const std::string& key : keys) drop(key);
  }
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
    keeper_->world().upsert(document);
    documents_[key] = std::move(document);
    settle(key);
  }
  void drop(const std::string& key) {
    const auto at = documents_.find(key);
    if (at == documents_.end()) return;
    keeper_->world().remove(json::get_string(at->second, {"kind"}), json::get_string(at->second, {"metadata", "namespace"}),
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
};

constexpr const char* kEager = "{disruption: {consolidateAfter: 5s, budgets: [{nodes: '100%'}]}}";

TEST(Keeper, LoadComesTheCheapestNodesComeLoadGoesTheyGoAndThereIsRest) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 12, "1");
  cluster.run(15);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(cluster.types(), "1 large, 1 medium") << "12 processors for 0.58, as eight and four";
  EXPECT_EQ(cluster.count("NodeClaim"), 2U);
  const json::Value& claim = *cluster.first("NodeClaim");
  for (const char* type : {"Launched", "Registered", "Initialized", "Ready"})
    EXPECT_EQ(NodeClaim::parse(claim).condition(type), "True") << type;
  cluster.scale("web", 12, 2, "1");
  cluster.run(120);
  EXPECT_EQ(cluster.waiting(), 0U);
  EXPECT_EQ(cluster.types(), "1 small");
  EXPECT_TRUE(cluster.told("an hour less"));
  const std::size_t evictions = cluster.evictions_;
  cluster.run(1800);
  EXPECT_EQ(cluster.evictions_, evictions) << "it comes to rest";
  EXPECT_EQ(cluster.writes_, 0U);
  cluster.end_pods();
  cluster.run(60);
  EXPECT_EQ(cluster.count("Node"), 0U) << cluster.types();
  EXPECT_EQ(cluster.count("NodeClaim"), 0U);
}

TEST(Keeper, NothingIsBoughtTwiceWhileNodesAreOnTheirWay) {
  FakeCluster cluster;
  cluster.ready_delay(true);
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 3, "1500m");
  cluster.run(60);
  const std::size_t claims = cluster.count("NodeClaim");
  cluster.restart();
  cluster.run(60);
  EXPECT_EQ(cluster.count("NodeClaim"), claims) << "nor after a restart";
  cluster.ready_delay(false);
  cluster.run(5);
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Keeper, WhatCannotBeHadIsRememberedAndTheNextCheapestComes) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {insufficientCapacity: [{instanceType: small}]}}");
  cluster.add(pool_document("general",
                            "[{key: node.kubernetes.io/instance-type, operator: In, values: [small]}, {key: karpenter.sh/capacity-type, "
                            "operator: In, values: [on-demand]}]",
                            kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  EXPECT_EQ(cluster.count("Node"), 0U);
  EXPECT_TRUE(cluster.told("InsufficientCapacity"));
  cluster.add(pool_document("other",
                            "[{key: node.kubernetes.io/instance-type, operator: In, values: [medium]}, {key: karpenter.sh/capacity-type, "
                            "operator: In, values: [on-demand]}]",
                            kEager));
  cluster.run(15);
  EXPECT_EQ(cluster.types(), "1 medium");
}

TEST(Keeper, AFlexibleClaimTakesTheNextCheapestAtOnce) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {insufficientCapacity: [{instanceType: small}]}}");
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(6);
  EXPECT_EQ(cluster.types(), "1 medium");
}

TEST(Keeper, AClaimWhoseNodeNeverComesIsGivenUp) {
  FakeCluster cluster;
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: never, registrationTimeout: 30s}}");
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(20);
  EXPECT_EQ(cluster.count("NodeClaim"), 1U);
  cluster.run(20);
  EXPECT_TRUE(cluster.told("RegistrationTimeout: its node has not come within 30s"));
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: 0s}}");
  cluster.run(20);
  EXPECT_EQ(cluster.waiting(), 0U) << "another one was made";
}

TEST(Keeper, StartupTaintsAreWaitedFor) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager, "{startupTaints: [{key: example.com/starting, effect: NoSchedule}]}"));
  cluster.scale("web", 0, 1, "1");
  cluster.run(30);
  EXPECT_EQ(cluster.count("Node"), 1U);
  EXPECT_EQ(cluster.waiting(), 1U);
  EXPECT_EQ(NodeClaim::parse(*cluster.first("NodeClaim")).condition("Initialized"), "Unknown");
  cluster.change(fmt::format("Node/{}", json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"})), "{spec: {taints: []}}");
  cluster.run(3);
  EXPECT_EQ(NodeClaim::parse(*cluster.first("NodeClaim")).condition("Initialized"), "True");
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Keeper, DeletedClaimsDrainByDoNotDisruptAndGracePeriod) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager, "{terminationGracePeriod: 2m}"));
  json::Value web = pod("web-0", "1", "1Gi");
  json::set(web, {"metadata", "annotations"}, json::Object{{"karpenter.sh/do-not-disrupt", "true"}});
  cluster.add(web);
  cluster.run(30);
  ASSERT_EQ(cluster.count("NodeClaim"), 1U);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.remove("NodeClaim/" + name);
  cluster.run(60);
  EXPECT_TRUE(cluster.told("FailedDraining: pod default/web-0 has the annotation"));
  EXPECT_TRUE(cluster.documents_.contains("Node/" + name)) << "it waits";
  EXPECT_TRUE(cluster.documents_.contains("Pod/default/web-0"));
  cluster.run(70);
  EXPECT_FALSE(cluster.documents_.contains("Node/" + name)) << "after its grace period it does not";
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
}

TEST(Keeper, ANodeDeletedByHandTakesItsClaimAlong) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager));
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.remove("Node/" + name);
  cluster.run(15);
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
  EXPECT_EQ(cluster.waiting(), 0U) << "its pod was evicted and has another node";
}

TEST(Keeper, AReplacementThatDoesNotComeLeavesTheNodeAsItWas) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: 5s, budgets: [{nodes: '100%'}]}}"));
  cluster.scale("web", 0, 7, "1");
  cluster.run(30);
  ASSERT_EQ(cluster.types(), "1 large");
  cluster.change("SimulatedNodeClass/default", "{spec: {bootDelay: never, registrationTimeout: 1m}}");
  cluster.scale("web", 7, 1, "1");
  cluster.run(40);
  EXPECT_EQ(cluster.types(), "1 large");
  cluster.run(40);
  EXPECT_TRUE(cluster.told("DisruptionGivenUp"));
  EXPECT_EQ(cluster.evictions_, 0U) << "nothing was evicted on a guess";
}

TEST(Keeper, OldClaimsExpireAndAPoolWithoutClassSaysSo) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, kEager, "{expireAfter: 1m}"));
  json::Value lost = pool_document("lost", kOnDemand, kEager);
  json::set(lost, {"spec", "template", "spec", "nodeClassRef", "name"}, json::Value("nope"));
  cluster.add(lost);
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  EXPECT_TRUE(cluster.told("there is no SimulatedNodeClass named \"nope\""));
  cluster.run(80);
  EXPECT_TRUE(cluster.told("Expired: it is older than 1m0s"));
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
  EXPECT_EQ(cluster.waiting(), 0U);
}

TEST(Keeper, AChangedTemplateDrifts) {
  FakeCluster cluster;
  cluster.add(pool_document("general", kOnDemand, "{disruption: {consolidateAfter: Never, budgets: [{nodes: '100%'}]}}"));
  cluster.scale("web", 0, 1, "1");
  cluster.run(10);
  const std::string name(json::get_string(*cluster.first("NodeClaim"), {"metadata", "name"}));
  cluster.change("NodePool/general", "{spec: {template: {metadata: {labels: {generation: two}}}}}");
  cluster.run(60);
  EXPECT_FALSE(cluster.documents_.contains("NodeClaim/" + name));
  ASSERT_EQ(cluster.count("NodeClaim"), 1U);
  EXPECT_EQ(json::get_string(*cluster.first("Node"), {"metadata", "labels", "generation"}), "two");
  EXPECT_EQ(cluster.waiting(), 0U);
}

}  // namespace
}  // namespace berth::pools
