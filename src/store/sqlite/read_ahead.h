// A log that is read from its end: files are read ahead by the system in the other direction alone.
#pragma once
#include <thread>

#include "base/mutex.h"
#include "store/sqlite/database.h"
#include "store/store.h"

namespace berth::store::sqlite {

/// Whether nearly all of a file is in the system's cache, by samples: after a crash of this process alone it is. False where the system
/// cannot tell.
bool is_in_memory(const std::string& path);

/// Reads the log block by block before whoever reads it backwards, each block forwards, on a thread and a connection of its own: four times
/// as fast on a disk. What it reads it forgets; it is in the system's cache then. Errors are left to the reader, who meets them too.
class ReadAhead {
 public:
  /// From `last` down.
  ReadAhead(Database db, std::string path, Revision last);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The reader has come so far.
  void reached(Revision revision);

 private:
  void run(Database db, const std::string& path, Revision last);
  /// Whether the block that begins at `upper` is near enough; waits for that. False: it is over.
  bool await_turn(Revision upper);

  Mutex mutex_;
  CondVar moved_;
  Revision reached_ BERTH_GUARDED_BY(mutex_);
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  Revision told_;  ///< The reader's own: when it last said where it is.
  std::thread thread_;
};

}  // namespace berth::store::sqlite
