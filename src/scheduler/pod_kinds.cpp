#include "scheduler/pod_kinds.h"

#include <algorithm>

namespace berth::scheduler {
namespace {

bool has_checked_volumes(const model::PodView& pod) {
  return !pod.resource_claims.empty() ||
         std::ranges::any_of(pod.volumes, [](const auto& volume) { return volume.kind != model::VolumeView::Kind::kOther; });
}

bool are_alike(const placement::PodInfo& a, const placement::PodInfo& b) {
  return placement::same_class(a, b) && a.view().scheduler_name == b.view().scheduler_name &&
         a.view().preemption_never == b.view().preemption_never;
}

}  // namespace

PodKindPtr PodKinds::of(const placement::PodInfoPtr& pod, const std::string& nominated) {
  if (has_checked_volumes(pod->view())) return nullptr;
  std::vector<Known>& bucket = by_hash_[pod->class_hash];
  for (Known& known : bucket) {
    if (known.nominated != nominated || !are_alike(*known.first, *pod)) continue;
    if (PodKindPtr kind = known.kind.lock()) return kind;
    auto kind = std::make_shared<const PodKind>(++last_id_);
    known.kind = kind;
    return kind;
  }
  auto kind = std::make_shared<const PodKind>(++last_id_);
  bucket.push_back({pod, nominated, kind});
  if (++size_ >= sweep_at_) sweep();
  return kind;
}

/// Forgets what nobody holds any more: as often as the table has doubled.
void PodKinds::sweep() {
  size_ = 0;
  for (auto entry = by_hash_.begin(); entry != by_hash_.end();) {
    std::erase_if(entry->second, [](const Known& known) { return known.kind.expired(); });
    size_ += entry->second.size();
    entry = entry->second.empty() ? by_hash_.erase(entry) : std::next(entry);
  }
  sweep_at_ = std::max<std::size_t>(1024, size_ * 2);
}

}  // namespace berth::scheduler
