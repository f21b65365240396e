// berth snapshot: a cluster's data in one file.
#include "store/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/config_reader.h"
#include "base/version.h"
#include "cli/command/data_dir.h"
#include "cli/command/parse.h"
#include "cli/keep/keep.h"
#include "cli/keep/snapshot_etcd.h"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

/// What a data directory holds beside the store: certificates, keys, kubeconfigs, what `up` remembers. Not what belongs to a running
/// process, and not what other programs keep there.
Result<std::vector<store::SnapshotFile>> files_of(const fs::path& directory) {
  constexpr std::uintmax_t kMost = 1 << 20;
  std::vector<store::SnapshotFile> out;
  const auto take = [&](const fs::path& folder) -> Result<void> {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      if (!entry.is_regular_file(error) || entry.is_symlink(error) || name.starts_with("store.db") || name.ends_with(".lock")) continue;
      if (entry.file_size(error) > kMost) continue;
      auto content = config::read_whole_file(entry.path());
      if (!content) return std::unexpected(content.error());
      struct stat info {};
      if (::stat(entry.path().c_str(), &info) != 0) continue;
      out.push_back({fs::relative(entry.path(), directory, error), info.st_mode & 0777U, std::move(*content)});
    }
    if (error) return invalid(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
    return {};
  };
  if (auto ok = take(directory); !ok) return std::unexpected(ok.error());
  if (fs::is_directory(directory / "pki"))
    if (auto ok = take(directory / "pki"); !ok) return std::unexpected(ok.error());
  return out;
}

Result<void> write_new_file(const fs::path& path, const store::SnapshotFile& file) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return invalid(fmt::format("{}: cannot be made: {}", path.string(), std::strerror(errno)));
  const bool is_written = ::write(fd, file.content.data(), file.content.size()) == static_cast<ssize_t>(file.content.size()) &&
                          ::fchmod(fd, file.mode) == 0 && ::fsync(fd) == 0;
  ::close(fd);
  if (is_written) return {};
  return fail(ErrorCode::kUnavailable, fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

void sync_directory(const fs::path& directory) {
  if (const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    ::fsync(fd);
    ::close(fd);
  }
}

int fail_with(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return 1;
}

void print_info(std::string_view verb, const std::string& file, const store::SnapshotInfo& info) {
  fmt::print("{} {}: {} objects at revision {}, {} files (certificates, keys, kubeconfigs); taken {} by berth {}\n", verb, file,
             info.objects, info.revision, info.files.size(), info.taken_at, info.version);
}

Result<store::SnapshotInfo> save_from(const std::string& data_dir, const EtcdAccess& access, const std::string& file) {
  store::SnapshotTaken taken{format_rfc3339(SystemClock().now()), std::string(kBerthVersion), {}};
  const fs::path store = fs::path(data_dir) / "store.db";
  std::error_code error;
  if (!access.is_wanted() && !fs::exists(store, error))
    return fail(
        ErrorCode::kNotFound,
        fmt::format("{}: there is no store here; --data-dir names a server's data directory, --etcd-servers its etcd", store.string()));
  if (!access.is_wanted() || fs::is_directory(data_dir, error)) {
    auto files = files_of(data_dir);
    if (!files) return std::unexpected(files.error());
    taken.files = std::move(*files);
  }
  if (!access.is_wanted()) return store::save_sqlite_snapshot(store, file, taken);
  const auto plan = access.plan();
  if (!plan) return std::unexpected(plan.error());
  auto etcd = store::open_etcd_store(plan->etcd.options);
  if (!etcd) return std::unexpected(etcd.error());
  const std::string& prefix = plan->etcd.options.prefix;
  if (auto whole = apiserver::etcd::expect_no_mark(**etcd, prefix); !whole) return std::unexpected(whole.error());
  auto info = store::save_shared_snapshot(**etcd, prefix, file, taken, apiserver::etcd::belongs_to_servers);
  if (info && info->objects == 0) {
    fs::remove(file, error);
    return fail(ErrorCode::kNotFound, fmt::format("there is nothing below {} in this etcd: is --etcd-prefix the servers'?", prefix));
  }
  return info;
}

int run_save(const std::vector<std::string>& args) {
  CLI::App app(
      "Saves a cluster's data into one new file: every object as of one moment, certificates, keys and kubeconfigs. The server may "
      "run and be written to meanwhile. Who has the file has the cluster's keys: it is readable by its owner alone",
      "berth snapshot save");
  std::string data_dir = default_data_dir(), file;
  EtcdAccess access;
  app.add_option("FILE", file, "The snapshot; must not exist")->required();
  app.add_option("--data-dir", data_dir, "The server's data directory")->capture_default_str();
  access.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  const auto info = save_from(data_dir, access, file);
  if (!info) return fail_with(info.error());
  print_info("saved", file, *info);
  return 0;
}

int run_verify(const std::vector<std::string>& args) {
  CLI::App app("Reads a snapshot from end to end: its structure, the checksum of every object and file, that nothing is missing",
               "berth snapshot verify");
  std::string file;
  app.add_option("FILE", file, "The snapshot")->required();
  if (const auto code = parse_args(app, args)) return *code;
  const auto info = store::verify_snapshot(file);
  if (!info) return fail_with(info.error());
  print_info("verified", file, *info);
  return 0;
}

struct Restore {
  std::string snapshot;
  fs::path target;
  store::Revision bump = 1'000'000;
  bool leaves_unknown = false;
  EtcdAccess access;
};

Result<void> write_below(const Restore& restore, const fs::path& work, const store::SnapshotFile& file) {
  const fs::path path = (work / file.path).lexically_normal();
  if (const auto inside = path.lexically_relative(work); inside.empty() || *inside.begin() == "..")
    return fail(ErrorCode::kCorrupt, fmt::format("{}: its file {} leads out of the data directory", restore.snapshot, file.path));
  if (!fs::exists(path.parent_path())) {
    fs::create_directories(path.parent_path());
    fs::permissions(path.parent_path(), fs::perms::owner_all);
  }
  return write_new_file(path, file);
}

/// The objects, into the etcd that is named or into a store in `work`; the files, into `work`.
Result<store::SnapshotInfo> restore_objects(const Restore& restore, const fs::path& work) {
  const auto info = store::verify_snapshot(restore.snapshot);
  if (!info) return info;
  const auto write = [&](const store::SnapshotFile& file) { return write_below(restore, work, file); };
  if (!restore.access.is_wanted() && info->form == store::SnapshotForm::kOwn)
    return store::restore_sqlite_snapshot(restore.snapshot, work / "store.db", restore.bump, write);
  const auto plan = restore.access.plan();
  if (!plan) return std::unexpected(plan.error());
  const auto files = store::read_snapshot(
      restore.snapshot, [](store::Record) -> Result<void> { return {}; }, write);
  if (!files) return files;
  auto moved = Result<apiserver::etcd::Transferred>();
  if (restore.access.is_wanted()) {
    auto etcd = store::open_etcd_store(plan->etcd.options);
    if (!etcd) return std::unexpected(etcd.error());
    moved = apiserver::etcd::fill_etcd(restore.snapshot, std::move(*etcd), plan->form(plan->etcd.options.prefix), SystemClock(), {});
  } else {
    moved = apiserver::etcd::fill_sqlite(restore.snapshot, work / "store.db", plan->form(info->prefix), restore.bump,
                                         {.leaves_unknown = restore.leaves_unknown});
  }
  if (!moved) return std::unexpected(moved.error());
  for (const auto& [directory, count] : moved->left) fmt::print(stderr, "not taken: {} of {}\n", count, directory);
  moved->info.objects = moved->objects;
  return moved->info;
}

/// Builds the directory beside its place and moves it there whole: what is half-restored is never taken for a cluster.
Result<store::SnapshotInfo> restore_into(const Restore& restore) {
  const fs::path& target = restore.target;
  std::error_code error;
  if (fs::exists(target, error) && (!fs::is_directory(target, error) || !fs::is_empty(target, error)))
    return fail(ErrorCode::kConflict,
                fmt::format("{}: is there already and not empty; move it away, or choose another --data-dir", target.string()));
  fs::create_directories(target.parent_path(), error);
  std::string pattern = target.string() + ".restoring-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return invalid(fmt::format("{}: cannot be made: {}", pattern, std::strerror(errno)));
  const fs::path work = pattern;
  auto info = restore_objects(restore, work);
  if (info) {
    fs::remove(work / "store.db.lock", error);
    sync_directory(work);
    if (::rename(work.c_str(), target.c_str()) != 0)
      info = invalid(fmt::format("{}: cannot be put into its place: {}", target.string(), std::strerror(errno)));
    sync_directory(target.parent_path());
  }
  if (!info) fs::remove_all(work, error);
  return info;
}

int run_restore(const std::vector<std::string>& args) {
  CLI::App app(
      "Makes a data directory of a snapshot: all of it or nothing. The server that ran on the old data must be stopped for good, or "
      "two clusters have the same keys",
      "berth snapshot restore");
  Restore restore;
  std::string data_dir;
  app.add_option("FILE", restore.snapshot, "The snapshot, of SQLite or of etcd")->required();
  app.add_option(
         "--data-dir", data_dir,
         "Where the data directory is made; must not exist, or be empty. Has to be said: nothing is put where a cluster may be running")
      ->required();
  app.add_option("--bump-revision", restore.bump,
                 "How far the new server's revisions are ahead of the snapshot's: more than were written since, so that clients that saw "
                 "those list anew (of a store of its own; etcd gives its own)")
      ->capture_default_str()
      ->check(CLI::Range(store::Revision{0}, store::Revision{1'000'000'000'000}));
  app.add_flag("--leave-unknown", restore.leaves_unknown,
               "Of an etcd's snapshot into a data directory: leave out objects of kinds that berth does not know");
  restore.access.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  restore.target = fs::absolute(data_dir).lexically_normal();
  const auto info = restore_into(restore);
  if (!info) return fail_with(info.error());
  print_info("restored", data_dir, *info);
  const std::string etcd =
      restore.access.is_wanted() ? fmt::format(" --etcd-servers {}", fmt::join(restore.access.flags.servers, ",")) : "";
  fmt::print("start it with: berth server --data-dir {}{}\n", data_dir, etcd);
  return 0;
}

}  // namespace

int run_snapshot(const std::vector<std::string>& args) {
  constexpr std::string_view kUsage =
      "Usage: berth snapshot save FILE | verify FILE | restore FILE | move to-etcd|to-sqlite [--data-dir DIR] [--etcd-servers URL,URL…]\n\n"
      "  save     a running or stopped server's data into one file\n"
      "  verify   whether such a file is whole\n"
      "  restore  a data directory from it, or an etcd's content\n"
      "  move     a stopped cluster from SQLite to etcd, or back\n";
  const std::string verb = args.empty() ? "" : args.front();
  const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (verb == "save") return run_save(rest);
  if (verb == "verify") return run_verify(rest);
  if (verb == "restore") return run_restore(rest);
  if (verb == "move") return run_snapshot_move(rest);
  const bool is_help = verb == "--help" || verb == "-h";
  if (!is_help && !verb.empty()) fmt::print(stderr, "error: snapshot: \"{}\" is not save, verify, restore or move\n", verb);
  fmt::print(is_help ? stdout : stderr, "{}", kUsage);
  return is_help ? 0 : 2;
}

}  // namespace berth::cli
