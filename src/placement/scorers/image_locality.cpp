// ImageLocality: prefers nodes that have the pod's images, weighed by how widely they are spread
// (pkg/scheduler/framework/plugins/imagelocality; priority ImageLocalityPriority).
#include "placement/scorers/image_locality.h"

#include <algorithm>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

constexpr std::int64_t kMinThreshold = 23LL * 1024 * 1024;
constexpr std::int64_t kMaxContainerThreshold = 1000LL * 1024 * 1024;

/// Null when the node does not have the image.
const ImageState* image_on_node(const Cluster& cluster, const NodeInfo& node, std::string_view name) {
  if (cluster.era() == Era::k120) {
    const auto at = std::ranges::find_if(node.image_states, [&](const auto& pair) { return pair.first == name; });
    return at == node.image_states.end() ? nullptr : &at->second;
  }
  const bool there =
      std::ranges::any_of(node.node->images, [&](const auto& image) { return std::ranges::find(image.names, name) != image.names.end(); });
  return there ? cluster.image(name) : nullptr;
}

class ImageLocality final : public PluginOf<ImageLocality> {
 public:
  std::string_view name() const override { return "ImageLocality"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.images(); }
  ColumnKind column_kind() const override { return ColumnKind::kStatic; }
  [[nodiscard]] NodePart reads(const PodInfo&) const override { return NodePart::kImages; }
  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    return image_locality_score(pod, state.cluster(), node);
  }
};

}  // namespace

std::int64_t image_locality_score(const PodInfo& pod, const Cluster& cluster, const NodeInfo& node) {
  if (pod.image_containers == 0) return 0;
  std::int64_t sum = 0;
  for (const auto& name : pod.images) {
    const ImageState* image = image_on_node(cluster, node, name);
    if (image == nullptr) continue;
    const double spread = static_cast<double>(image->node_count) / static_cast<double>(cluster.node_count());
    sum = saturating_add(sum, static_cast<std::int64_t>(static_cast<double>(image->size_bytes) * spread));
  }
  const std::int64_t max_threshold = kMaxContainerThreshold * static_cast<std::int64_t>(pod.image_containers);
  sum = std::clamp(sum, kMinThreshold, max_threshold);
  return kMaxNodeScore * (sum - kMinThreshold) / (max_threshold - kMinThreshold);
}

Result<PluginPtr> make_image_locality(const Profile&) { return std::make_unique<ImageLocality>(); }

}  // namespace berth::placement
