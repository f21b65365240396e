// Every store behind one face: what the object cache needs of it, whoever gives the revisions.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>

#include "store/shared.h"
#include "tests/store/store_fixture.h"
#include "tests/support/etcd_process.h"

namespace berth::store {

struct SeenChange {
  std::string key;
  std::optional<std::string> value;  ///< Nothing: deleted.
  Revision revision = 0;
  friend bool operator==(const SeenChange&, const SeenChange&) = default;
};

class AnyStore {
 public:
  virtual ~AnyStore() = default;
  /// The write's revision; nothing when the expectation did not hold.
  virtual std::optional<Revision> put(const std::string& key, const std::string& value, std::optional<Revision> expected) = 0;
  virtual std::optional<Revision> remove(const std::string& key, std::optional<Revision> expected) = 0;
  virtual std::map<std::string, std::pair<std::string, Revision>> live() = 0;
  /// The next `count` changes after a revision, in order.
  virtual std::vector<SeenChange> changes(Revision after, std::size_t count) = 0;
  virtual void compact(Revision revision) = 0;
  virtual void reopen() = 0;
};

/// Over a log: expectations are the writer's to check, as ObjectCacheImpl does.
class LogStore final : public AnyStore {
 public:
  explicit LogStore(bool is_file) : is_file_(is_file), store_(open()) {}
  std::optional<Revision> put(const std::string& key, const std::string& value, std::optional<Revision> expected) override {
    return write(key, make_bytes(value), expected);
  }
  std::optional<Revision> remove(const std::string& key, std::optional<Revision> expected) override {
    return last_.contains(key) ? write(key, nullptr, expected) : std::nullopt;
  }
  std::map<std::string, std::pair<std::string, Revision>> live() override {
    std::map<std::string, std::pair<std::string, Revision>> out;
    EXPECT_TRUE(store_->read(0, [&](Record record) -> Result<void> {
      if (record.value == nullptr)
        out.erase(record.key);
      else
        out[record.key] = {*record.value, record.revision};
      return {};
    }));
    return out;
  }
  std::vector<SeenChange> changes(Revision after, std::size_t count) override {
    std::vector<SeenChange> out;
    EXPECT_TRUE(store_->read(after, [&](Record record) -> Result<void> {
      if (out.size() < count)
        out.push_back({record.key, record.value == nullptr ? std::nullopt : std::optional(*record.value), record.revision});
      return {};
    }));
    return out;
  }
  void compact(Revision revision) override { EXPECT_TRUE(store_->compact(revision)); }
  void reopen() override {
    store_.reset();
    store_ = open();
  }

 private:
  std::unique_ptr<Store> open() { return is_file_ ? open_or_fail(directory_.file("store.db")) : make_memory_store(); }
  std::optional<Revision> write(const std::string& key, Bytes value, std::optional<Revision> expected) {
    const auto found = last_.find(key);
    if (expected && *expected != (found == last_.end() ? 0 : found->second.first)) return std::nullopt;
    const Revision revision = store_->state().last_revision + 1;
    const Revision created = found == last_.end() ? revision : found->second.second;
    const Record record{revision, created, found == last_.end() ? 0 : found->second.first, key, value};
    EXPECT_TRUE(store_->commit(std::span(&record, 1), true));
    if (value == nullptr)
      last_.erase(key);
    else
      last_[key] = {revision, created};
    return revision;
  }

  TemporaryDirectory directory_;
  bool is_file_;
  std::unique_ptr<Store> store_;
  std::map<std::string, std::pair<Revision, Revision>> last_;
};

/// Hears until it has what it waits for.
class Hearer final : public Follower {
 public:
  void changed(std::vector<SharedRecord> records, Revision reached) override {
    const std::lock_guard lock(mutex_);
    for (const SharedRecord& record : records)
      if (!record.key.starts_with("/registry/berth.dev/"))  // The store's own: its fence, its marks.
        seen_.push_back({record.key, record.value == nullptr ? std::nullopt : std::optional(*record.value), record.revision});
    reached_ = reached;
    wake_.notify_all();
  }
  void lost() override {
    const std::lock_guard lock(mutex_);
    is_lost_ = true;
    wake_.notify_all();
  }
  bool wait(const std::function<bool(const Hearer&)>& enough) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, std::chrono::seconds(20), [&] { return enough(*this); });
  }
  std::vector<SeenChange> seen_;
  Revision reached_ = 0;
  bool is_lost_ = false;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
};

class EtcdAny final : public AnyStore {
 public:
  explicit EtcdAny(std::vector<std::string> flags = {}) : etcd_(std::move(flags)) { reopen(); }
  std::optional<Revision> put(const std::string& key, const std::string& value, std::optional<Revision> expected) override {
    return write({key, make_bytes(value), expected, {}});
  }
  std::optional<Revision> remove(const std::string& key, std::optional<Revision> expected) override {
    return write({key, nullptr, expected, {}});
  }
  std::map<std::string, std::pair<std::string, Revision>> live() override {
    std::map<std::string, std::pair<std::string, Revision>> out;
    EXPECT_TRUE(store_->read([&](SharedRecord record) -> Result<void> {
      out[record.key] = {*record.value, record.revision};
      return {};
    }));
    return out;
  }
  std::vector<SeenChange> changes(Revision after, std::size_t count) override {
    Hearer hearer;
    store_->follow(after, hearer);
    EXPECT_TRUE(hearer.wait([&](const Hearer& h) { return h.seen_.size() >= count; }));
    store_->stop();
    hearer.seen_.resize(std::min(count, hearer.seen_.size()));
    return hearer.seen_;
  }
  void compact(Revision revision) override { EXPECT_TRUE(store_->compact(revision)); }
  void reopen() override {
    store_.reset();
    EtcdOptions options;
    options.servers = {etcd_.url()};
    auto opened = open_etcd_store(options);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    store_ = std::move(*opened);
  }
  SharedStore& store() { return *store_; }
  testing_support::EtcdProcess& process() { return etcd_; }

 private:
  std::optional<Revision> write(SharedWrite write) {
    const auto answer = store_->write_and_wait(std::move(write));
    EXPECT_NE(answer.verdict, WriteVerdict::kRejected) << answer.message;
    EXPECT_NE(answer.verdict, WriteVerdict::kUnknown) << answer.message;
    return answer.verdict == WriteVerdict::kDone ? std::optional(answer.revision) : std::nullopt;
  }
  testing_support::EtcdProcess etcd_;
  std::unique_ptr<SharedStore> store_;
};

}  // namespace berth::store
