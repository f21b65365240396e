#include "cli/keep/snapshot_etcd.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "base/config_reader.h"
#include "base/version.h"
#include "cli/command/data_dir.h"
#include "cli/command/parse.h"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;
namespace shared = apiserver::etcd;

constexpr const char* kMovedFile = "moved-to-etcd";

int fail_move(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return 1;
}

std::string told(const std::map<std::string, std::int64_t>& left) {
  std::string out;
  for (const auto& [directory, count] : left) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, directory);
  return out;
}

constexpr std::string_view kBetween = "store.db.moving-";

/// Removes what moves that were killed have left in the directory: as much as the store itself.
void remove_left_between(const fs::path& data_dir) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_dir, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBetween)) continue;
    const auto process = static_cast<pid_t>(std::strtol(name.c_str() + kBetween.size(), nullptr, 10));
    if (process > 0 && (::kill(process, 0) == 0 || errno != ESRCH)) continue;
    fs::remove(entry.path(), ignored);
  }
}

/// A snapshot that is there only between the two halves of a move; removed with this.
struct Between {
  explicit Between(const fs::path& data_dir) : path(data_dir / fmt::format("{}{}", kBetween, ::getpid())) { remove_left_between(data_dir); }
  ~Between() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  Between(const Between&) = delete;
  fs::path path;
};

struct Move {
  std::string data_dir = default_data_dir();
  bool leaves_unknown = false;
  store::Revision bump = 1'000'000;
  EtcdAccess access;
};

Result<std::string> to_etcd(const Move& move, const EtcdAccess::Plan& plan) {
  const fs::path store = fs::path(move.data_dir) / "store.db";
  std::error_code error;
  if (!fs::exists(store, error))
    return fail(ErrorCode::kNotFound,
                fmt::format("{}: there is no store here; --data-dir names a server's data directory", store.string()));
  // Held to the end: nobody writes to what is being moved.
  auto held = store::open_sqlite_store({store, true});
  if (!held) return fail(held.error().code, fmt::format("{}; stop the server first", held.error().message));
  auto etcd = store::open_etcd_store(plan.etcd.options);
  if (!etcd) return std::unexpected(etcd.error());
  const Between between(move.data_dir);
  const store::SnapshotTaken taken{format_rfc3339(SystemClock().now()), std::string(kBerthVersion), {}};
  if (auto saved = store::save_sqlite_snapshot(store, between.path, taken); !saved) return std::unexpected(saved.error());
  const auto done = shared::fill_etcd(between.path, std::move(*etcd), plan.form(plan.etcd.options.prefix), SystemClock(), {});
  if (!done) return std::unexpected(done.error());
  held->reset();
  const std::string urls = fmt::format("{}", fmt::join(plan.etcd.options.servers, ","));
  std::ofstream(fs::path(move.data_dir) / kMovedFile) << urls << "\n";
  for (const char* suffix : {"", "-wal", "-shm", ".lock"})
    if (fs::exists(store.string() + suffix, error)) fs::rename(store.string() + suffix, store.string() + ".moved" + suffix, error);
  std::string out = fmt::format(
      "moved {} objects from {} to {} below {}; the old store is {}.moved\nstart it with: berth server --data-dir {} --etcd-servers {}",
      done->objects, store.string(), urls, plan.etcd.options.prefix, store.string(), move.data_dir, urls);
  if (!done->left.empty()) out += fmt::format("\nnot taken along, of kinds that have no place in etcd: {}", told(done->left));
  return out;
}

Result<std::string> to_sqlite(const Move& move, const EtcdAccess::Plan& plan) {
  const fs::path store = fs::path(move.data_dir) / "store.db";
  std::error_code error;
  if (fs::exists(store, error)) return fail(ErrorCode::kConflict, fmt::format("{}: there is a store already", store.string()));
  if (!fs::exists(fs::path(move.data_dir) / "pki" / "ca.key", error))
    return fail(ErrorCode::kNotFound,
                fmt::format("{}: the cluster's authority and keys (pki/) must be here: --data-dir names the data directory "
                            "of one of its servers",
                            move.data_dir));
  auto opened = store::open_etcd_store(plan.etcd.options);
  if (!opened) return std::unexpected(opened.error());
  const std::shared_ptr<store::SharedStore> etcd = std::move(*opened);
  const std::string& prefix = plan.etcd.options.prefix;
  if (auto usable = shared::expect_no_mark(*etcd, prefix); !usable) return std::unexpected(usable.error());
  const auto living = shared::living_servers(*etcd, prefix);
  if (!living) return std::unexpected(living.error());
  if (!living->empty())
    return fail(ErrorCode::kConflict,
                fmt::format("API servers live on this etcd ({}): stop all of them first; one that was killed is forgotten "
                            "after 15 seconds",
                            fmt::join(*living, ", ")));
  const Between between(move.data_dir);
  const store::SnapshotTaken taken{format_rfc3339(SystemClock().now()), std::string(kBerthVersion), {}};
  const auto saved = store::save_shared_snapshot(*etcd, prefix, between.path, taken, shared::belongs_to_servers);
  if (!saved) return std::unexpected(saved.error());
  const auto done = shared::fill_sqlite(between.path, store, plan.form(prefix), move.bump, {.leaves_unknown = move.leaves_unknown});
  if (!done) return std::unexpected(done.error());
  if (auto marked = shared::mark_as_moved(*etcd, prefix, fs::absolute(store).string()); !marked) return std::unexpected(marked.error());
  fs::remove(fs::path(move.data_dir) / kMovedFile, error);
  std::string out =
      fmt::format("moved {} objects below {} to {}; what is in etcd stays, marked as moved\nstart it with: berth server --data-dir {}",
                  done->objects, prefix, store.string(), move.data_dir);
  if (!done->left.empty()) out += fmt::format("\nleft behind, of kinds that berth does not know: {}", told(done->left));
  return out;
}

}  // namespace

void EtcdAccess::add_to(CLI::App& app) {
  flags.add_to(app);
  app.add_option("--encryption-provider-config", encryption_config, "The server's, where objects are encrypted in its store");
}

Result<EtcdAccess::Plan> EtcdAccess::plan() const {
  Plan out;
  Findings findings;
  out.etcd = flags.plan(findings);
  while (out.etcd.options.prefix.ends_with('/')) out.etcd.options.prefix.pop_back();
  if (!encryption_config.empty())
    if (const auto text = findings.take(config::read_whole_file(encryption_config)))
      if (auto parsed = findings.take(apiserver::encryption::parse_configuration(*text, encryption_config)))
        out.encryption = std::move(*parsed);
  if (!findings.ok()) return invalid(findings.all_errors());
  if (auto started = out.encryption.start_key_services(); !started) return std::unexpected(started.error());
  return out;
}

shared::StoredForm EtcdAccess::Plan::form(const std::string& prefix) const {
  return shared::StoredForm({prefix, etcd.writes_protobuf, encryption, nullptr});
}

Result<void> expect_not_moved(const std::string& data_dir) {
  std::error_code error;
  if (!fs::exists(fs::path(data_dir) / kMovedFile, error) || fs::exists(fs::path(data_dir) / "store.db", error)) return {};
  std::string urls;
  std::getline(std::ifstream(fs::path(data_dir) / kMovedFile) >> std::ws, urls);
  return fail(ErrorCode::kConflict,
              fmt::format("{}: this cluster was moved to etcd: start with --etcd-servers {} (back here: berth snapshot move "
                          "to-sqlite; a new cluster: another --data-dir)",
                          data_dir, urls));
}

int run_snapshot_move(const std::vector<std::string>& args) {
  Move move;
  std::string where;
  CLI::App app(
      "Moves a whole cluster from a data directory's SQLite store to an etcd, or back. Its servers must be stopped; what was there before "
      "stays, marked as moved, so that no server starts on it by mistake",
      "berth snapshot move");
  app.add_option("WHERE", where, "to-etcd or to-sqlite")->required()->check(CLI::IsMember({"to-etcd", "to-sqlite"}));
  app.add_option("--data-dir", move.data_dir,
                 "The server's data directory: its store goes, or is made there; its certificates and keys stay")
      ->capture_default_str();
  move.access.add_to(app);
  app.add_flag("--leave-unknown", move.leaves_unknown, "to-sqlite: leave objects of kinds that berth does not know behind in etcd");
  app.add_option("--bump-revision", move.bump, "to-sqlite: how far the new store's revisions are ahead of etcd's")
      ->capture_default_str()
      ->check(CLI::Range(store::Revision{0}, store::Revision{1'000'000'000'000}));
  if (const auto code = parse_args(app, args)) return *code;
  if (!move.access.is_wanted()) return fail_move({ErrorCode::kInvalid, "--etcd-servers is missing: which etcd?"});
  const auto plan = move.access.plan();
  if (!plan) return fail_move(plan.error());
  const auto done = where == "to-etcd" ? to_etcd(move, *plan) : to_sqlite(move, *plan);
  if (!done) return fail_move(done.error());
  fmt::print("{}\n", *done);
  return 0;
}

}  // namespace berth::cli
