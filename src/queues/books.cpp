#include "queues/books.h"

namespace berth::queues {

void Books::rebuild(QuotaTree tree) {
  tree_ = std::move(tree);
  for (const auto& [key, reservation] : reservations_) put_back(reservation);
}

void Books::put(Reservation reservation) {
  erase(reservation.key);
  const WorkloadKey key = reservation.key;
  const Reservation& kept = reservations_.emplace(key, std::move(reservation)).first->second;
  by_queue_[kept.queue][key] = &kept;
  put_back(kept);
}

void Books::erase(const WorkloadKey& key) {
  const auto found = reservations_.find(key);
  if (found == reservations_.end()) return;
  take_out(found->second);
  by_queue_[found->second.queue].erase(key);
  reservations_.erase(found);
}

const Reservation* Books::find(const WorkloadKey& key) const {
  const auto found = reservations_.find(key);
  return found == reservations_.end() ? nullptr : &found->second;
}

const std::map<WorkloadKey, const Reservation*>& Books::of_queue(const std::string& queue) const {
  static const std::map<WorkloadKey, const Reservation*> kNobody;
  const auto found = by_queue_.find(queue);
  return found == by_queue_.end() ? kNobody : found->second;
}

void Books::take_out(const Reservation& reservation) {
  if (const QuotaNode node = tree_.queue(reservation.queue); node != QuotaNode::kNone) tree_.remove(node, reservation.usage);
}

void Books::put_back(const Reservation& reservation) {
  if (const QuotaNode node = tree_.queue(reservation.queue); node != QuotaNode::kNone) tree_.add(node, reservation.usage);
}

}  // namespace berth::queues
