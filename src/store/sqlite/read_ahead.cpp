#include "store/sqlite/read_ahead.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/owned_fd.h"

namespace berth::store::sqlite {
namespace {

constexpr Revision kBlock = 20'000;      // Some 50 MB of pods; of what was compacted mostly gaps.
constexpr Revision kAhead = 4 * kBlock;  // So far before the reader.

constexpr int kSamples = 64;
constexpr std::size_t kSampleBytes = 4096;

}  // namespace

bool is_in_memory(const std::string& path) {
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return false;
  char sample[kSampleBytes];
  iovec room{sample, sizeof(sample)};
  int there = 0;
  for (int i = 0; i < kSamples; ++i)
    there += ::preadv2(file.get(), &room, 1, info.st_size / kSamples * i, RWF_NOWAIT) == static_cast<ssize_t>(sizeof(sample)) ? 1 : 0;
  return there > kSamples * 15 / 16;
}

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
  // A value that goes on in other pages is left to the reader.
  auto touch = prepare(db.get(), path, "SELECT count(*) FROM log WHERE revision > ? AND revision <= ?");
  if (!touch) return;
  for (Revision upper = last; upper > 0 && await_turn(upper); upper -= kBlock) {
    sqlite3_bind_int64(touch->get(), 1, upper - kBlock);
    sqlite3_bind_int64(touch->get(), 2, upper);
    if (sqlite3_step(touch->get()) != SQLITE_ROW) return;
    sqlite3_reset(touch->get());
  }
}

}  // namespace berth::store::sqlite
