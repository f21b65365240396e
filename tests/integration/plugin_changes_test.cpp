// Plugins of one's own while things change: gates that open by what happens elsewhere and close again, and annotations that are edited.
#include "placement/plugin_of.h"
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using namespace placement;
using std::chrono::minutes;
using std::chrono::seconds;

/// Pods with the label "gate" wait until a Service of the label's value is there.
class Gatekeeper final : public PluginOf<Gatekeeper> {
 public:
  std::string_view name() const override { return "Gatekeeper"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.labels(); }
  [[nodiscard]] EventSet events_to_register() const override { return ClusterEvent::kServices; }
  Status pre_enqueue_in(const model::PodView& pod, const Cluster& cluster) const override {
    const std::string* gate = pod.meta.labels.get("gate");
    if (gate == nullptr || cluster.services().contains(pod.ns() + "/" + *gate)) return Status::success();
    return Status::unresolvable("waiting for service " + *gate);
  }
};

/// A pod with the annotation "shy" goes only where no pod has the annotation "loud".
class Quiet final : public PluginOf<Quiet> {
 public:
  std::string_view name() const override { return "Quiet"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.annotation("shy"); }
  [[nodiscard]] ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (pod.view().meta.annotation("shy") == nullptr) return Status::success();
    const bool is_loud = std::ranges::any_of(node.pods, [](const auto& one) { return one->view().meta.annotation("loud") != nullptr; });
    return is_loud ? Status::unschedulable("it is loud there") : Status::success();
  }
};

template <typename T>
Result<PluginPtr> make(const Profile&) {
  return std::make_unique<T>();
}

class PluginChanges : public ::testing::Test {
 protected:
  PluginChanges() : world_(options()) {}

  WorldOptions options() {
    static const bool is_registered = register_plugin({"Gatekeeper", make<Gatekeeper>}) && register_plugin({"Quiet", make<Quiet>});
    EXPECT_TRUE(is_registered);
    WorldOptions out{.nodes = 1, .node_cpu = "4"};
    Profile profile = default_profile(Era::k136);
    profile.pre_enqueue.push_back({"Gatekeeper", 0});
    profile.filter.push_back({"Quiet", 0});
    out.scheduler.profiles = {profile};
    out.intercept = [this](const net::HttpRequest& request, auto&) {
      if (before_binding && request.path.ends_with("/binding")) std::exchange(before_binding, nullptr)();
      return false;
    };
    return out;
  }
  void pod(const std::string& name, const std::string& metadata, const std::string& cpu = "1") {
    world_.create(
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, {}}}\nspec: {{containers: [{{name: c, image: nginx, "
                    "resources: {{requests: {{cpu: \"{}\"}}}}}}]}}\n",
                    name, metadata, cpu));
    world_.run(seconds(2));
  }
  void service(const std::string& name) {
    world_.create(fmt::format("apiVersion: v1\nkind: Service\nmetadata: {{name: {}}}\nspec: {{ports: [{{port: 80}}]}}\n", name));
    world_.run(seconds(2));
  }
  void remove_service(const std::string& name) {
    client::Call call{.verb = "delete", .gvr = {"", "v1", "services"}, .ns = "default", .name = name};
    ASSERT_TRUE(world_.client().call_and_wait(std::move(call)));
    world_.run(seconds(2));
  }
  void annotate(const std::string& name, const std::string& key, const std::optional<std::string>& value) {
    client::Call call{.verb = "patch", .gvr = {"", "v1", "pods"}, .ns = "default", .name = name};
    call.content_type = "application/merge-patch+json";
    call.body = json::serialize(
        json::Object{{"metadata", json::Object{{"annotations", json::Object{{key, value ? json::Value(*value) : json::Value(nullptr)}}}}}});
    ASSERT_TRUE(world_.client().call_and_wait(std::move(call)));
  }
  std::string node_of(const std::string& name) { return std::string(json::get_string(world_.get("", "pods", name), {"spec", "nodeName"})); }
  [[nodiscard]] double held_by(const std::string& plugin) {
    return world_.scheduler()
        .metrics()
        .gauge("scheduler_unschedulable_pods", "", {{"plugin", plugin}, {"profile", "default-scheduler"}})
        .value();
  }
  std::function<void()> before_binding;  ///< Done once, when the scheduler is about to bind.
  World world_;
};

TEST_F(PluginChanges, AGateIsAskedAgainWhenWhatItWaitsForComes) {
  pod("p", "labels: {gate: open}");
  EXPECT_EQ(world_.scheduler().queue_sizes().gated, 1U);
  EXPECT_EQ(held_by("Gatekeeper"), 1);
  EXPECT_EQ(held_by("DynamicResources"), 0);
  service("other");
  EXPECT_EQ(node_of("p"), "");
  service("open");
  EXPECT_NE(node_of("p"), "");
  EXPECT_EQ(held_by("Gatekeeper"), 0);
}

TEST_F(PluginChanges, AGateThatClosesAgainHoldsAPodThatWaited) {
  service("open");
  pod("p", "labels: {gate: open}", "100");
  EXPECT_EQ(world_.scheduler().queue_sizes().unschedulable, 1U);
  remove_service("open");
  world_.run(minutes(6));  // Its long wait ends, and it would be tried.
  EXPECT_EQ(world_.scheduler().queue_sizes().gated, 1U);
  EXPECT_EQ(held_by("Gatekeeper"), 1);
  service("open");
  EXPECT_EQ(world_.scheduler().queue_sizes().gated, 0U);
  EXPECT_EQ(held_by("Gatekeeper"), 0);
}

TEST_F(PluginChanges, APendingPodsAnnotationsAreReadAnew) {
  pod("loud", "annotations: {loud: \"\"}");
  pod("p", "annotations: {shy: \"\"}");
  EXPECT_EQ(node_of("p"), "");
  annotate("p", "shy", std::nullopt);
  world_.run(seconds(12));  // Beyond any backoff.
  EXPECT_NE(node_of("p"), "");
}

TEST_F(PluginChanges, SoAreThoseOfPodsThatHaveANode) {
  pod("loud", "annotations: {loud: \"\"}");
  pod("p", "annotations: {shy: \"\"}");
  EXPECT_EQ(node_of("p"), "");
  annotate("loud", "loud", std::nullopt);
  world_.run(seconds(12));
  EXPECT_NE(node_of("p"), "");
  annotate("p", "loud", "now");
  pod("q", "annotations: {shy: \"\"}");
  EXPECT_EQ(node_of("q"), "");
}

TEST_F(PluginChanges, AnAnnotationThatCameWhileThePodWasBoundCounts) {
  before_binding = [this] { annotate("loud", "loud", "yes"); };
  pod("loud", "labels: {}");
  EXPECT_NE(node_of("loud"), "");
  pod("p", "annotations: {shy: \"\"}");
  EXPECT_EQ(node_of("p"), "");
}

}  // namespace
}  // namespace berth::integration
