// How long a kubelet may keep secrets and config maps before it asks for them again grows with the cluster (pkg/controller/ttl): the
// annotation node.alpha.kubernetes.io/ttl, in seconds. A node learns of a new value at its own next change.
#include "controllers/cluster.h"
#include "controllers/common.h"

namespace berth::controllers {
namespace {

constexpr const char* kTtl = "node.alpha.kubernetes.io/ttl";

/// Steps overlap, so that a cluster on a border does not go back and forth.
struct Step {
  std::int64_t least = 0, most = 0;  ///< Nodes.
  std::int64_t ttl_seconds = 0;
};
constexpr std::array kSteps = {Step{0, 100, 0}, Step{90, 500, 15}, Step{450, 1000, 30}, Step{900, 2000, 60},
                               Step{1800, std::numeric_limits<std::int64_t>::max(), 300}};

class NodeTtlController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "ttl-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().node}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (!event.before && ++nodes_ > kSteps[step_].most) ++step_;
    if (!event.after) {
      if (--nodes_ < kSteps[step_].least) --step_;
      return;
    }
    // Heartbeats come often: the parse is spared by a look at the bytes.
    if (event.after->text()->find(fmt::format("\"{}\":\"{}\"", kTtl, kSteps[step_].ttl_seconds)) == std::string::npos)
      sink.add(event.after->name());
  }
  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const ObjectRef node = cache.get(kinds().node, "", key);
    if (!node) return plan;
    const std::string wanted = std::to_string(kSteps[step_].ttl_seconds);
    if (json::get_string(*node->parsed(), {"metadata", "annotations", kTtl}) == wanted) return plan;
    plan.writes.push_back(
        patch_object(kinds().node, *node, {{"metadata", json::Object{{"annotations", json::Object{{kTtl, wanted}}}}}}, false));
    return plan;
  }

 private:
  std::int64_t nodes_ = 0;
  std::size_t step_ = 0;
};

}  // namespace

ControllerPtr make_node_ttl_controller() { return std::make_unique<NodeTtlController>(); }

}  // namespace berth::controllers
