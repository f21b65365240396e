// Plugins that are not berth's: arguments of their own, annotations that come with the place, notes on nodes, and the checks that their
// authors get.
#include <gtest/gtest.h>

#include "base/config_reader.h"
#include "berth/plugin_testing.h"
#include "examples/simulate/openb/go_random.h"
#include "placement/node_notes.h"
#include "placement/plugin_of.h"

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
class Teams final : public PluginOf<Teams<fault>> {
 public:
  std::string_view name() const override { return "Teams"; }
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

TEST(PluginChecks, FindOutANameThatNobodyKnows) {
  const std::string found = plugin_testing::check_plugin(plugin_testing::profile_with("Tems"), kTeams, {.seeds = 1});
  EXPECT_NE(found.find("plugin \"Tems\" does not exist"), std::string::npos) << found;
}

class Attentive final : public PluginOf<Attentive> {
 public:
  std::string_view name() const override { return "Attentive"; }
  Status filter(const CycleState&, const PodInfo&, const NodeInfo&) const override { return Status::unschedulable("never"); }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo&, const NodeInfo&) const override { return 1; }
};
/// What a class between overrides counts; and what the release leaves out does not.
template <typename P>
class Between : public PluginOf<P> {
 public:
  Status pre_enqueue(const model::PodView&) const override { return Status::success(); }
};
class Heir final : public Between<Heir> {
 public:
  std::string_view name() const override { return "Heir"; }
  void leave_out(Points& points) const override { points.reserve = false; }
  PermitOutcome permit(CycleState&, const PodInfo&, const NodeInfo&, WaitingPods&) const override { return {}; }
  Status reserve(CycleState&, const PodInfo&, const NodeInfo&, Cluster&) const override { return Status::success(); }
};

template <typename T>
Result<PluginPtr> make_any(const Profile&) {
  return std::make_unique<T>();
}

TEST(PluginChecks, PointsFollowFromWhatIsOverridden) {
  const Points points = Attentive().points(), inherited = Heir().points();
  EXPECT_TRUE(points.filter && points.score);
  EXPECT_FALSE(points.pre_filter || points.reserve || points.pre_enqueue);
  EXPECT_TRUE(inherited.pre_enqueue && inherited.permit);
  EXPECT_FALSE(inherited.filter || inherited.reserve);
  static_assert(!std::is_constructible_v<Plugin>, "by way of PluginOf alone");
}

/// Kubernetes' plugins take part where a configuration may name them, at some points with nothing to do.
TEST(OwnPlugins, KubernetesPluginsTakePartWhereTheirReleaseSays) {
  for (const Profile& profile : {default_profile(Era::k120), default_profile(Era::k136)}) EXPECT_TRUE(Framework::create(profile));
  const auto points = [](std::string_view name, Era era) { return (*make_plugin(*find_plugin(name), default_profile(era)))->points(); };
  EXPECT_TRUE(points("PrioritySort", Era::k136).queue_sort);
  EXPECT_TRUE(points("NodeResourcesFit", Era::k136).score && points("NodeResourcesFit", Era::k136).pre_filter);
  EXPECT_FALSE(points("NodeResourcesFit", Era::k120).score);
  EXPECT_TRUE(points("VolumeBinding", Era::k136).score && points("TaintToleration", Era::k120).pre_score);
  EXPECT_FALSE(points("VolumeZone", Era::k120).pre_filter);
  EXPECT_TRUE(points("InterPodAffinity", Era::k136).counts_pods);
  EXPECT_FALSE(points("NodePorts", Era::k136).counts_pods);
}

TEST(OwnPlugins, CannotOrderTheQueue) {
  Profile profile = default_profile(Era::k136);
  profile.queue_sort = {{"Attentive", 0}};
  const PluginRegistration attentive = {"Attentive", make_any<Attentive>};
  const auto made = Framework::create(profile, std::span(&attentive, 1));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "plugin \"Attentive\" cannot order the queue: PrioritySort is the only QueueSort plugin that there is");
}

/// Names the only node that it wants in PreFilter.
class Finicky final : public PluginOf<Finicky> {
 public:
  std::string_view name() const override { return "Finicky"; }
  PreFilterOutcome pre_filter(CycleState&, const PodInfo&) const override { return {Status::success(), std::set<std::string>{"n1"}}; }
};

/// Ends in an error on nodes that the pod's annotation "fails" names, and scores others by their names; of one kind of columns.
template <ColumnKind kind>
class Failing final : public PluginOf<Failing<kind>> {
 public:
  std::string_view name() const override { return "Failing"; }
  void sign(Signer& signer, const PodInfo&) const override {
    if (kind == ColumnKind::kVolumes) signer.volumes();
    signer.annotation("fails");
    signer.annotation("scores");
  }
  ColumnKind column_kind() const override { return kind; }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    return is_named(pod, "fails", node) ? Status::error("out of order") : Status::success();
  }
  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (is_named(pod, "scores", node)) return std::unexpected(Status::error("no score"));
    return node.name.back() % 5;
  }

 private:
  static bool is_named(const PodInfo& pod, std::string_view key, const NodeInfo& node) {
    const std::string* names = pod.view().meta.annotation(key);
    return names != nullptr && names->find(node.name.back()) != std::string::npos;
  }
};

/// Nodes n0 to n7, of which the last takes no pod of ours.
Cluster eight_nodes() {
  Cluster out{Era::k136};
  for (int i = 0; i < 8; ++i) {
    auto node = std::make_shared<NodeView>();
    node->meta.name = fmt::format("n{}", i);
    node->unschedulable = i == 7;
    node->allocatable = {{"cpu", model::Quantity::from_value(i + 1)}, {"pods", model::Quantity::from_value(10)}};
    out.upsert_node(std::move(node));
  }
  return out;
}

PodInfoPtr plain_pod(const std::string& name, std::vector<std::pair<std::string, std::string>> annotations) {
  auto view = std::make_shared<PodView>();
  view->meta.ns = "default";
  view->meta.name = view->meta.uid = name;
  view->meta.annotations = std::move(annotations);
  view->scheduler_name = "default-scheduler";
  view->containers.emplace_back();
  return PodInfo::make(std::move(view), Era::k136);
}

TEST(OwnPlugins, WhoNarrowsTheNodesIsNamedForThoseLeftOut) {
  Cluster cluster = eight_nodes();
  const PluginRegistration finicky = {"Finicky", make_any<Finicky>};
  Profile profile = default_profile(Era::k136);
  profile.pre_filter.push_back({"Finicky", 0});
  Trial trial(cluster, Profiles(*Framework::create(profile, std::span(&finicky, 1))));
  const auto pod = plain_pod("p", {});
  EXPECT_TRUE(trial.fits(pod, cluster.find_node("n1")->index).is_success());
  EXPECT_EQ(trial.fits(pod, cluster.find_node("n2")->index).message(), "node(s) didn't satisfy plugin(s) [Finicky]");
}

/// Both forms end alike: on the same nodes, or in the same error.
template <ColumnKind kind>
void expect_like_errors() {
  const PluginRegistration failing = {"Failing", make_any<Failing<kind>>};
  Profile profile = default_profile(Era::k136);
  profile.filter.push_back({"Failing", 0});
  profile.score.push_back({"Failing", 1});
  Cluster cluster = eight_nodes();
  Trial trial(cluster, Profiles(*Framework::create(profile, std::span(&failing, 1))));
  std::mt19937_64 random(7);
  std::size_t errors = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::pair<std::string, std::string>> annotations;
    for (const char* key : {"fails", "scores"})
      if (random() % 3 == 0) annotations.emplace_back(key, std::string(1, static_cast<char>('0' + random() % 10)));
    const auto pod = plain_pod(fmt::format("p{}", i % 40), annotations);
    for (int round = 0; round < 2; ++round) {  // The second time there may be columns.
      const Evaluation plain = trial.evaluate(*pod);
      const BestNodes found = trial.best(pod);
      ASSERT_EQ(found.decision.outcome == Decision::Outcome::kError, !plain.errors.empty()) << i;
      ASSERT_EQ(found.decision.error, plain.errors.empty() ? "" : plain.errors.front()) << i;
      const Decision decision = trial.decide(pod);
      ASSERT_EQ(decision.error, found.decision.error) << i;
      errors += plain.errors.empty() ? 0 : 1;
      for (const NodeInfo* node : cluster.nodes()) {
        const Status status = trial.fits(pod, node->index);
        if (status.is_error()) {
          ASSERT_EQ(status.message(), "running \"Failing\" filter plugin: out of order");
        }
      }
    }
  }
  EXPECT_GT(errors, 100U);
  EXPECT_LT(errors, 300U);
}

TEST(OwnPlugins, AnErrorOnOneNodeIsTheAnswerWhateverOthersSay) {
  expect_like_errors<ColumnKind::kStatic>();
  expect_like_errors<ColumnKind::kNodeLocal>();
  expect_like_errors<ColumnKind::kPlainOnly>();
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
