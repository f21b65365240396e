#include "apiserver/etcd/transfer.h"

#include <deque>
#include <filesystem>
#include <future>

#include "apiserver/cache/index.h"
#include "apiserver/encryption/store.h"

namespace berth::apiserver::etcd {
namespace {

constexpr std::size_t kTransactionsUnderWay = 4;
constexpr std::size_t kCommit = 1000;
constexpr std::string_view kRestoring = "/berth.dev/restoring", kMoved = "/berth.dev/moved";

/// "/pods/" of "/pods/default/web", "/example.com/widgets/" where the first part is a group.
std::string directory_of(std::string_view key) {
  auto end = key.find('/', 1);
  if (end != std::string_view::npos && key.substr(0, end).find('.') != std::string_view::npos) end = key.find('/', end + 1);
  return std::string(key.substr(0, end == std::string_view::npos ? key.size() : end + 1));
}

/// Allocations and what Kubernetes derives from its objects: a store of one's own finds them in the Services.
bool is_derived(std::string_view key) {
  return key.starts_with("/ranges/") || key.starts_with("/ipaddresses/") || key.starts_with("/servicecidrs/") || !key.starts_with('/');
}

std::pair<std::string_view, std::string_view> resource_of(std::string_view cache_key) {
  const auto resource = resource_prefix(cache_key);
  const auto slash = resource.find('/', 1);
  if (slash == std::string_view::npos) return {};
  return {resource.substr(1, slash - 1), resource.substr(slash + 1, resource.size() - slash - 2)};
}

/// Puts keys into an etcd, as many in a transaction as it takes, some transactions at a time.
class Filler {
 public:
  Filler(std::shared_ptr<store::SharedStore> store, store::SharedRecord marker) : store_(std::move(store)), marker_(std::move(marker)) {}
  Result<void> put(store::SharedWrite write) {
    const std::size_t bytes = write.key.size() + write.value->size();
    if (!batch_.empty() && (batch_.size() == store::SharedStore::kFillKeys || bytes_ + bytes > store::SharedStore::kFillBytes))
      if (auto sent = send(); !sent) return sent;
    bytes_ += bytes;
    batch_.push_back(std::move(write));
    return {};
  }
  Result<void> finish() {
    auto last = batch_.empty() ? Result<void>() : send();
    while (!under_way_.empty())
      if (auto done = take_first(); !done) last = done;
    return last;
  }

 private:
  Result<void> take_first() {
    auto done = under_way_.front().get();
    under_way_.pop_front();
    return done;
  }
  Result<void> send() {
    bytes_ = 0;
    under_way_.push_back(
        std::async(std::launch::async, [this, batch = std::exchange(batch_, {})] { return store_->fill(batch, marker_); }));
    return under_way_.size() < kTransactionsUnderWay ? Result<void>() : take_first();
  }

  const std::shared_ptr<store::SharedStore> store_;
  const store::SharedRecord marker_;
  std::vector<store::SharedWrite> batch_;
  std::size_t bytes_ = 0;
  std::deque<std::future<Result<void>>> under_way_;
};

Result<void> expect_nothing_below(store::SharedStore& store, const std::string& prefix) {
  auto marked = expect_no_mark(store, prefix);
  if (!marked) return marked;
  std::string first;
  const auto read = store.read([&](store::SharedRecord record) -> Result<void> {
    if (belongs_to_servers(std::string_view(record.key).substr(prefix.size()))) return {};
    first = record.key;
    return fail(ErrorCode::kConflict, "");
  });
  if (!first.empty())
    return fail(ErrorCode::kConflict,
                fmt::format("this etcd holds a cluster below {} already ({} for one): choose another --etcd-prefix, or "
                            "remove it (etcdctl del --prefix {}/). Nothing was written",
                            prefix, first, prefix));
  if (!read) return std::unexpected(read.error());
  return {};
}

store::SharedWrite plain_write(std::string key, Bytes value, std::optional<store::Revision> expected) {
  store::SharedWrite write;
  write.key = std::move(key);
  write.value = std::move(value);
  write.expected = expected;
  return write;
}

/// What a record of either form is in etcd; nullopt: it could not be (`left` says so).
Result<std::optional<store::SharedWrite>> to_shared(const store::Record& record, const store::SnapshotInfo& info, const StoredForm& form,
                                                    const Clock& clock, Duration event_ttl, Transferred& out) {
  store::SharedWrite write;
  const std::string& prefix = form.options().prefix;
  if (info.form == store::SnapshotForm::kShared) {
    write.key = prefix + record.key;
    write.value = record.value;
    if (prefix != info.prefix && record.value->starts_with(encryption::kPrefix))
      return invalid(fmt::format("{}{} is encrypted for its place below {}: restore with --etcd-prefix {}", info.prefix, record.key,
                                 info.prefix, info.prefix));
    if (record.key.starts_with("/events/")) write.ttl = event_ttl;
    return write;
  }
  const auto [group, plural] = resource_of(record.key);
  auto plain = encryption::open_value(form.options().encryption, group, plural, *record.value, record.key);
  if (!plain)
    return fail(ErrorCode::kCorrupt, fmt::format("{} cannot be read: {}. {}", record.key, plain.error().message,
                                                 encryption::opening_advice(form.options().encryption)));
  const auto document = json::parse(plain->value);
  if (!document || !document->is_object()) return fail(ErrorCode::kCorrupt, fmt::format("{} is no JSON object", record.key));
  write.key = form.stored_key(record.key);
  if (form.cache_key(write.key) != record.key) {
    ++out.left[std::string(resource_prefix(record.key))];
    return std::nullopt;
  }
  auto stored = form.to_stored(record.key, write.key, encode_object(*document));
  if (!stored) return std::unexpected(stored.error());
  write.value = std::move(*stored);
  if (const auto expires = extract_meta(record.key, plain->value, event_ttl).expires_at; expires != TimePoint{})
    write.ttl = std::max<Duration>(expires - clock.now(), std::chrono::minutes(1));
  return write;
}

/// Writes records into a new store, in steps, from revision 1 on.
class Loader {
 public:
  explicit Loader(store::Store& store) : store_(store) {}
  [[nodiscard]] store::Revision next() const { return last_ + 1; }
  Result<void> add(std::string key, std::string value) {
    ++last_;
    records_.push_back({last_, last_, 0, std::move(key), make_bytes(std::move(value))});
    return records_.size() < kCommit ? Result<void>() : commit(false);
  }
  Result<void> commit(bool sync) {
    auto done = store_.commit(records_, sync);
    records_.clear();
    return done;
  }

 private:
  store::Store& store_;
  store::Revision last_ = 0;
  std::vector<store::Record> records_;
};

Result<Transferred> load_sqlite(const std::string& snapshot, const std::string& store_path, const StoredForm& form, bool leaves_unknown) {
  auto made = store::open_sqlite_store({store_path, true});
  if (!made) return std::unexpected(made.error());
  const auto store = encryption::encrypt_store(std::move(*made), form.options().encryption, std::make_shared<encryption::StaleKeys>());
  Transferred out;
  Loader loader(*store);
  const std::string& prefix = form.options().prefix;
  auto info = store::read_snapshot(
      snapshot,
      [&](store::Record record) -> Result<void> {
        // Under the prefix that it is encrypted for.
        const auto key = form.cache_key(prefix + record.key);
        auto text = key ? form.to_text(*key, prefix + record.key, *record.value) : fail(ErrorCode::kNotFound, "");
        if (!text && text.error().code == ErrorCode::kNotFound) {
          if (!is_derived(record.key)) ++out.left[directory_of(record.key)];
          return {};
        }
        if (!text) return std::unexpected(text.error());
        ++out.objects;
        return loader.add(*key, with_revision(std::move(text->value), text->revision_offset, loader.next()));
      },
      [](const store::SnapshotFile&) -> Result<void> { return {}; });
  if (!info) return std::unexpected(info.error());
  if (auto done = loader.commit(true); !done) return std::unexpected(done.error());
  if (!out.left.empty() && !leaves_unknown) {
    std::string which;
    for (const auto& [directory, count] : out.left) which += fmt::format("{}{} {}", which.empty() ? "" : ", ", count, directory);
    return invalid(fmt::format("objects of kinds that berth does not know would be lost: {}. Remove them, or add --leave-unknown", which));
  }
  out.info = std::move(*info);
  return out;
}

}  // namespace

bool belongs_to_servers(std::string_view key) {
  return key.starts_with("/berth.dev/") || key.starts_with("/masterleases/") || key.starts_with("/peerserverleases/");
}

Result<Transferred> fill_etcd(const std::string& snapshot, const std::shared_ptr<store::SharedStore>& store, const StoredForm& form,
                              const Clock& clock, const TransferOptions& options) {
  // Damage is found before anything is written.
  const auto verified = store::verify_snapshot(snapshot);
  if (!verified) return std::unexpected(verified.error());
  const std::string& prefix = form.options().prefix;
  if (auto empty = expect_nothing_below(*store, prefix); !empty) return std::unexpected(empty.error());
  store::SharedRecord marker;
  marker.key = prefix + std::string(kRestoring);
  const auto note = json::serialize(json::Object{{"snapshot", snapshot}, {"began", format_rfc3339(clock.now())}});
  const auto marked = store->write_and_wait(plain_write(marker.key, make_bytes(std::string(note)), 0));
  if (marked.verdict != store::WriteVerdict::kDone)
    return fail(ErrorCode::kConflict, marked.message.empty() ? "somebody else restores into this prefix just now" : marked.message);
  marker.revision = marked.revision;
  Transferred out;
  Filler filler(store, marker);
  auto info = store::read_snapshot(
      snapshot,
      [&](store::Record record) -> Result<void> {
        auto write = to_shared(record, *verified, form, clock, options.event_ttl, out);
        if (!write) return std::unexpected(write.error());
        if (!*write) return {};
        ++out.objects;
        return filler.put(std::move(**write));
      },
      [](const store::SnapshotFile&) -> Result<void> { return {}; });
  auto filled = filler.finish();
  if (!info) return std::unexpected(info.error());
  if (!filled) return std::unexpected(filled.error());
  const auto done = store->write_and_wait(plain_write(marker.key, nullptr, marker.revision));
  if (done.verdict != store::WriteVerdict::kDone)
    return fail(ErrorCode::kUnavailable, fmt::format("{} could not be removed: {}", marker.key, done.message));
  out.info = std::move(*info);
  return out;
}

Result<Transferred> fill_sqlite(const std::string& snapshot, const std::string& store_path, const StoredForm& form, store::Revision bump,
                                const TransferOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(store_path, error)) return fail(ErrorCode::kConflict, fmt::format("{}: there is a store already", store_path));
  auto out = load_sqlite(snapshot, store_path, form, options.leaves_unknown);
  if (out) {
    out->info.revision = std::max<store::Revision>(out->info.revision, out->objects) + bump;
    if (auto begun = store::begin_sqlite_history_at(store_path, out->info.revision); !begun) out = std::unexpected(begun.error());
  }
  if (!out)
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) fs::remove(store_path + suffix, error);
  return out;
}

Result<void> expect_no_mark(store::SharedStore& store, const std::string& prefix) {
  const auto restoring = store.find(prefix + std::string(kRestoring), false);
  if (!restoring) return std::unexpected(restoring.error());
  if (!restoring->empty())
    return fail(
        ErrorCode::kConflict,
        fmt::format("what is below {} in this etcd is half a cluster: a restore or a move ({}) is under way, or broke off. When nobody "
                    "is at it any more: etcdctl del --prefix {}/, then restore or move again. Nothing was written",
                    prefix, *restoring->front().value, prefix));
  const auto moved = store.find(prefix + std::string(kMoved), false);
  if (!moved) return std::unexpected(moved.error());
  if (!moved->empty())
    return fail(ErrorCode::kConflict,
                fmt::format("the cluster below {} in this etcd was moved away ({}). To have it here again all the same: "
                            "etcdctl del {}{}. Nothing was written",
                            prefix, *moved->front().value, prefix, kMoved));
  return {};
}

Result<void> mark_as_moved(store::SharedStore& store, const std::string& prefix, const std::string& where) {
  auto note = json::serialize(json::Object{{"to", where}});
  const auto answer = store.write_and_wait(plain_write(prefix + std::string(kMoved), make_bytes(std::move(note)), std::nullopt));
  if (answer.verdict == store::WriteVerdict::kDone) return {};
  return fail(ErrorCode::kUnavailable, answer.message);
}

Result<std::vector<std::string>> living_servers(store::SharedStore& store, const std::string& prefix) {
  const auto found = store.find(prefix + "/masterleases/", true);
  if (!found) return std::unexpected(found.error());
  std::vector<std::string> out;
  for (const auto& record : *found) out.push_back(record.key.substr(record.key.rfind('/') + 1));
  return out;
}

}  // namespace berth::apiserver::etcd
