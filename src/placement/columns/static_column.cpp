#include "placement/columns/static_column.h"

#include <algorithm>

namespace berth::placement {
StaticColumn::StaticColumn(FrameworkPtr framework, PodInfoPtr pod, std::string key, const ClusterIndex& index, Plan plan)
    : framework_(std::move(framework)),
      pod_(std::move(pod)),
      key_(std::move(key)),
      index_(&index),
      state_(framework_->new_cycle(index.cluster())),
      plan_(std::move(plan)) {
  verdicts_.push_back({});
  images_version_ = index_->cluster().images_version();
  image_digest_ = image_digest();
  build();
}

std::uint64_t StaticColumn::catch_up(const PodInfoPtr& pod) {
  pod_ = pod;
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
  entry.score = narrow_score(sum);
  for (std::size_t i = 0; i < plan_.raw_scorers.size(); ++i)
    entry.raw[i] = narrow_score(plan_.raw_scorers[i]->score(state_, *pod_, *info).value_or(0));
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

/// Of what the scores of images come from; zero where no image is known.
std::uint64_t StaticColumn::image_digest() const {
  if (!plan_.uses_images) return 0;
  std::uint64_t out = 0;
  bool any = false;
  const auto mix = [&](std::uint64_t value) { out = (out ^ value) * 1099511628211ULL; };
  for (const auto& name : pod_->images) {
    const ImageState* image = index_->cluster().image(name);
    any |= image != nullptr;
    mix(image == nullptr ? 0 : static_cast<std::uint64_t>(image->size_bytes));
    mix(image == nullptr ? 0 : static_cast<std::uint64_t>(image->node_count));
  }
  mix(index_->cluster().node_count());
  return any ? out | 1 : 0;
}

void StaticColumn::bind(const ClusterIndex& index) {
  index_ = &index;
  state_.bind(index.cluster());
}

StaticColumnIdPtr StaticColumns::find(const Framework& framework, const Signature& signature) const {
  const auto* ids = by_key_.find(signature.statics());
  if (ids == nullptr) return nullptr;
  for (const auto id : *ids) {
    const Entry* entry = columns_.find(id);
    if (entry == nullptr || !entry->column->serves(framework, signature)) continue;
    if (auto users = entry->users.lock()) return users;
  }
  return nullptr;
}

StaticColumnIdPtr StaticColumns::add(StaticColumn column) {
  if (recent_.size() >= kSpare) forget_spare();
  auto id = std::make_shared<const StaticColumnId>(++next_id_);
  by_key_[column.key()].push_back(id->value);
  columns_[id->value] = {id, std::make_shared<StaticColumn>(std::move(column))};
  recent_.push_back(id);
  return id;
}

/// What no class uses may be wanted again soon, but not all of it.
void StaticColumns::forget_spare() {
  recent_.clear();
  std::vector<std::uint64_t> unused;
  columns_.for_each([&](std::uint64_t id, const Entry& entry) {
    if (entry.users.expired()) unused.push_back(id);
  });
  for (const auto id : unused) {
    const std::string key = columns_.find(id)->column->key();
    auto* ids = by_key_.edit(key);
    std::erase(*ids, id);
    if (ids->empty()) by_key_.erase(key);
    columns_.erase(id);
  }
}

void StaticColumns::clear() {
  columns_.clear();
  by_key_.clear();
  recent_.clear();
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
