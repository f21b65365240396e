#include "apiserver/upkeep/text_packing.h"

#include "base/mutex.h"

namespace berth::apiserver {
namespace {

constexpr Duration kBetweenSteps = std::chrono::milliseconds(5), kBetweenRounds = std::chrono::seconds(10);

}  // namespace

Revision AgedRevisions::look(TimePoint now, Revision last) {
  if (marks_.empty() || marks_.back().last != last) marks_.push_back({now, last});
  for (; !marks_.empty() && now - marks_.front().when >= age_; marks_.pop_front()) aged_ = marks_.front().last;
  aged_ = std::max(aged_, last - kMostYoung);
  return aged_;
}

struct TextPacking::State : std::enable_shared_from_this<State> {
  State(Ground& of, Duration age)
      : ground(of),
        aged(age),
        texts(of.registry->counter("berth_apiserver_packed_texts_total", "Texts of objects that were packed since nobody changed them.")),
        bytes(of.registry->counter("berth_apiserver_packed_texts_saved_bytes_total",
                                   "Bytes that packed texts took before, less those after.")) {}

  Ground& ground;
  AgedRevisions aged;
  metrics::Counter &texts, &bytes;
  Mutex mutex;
  bool is_stopped BERTH_GUARDED_BY(mutex) = false;
  TimerId timer BERTH_GUARDED_BY(mutex) = TimerId::kNone;
  Revision before = 0;  ///< What is packed in this round.

  void schedule(Duration pause) BERTH_REQUIRES(mutex) {
    timer = ground.loop.schedule_after(pause, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      const MutexLock lock(self->mutex);
      if (self->is_stopped) return;
      self->ground.defer([weak] {
        if (const auto still = weak.lock()) still->step();
      });
    });
  }

  /// One at a time: each has the next one scheduled.
  void step() {
    const ObjectCache::Packing done = ground.cache->pack_texts(before);
    texts.add(done.texts);
    bytes.add(done.bytes);
    const MutexLock lock(mutex);
    if (is_stopped) return;
    if (done.is_round) before = aged.look(ground.loop.now(), ground.cache->revision());
    schedule(done.is_round ? kBetweenRounds : kBetweenSteps);
  }
};

TextPacking::TextPacking(Ground& ground, Duration age) : state_(std::make_shared<State>(ground, age)) {
  const MutexLock lock(state_->mutex);
  state_->schedule(kBetweenRounds);
}

TextPacking::~TextPacking() {
  const MutexLock lock(state_->mutex);
  state_->is_stopped = true;
  state_->ground.loop.cancel(state_->timer);
}

}  // namespace berth::apiserver
