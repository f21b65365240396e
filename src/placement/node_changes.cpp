#include "placement/node_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "placement/lacks.h"
#include "placement/trial.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMostNodes = 5, kMostEdits = 8;

struct Edit {
  std::string command;
  std::function<void(model::NodeView&)> apply;
};

void set_label(model::NodeView& node, const std::string& key, const std::string* value) {
  auto pairs = *node.meta.labels.pairs();
  std::erase_if(pairs, [&](const auto& one) { return one.first == key; });
  if (value != nullptr) pairs.emplace_back(key, *value);
  std::ranges::sort(pairs);
  node.meta.labels = model::Labels(std::move(pairs));
}

/// Labels that say what the node is: changing them helps nobody.
bool is_fixed_label(std::string_view key) {
  return key == "kubernetes.io/hostname" || key == "kubernetes.io/os" || key == "kubernetes.io/arch" || key == "metadata.name";
}

Edit label_change(const std::string& node, const std::string& key, const std::string* value, bool is_there) {
  std::string command = value == nullptr ? fmt::format("kubectl label node {} {}-", node, key)
                                         : fmt::format("kubectl label node {} {}={}{}", node, key, *value, is_there ? " --overwrite" : "");
  return {std::move(command), [key, value = value == nullptr ? std::optional<std::string>() : std::optional(*value)](
                                  model::NodeView& view) { set_label(view, key, value ? &*value : nullptr); }};
}

/// All edits that could matter; nullopt when something keeps the pod away that nobody changes.
std::optional<std::vector<Edit>> changes_of(const PodInfo& pod, const NodeInfo& node) {
  using Op = model::Requirement::Op;
  std::vector<Edit> out;
  if (node.node->unschedulable)
    out.push_back({fmt::format("kubectl uncordon {}", node.name), [](model::NodeView& view) {
                     view.unschedulable = false;
                     std::erase_if(view.taints, [](const auto& one) { return one.key == "node.kubernetes.io/unschedulable"; });
                   }});
  for (const model::Taint& taint : untolerated(pod, node)) {
    if (taint.key == "node.kubernetes.io/unschedulable" && node.node->unschedulable) continue;
    if (taint.key.starts_with("node.kubernetes.io/") || taint.key.starts_with("node.cloudprovider.kubernetes.io/")) return std::nullopt;
    out.push_back(
        {fmt::format("kubectl taint node {} {}{}:{}-", node.name, taint.key, taint.value.empty() ? "" : "=" + taint.value, taint.effect),
         [taint](model::NodeView& view) {
           std::erase_if(view.taints, [&](const auto& one) { return one.key == taint.key && one.effect == taint.effect; });
         }});
  }
  for (const auto& [key, value] : pod.view().node_selector) {
    const std::string* actual = node.label(key);
    if (actual != nullptr && *actual == value) continue;
    if (is_fixed_label(key)) return std::nullopt;
    out.push_back(label_change(node.name, key, &value, actual != nullptr));
  }
  for (const model::Requirement& one : failed_affinity(pod, node)) {
    const std::string* actual = node.label(one.key);
    static const std::string kEmpty;
    if (is_fixed_label(one.key) || one.op == Op::kGt || one.op == Op::kLt) return std::nullopt;
    const bool removes = one.op == Op::kNotIn || one.op == Op::kDoesNotExist;
    const std::string* value = removes ? nullptr : one.op == Op::kExists || one.values.empty() ? &kEmpty : &one.values[0];
    out.push_back(label_change(node.name, one.key, value, actual != nullptr));
  }
  return out;
}

bool fits_on(Trial& trial, const PodInfoPtr& pod, std::shared_ptr<model::NodeView> view) {
  Trial changed = trial.fork();
  return changed.fits(pod, changed.cluster().upsert_node(std::move(view))).is_success();
}

bool fits_with(Trial& trial, const PodInfoPtr& pod, const NodeInfo& node, const std::vector<Edit>& changes) {
  auto view = std::make_shared<model::NodeView>(*node.node);
  for (const Edit& change : changes) change.apply(*view);
  return fits_on(trial, pod, std::move(view));
}

bool fits_like(Trial& trial, const PodInfoPtr& pod, const NodeInfo& node) {
  auto view = std::make_shared<model::NodeView>(*node.node);
  view->meta.name = node.name + "-like";
  view->meta.uid += "-like";
  const std::string name = view->meta.name;
  if (view->meta.labels.get("kubernetes.io/hostname") != nullptr) set_label(*view, "kubernetes.io/hostname", &name);
  return fits_on(trial, pod, std::move(view));
}

}  // namespace

std::vector<NodeChange> node_changes(Trial& trial, const PodInfoPtr& pod, const std::vector<NodeIndex>& nearest) {
  std::vector<NodeChange> out;
  const std::size_t count = std::min(nearest.size(), kMostNodes);
  for (std::size_t i = 0; i < count; ++i) {
    const NodeInfo& node = *trial.cluster().node(nearest[i]);
    auto changes = changes_of(*pod, node);
    if (!changes || changes->empty() || changes->size() > kMostEdits || !fits_with(trial, pod, node, *changes)) continue;
    // What is not needed goes.
    for (std::size_t k = changes->size(); k-- > 0 && changes->size() > 1;) {
      auto fewer = *changes;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      if (fits_with(trial, pod, node, fewer)) *changes = std::move(fewer);
    }
    NodeChange change{node.name, {}, false};
    for (const Edit& one : *changes) change.commands.push_back(one.command);
    out.push_back(std::move(change));
  }
  std::ranges::stable_sort(out, {}, [](const NodeChange& one) { return one.commands.size(); });
  for (std::size_t i = 0; i < count; ++i) {
    const NodeInfo& node = *trial.cluster().node(nearest[i]);
    if (!fits_like(trial, pod, node)) continue;
    out.push_back({node.name, {}, true});
    break;
  }
  return out;
}

}  // namespace berth::placement
