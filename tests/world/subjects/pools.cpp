// A NodePool and pods of which there are more and fewer: each gets a node soon, never are there more nodes than the pool may have, none
// goes under a pod that may not be moved, and whoever dies in the middle of a drain leaves no mark. At rest nothing moves any more.
#include <algorithm>

#include "pools/keeper.h"
#include "tests/world/subjects/scaling.h"

namespace berth::world {
namespace {

using std::chrono::seconds;

constexpr const char* kNs = "pools";
constexpr const char* kPool = "elastic";
constexpr int kMost = 4;                    ///< Pods that may be moved; one more may not.
constexpr std::int64_t kLimitMilli = 6500;  ///< Of the pool.
/// From the last fault until waste may be left behind by who was killed, and until all pods must run.
constexpr Duration kGrown = seconds(30), kPromised = seconds(120), kShrunk = seconds(150);
constexpr Duration kQuiet = seconds(60);  ///< Before the judgement nobody moves.

class PoolSubject final : public ScalingSubject {
 public:
  PoolSubject(World& world, Chronicle& chronicle) : ScalingSubject(world, chronicle, kNs) {}

  void set_up() override {
    begin("gardener");
    hand_->make(pools::kNodeClasses, "",
                document(R"({"apiVersion":"sim.berth.dev/v1alpha1","kind":"SimulatedNodeClass","metadata":{"name":"default"},)"
                         R"("spec":{"bootDelay":"2s"}})"));
    hand_->make(
        pools::kNodePools, "",
        document(fmt::format(
            R"({{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{{"name":"{}"}},"spec":{{"limits":{{"cpu":"{}m"}},)"
            R"("disruption":{{"consolidationPolicy":"WhenEmptyOrUnderutilized","consolidateAfter":"5s","budgets":[{{"nodes":"1"}}]}},)"
            R"("template":{{"spec":{{"nodeClassRef":{{"group":"sim.berth.dev","kind":"SimulatedNodeClass","name":"default"}},)"
            R"("requirements":[{{"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]}}],)"
            R"("taints":[{{"key":"berth.dev/pool","value":"{}","effect":"NoSchedule"}}]}}}}}}}})",
            kPool, kLimitMilli, kPool)));
    make_pods("moves", json::Object(), spec_on_pool());
    make_pods("stays", json::Object{{std::string(pools::kDoNotDisrupt), "true"}}, spec_on_pool());
  }

  void act(std::uint64_t which, double share) override {
    if (share < 0.7) return scale(static_cast<int>(which % (kMost + 1)));
    const auto& kind = share < 0.85 ? pools::kNodeClaims : gvr::kNodes;
    std::vector<std::string> names;
    chronicle_.for_each(kind.resource, "", [&](const std::string& name, const json::Value& object) {
      if (pool_of(object) == kPool) names.push_back(name);
    });
    if (!names.empty()) hand_->try_remove(kind, "", names[which % names.size()]);
  }

  void see(const Seen& seen) override {
    if (seen.resource == "pods" && seen.ns == kNs) return see_pod(seen);
    if (seen.resource == "nodes") return see_node(seen);
    if (seen.resource == "nodeclaims" && (seen.is_new() || is_leaving(seen.now) != is_leaving(seen.before))) moved_ = seen.at;
  }

  void heal() override {
    auto& loop = world_.loop();
    loop.schedule_after(kGrown, [this] {
      // A claim that somebody deleted may wait for it.
      for (const auto& name : chronicle_.names("pods", kNs))
        if (name.starts_with("stays")) hand_->remove(gvr::kPods, kNs, name);
      scale(kMost);
    });
    loop.schedule_after(kPromised, [this] { judge_pods(kMost + 1, "two minutes after the last fault"); });
    loop.schedule_after(kShrunk, [this] { scale(1); });
    for (const Duration after : {seconds(12), seconds(25), seconds(41)})
      loop.schedule_after(kShrunk + after, [this] {
        for (const char* name : {"autoscaler-0", "autoscaler-1"}) {
          world_.kill(name, false);
          world_.start(name);
        }
      });
  }

  void judge_rest() override {
    judge_pods(2, "at rest");
    std::set<std::string> claims, nodes;
    chronicle_.for_each("nodeclaims", "", [&](const std::string& name, const json::Value& claim) {
      claims.insert(name);
      if (is_leaving(claim)) find(fmt::format("claim {} is told to go and does not, at rest", name));
    });
    chronicle_.for_each("nodes", "", [&](const std::string& name, const json::Value& node) {
      if (pool_of(node) != kPool) return;
      nodes.insert(name);
      for (const auto& taint : json::get_array(node, {"spec", "taints"}))
        if (json::get_string(taint, {"key"}).starts_with("karpenter.sh/"))
          find(fmt::format("node {} is marked {} at rest", name, json::get_string(taint, {"key"})));
    });
    if (claims != nodes) find(fmt::format("at rest there are claims {} and nodes {}", fmt::join(claims, ", "), fmt::join(nodes, ", ")));
    if (claims.size() > 2) find(fmt::format("{} nodes for two pods at rest", claims.size()));
    if (world_.loop().now() < moved_ + kQuiet) find("at rest claims come and go");
  }

 private:
  static std::string_view pool_of(const json::Value& object) {
    return json::get_string(object, {"metadata", "labels", "karpenter.sh/nodepool"});
  }

  static json::Value spec_on_pool() {
    json::Value spec = pod_spec("1");
    json::set(spec, {"nodeSelector"}, json::Object{{"karpenter.sh/nodepool", kPool}});
    json::set(spec, {"tolerations"}, document(fmt::format(R"([{{"key":"berth.dev/pool","operator":"Equal","value":"{}"}}])", kPool)));
    return spec;
  }

  void see_pod(const Seen& seen) {
    note_binding(seen);
    if (seen.now.is_null()) return;
    if (!seen.name.starts_with("stays") || seen.is_new() || !is_leaving(seen.now) || is_leaving(seen.before)) return;
    const json::Value* mark = condition_of(seen.now, "DisruptionTarget");
    if (mark != nullptr && json::get_string(*mark, {"reason"}) == "EvictionByEvictionAPI")
      find(fmt::format("{}: is evicted, and may not be moved", seen.words()));
  }

  void see_node(const Seen& seen) {
    if (pool_of(seen.before.is_null() ? seen.now : seen.before) != kPool) return;
    const bool has_gone = !seen.before.is_null() && (seen.now.is_null() || seen.is_new());
    if (has_gone && is_ready(seen.before)) judge_end(seen);
    std::int64_t milli = 0;
    chronicle_.for_each("nodes", "", [&](const std::string&, const json::Value& node) {
      if (pool_of(node) == kPool && !is_leaving(node)) milli += milli_of(json::get_string(node, {"status", "capacity", "cpu"}));
    });
    if (seen.is_new() && milli > kLimitMilli)
      find(fmt::format("{}: the pool has {}m of cpu, and may have {}m", seen.words(), milli, kLimitMilli));
  }

  static std::int64_t milli_of(std::string_view text) {
    const auto quantity = model::Quantity::parse(text);
    return quantity ? quantity->milli_value() : 0;
  }

  TimePoint moved_{};  ///< When a claim came or was told to go, last.
};

}  // namespace

std::unique_ptr<Subject> make_pool_subject(World& world, Chronicle& chronicle) { return std::make_unique<PoolSubject>(world, chronicle); }

}  // namespace berth::world
