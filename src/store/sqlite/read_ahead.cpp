#include "store/sqlite/read_ahead.h"

namespace berth::store::sqlite {
namespace {

constexpr Revision kBlock = 20'000;      // Some 50 MB of pods; of what was compacted mostly gaps.
constexpr Revision kAhead = 4 * kBlock;  // So far before the reader.

}  // namespace

ReadAhead::ReadAhead(Database db, std::string path, Revision last) : reached_(last), told_(last) {
  thread_ = std::thread([this, db = std::move(db), path = std::move(path), last]() mutable { run(std::move(db), path, last); });
}

ReadAhead::~ReadAhead() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  moved_.notify_one();
  thread_.join();
}

void ReadAhead::reached(Revision revision) {
  if (told_ - revision < kBlock) return;
  told_ = revision;
  {
    const MutexLock lock(mutex_);
    reached_ = revision;
  }
  moved_.notify_one();
}

bool ReadAhead::await_turn(Revision upper) {
  const MutexLock lock(mutex_);
  moved_.wait(mutex_, [&]() BERTH_REQUIRES(mutex_) { return stopping_ || reached_ - upper < kAhead; });
  return !stopping_;
}

void ReadAhead::run(Database db, const std::string& path, Revision last) {
  // Its bytes are asked for so that all of a value is read.
  auto touch = prepare(db.get(), path, "SELECT count(*) FROM log WHERE revision > ? AND revision <= ? AND CAST(value AS BLOB) = x''");
  if (!touch) return;
  for (Revision upper = last; upper > 0 && await_turn(upper); upper -= kBlock) {
    sqlite3_bind_int64(touch->get(), 1, upper - kBlock);
    sqlite3_bind_int64(touch->get(), 2, upper);
    if (sqlite3_step(touch->get()) != SQLITE_ROW) return;
    sqlite3_reset(touch->get());
  }
}

}  // namespace berth::store::sqlite
