#include "apiserver/flow/fair_queue.h"

#include <algorithm>

namespace berth::apiserver::flow {

void FairQueue::configure(int queues, int hand_size, int length_limit) {
  queue_count_ = static_cast<std::size_t>(std::max(queues, 0));
  hand_size_ = static_cast<std::size_t>(std::min(hand_size, queues));
  length_limit_ = static_cast<std::size_t>(length_limit);
}

std::vector<std::size_t> FairQueue::hand_of(std::uint64_t flow) const {
  std::vector<std::size_t> hand;
  for (std::size_t i = 0; i < hand_size_; ++i) {
    const auto left = queue_count_ - i;
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
  if (queue_count_ == 0) return false;
  std::size_t least = 0, length = 0;
  double least_work = -1;
  for (const auto i : hand_of(flow)) {
    const auto found = queues_.find(i);
    const double work = found == queues_.end() ? 0 : found->second.work;
    if (least_work >= 0 && work >= least_work) continue;
    least = i;
    least_work = work;
    length = found == queues_.end() ? 0 : found->second.entries.size();
  }
  if (!past_limit && length >= length_limit_) return false;
  // Who was away has saved nothing: its time begins now.
  const auto finished = finish_.find(least);
  const double start = std::max(virtual_time_, finished == finish_.end() ? 0 : finished->second);
  finish_[least] = start + waiting.work;
  auto& queue = queues_[least];
  if (queue.entries.empty()) fronts_.emplace(start, least);
  queue.work += waiting.work;
  queue.seats += waiting.seats;
  seats_ += waiting.seats;
  queue.earliest = std::min(queue.earliest, waiting.deadline);
  queue.entries.push_back({start, std::move(waiting)});
  ++size_;
  return true;
}

void FairQueue::let_go(Queue& queue, const Waiting& waiting) {
  queue.work -= waiting.work;
  queue.seats -= waiting.seats;
  seats_ -= waiting.seats;
  --size_;
}

Waiting FairQueue::take_front(std::map<std::size_t, Queue>::iterator at) {
  auto& [number, queue] = *at;
  fronts_.erase({queue.entries.front().start, number});
  Waiting out = std::move(queue.entries.front().waiting);
  queue.entries.pop_front();
  let_go(queue, out);
  if (queue.entries.empty())
    queues_.erase(at);
  else
    fronts_.emplace(queue.entries.front().start, number);
  return out;
}

FairQueue::Fronts::const_iterator FairQueue::next(const std::function<bool(const Waiting&)>& may) const {
  return std::ranges::find_if(fronts_, [&](const auto& front) { return may(queues_.at(front.second).entries.front().waiting); });
}

std::optional<Waiting> FairQueue::pop(const std::function<bool(const Waiting&)>& may) {
  const auto found = next(may);
  if (found == fronts_.end()) return std::nullopt;
  virtual_time_ = std::max(virtual_time_, found->first);
  auto out = take_front(queues_.find(found->second));
  // What lies behind the present is forgotten once there is much of it.
  if (finish_.size() > 2 * queues_.size() + 256) std::erase_if(finish_, [&](const auto& one) { return one.second <= virtual_time_; });
  return out;
}

std::vector<Waiting> FairQueue::take_expired(std::chrono::steady_clock::time_point now) {
  std::vector<Waiting> out;
  for (auto at = queues_.begin(); at != queues_.end();) {
    const auto one = at++;
    auto& [number, queue] = *one;
    if (queue.earliest > now) continue;
    fronts_.erase({queue.entries.front().start, number});
    take_expired(queue, now, out);
    if (queue.entries.empty())
      queues_.erase(one);
    else
      fronts_.emplace(queue.entries.front().start, number);
  }
  return out;
}

void FairQueue::take_expired(Queue& queue, std::chrono::steady_clock::time_point now, std::vector<Waiting>& out) {
  const auto late = std::ranges::stable_partition(queue.entries, [&](const Entry& entry) { return entry.waiting.deadline > now; }).begin();
  for (auto at = late; at != queue.entries.end(); ++at) {
    let_go(queue, at->waiting);
    out.push_back(std::move(at->waiting));
  }
  queue.entries.erase(late, queue.entries.end());
  queue.earliest = std::chrono::steady_clock::time_point::max();
  for (const Entry& entry : queue.entries) queue.earliest = std::min(queue.earliest, entry.waiting.deadline);
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
