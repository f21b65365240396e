// Plugins of one's own at the points after the choice of a node: Permit with waiting pods, Bind, PostBind, PostFilter.
#include "placement/plugin_of.h"
#include "placement/preemption.h"
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using namespace placement;
using std::chrono::minutes;
using std::chrono::seconds;

/// Pods with the label "gang" wait until as many as the label says have their places; then all of them go on. One of the label "veto" is
/// refused, and takes those that wait with it.
class Gang final : public PluginOf<Gang> {
 public:
  std::string_view name() const override { return "Gang"; }
  [[nodiscard]] EventSet events_to_register() const override { return ClusterEvent::kNodeAdded; }

  PermitOutcome permit(CycleState&, const PodInfo& pod, const NodeInfo&, WaitingPods& waiting) const override {
    std::vector<std::string> others;
    waiting.for_each([&](const PodInfo& other, std::string_view) { others.push_back(other.view().meta.uid); });
    if (pod.view().meta.labels.get("veto") != nullptr) {
      for (const std::string& uid : others) waiting.reject(uid, name(), "one of the gang was refused");
      return {Status::unschedulable("vetoed"), {}};
    }
    const std::string* wanted = pod.view().meta.labels.get("gang");
    if (wanted == nullptr) return {};
    if (std::to_string(others.size() + 1) != *wanted) return {Status::wait(), minutes(2)};
    for (const std::string& uid : others) waiting.allow(uid, name());
    return {};
  }
};

std::vector<std::string> bound;  ///< What PostBind was told.

/// Binds pods of one label in a way of its own, and leaves the rest to the next plugin.
class Binder final : public PluginOf<Binder> {
 public:
  std::string_view name() const override { return "Binder"; }
  std::optional<BindCall> bind(const CycleState&, const PodInfo& pod, std::string_view node_name) const override {
    if (pod.view().meta.labels.get("own-binder") == nullptr) return std::nullopt;
    return BindCall{"",
                    "v1",
                    "pods",
                    pod.view().ns(),
                    pod.view().name(),
                    "binding",
                    fmt::format(R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{}","annotations":{{"bound-by":"Binder"}}}},
"target":{{"kind":"Node","name":"{}"}}}})",
                                pod.view().name(), node_name)};
  }
  void post_bind(const CycleState&, const PodInfo& pod, std::string_view) const override { bound.push_back(pod.view().name()); }
};

/// Says of every pod that fits nowhere what it thinks of it.
class Commentator final : public PluginOf<Commentator> {
 public:
  std::string_view name() const override { return "Commentator"; }
  Status post_filter(const PostFilterCall& call, PostFilterResult&) const override {
    return Status::unschedulable(fmt::format("comment: {} is too large", call.pod->view().name()));
  }
};

template <typename T>
Result<PluginPtr> make(const Profile&) {
  return std::make_unique<T>();
}

class OwnPlugins : public ::testing::Test {
 protected:
  OwnPlugins() : world_(options()) { bound.clear(); }

  static WorldOptions options() {
    static const bool is_registered = register_plugin({"Gang", make<Gang>}) && register_plugin({"Binder", make<Binder>}) &&
                                      register_plugin({"Commentator", make<Commentator>});
    EXPECT_TRUE(is_registered);
    EXPECT_FALSE(register_plugin({"NodeName", make<Gang>})) << "a name is given once";
    WorldOptions out{.nodes = 2, .node_cpu = "4"};
    Profile profile = default_profile(Era::k136);
    profile.permit = {{"Gang", 0}};
    profile.bind = {{"Binder", 0}, {"DefaultBinder", 0}};
    profile.post_bind = {{"Binder", 0}};
    profile.post_filter.insert(profile.post_filter.begin(), PluginUse{"Commentator", 0});
    out.scheduler.profiles = {profile};
    return out;
  }
  void pod(const std::string& name, const std::string& labels, const std::string& cpu = "1") {
    world_.create(
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, labels: {{{}}}}}\nspec: {{containers: [{{name: c, image: nginx, "
                    "resources: {{requests: {{cpu: \"{}\"}}}}}}]}}\n",
                    name, labels, cpu));
    world_.run(seconds(2));
  }
  void remove(const std::string& name) {
    client::Call call{.verb = "delete", .gvr = {"", "v1", "pods"}, .ns = "default", .name = name, .query = "gracePeriodSeconds=0"};
    ASSERT_TRUE(world_.client().call_and_wait(std::move(call)));
    world_.run(seconds(2));
  }
  std::string node_of(const std::string& name) { return std::string(json::get_string(world_.get("", "pods", name), {"spec", "nodeName"})); }
  std::string message_of(const std::string& name) {
    const json::Value pod = world_.get("", "pods", name);
    for (const json::Value& one : json::get_array(pod, {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == "PodScheduled") return std::string(json::get_string(one, {"message"}));
    return {};
  }
  World world_;
};

TEST_F(OwnPlugins, PodsWaitAtPermitUntilTheLastOfTheirGangCameAndKeepTheirPlaces) {
  pod("a", "gang: \"3\"", "3");
  pod("b", "gang: \"3\"", "3");
  EXPECT_EQ(node_of("a"), "");
  EXPECT_EQ(node_of("b"), "");
  pod("filler", "", "2");
  EXPECT_EQ(node_of("filler"), "") << "both nodes are taken by those that wait";
  pod("c", "gang: \"3\"");
  for (const char* name : {"a", "b", "c"}) EXPECT_NE(node_of(name), "") << name;
}

TEST_F(OwnPlugins, WhoWaitsTooLongGivesItsPlaceBackAndSaysWhy) {
  pod("a", "gang: \"2\"");
  world_.run(minutes(1));
  EXPECT_EQ(message_of("a"), "");
  world_.run(minutes(2));
  EXPECT_EQ(node_of("a"), "");
  EXPECT_EQ(message_of("a"), "0/1 nodes are available: 1 rejected due to timeout after waiting 2m0s at plugin Gang.");
  EXPECT_EQ(world_.scheduler().queue_sizes().unschedulable, 1u) << "it waits for what the plugin registered";
}

TEST_F(OwnPlugins, ARejectionTakesThoseThatWaitAlong) {
  pod("a", "gang: \"3\"");
  pod("b", "veto: \"yes\"");
  EXPECT_EQ(message_of("a"), "0/1 nodes are available: 1 one of the gang was refused.");
  EXPECT_EQ(message_of("b"), "0/1 nodes are available: 1 vetoed.");
}

TEST_F(OwnPlugins, APodThatIsDeletedWhileItWaitsLeavesItsPlace) {
  pod("a", "gang: \"2\"", "3");
  pod("b", "", "3");
  pod("c", "", "3");
  EXPECT_EQ(node_of("c"), "");
  remove("a");
  world_.run(seconds(15));
  EXPECT_NE(node_of("c"), "");
}

TEST_F(OwnPlugins, TheFirstBindPluginThatDoesNotSkipBindsAndPostBindIsTold) {
  pod("mine", "own-binder: \"yes\"");
  pod("other", "");
  EXPECT_NE(node_of("mine"), "");
  EXPECT_NE(node_of("other"), "");
  EXPECT_EQ(json::get_string(world_.get("", "pods", "mine"), {"metadata", "annotations", "bound-by"}), "Binder");
  EXPECT_EQ(json::find(world_.get("", "pods", "other"), {"metadata", "annotations", "bound-by"}), nullptr);
  EXPECT_EQ(bound, (std::vector<std::string>{"mine", "other"}));
}

TEST_F(OwnPlugins, PostFilterPluginsAreAskedInTheirOrder) {
  pod("giant", "", "100");
  EXPECT_NE(message_of("giant").find("comment: giant is too large"), std::string::npos) << message_of("giant");
}

}  // namespace
}  // namespace berth::integration
