#include "apiserver/flow/fair_queue.h"

namespace berth::apiserver::flow {

FairQueue::FairQueue(int queues, int hand_size, int length_limit)
    : queues_(static_cast<std::size_t>(queues)),
      hand_size_(static_cast<std::size_t>(std::min(hand_size, queues))),
      length_limit_(static_cast<std::size_t>(length_limit)) {}

std::vector<std::size_t> FairQueue::hand_of(std::uint64_t flow) const {
  std::vector<std::size_t> hand;
  for (std::size_t i = 0; i < hand_size_; ++i) {
    const auto left = queues_.size() - i;
    auto card = static_cast<std::size_t>(flow % left);
    flow /= left;
    // The card-th of those that are not dealt yet.
    std::vector<std::size_t> dealt = hand;
    std::sort(dealt.begin(), dealt.end());
    for (const auto taken : dealt)
      if (taken <= card) ++card;
    hand.push_back(card);
  }
  return hand;
}

bool FairQueue::push(std::uint64_t flow, Waiting waiting, bool past_limit) {
  if (queues_.empty()) return false;
  Queue* least = nullptr;
  for (const auto i : hand_of(flow))
    if (least == nullptr || queues_[i].work < least->work) least = &queues_[i];
  if (!past_limit && least->entries.size() >= length_limit_) return false;
  // Who was away has saved nothing: its time begins now.
  const double start = std::max(virtual_time_, least->finish);
  least->finish = start + waiting.work;
  least->work += waiting.work;
  least->entries.push_back({start, std::move(waiting)});
  ++size_;
  return true;
}

std::optional<Waiting> FairQueue::pop() {
  Queue* first = nullptr;
  for (auto& queue : queues_)
    if (!queue.entries.empty() && (first == nullptr || queue.entries.front().start < first->entries.front().start)) first = &queue;
  if (first == nullptr) return std::nullopt;
  auto entry = std::move(first->entries.front());
  first->entries.pop_front();
  virtual_time_ = entry.start;
  first->work -= entry.waiting.work;
  --size_;
  return std::move(entry.waiting);
}

std::uint64_t flow_hash(std::string_view schema, std::string_view flow) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto text : {schema, std::string_view("\0", 1), flow})
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  // FNV's high bits know little of short texts.
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccd;
  return hash ^ hash >> 33;
}

}  // namespace berth::apiserver::flow
