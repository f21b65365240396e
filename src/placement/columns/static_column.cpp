#include "placement/columns/static_column.h"

#include <algorithm>

namespace berth::placement {
StaticColumn::StaticColumn(FrameworkPtr framework, PodInfoPtr pod, std::string key, const ClusterIndex& index, Plan plan)
    : framework_(std::move(framework)),
      pod_(std::move(pod)),
      key_(std::move(key)),
      index_(&index),
      state_(framework_->new_cycle(index.cluster())) {
  take_plan(std::move(plan));
  verdicts_.push_back({});
  images_version_ = index_->cluster().images_version();
  image_digest_ = image_digest();
  build();
}

void StaticColumn::take_plan(Plan plan) {
  const auto reads_taints = [&](const Plugin* plugin) {
    const NodePart part = plugin->reads(*pod_);
    return part == NodePart::kTaints || part == NodePart::kNothing;
  };
  for (const Filter& one : plan.filters) (reads_taints(one.plugin) ? alike_filters_ : filters_).push_back(one);
  for (const Scorer& one : plan.scorers) {
    const bool reads_images = plan.uses_images && one.plugin->reads(*pod_) == NodePart::kImages;
    (reads_images ? image_scorers_ : reads_taints(one.plugin) ? alike_scorers_ : scorers_).push_back(one);
  }
  for (std::size_t i = 0; i < plan.raw_scorers.size(); ++i)
    (reads_taints(plan.raw_scorers[i]) ? alike_raw_scorers_ : raw_scorers_).push_back({plan.raw_scorers[i], i});
  only_nodes_ = std::move(plan.only_nodes);
  left_out_ = std::move(plan.left_out);
  uses_images_ = plan.uses_images;
  if (!image_scorers_.empty())
    for (const std::string& image : pod_->images) image_places_.push_back(ImageMarks::place_of(image));
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
  if (afresh || !follower_.reaches(*index_)) {
    build();
    return ++generation_;
  }
  // Slots that an attempt left behind, free, may never have been named.
  if (entries_.size() < index_->cluster().slot_count()) entries_.resize(index_->cluster().slot_count());
  follower_.follow(*index_, [&](std::uint32_t node, bool is_static, std::uint32_t) {
    if (is_static) evaluate(node);
  });
  return generation_;
}

void StaticColumn::build() {
  follower_.restart(*index_);
  has_failed_ = false;
  entries_.renew(index_->cluster().slot_count());
  for (std::uint32_t i = 0; i < entries_.size(); ++i) evaluate(i);
}

void StaticColumn::evaluate(std::uint32_t node) {
  if (node >= entries_.size()) entries_.resize(std::max<std::size_t>(node + 1, index_->cluster().slot_count()));
  const std::uint32_t kind = index_->taint_kind(node);
  Entry& entry = entries_.edit(node);
  if (kind == ClusterIndex::kNoNode) {
    entry = {};
    return;
  }
  const NodeInfo& info = *index_->cluster().node(NodeIndex{node});
  const bool is_known = kind < alike_.size() && alike_[kind].is_known;
  const Alike& alike = is_known ? alike_[kind] : alike_of(kind, info);
  entry = alike.entry;
  if (only_nodes_ && !only_nodes_->contains(info.name)) {
    entry.verdict = intern(left_out_, 0);
  } else if (!filters_.empty()) {
    std::uint32_t order = 0;
    const std::uint32_t before = entry.verdict == 0 ? UINT32_MAX : alike.order;
    if (const std::uint16_t own = first_rejection(filters_, info, before, order); own != 0) entry.verdict = own;
  }
  std::int64_t sum = entry.score;
  for (const auto& [plugin, weight] : scorers_) sum += score_of(plugin, info) * weight;
  // A node without any of the images has nothing from those.
  const auto may_be_there = [&](ImageMarks::Place place) { return index_->image_marks(node).may_have(place); };
  if (!image_scorers_.empty() && std::ranges::any_of(image_places_, may_be_there))
    for (const auto& [plugin, weight] : image_scorers_) sum += score_of(plugin, info) * weight;
  entry.score = narrow_score(sum);
  for (const auto& [plugin, place] : raw_scorers_) entry.raw[place] = narrow_score(score_of(plugin, info));
}

/// Kinds that no other node is of are not worth remembering.
const StaticColumn::Alike& StaticColumn::alike_of(std::uint32_t kind, const NodeInfo& info) {
  const bool is_kept = kind != ClusterIndex::kLikeNoOther;
  const std::size_t place = is_kept ? kind : 0;  // That of kNoNode, which nobody asks for.
  if (place >= alike_.size()) alike_.resize(place + 1);
  alike_[place] = ask_alike(info);
  alike_[place].is_known = is_kept;
  return alike_[place];
}

StaticColumn::Alike StaticColumn::ask_alike(const NodeInfo& info) {
  Alike out;
  out.entry.verdict = first_rejection(alike_filters_, info, UINT32_MAX, out.order);
  std::int64_t sum = 0;
  for (const auto& [plugin, weight] : alike_scorers_) sum += score_of(plugin, info) * weight;
  out.entry.score = narrow_score(sum);
  for (const auto& [plugin, place] : alike_raw_scorers_) out.entry.raw[place] = narrow_score(score_of(plugin, info));
  return out;
}

std::int64_t StaticColumn::score_of(const Plugin* plugin, const NodeInfo& info) {
  const auto score = plugin->score(state_, *pod_, info);
  has_failed_ |= !score;
  return score.value_or(0);
}

/// Of the filters whose order is below `before`; 0 when none rejects.
std::uint16_t StaticColumn::first_rejection(std::span<const Filter> filters, const NodeInfo& info, std::uint32_t before,
                                            std::uint32_t& order) {
  for (const auto& [plugin, at] : filters) {
    if (at >= before) break;
    Status status = plugin->filter(state_, *pod_, info);
    if (status.is_success()) continue;
    if (status.plugin.empty()) status.plugin = plugin->name();
    has_failed_ |= status.is_error();
    order = at;
    return intern(std::move(status), at);
  }
  return 0;
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
  if (!uses_images_) return 0;
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
  if (recent_.size() >= kSpare || recent_bytes_ > kSpareBytes) forget_spare();
  auto id = std::make_shared<const StaticColumnId>(++next_id_);
  by_key_[column.key()].push_back(id->value);
  recent_bytes_ += column.bytes_with_pod();
  columns_[id->value] = {id, std::make_shared<StaticColumn>(std::move(column))};
  recent_.push_back(id);
  return id;
}

/// What no class uses may be wanted again soon, but not all of it.
void StaticColumns::forget_spare() {
  recent_.clear();
  recent_bytes_ = 0;
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
  recent_bytes_ = 0;
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
