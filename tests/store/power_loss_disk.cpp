#include "tests/store/power_loss_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>

namespace berth::store {

/// SQLite's file object: this, and the real one behind it.
struct PowerLossDisk::Handle {
  sqlite3_file base;
  PowerLossDisk* disk;  ///< Null: a file of no interest.
  std::string* path;
  [[nodiscard]] sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

/// The methods of open files: most are the real file's.
struct HandleMethods {
  using Handle = PowerLossDisk::Handle;
  static Handle* of(sqlite3_file* file) { return reinterpret_cast<Handle*>(file); }
  static sqlite3_file* real(sqlite3_file* file) { return of(file)->real(); }

  static int close(sqlite3_file* file) {
    auto* handle = of(file);
    const int code = handle->real()->pMethods->xClose(handle->real());
    delete std::exchange(handle->path, nullptr);
    return code;
  }
  static bool fails(sqlite3_file* file, const char* what) {
    const auto* handle = of(file);
    return handle->disk != nullptr && handle->disk->fails_now(*handle->path, what);
  }
  static int read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
    if (fails(file, "read")) return SQLITE_IOERR_READ;
    return real(file)->pMethods->xRead(real(file), to, size, at);
  }
  static int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
    auto* handle = of(file);
    if (fails(file, "write")) return SQLITE_IOERR_WRITE;
    if (handle->disk != nullptr) {
      handle->disk->announce(*handle->path, false);
      if (handle->disk->failing_writes.load() > 0) {
        --handle->disk->failing_writes;
        return SQLITE_FULL;
      }
      handle->disk->write(*handle->path, {false, at, std::string(static_cast<const char*>(data), static_cast<std::size_t>(size))});
    }
    return handle->real()->pMethods->xWrite(handle->real(), data, size, at);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    auto* handle = of(file);
    if (fails(file, "truncate")) return SQLITE_IOERR_TRUNCATE;
    if (handle->disk != nullptr) {
      handle->disk->announce(*handle->path, false);
      handle->disk->write(*handle->path, {true, size, {}});
    }
    return handle->real()->pMethods->xTruncate(handle->real(), size);
  }
  static int sync(sqlite3_file* file, int flags) {
    auto* handle = of(file);
    if (handle->disk == nullptr) return handle->real()->pMethods->xSync(handle->real(), flags);
    if (fails(file, "sync")) return SQLITE_IOERR_FSYNC;
    handle->disk->announce(*handle->path, true);
    if (handle->disk->failing_syncs.load() > 0) {
      --handle->disk->failing_syncs;
      return SQLITE_IOERR_FSYNC;
    }
    handle->disk->sync(*handle->path);
    return SQLITE_OK;
  }
  static int file_size(sqlite3_file* file, sqlite3_int64* size) {
    return fails(file, "size") ? SQLITE_IOERR_FSTAT : real(file)->pMethods->xFileSize(real(file), size);
  }
  static int lock(sqlite3_file* file, int level) {
    return fails(file, "lock") ? SQLITE_IOERR_LOCK : real(file)->pMethods->xLock(real(file), level);
  }
  static int unlock(sqlite3_file* file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
  static int check_reserved_lock(sqlite3_file* file, int* out) { return real(file)->pMethods->xCheckReservedLock(real(file), out); }
  static int control(sqlite3_file* file, int what, void* argument) {
    return real(file)->pMethods->xFileControl(real(file), what, argument);
  }
  static int sector_size(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
  static int characteristics(sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }
  static int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
    return fails(file, "map") ? SQLITE_IOERR_SHMMAP : real(file)->pMethods->xShmMap(real(file), page, size, extend, out);
  }
  static int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
  }
  static void shm_barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
  static int shm_unmap(sqlite3_file* file, int remove) { return real(file)->pMethods->xShmUnmap(real(file), remove); }

  // Version 2: no memory mapping, whose writes nobody sees.
  static constexpr sqlite3_io_methods kMethods{
      2,           close,           read,    write,    truncate,    sync,      file_size, lock,   unlock, check_reserved_lock, control,
      sector_size, characteristics, shm_map, shm_lock, shm_barrier, shm_unmap, nullptr,   nullptr};

  static PowerLossDisk* disk_of(sqlite3_vfs* vfs) { return static_cast<PowerLossDisk*>(vfs->pAppData); }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    auto* disk = disk_of(vfs);
    auto* handle = new (file) Handle{};
    const bool is_watched = name != nullptr && std::string_view(name).starts_with(disk->prefix_);
    if (is_watched && disk->fails_now(name, "open")) return SQLITE_CANTOPEN;
    const bool is_new = is_watched && !std::filesystem::exists(name);
    const int code = disk->real_->xOpen(disk->real_, name, handle->real(), flags, out_flags);
    if (code != SQLITE_OK) return code;
    handle->base.pMethods = &kMethods;
    if (is_watched) {
      handle->disk = disk;
      handle->path = new std::string(name);
      disk->open(name, is_new);
    }
    return SQLITE_OK;
  }
  static int erase(sqlite3_vfs* vfs, const char* name, int sync_directory) {
    auto* disk = disk_of(vfs);
    if (std::string_view(name).starts_with(disk->prefix_)) {
      if (disk->fails_now(name, "delete")) return SQLITE_IOERR_DELETE;
      disk->announce(name, false);
      disk->erase(name, sync_directory != 0);
    }
    return disk->real_->xDelete(disk->real_, name, 0);
  }
};

PowerLossDisk::PowerLossDisk(std::string prefix) : prefix_(std::move(prefix)) {
  real_ = sqlite3_vfs_find(nullptr);
  vfs_ = *real_;
  vfs_.zName = "power-loss";
  vfs_.szOsFile = static_cast<int>(sizeof(Handle)) + real_->szOsFile;
  vfs_.pAppData = this;
  vfs_.pNext = nullptr;
  vfs_.xOpen = HandleMethods::open;
  vfs_.xDelete = HandleMethods::erase;
  sqlite3_vfs_register(&vfs_, 1);
}

PowerLossDisk::~PowerLossDisk() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(real_, 1);
}

void PowerLossDisk::apply(std::string& content, const Change& change) {
  if (change.is_truncation) {
    content.resize(static_cast<std::size_t>(change.at));
    return;
  }
  const auto at = static_cast<std::size_t>(change.at);
  if (content.size() < at + change.data.size()) content.resize(at + change.data.size());
  content.replace(at, change.data.size(), change.data);
}

void PowerLossDisk::open(const std::string& path, bool is_new) {
  std::lock_guard lock(mutex_);
  if (const auto known = files_.find(path); known != files_.end() && !known->second.is_deleted) return;
  File file;
  file.has_durable_entry = !is_new;
  if (!is_new) {
    std::ifstream in(path, std::ios::binary);
    file.durable.resize(static_cast<std::size_t>(std::filesystem::file_size(path)));
    in.read(file.durable.data(), static_cast<std::streamsize>(file.durable.size()));
  }
  files_[path] = std::move(file);
}

void PowerLossDisk::erase(const std::string& path, bool is_durable) {
  std::lock_guard lock(mutex_);
  if (is_durable) {
    files_.erase(path);
  } else if (const auto file = files_.find(path); file != files_.end()) {
    file->second.is_deleted = true;
  }
}

void PowerLossDisk::write(const std::string& path, Change change) {
  std::lock_guard lock(mutex_);
  files_[path].pending.push_back(std::move(change));
}

void PowerLossDisk::sync(const std::string& path) {
  std::lock_guard lock(mutex_);
  auto& file = files_[path];
  for (const auto& change : file.pending) apply(file.durable, change);
  file.pending.clear();
  if (file.has_durable_entry) return;
  // With a new file's first sync SQLite's own VFS syncs the directory, and so everything that was made or deleted in it.
  std::erase_if(files_, [](const auto& one) { return one.second.is_deleted; });
  for (auto& [other, entry] : files_) entry.has_durable_entry = true;
}

void PowerLossDisk::announce(const std::string& path, bool is_sync) {
  if (before) before(std::filesystem::path(path).filename().string(), is_sync);
}

bool PowerLossDisk::fails_now(const std::string& path, const char* what) {
  if (failing_at.load() == 0 || --failing_at != 0) return false;
  const std::lock_guard lock(mutex_);
  failed = std::string(what) + " " + std::filesystem::path(path).filename().string();
  return true;
}

PowerLossDisk::Image PowerLossDisk::after_power_loss(Unsynced unsynced, std::mt19937& random) {
  std::lock_guard lock(mutex_);
  const auto keep = [&](unsigned one_in) { return random() % one_in == 0; };
  Image image;
  for (const auto& [path, file] : files_) {
    const bool may_be_gone = !file.has_durable_entry || file.is_deleted;
    if (may_be_gone && (unsynced == Unsynced::kLost ? !file.has_durable_entry : unsynced != Unsynced::kKept && keep(2))) continue;
    if (file.is_deleted && unsynced == Unsynced::kKept) continue;
    std::string content = file.durable;
    const std::size_t cut = file.pending.empty() ? 0 : random() % (file.pending.size() + 1);
    for (std::size_t i = 0; i < file.pending.size(); ++i) {
      const auto& change = file.pending[i];
      if (unsynced == Unsynced::kLost || (unsynced == Unsynced::kCutOff && i >= cut)) break;
      if (unsynced != Unsynced::kScattered || change.is_truncation) {
        if (unsynced != Unsynced::kScattered || keep(2)) apply(content, change);
        continue;
      }
      for (std::size_t at = 0; at < change.data.size();) {
        const std::size_t offset = static_cast<std::size_t>(change.at) + at;
        const std::size_t size = std::min<std::size_t>(512 - offset % 512, change.data.size() - at);
        if (!keep(4)) apply(content, {false, static_cast<std::int64_t>(offset), change.data.substr(at, size)});
        at += size;
      }
    }
    image[std::filesystem::path(path).filename().string()] = std::move(content);
  }
  return image;
}

}  // namespace berth::store
