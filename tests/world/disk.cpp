#include "tests/world/disk.h"

#include <fstream>
#include <set>
#include <thread>

#include "tests/world/builds.h"

namespace berth::world {
namespace {

using store::Record;
using store::Revision;
using store::SharedRecord;

constexpr const char* kFile = "store.db";
constexpr const char* kNote = "store.db.lock";
constexpr std::string_view kBoot = "boot ";
constexpr Revision kGap = 1 << 20;  ///< SqliteStore's, after the machine was started anew.
constexpr int kNoRoom = 1 << 30;

SharedRecord shared(const Record& record) {
  return {all_forms().stored_key(record.key), record.value, record.revision, record.value == nullptr ? 0 : record.create_revision};
}

/// What a power failure may take although it was acknowledged: nodes' heartbeats, and news. Other Leases are locks.
bool may_be_lost(std::string_view key) {
  return key.starts_with("/registry/leases/kube-node-lease/") || key.starts_with("/registry/events/");
}

}  // namespace

/// Sees what passes. Once the power is off nothing does.
class Disk::Tap final : public store::Store {
 public:
  using Sees = std::function<void(const Record&)>;
  Tap(std::unique_ptr<Store> inner, const Disk& disk, Sees on_commit, Sees on_read)
      : inner_(std::move(inner)), disk_(disk), on_commit_(std::move(on_commit)), on_read_(std::move(on_read)) {}

  [[nodiscard]] store::StoreState state() const override { return inner_->state(); }
  Result<void> commit(std::span<const Record> records, bool sync) override {
    if (auto on = powered(); !on) return on;
    auto done = inner_->commit(records, sync);
    if (auto on = powered(); !on) return on;
    if (done)
      for (const Record& record : records) on_commit_(record);
    return done;
  }
  Result<void> read(Revision after, const std::function<Result<void>(Record)>& each) override {
    return inner_->read(after, [&](Record record) {
      on_read_(record);
      return each(std::move(record));
    });
  }
  Result<void> read_back(const std::function<bool(const store::RecordHead&)>& wants,
                         const std::function<Result<void>(Record)>& each) override {
    return inner_->read_back(wants, each);
  }
  Result<void> compact(Revision revision) override {
    if (auto on = powered(); !on) return on;
    return inner_->compact(revision);
  }
  Result<void> probe() override {
    if (auto on = powered(); !on) return on;
    return inner_->probe();
  }

 private:
  [[nodiscard]] Result<void> powered() const {
    if (disk_.image_) return fail(ErrorCode::kInternal, "the power is off");
    return {};
  }
  const std::unique_ptr<Store> inner_;
  const Disk& disk_;
  const Sees on_commit_, on_read_;
};

Disk::Disk(std::uint64_t seed) : Held(0), random_(static_cast<unsigned>(seed)) { restore(); }

void Disk::restore() {
  disk_.reset();
  if (image_) {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(directory_.file(std::string(kFile) + end));
    for (const auto& [name, content] : *image_) std::ofstream(directory_.file(name), std::ios::binary) << content;
  }
  image_.reset();
  operations_ = 0;
  off_ = nullptr;
  disk_ = std::make_unique<store::PowerLossDisk>(directory_.file(""));
  if (is_full_) disk_->failing_writes = kNoRoom;
  disk_->before = [this, home = std::this_thread::get_id()](const std::string&, bool) {
    // Checkpoints are on a thread of their own: the moment is one of the writer's.
    if (std::this_thread::get_id() != home || operations_ == 0 || --operations_ > 0) return;
    lose_power();
  };
}

void Disk::photograph(store::Unsynced unsynced) {
  if (image_) return;
  image_ = disk_->after_power_loss(unsynced, random_);
  // It stands beside SQLite's files: what this process notes from now on it never noted.
  std::ifstream note(directory_.file(kNote), std::ios::binary);
  (*image_)[kNote] = {std::istreambuf_iterator<char>(note), {}};
}

void Disk::lose_power_after(int operations, std::function<void()> off) {
  operations_ = operations;
  off_ = std::move(off);
}

void Disk::lose_power() {
  if (image_) return;
  ++failures;
  photograph(static_cast<store::Unsynced>(random_() % 4));
  // The machine starts anew; a process that is killed starts anew on the same one.
  std::string& note = (*image_)[kNote];
  if (const auto boot = note.find(kBoot); boot != std::string::npos) note.replace(boot, std::string::npos, "boot before\n");
  if (const auto off = std::exchange(off_, nullptr)) off();
}

void Disk::set_full(bool is_full) {
  is_full_ = is_full;
  disk_->failing_writes = is_full ? kNoRoom : 0;
}

Result<std::unique_ptr<store::Store>> Disk::open(std::size_t build, std::shared_ptr<apiserver::encryption::StaleKeys> stale) {
  restore();
  auto sqlite = store::open_sqlite_store({.path = directory_.file(kFile)});
  if (!sqlite) return std::unexpected(sqlite.error());
  const auto note = [this](const Record& record) {
    if (record.key.starts_with("//secrets/")) secrets_[record.key] = record.value;
  };
  auto stored = std::make_unique<Tap>(std::move(*sqlite), *this, note, note);
  auto sealed = apiserver::encryption::encrypt_store(std::move(stored), form_of(build).encryption, std::move(stale));
  if (auto same = compare(*sealed); !same) return std::unexpected(same.error());
  return std::make_unique<Tap>(
      std::move(sealed), *this,
      [this](const Record& record) {
        revision_ = record.revision;
        put_down(shared(record));
      },
      [](const Record&) {});
}

Result<void> Disk::compare(store::Store& store) {
  const Revision now_last = store.state().last_revision;
  const Revision last = now_last > revision() + kGap / 2 ? now_last - kGap : now_last;
  for (const SharedRecord& record : forget_after(std::min(revision(), last))) {
    ++lost;
    if (!may_be_lost(record.key))
      wrongs.push_back(fmt::format("{} at {} was acknowledged, and is lost with the power", record.key, record.revision));
  }
  const Revision known = revision();
  std::set<std::string> there;
  auto read = store.read(0, [&](const Record& record) -> Result<void> {
    const SharedRecord now = shared(record);
    record.value == nullptr ? (void)there.erase(now.key) : (void)there.insert(now.key);
    if (record.revision > known) {
      // It was on its way, and nobody was told.
      revision_ = record.revision;
      put_down(now);
      return {};
    }
    const auto was = std::ranges::lower_bound(whole_history(), record.revision, {}, &SharedRecord::revision);
    const bool is_same = was != whole_history().end() && was->revision == record.revision && was->key == now.key &&
                         (was->value == nullptr) == (now.value == nullptr) && (now.value == nullptr || *now.value == *was->value);
    if (!is_same) wrongs.push_back(fmt::format("{} at {} is not what was acknowledged", now.key, record.revision));
    return {};
  });
  // A deletion that was on its way is compacted by now, too.
  std::vector<std::string> gone;
  for (const auto& [key, item] : items())
    if (!there.contains(key)) gone.push_back(key);
  for (const std::string& key : gone) {
    if (last <= known) wrongs.push_back(fmt::format("{} was acknowledged, and is gone", key));
    put_down({key, nullptr, last, 0});
  }
  revision_ = now_last;
  return read;
}

}  // namespace berth::world
