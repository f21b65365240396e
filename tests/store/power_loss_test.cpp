// Power failures below SQLite (SPEC A5): whatever the disk had not synced is lost, kept, cut off or scattered by sectors; every write that
// was acknowledged as durable is there, and what is there is whole.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/store/power_loss_disk.h"
#include "tests/store/store_fixture.h"

namespace berth::store {
namespace {

/// A life of the store: keys come, change and go; the value follows from the revision.
class Script {
 public:
  explicit Script(unsigned seed) : random_(seed) {}

  std::vector<Record> next_batch() {
    std::vector<Record> batch;
    const int size = random_() % 8 == 0 ? 40 : 1 + static_cast<int>(random_() % 4);
    for (int i = 0; i < size; ++i) batch.push_back(next());
    return batch;
  }
  /// The batch was refused: as if it had never been asked for.
  void forget(Revision last) {
    history_.resize(static_cast<std::size_t>(last));
    live_.clear();
    for (const auto& record : history_) settle(record);
  }
  [[nodiscard]] const std::vector<Record>& history() const { return history_; }
  /// Of every key that is live at `revision`: its last record's revision.
  [[nodiscard]] std::map<std::string, Revision> live_at(Revision revision) const {
    std::map<std::string, Revision> live;
    for (Revision r = 1; r <= revision; ++r) {
      const auto& record = history_[static_cast<std::size_t>(r - 1)];
      if (record.value == nullptr) {
        live.erase(record.key);
      } else {
        live[record.key] = r;
      }
    }
    return live;
  }

 private:
  Record next() {
    Record record;
    record.revision = static_cast<Revision>(history_.size()) + 1;
    record.key = fmt::format("//pods/a/p{}", random_() % 400);
    const auto old = live_.find(record.key);
    record.previous_revision = old == live_.end() ? 0 : old->second.first;
    record.create_revision = old == live_.end() ? record.revision : old->second.second;
    const bool goes = old != live_.end() && random_() % 5 == 0;
    const std::size_t size = random_() % 50 == 0 ? 60'000 : 200 + random_() % 3000;
    if (!goes) record.value = make_bytes(std::string(size, static_cast<char>('a' + record.revision % 26)));
    history_.push_back(record);
    settle(record);
    return record;
  }
  void settle(const Record& record) {
    if (record.value == nullptr) {
      live_.erase(record.key);
    } else {
      live_[record.key] = {record.revision, record.create_revision};
    }
  }

  std::mt19937 random_;
  std::vector<Record> history_;
  std::map<std::string, std::pair<Revision, Revision>> live_;
};

struct Photograph {
  PowerLossDisk::Image image;
  Revision acknowledged = 0;
  std::string moment;
};

/// Opens what the disk has left and compares it with the script.
void verify(const Photograph& photograph, const Script& script) {
  SCOPED_TRACE(photograph.moment);
  TemporaryDirectory directory;
  for (const auto& [name, content] : photograph.image) std::ofstream(directory.file(name), std::ios::binary) << content;
  auto store = open_sqlite_store({.path = directory.file("s.db")});
  ASSERT_TRUE(store) << store.error().message;
  const auto state = (*store)->state();
  EXPECT_GE(state.last_revision, photograph.acknowledged);
  ASSERT_LE(state.last_revision, static_cast<Revision>(script.history().size()));
  std::set<Revision> seen;
  auto read = (*store)->read(0, [&](const Record& record) -> Result<void> {
    const auto& expected = script.history()[static_cast<std::size_t>(record.revision - 1)];
    EXPECT_EQ(record.key, expected.key) << record.revision;
    EXPECT_EQ(record.value == nullptr, expected.value == nullptr) << record.revision;
    EXPECT_TRUE(!record.value || !expected.value || *record.value == *expected.value) << record.revision;
    seen.insert(record.revision);
    return {};
  });
  ASSERT_TRUE(read) << read.error().message;
  for (Revision r = state.compacted_revision + 1; r <= state.last_revision; ++r) EXPECT_TRUE(seen.contains(r)) << r << " is missing";
  for (const auto& [key, revision] : script.live_at(state.last_revision)) EXPECT_TRUE(seen.contains(revision)) << key << " is missing";
  const Revision next = state.last_revision + 1;
  const Record further{.revision = next, .create_revision = next, .key = "//pods/a/new", .value = make_bytes(std::string("x"))};
  EXPECT_TRUE((*store)->commit(std::vector{further}, true)) << "the store cannot go on";
}

/// Photographs the disk at random moments of the script, most of them where the log is being copied back, and looks at each.
class PowerLoss : public ::testing::Test {
 protected:
  void live(unsigned seed, int photographs, std::size_t commits) {
    TemporaryDirectory directory;
    PowerLossDisk disk(directory.file(""));
    Script script(seed);
    std::mt19937 random(seed);
    std::mutex mutex;
    std::vector<Photograph> taken;
    std::atomic<Revision> acknowledged{0};
    std::atomic<int> left{photographs};
    const unsigned rarity = static_cast<unsigned>(commits * 3) / static_cast<unsigned>(photographs);
    disk.before = [&](const std::string& file, bool is_sync) {
      std::lock_guard lock(mutex);
      const bool is_copied_back = file == "s.db";
      if (left.load() <= 0 || random() % (is_copied_back ? std::max(1U, rarity / 8) : rarity) != 0) return;
      --left;
      const auto unsynced = static_cast<Unsynced>(random() % 4);
      // Read before the picture is taken: what is acknowledged by now must be on it.
      const Revision promised = acknowledged.load();
      taken.push_back({disk.after_power_loss(unsynced, random), promised,
                       fmt::format("seed {}, before a {} of {}, revision {}, unsynced writes: {}", seed, is_sync ? "sync" : "write", file,
                                   promised, static_cast<int>(unsynced))});
    };
    auto store = open_or_fail(directory.file("s.db"));
    for (std::size_t i = 0; i < commits && !HasFatalFailure(); ++i) {
      const bool sync = random_sync(script.history().size());
      const auto batch = script.next_batch();
      ASSERT_TRUE(store->commit(batch, sync));
      if (sync) acknowledged = batch.back().revision;
      if (i % 700 == 699) {
        ASSERT_TRUE(store->compact(batch.back().revision - 200));
      }
      if (i % 1500 == 1499) {
        store.reset();
        store = open_or_fail(directory.file("s.db"));
      }
      std::vector<Photograph> due;
      {
        std::lock_guard lock(mutex);
        due.swap(taken);
      }
      for (const auto& photograph : due) verify(photograph, script);
      looked_at_ += due.size();
    }
  }
  static bool random_sync(std::size_t at) { return at % 7 != 3; }
  std::size_t looked_at_ = 0;
};

/// BERTH_KILL_ROUNDS sets the number of failures (`make kill-test`: 200).
TEST_F(PowerLoss, LosesNothingAcknowledged) {
  const char* rounds_text = std::getenv("BERTH_KILL_ROUNDS");
  const int rounds = rounds_text != nullptr ? std::atoi(rounds_text) : 24;
  // Five thousand commits fill the log more than once, so that it is copied back and begun anew.
  const int lives = std::max(1, rounds / 50);
  for (int i = 0; i < lives; ++i) live(static_cast<unsigned>(i) + 1, rounds / lives, 5000);
  EXPECT_GE(looked_at_, static_cast<std::size_t>(rounds) / 2);
}

TEST_F(PowerLoss, AStoreInTheMakingIsNewOrWhole) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    TemporaryDirectory directory;
    std::mt19937 random(seed);
    std::optional<Photograph> taken;
    Script script(seed);
    {
      PowerLossDisk disk(directory.file(""));
      unsigned at = 0;
      disk.before = [&](const std::string&, bool) {
        if (at++ == seed / 4)
          taken = {disk.after_power_loss(static_cast<Unsynced>(seed % 4), random), 0, fmt::format("operation {}", seed / 4)};
      };
      auto store = open_or_fail(directory.file("s.db"));
      ASSERT_TRUE(store->commit(script.next_batch(), true));
    }
    if (!taken) break;
    verify(*taken, script);
    if (HasFailure()) return;
  }
}

TEST_F(PowerLoss, ADiskThatCannotSyncIsNotTrustedAgain) {
  TemporaryDirectory directory;
  PowerLossDisk disk(directory.file(""));
  Script script(3);
  auto store = open_or_fail(directory.file("s.db"));
  ASSERT_TRUE(store->commit(script.next_batch(), true));
  const Revision acknowledged = store->state().last_revision;
  disk.failing_syncs = 1;
  const auto refused = store->commit(script.next_batch(), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInternal) << refused.error().message;
  std::mt19937 random(1);
  for (const auto unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kCutOff, Unsynced::kScattered})
    verify({disk.after_power_loss(unsynced, random), acknowledged, "after a failed sync"}, script);
}

TEST_F(PowerLoss, ADiskWithoutRoomRefusesAndGoesOnWhenThereIsRoom) {
  TemporaryDirectory directory;
  PowerLossDisk disk(directory.file(""));
  Script script(4);
  auto store = open_or_fail(directory.file("s.db"));
  Revision acknowledged = 0;
  for (int round = 0; round < 50; ++round) {
    const auto batch = script.next_batch();
    disk.failing_writes = round % 3;
    const auto done = store->commit(batch, true);
    disk.failing_writes = 0;
    if (done) {
      acknowledged = batch.back().revision;
      continue;
    }
    EXPECT_EQ(done.error().code, ErrorCode::kUnavailable) << done.error().message;
    script.forget(acknowledged);
    EXPECT_EQ(store->state().last_revision, acknowledged);
  }
  EXPECT_GT(acknowledged, 20);
  disk.failing_writes = 1;
  const auto probed = store->probe();
  ASSERT_FALSE(probed) << "whoever asks is told";
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  disk.failing_writes = 0;
  EXPECT_TRUE(store->probe());
  EXPECT_EQ(store->state().last_revision, acknowledged);
  std::mt19937 random(1);
  verify({disk.after_power_loss(Unsynced::kLost, random), acknowledged, "after full disks"}, script);
}

}  // namespace
}  // namespace berth::store
