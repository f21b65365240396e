// GpuShare by hand, and by what must hold of every plugin.
#include <berth/plugin.h>
#include <berth/plugin_testing.h>
#include <gtest/gtest.h>

namespace {

using namespace berth::placement;
using berth::model::NodeView;
using berth::model::PodView;
using berth::plugin_testing::Dice;
namespace json = berth::json;

const bool kIsRegistered = berth::plugin::register_linked();

/// Half of the pods want half a GPU, a quarter a whole one, a quarter none.
json::Value typical_pods() {
  return json::Array{json::Object{{"cpu", "4"}, {"gpuMilli", 500}, {"gpuCount", 1}, {"popularity", 2}},
                     json::Object{{"cpu", "8"}, {"gpuCount", 1}, {"popularity", 1}}, json::Object{{"cpu", "2"}, {"popularity", 1}}};
}

/// Whole GPUs, and shares of which 470 and 470, 320 and 650 go well together.
json::Value shares_that_pair() {
  json::Array out = {json::Object{{"cpu", "1"}, {"gpuCount", 1}, {"popularity", 4}}};
  for (const auto& [milli, popularity] : {std::pair(470, 2), std::pair(320, 2), std::pair(650, 1)})
    out.push_back(json::Object{{"cpu", "1"}, {"gpuMilli", milli}, {"gpuCount", 1}, {"popularity", popularity}});
  return out;
}

/// GpuShare decides alone which node is best.
Profile profile(const char* policy, const json::Value& typical = typical_pods()) {
  json::Object args = {{"policy", policy}};
  if (const std::string_view name = policy; name == "FGD" || name == "CuttingStock") args["typicalPods"] = typical;
  Profile out = berth::plugin_testing::profile_with("GpuShare", args);
  std::erase_if(out.score, [](const PluginUse& use) { return use.name != "GpuShare"; });
  return out;
}

class GpuShareTest : public ::testing::Test {
 protected:
  void use(const char* policy, const json::Value& typical = typical_pods()) {
    TrialOptions options;
    options.engine.tie_break = EngineOptions::TieBreak::kFirstByName;
    auto framework = Framework::create(profile(policy, typical));
    ASSERT_TRUE(framework) << framework.error().message;
    trial_.emplace(cluster_, Profiles(*framework), options);
  }
  void node(const std::string& name, int gpus, const std::string& model = "V100", const std::string& cpu = "32") {
    const json::Object amounts = {{"cpu", cpu}, {"memory", "256Gi"}, {"pods", "110"}, {"alibabacloud.com/gpu-count", std::to_string(gpus)}};
    cluster_.upsert_node(std::make_shared<NodeView>(
        NodeView::parse(json::Object{{"metadata", {{"name", name}, {"labels", {{"alibabacloud.com/gpu-card-model", model}}}}},
                                     {"status", {{"allocatable", amounts}}}})));
  }
  static PodInfoPtr pod(const std::string& name, json::Object annotations, const std::string& cpu = "1") {
    const json::Object container = {{"name", "c"}, {"resources", {{"requests", {{"cpu", cpu}}}}}};
    return PodInfo::make(
        std::make_shared<PodView>(PodView::parse(
            json::Object{{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}, {"annotations", std::move(annotations)}}},
                         {"spec", {{"schedulerName", "default-scheduler"}, {"containers", json::Array{container}}}}})),
        Era::k136);
  }
  /// "node gpu-index", or why not.
  std::string place(const PodInfoPtr& pod) {
    const Placement placed = trial_->place(pod);
    if (!placed.is_placed()) return placed.status.message();
    const auto there = cluster_.find_pod(pod->key);
    const std::string* index = there->view().meta.annotation("alibabacloud.com/gpu-index");
    return cluster_.node(placed.node)->name + (index == nullptr ? "" : " " + *index);
  }
  static json::Object share(const char* milli) { return {{"alibabacloud.com/gpu-milli", milli}}; }
  static json::Object whole(const char* count) { return {{"alibabacloud.com/gpu-count", count}}; }

  Cluster cluster_{Era::k136};
  std::optional<Trial> trial_;
};

TEST_F(GpuShareTest, GivesSharesAndWholeGpusAndWritesWhich) {
  node("a", 4);
  use("BestFit");
  EXPECT_EQ(place(pod("half", share("500"))), "a 0");
  EXPECT_EQ(place(pod("two", whole("2"))), "a 1-2");
  EXPECT_EQ(place(pod("less", share("400"))), "a 0") << "where it is tightest";
  EXPECT_EQ(place(pod("more", share("600"))), "a 3");
  EXPECT_EQ(place(pod("late", whole("1"))), "0/1 nodes are available: 1 Insufficient GPU.");
  EXPECT_EQ(place(pod("plain", {})), "a");
}

TEST_F(GpuShareTest, RoomComesBackWhenAPodGoes) {
  node("a", 1);
  use("BestFit");
  EXPECT_EQ(place(pod("one", share("700"))), "a 0");
  EXPECT_EQ(place(pod("two", share("700"))), "0/1 nodes are available: 1 Insufficient GPU.");
  (void)trial_->evict(cluster_.find_pod("default/one"));
  EXPECT_EQ(place(pod("two", share("700"))), "a 0");
}

TEST_F(GpuShareTest, TakesOnlyTheModelsThatThePodNames) {
  node("a", 1, "T4");
  node("b", 1, "V100");
  use("BestFit");
  json::Object wanted = whole("1");
  wanted["alibabacloud.com/gpu-card-model"] = "P100|V100";
  EXPECT_EQ(place(pod("one", wanted)), "b 0");
  EXPECT_EQ(place(pod("two", wanted)),
            "0/2 nodes are available: 1 Insufficient GPU, 1 node(s) had another GPU model than the pod asks for.");
}

TEST_F(GpuShareTest, SaysWhatIsWrongWithAnAnnotation) {
  node("a", 8);
  use("BestFit");
  EXPECT_EQ(place(pod("one", share("half"))),
            "0/1 nodes are available: annotation alibabacloud.com/gpu-milli: \"half\" is not a number from 0 to 1000.");
  json::Object both = whole("2");
  both["alibabacloud.com/gpu-milli"] = "500";
  EXPECT_NE(place(pod("two", both)).find("shares of several GPUs are not given"), std::string::npos);
}

/// By hand, per typical pod (half 0.5, whole 0.25, none 0.25) and per thousandth, with CPU enough:
///   [1000]: half 0, whole 0, none 1000            -> 250        [500]: half 0, whole 500, none 500 -> 250
///   [1000, 500]: half 0, whole 500, none 1500     -> 500        [500, 500]: 0, 1000, 1000          -> 500
///   [1000, 0]: 0, 0, 1000 -> 250;   so that half a GPU on [1000, 500] falls by 250 on the second, and by 0 on the first.
TEST_F(GpuShareTest, FollowsTheGradientOfFragmentation) {
  node("a", 2);
  use("FGD");
  EXPECT_EQ(place(pod("one", share("500"))), "a 0");
  EXPECT_EQ(place(pod("two", share("500"))), "a 0") << "the broken GPU, not the whole one";
  node("b", 1);
  // On a, [0, 1000] becomes [0, 0]: 250 falls to 0. On b the same; of equals the first.
  EXPECT_EQ(place(pod("three", whole("1"))), "a 1");
}

/// 320 with 470 leaves 210, which nobody wants: FGD does it to spare the idle GPU, and has no place for 650 in the end.
TEST_F(GpuShareTest, CuttingStockKeepsThePlacesOfOtherShares) {
  node("a", 2);
  use("FGD", shares_that_pair());
  EXPECT_EQ(place(pod("one", share("470"))), "a 0");
  EXPECT_EQ(place(pod("two", share("320"))), "a 0");
  EXPECT_EQ(place(pod("three", share("470"))), "a 1");
  EXPECT_NE(place(pod("four", share("650"))).find("Insufficient GPU"), std::string::npos);

  for (const char* name : {"one", "two", "three"}) cluster_.remove_pod(std::string("default/") + name);
  use("CuttingStock", shares_that_pair());
  EXPECT_EQ(place(pod("one", share("470"))), "a 0");
  EXPECT_EQ(place(pod("two", share("320"))), "a 1");
  EXPECT_EQ(place(pod("three", share("470"))), "a 0");
  EXPECT_EQ(place(pod("four", share("650"))), "a 1");
}

TEST_F(GpuShareTest, EveryPolicyHoldsToWhatPluginsPromise) {
  berth::plugin_testing::World world;
  world.dress_node = [](NodeView& node, Dice& dice) {
    if (dice.chance(80)) node.allocatable.emplace_back("alibabacloud.com/gpu-count", berth::model::Quantity::from_value(dice.below(5)));
    auto labels = *node.meta.labels.pairs();
    labels.emplace_back("alibabacloud.com/gpu-card-model", dice.chance(50) ? "T4" : "V100");
    node.meta.labels = berth::model::Labels(std::move(labels));
  };
  const auto ask = [](PodView& pod, Dice& dice) {
    pod.meta.annotations.clear();
    if (dice.chance(70)) pod.meta.annotations.emplace_back("alibabacloud.com/gpu-milli", std::to_string(100 * (1 + dice.below(10))));
    if (dice.chance(20)) pod.meta.annotations = {{"alibabacloud.com/gpu-count", std::to_string(1 + dice.below(2))}};
    if (dice.chance(20)) pod.meta.annotations.emplace_back("alibabacloud.com/gpu-card-model", dice.chance(50) ? "T4" : "V100|P100");
    pod.meta.annotations.sort();
  };
  world.dress_pod = ask;
  world.changes = {{"what it asks of GPUs", ask}, {"the GPU that it had", [](PodView& pod, Dice&) {
                                                     pod.meta.annotations.emplace_back("alibabacloud.com/gpu-index", "1");
                                                   }}};
  for (const char* policy : {"FGD", "BestFit", "DotProd", "GpuClustering", "GpuPacking", "Random", "CuttingStock"})
    EXPECT_EQ(berth::plugin_testing::check_plugin(profile(policy), world, {.seeds = 6}), "") << policy;
}

std::string refusal(json::Object args) {
  Profile asked = default_profile(Era::k136);
  asked.filter.push_back({"GpuShare", 0});
  asked.args.own["GpuShare"] = std::move(args);
  const auto made = Framework::create(std::move(asked));
  return made ? "" : made.error().message;
}

TEST_F(GpuShareTest, RefusesArgumentsThatItDoesNotUnderstand) {
  EXPECT_NE(refusal({{"policy", "FDG"}}).find("did you mean \"FGD\"?"), std::string::npos) << refusal({{"policy", "FDG"}});
  EXPECT_NE(refusal({{"policy", "FGD"}}).find("args.typicalPods: Required value"), std::string::npos) << refusal({{"policy", "FGD"}});
  EXPECT_NE(refusal({{"policy", "Random"}, {"sead", 1}}).find("unknown field \"sead\"; did you mean \"seed\"?"), std::string::npos);
  EXPECT_NE(refusal({{"typicalPods", json::Array{json::Object{{"cpu", "four"}}}}}).find("args.typicalPods[0].cpu: Invalid value: \"four\""),
            std::string::npos);
  EXPECT_EQ(refusal({{"policy", "Random"}}), "");
}

}  // namespace
