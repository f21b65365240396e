// Texts of objects that nobody changed for a while are packed (base/kept_text.h), for all in the process who hold them.
#pragma once
#include <deque>
#include <memory>

#include "apiserver/ground/ground.h"

namespace berth::apiserver {

/// Which revisions are old, told by who looks at the clock now and then: those of an age ago and, where so much is written that the young
/// would fill the memory, all but the latest.
class AgedRevisions {
 public:
  /// Half a minute of the heartbeats of 100,000 nodes; 1.6 GB where they are pods.
  static constexpr Revision kMostYoung = 300'000;
  explicit AgedRevisions(Duration age) : age_(age) {}
  /// `last`: the highest there is at `now`. The highest that is old, as far as looks tell; 0: none.
  Revision look(TimePoint now, Revision last);

 private:
  struct Mark {
    TimePoint when;
    Revision last;
  };
  Duration age_;
  std::deque<Mark> marks_;
  Revision aged_ = 0;
};

/// Packs on worker threads, a few milliseconds at a time, with pauses: a third of a core where much has aged at once. Starts with its
/// construction; ends with its destruction but for the step under way. A server without threads of its own has none.
class TextPacking {
 public:
  TextPacking(Ground& ground, Duration age);
  ~TextPacking();
  TextPacking(const TextPacking&) = delete;
  TextPacking& operator=(const TextPacking&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::apiserver
