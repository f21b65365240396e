#include "placement/cluster_journal.h"

#include <iterator>
#include <ranges>

#include "base/check.h"

namespace berth::placement {

void Cluster::begin(Journal& journal) {
  journal.outer = journal_;
  journal.node_count = node_count_;
  journal.affinity_pods = affinity_pods_;
  journal.required_anti_affinity_pods = required_anti_affinity_pods_;
  journal.nominated_affinity_pods = nominated_affinity_pods_;
  journal.slot_count = slot_count_;
  journal.free_slots = free_slots_;
  journal.nominations = nominations_;
  journal.pending_allocations = pending_allocations_;
  journal.objects = objects_;
  journal.objects_version = objects_version_;
  journal.images_version = images_version_;
  journal.namespaces_version = namespaces_version_;
  journal.workloads_version = workloads_version_;
  journal.budgets_version = budgets_version_;
  journal_ = &journal;
}

void Cluster::keep_slot(NodeIndex index) {
  if (journal_ == nullptr || index.value >= journal_->slot_count || !journal_->kept_slots.insert(index.value).second) return;
  journal_->slots.push_back({index, (*chunks_[index.value / kChunkNodes])[index.value % kChunkNodes], arrivals_[index.value]});
}

void Cluster::keep_name(const std::string& name) {
  if (journal_ == nullptr) return;
  const NodeIndex* known = names_.find(name);
  journal_->names.emplace_back(name, known == nullptr ? std::nullopt : std::optional(*known));
}

/// What the inner attempt would have taken back, the outer one does.
void Cluster::keep(Journal& journal) {
  BERTH_CHECK(journal_ == &journal, "an attempt ends that is not the innermost one");
  journal_ = journal.outer;
  if (journal_ == nullptr) return;
  std::ranges::move(journal.changes, std::back_inserter(journal_->changes));
  std::ranges::move(journal.names, std::back_inserter(journal_->names));
  std::ranges::move(journal.images, std::back_inserter(journal_->images));
  // Slots that were made since the outer one began go with it.
  for (Journal::Slot& slot : journal.slots)
    if (slot.index.value < journal_->slot_count && journal_->kept_slots.insert(slot.index.value).second)
      journal_->slots.push_back(std::move(slot));
}

void Cluster::take_back(Journal& journal) {
  BERTH_CHECK(journal_ == &journal, "an attempt is taken back that is not the innermost one");
  journal_ = nullptr;  // What follows is no change to be taken back.
  undo_changes(journal);
  const auto slot_of = [&](NodeIndex index) -> std::shared_ptr<NodeInfo>& {
    return unshare(chunks_[index.value / kChunkNodes])[index.value % kChunkNodes];
  };
  for (Journal::Slot& slot : journal.slots | std::views::reverse) {
    slot_of(slot.index) = std::move(slot.info);
    arrivals_.edit(slot.index.value) = slot.arrival;
  }
  for (const auto& [name, index] : journal.names | std::views::reverse) {
    if (index)
      names_[name] = *index;
    else
      names_.erase(name);
  }
  free_slots_ = std::move(journal.free_slots);
  // Engines have seen the slots that are new: they stay, free.
  for (std::uint32_t i = slot_count_; i > journal.slot_count; --i) {
    slot_of(NodeIndex{i - 1}) = nullptr;
    free_slots_.push_back(NodeIndex{i - 1});
  }
  node_count_ = journal.node_count;
  affinity_pods_ = journal.affinity_pods;
  required_anti_affinity_pods_ = journal.required_anti_affinity_pods;
  nominated_affinity_pods_ = journal.nominated_affinity_pods;
  nominations_ = std::move(journal.nominations);
  for (auto& [name, state] : journal.images | std::views::reverse) {
    if (state)
      unshare(images_).insert_or_assign(std::move(name), *state);
    else
      unshare(images_).erase(name);
  }
  pending_allocations_ = std::move(journal.pending_allocations);
  objects_ = std::move(journal.objects);
  // What is known of a version that somebody saw meanwhile is void.
  const auto renew = [](std::uint64_t& version, std::uint64_t before) { version += version != before; };
  renew(objects_version_, journal.objects_version);
  renew(images_version_, journal.images_version);
  renew(namespaces_version_, journal.namespaces_version);
  renew(workloads_version_, journal.workloads_version);
  renew(budgets_version_, journal.budgets_version);
  journal_ = journal.outer;
}

/// The last first: where pods are, and a change log by which engines catch up with what is no longer so.
void Cluster::undo_changes(const Journal& journal) {
  for (const Change& change : journal.changes | std::views::reverse) {
    Change::Kind kind = change.kind;
    if (kind == Change::Kind::kPodAdded) {
      BERTH_CHECK(pods_.erase(change.pod->key), "pod {} was added in an attempt, and is not there when that is taken back",
                  change.pod->key);
      kind = Change::Kind::kPodRemoved;
    } else if (kind == Change::Kind::kPodRemoved) {
      BERTH_CHECK(!pods_.contains(change.pod->key), "pod {} went in an attempt, and is there when that is taken back", change.pod->key);
      pods_[change.pod->key] = PodSlot{change.pod.get(), change.node};
      kind = Change::Kind::kPodAdded;
    }
    record(kind, change.node, change.pod);
  }
}

}  // namespace berth::placement
