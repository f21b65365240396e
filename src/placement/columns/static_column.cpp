#include "placement/columns/static_column.h"

#include <algorithm>

namespace berth::placement {
namespace {

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, INT32_MIN / 2, INT32_MAX / 2)); }

}  // namespace

StaticColumn::StaticColumn(FrameworkPtr framework, PodInfoPtr pod, const ClusterIndex& index, Plan plan)
    : framework_(std::move(framework)),
      pod_(std::move(pod)),
      index_(&index),
      state_(framework_->new_cycle(index.cluster())),
      plan_(std::move(plan)) {
  verdicts_.push_back({});
  images_version_ = index_->cluster().images_version();
  image_digest_ = image_digest();
  build();
}

bool StaticColumn::serves(const Framework& framework, const PodInfo& pod) const {
  const auto &a = pod_->view(), &b = pod.view();
  const auto *owner = a.meta.controller(), *other = b.meta.controller();
  return framework_.get() == &framework && a.node_name == b.node_name && a.node_selector == b.node_selector &&
         a.node_affinity == b.node_affinity && a.tolerations == b.tolerations && pod_->images == pod.images &&
         pod_->image_containers == pod.image_containers && (owner == nullptr) == (other == nullptr) &&
         (owner == nullptr || *owner == *other);
}

std::uint64_t StaticColumn::catch_up() {
  bool afresh = false;
  if (const auto version = index_->cluster().images_version(); images_version_ != version) {
    images_version_ = version;
    const auto digest = image_digest();
    // Where each node has its own counts (1.20) the digest does not show all.
    afresh = digest != image_digest_ || (framework_->profile().era == Era::k120 && digest != 0);
    image_digest_ = digest;
  }
  const std::uint64_t end = index_->touched_end();
  if (afresh || position_ < index_->touched_begin()) {
    build();
    return ++generation_;
  }
  for (; position_ < end; ++position_) {
    const auto [node, is_static] = index_->touched(position_);
    if (is_static || node >= entries_.size()) evaluate(node);
  }
  return generation_;
}

void StaticColumn::build() {
  position_ = index_->touched_end();
  entries_.renew(index_->cluster().slot_count());
  for (std::uint32_t i = 0; i < entries_.size(); ++i) evaluate(i);
}

void StaticColumn::evaluate(std::uint32_t node) {
  if (node >= entries_.size()) entries_.resize(std::max<std::size_t>(node + 1, index_->cluster().slot_count()));
  Entry& entry = entries_.edit(node);
  entry = {};
  const NodeInfo* info = index_->cluster().node(NodeIndex{node});
  if (info == nullptr || info->node == nullptr) return;
  if (plan_.only_nodes && !plan_.only_nodes->contains(info->name)) entry.verdict = intern(plan_.left_out, 0);
  for (const auto& [plugin, order] : plan_.filters) {
    if (entry.verdict != 0) break;
    Status status = plugin->filter(state_, *pod_, *info);
    if (status.is_success()) continue;
    if (status.plugin.empty()) status.plugin = plugin->name();
    entry.verdict = intern(std::move(status), order);
  }
  std::int64_t sum = 0;
  for (const auto& [plugin, weight] : plan_.scorers) sum += plugin->score(state_, *pod_, *info).value_or(0) * weight;
  entry.score = narrow(sum);
  for (std::size_t i = 0; i < plan_.raw_scorers.size(); ++i)
    entry.raw[i] = narrow(plan_.raw_scorers[i]->score(state_, *pod_, *info).value_or(0));
}

std::uint16_t StaticColumn::intern(Status status, std::uint32_t order) {
  for (std::size_t i = 1; i < verdicts_.size(); ++i) {
    const auto& [known, known_order] = verdicts_[i];
    if (known_order == order && known.code == status.code && known.reasons == status.reasons) return static_cast<std::uint16_t>(i);
  }
  // Taint texts of 1.20 are as many as there are taints; beyond any sensible number they share the last place.
  if (verdicts_.size() > INT16_MAX) return INT16_MAX;
  verdicts_.push_back({std::move(status), order});
  return static_cast<std::uint16_t>(verdicts_.size() - 1);
}

std::uint64_t StaticColumn::image_digest() const {
  if (!plan_.uses_images) return 0;
  std::uint64_t out = 0;
  bool any = false;
  for (const auto& name : pod_->images) {
    const ImageState* image = index_->cluster().image(name);
    any |= image != nullptr;
    out = out * 1099511628211ULL + (image == nullptr ? 0 : static_cast<std::uint64_t>(image->size_bytes * 31 + image->node_count));
  }
  return any ? out * 1099511628211ULL + index_->cluster().node_count() : 0;
}

void StaticColumn::bind(const ClusterIndex& index) {
  index_ = &index;
  state_.bind(index.cluster());
}

StaticColumnIdPtr StaticColumns::find(const Framework& framework, const PodInfo& pod) {
  StaticColumnIdPtr out;
  std::vector<std::uint64_t> unused;
  columns_.for_each([&](std::uint64_t id, const Entry& entry) {
    const auto users = entry.users.lock();
    if (users == nullptr)
      unused.push_back(id);
    else if (out == nullptr && entry.column->serves(framework, pod))
      out = users;
  });
  for (const auto id : unused) columns_.erase(id);
  return out;
}

StaticColumnIdPtr StaticColumns::add(StaticColumn column) {
  auto id = std::make_shared<const StaticColumnId>(++next_id_);
  columns_[id->value] = {id, std::make_shared<StaticColumn>(std::move(column))};
  return id;
}

StaticColumn& StaticColumns::edit(const StaticColumnId& id, const ClusterIndex& index) {
  StaticColumn& out = unshare(columns_.edit(id.value)->column);
  out.bind(index);
  return out;
}

std::size_t StaticColumns::memory_bytes() const {
  std::size_t out = 0;
  columns_.for_each([&](std::uint64_t, const Entry& entry) { out += entry.column->memory_bytes(); });
  return out;
}

}  // namespace berth::placement
