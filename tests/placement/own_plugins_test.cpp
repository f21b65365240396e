// Plugins that are not berth's: arguments of their own, annotations that come with the place, notes on nodes, and the checks that their
// authors get.
#include <gtest/gtest.h>

#include "base/config_reader.h"
#include "berth/plugin_testing.h"
#include "examples/simulate/openb/go_random.h"
#include "placement/node_notes.h"

namespace berth::placement::testing {
namespace {

using model::NodeView;
using model::PodView;
using plugin_testing::Dice;
using plugin_testing::World;

const World kTeams = {
    .dress_node = {},
    .dress_pod =
        [](PodView& pod, Dice& dice) {
          pod.meta.annotations = {{"team", std::to_string(dice.below(5))}};
        },
    .changes = {{"its team",
                 [](PodView& pod, Dice& dice) {
                   pod.meta.annotations = {{"team", std::to_string(dice.below(5))}};
                 }}},
};

int team_of(const PodInfo& pod) {
  const std::string* team = pod.view().meta.annotation("team");
  return team == nullptr ? 0 : (*team)[0] - '0';
}

/// Team 3 stays off nodes with an even name. What else it does is wrong in one way or none.
enum class Fault { kNone, kUnsigned, kColumns, kState };
template <Fault fault>
class Teams final : public Plugin {
 public:
  std::string_view name() const override { return "Teams"; }
  Points points() const override { return {.filter = true, .score = true, .reserve = true}; }
  void sign(Signer& signer, const PodInfo&) const override {
    if (fault != Fault::kUnsigned) signer.annotation("team");
  }
  ColumnKind column_kind() const override { return fault == Fault::kColumns ? ColumnKind::kStatic : ColumnKind::kNodeLocal; }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    return team_of(pod) == 3 && node.name.back() % 2 == 0 ? Status::unschedulable("not for team 3") : Status::success();
  }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    const auto own = std::ranges::count_if(node.pods, [&](const auto& other) { return team_of(*other) == team_of(pod); });
    return std::min<std::int64_t>(kMaxNodeScore, own * 10 + (fault == Fault::kState ? reserved_ % 7 : 0));
  }
  Status reserve(CycleState& state, const PodInfo&, const NodeInfo& node, Cluster&) const override {
    ++reserved_;
    state.annotate("seat", std::to_string(node.pods.size()), name());
    return Status::success();
  }

 private:
  mutable int reserved_ = 0;  ///< Beside the cluster: what no plugin may have.
};

template <Fault fault>
Result<PluginPtr> make_teams(const Profile&) {
  return std::make_unique<Teams<fault>>();
}

/// The plugin alone scores.
Profile teams_profile() {
  Profile out = default_profile(Era::k136);
  out.filter.push_back({"Teams", 0});
  out.score = {{"Teams", 1}};
  out.reserve.push_back({"Teams", 0});
  return out;
}

template <Fault fault>
std::string findings() {
  const PluginRegistration teams = {"Teams", make_teams<fault>};
  return plugin_testing::check_plugin(teams_profile(), kTeams, {.seeds = 8}, std::span(&teams, 1));
}

TEST(PluginChecks, FindNothingWrongWithAPluginThatKeepsItsPromises) { EXPECT_EQ(findings<Fault::kNone>(), ""); }
TEST(PluginChecks, FindOutWhatIsReadAndNotSigned) {
  const std::string found = findings<Fault::kUnsigned>();
  EXPECT_NE(found.find("a plugin reads what it did not sign"), std::string::npos) << found;
}
TEST(PluginChecks, FindOutColumnsThatAreToldTooLittle) {
  const std::string found = findings<Fault::kColumns>();
  EXPECT_NE(found.find("more than its column_kind says"), std::string::npos) << found;
}
TEST(PluginChecks, FindOutStateBesideTheCluster) {
  const PluginRegistration teams = {"Teams", make_teams<Fault::kState>};
  const std::string found = plugin_testing::check_forks(teams_profile(), kTeams, {}, std::span(&teams, 1));
  EXPECT_NE(found.find("left a trace"), std::string::npos) << found;
}

class Annotations : public ::testing::Test {
 protected:
  Annotations()
      : teams_{"Teams", make_teams<Fault::kNone>}, trial_(cluster_, Profiles(*Framework::create(teams_profile(), std::span(&teams_, 1)))) {
    auto node = std::make_shared<NodeView>();
    node->meta.name = "n1";
    node->allocatable = {{"cpu", model::Quantity::from_value(4)}, {"pods", model::Quantity::from_value(10)}};
    cluster_.upsert_node(std::move(node));
  }
  static PodInfoPtr pod(const std::string& name) {
    auto view = std::make_shared<PodView>();
    view->meta.ns = "default";
    view->meta.name = view->meta.uid = name;
    view->meta.annotations = {{"a", "1"}, {"seat", "old"}, {"z", "2"}};
    view->scheduler_name = "default-scheduler";
    view->containers.emplace_back();
    return PodInfo::make(std::move(view), Era::k136);
  }
  PluginRegistration teams_;
  Cluster cluster_{Era::k136};
  Trial trial_;
};

TEST_F(Annotations, ComeWithThePlaceAndAreWrittenBeforeThePodIsBound) {
  ASSERT_TRUE(trial_.place(pod("first")).is_placed());
  const auto second = pod("second");
  auto reserved = trial_.reserve(second, cluster_.find_node("n1")->index);
  ASSERT_TRUE(reserved);
  const std::vector<std::pair<std::string, std::string>> wanted = {{"a", "1"}, {"seat", "1"}, {"z", "2"}};
  EXPECT_EQ(cluster_.find_pod("default/second")->view().meta.annotations, wanted);
  const auto writes = reserved->pre_bind(cluster_);
  ASSERT_TRUE(writes);
  ASSERT_EQ(writes->size(), 1U);
  EXPECT_EQ(writes->front().resource, "pods");
  EXPECT_EQ(writes->front().name, "second");
  EXPECT_EQ(writes->front().plugin, "Teams");
  EXPECT_EQ(json::serialize(writes->front().merge_patch), R"({"metadata":{"uid":"second","annotations":{"seat":"1"}}})");
  trial_.undo(*reserved);
  EXPECT_EQ(cluster_.find_pod("default/second"), nullptr);
  EXPECT_EQ(*second->view().meta.annotation("seat"), "old") << "who asked keeps the pod as it was";
}

TEST(OwnArguments, AreReadByThePluginAndRefusedInWords) {
  const PluginRegistration picky = {.name = "Picky", .make = nullptr, .build = [](const config::Reader& args, const Profile&) -> PluginPtr {
                                      args.only({"limit"});
                                      if (args.integer("limit", 0) < 1) args.problem("limit", "Invalid value: must be at least 1");
                                      return std::make_unique<Teams<Fault::kNone>>();
                                    }};
  Profile profile = default_profile(Era::k136);
  EXPECT_EQ(make_plugin(picky, profile).error().message, "arguments of plugin Picky: args.limit: Invalid value: must be at least 1");
  profile.args.own["Picky"] = {{"limit", 3}};
  EXPECT_TRUE(make_plugin(picky, profile));
  profile.args.own["Picky"] = {{"limit", 3}, {"limits", 4}};
  EXPECT_NE(make_plugin(picky, profile).error().message.find("unknown field \"limits\"; did you mean \"limit\"?"), std::string::npos);
}

TEST(NodeNotes, AreMadeOnceAndGoWithTheFirstChange) {
  NodeInfo node;
  const NoteId ours, theirs;
  int made = 0;
  const auto count = [&](NoteId id) { return node.notes.get<int>(id, [&] { return ++made; }); };
  EXPECT_EQ(count(ours), 1);
  EXPECT_EQ(count(ours), 1);
  EXPECT_EQ(count(theirs), 2) << "each has its own";
  NodeInfo copy = node;
  EXPECT_EQ(copy.notes.get<int>(ours, [&] { return 7; }), 7) << "a copy is made to be changed";
  auto view = std::make_shared<PodView>();
  view->containers.emplace_back();
  node.add_pod(PodInfo::make(view, Era::k136));
  EXPECT_EQ(count(ours), 3);
}

/// What Go's documentation and every beginner's first program print.
TEST(GoRandom, DrawsWhatGoDraws) {
  openb::GoRandom random(1);
  EXPECT_EQ(random.int63(), 5577006791947779410);
  EXPECT_EQ(random.int63(), 8674665223082153551);
  openb::GoRandom small(1);
  for (const int wanted : {81, 87, 47, 59, 81, 18, 25, 40, 56, 0}) EXPECT_EQ(small.below(100), wanted);
}

}  // namespace
}  // namespace berth::placement::testing
