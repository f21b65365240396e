// Encryption at rest over restarts with one configuration after the other: which values are read, which are old, and which no longer can be
// read, against a plain list of who sealed what.
#include "apiserver/encryption/store.h"
#include "base/base64.h"
#include "tests/apiserver/disk.h"
#include "tests/support/life.h"

namespace berth::apiserver::encryption {
namespace {

constexpr const char* kPlain = "identity";

struct KeyList {
  std::string kind;  ///< aesgcm, secretbox, aescbc, or identity, which has no keys.
  std::vector<std::string> keys;
};
struct Rule {
  std::string plural;
  std::vector<KeyList> providers;
};
/// A write, and what it was sealed with.
struct Write {
  store::Record record;
  std::string kind, key;
};

std::string plural_of(const std::string& key) { return key.substr(2, key.find('/', 2) - 2); }

class EncryptionModel : public ::testing::Test {
 protected:
  void live(std::uint64_t seed) {
    dice_ = berth::testing::Dice(seed);
    disk_ = {};
    log_.clear();
    open();
    for (int i = 0; i < 200 && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      if (dice_.chance(25))
        open();
      else if (dice_.chance(20))
        compact();
      else
        write();
    }
  }

 private:
  /// Whoever cannot read all does not start, and tries another configuration.
  void open() {
    do {
      choose_rules();
      stale_ = std::make_shared<StaleKeys>();
      store_ = encrypt_store(std::make_unique<OnDisk>(disk_), configuration(), stale_);
      compare();
    } while (!all_is_readable() && !HasFailure());
  }
  void choose_rules() {
    rules_.clear();
    for (const char* plural : {"secrets", "configmaps"}) {
      if (dice_.chance(25)) continue;
      Rule rule{plural, {}};
      for (const char* kind : {"aesgcm", "secretbox", "aescbc", kPlain}) {
        KeyList one{kind, {}};
        if (kind != kPlain)
          for (const char* key : {"a", "b", "c"})
            if (dice_.chance(60)) one.keys.emplace_back(key);
        if (dice_.chance(60) && (kind == kPlain || !one.keys.empty())) rule.providers.push_back(std::move(one));
      }
      std::ranges::rotate(rule.providers, rule.providers.begin() + dice_.below(rule.providers.size()));
      if (!rule.providers.empty()) rules_.push_back(std::move(rule));
    }
  }
  [[nodiscard]] Configuration configuration() const {
    if (rules_.empty()) return {};
    std::string text = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";
    for (const Rule& rule : rules_) {
      text += fmt::format("- resources: [{}]\n  providers:\n", rule.plural);
      for (const KeyList& one : rule.providers) {
        if (one.kind == kPlain) {
          text += "  - identity: {}\n";
          continue;
        }
        text += fmt::format("  - {}:\n      keys:\n", one.kind);
        for (const auto& key : one.keys)
          text += fmt::format("      - {{name: {}, secret: {}}}\n", key, base64_encode(std::string(32, key[0])));
      }
    }
    auto parsed = parse_configuration(text, "enc.yaml");
    EXPECT_TRUE(parsed) << parsed.error().message << text;
    return parsed.value_or(Configuration{});
  }
  [[nodiscard]] const Rule* rule_of(const std::string& key) const {
    const auto found = std::ranges::find(rules_, plural_of(key), &Rule::plural);
    return found == rules_.end() ? nullptr : &*found;
  }

  void write() {
    std::vector<Write> group;
    for (int i = dice_.below(3); i >= 0; --i) {
      const std::string key = fmt::format("//{}/d/x{}", dice_.chance(60) ? "secrets" : "configmaps", dice_.below(4));
      const store::Record* before = last(key, group);
      const store::Revision revision = 1 + store_->state().last_revision + static_cast<store::Revision>(group.size());
      const bool is_there = before != nullptr && before->value != nullptr;
      Write one{{revision, is_there ? before->create_revision : revision, is_there ? before->revision : 0, key, nullptr}, kPlain, ""};
      if (!is_there || dice_.chance(75)) {
        one.record.value = make_bytes(fmt::format("value {} of {}", revision, key));
        if (const Rule* rule = rule_of(key); rule != nullptr && rule->providers.front().kind != kPlain) {
          one.kind = rule->providers.front().kind;
          one.key = rule->providers.front().keys.front();
        }
      }
      group.push_back(std::move(one));
    }
    std::vector<store::Record> records;
    for (const Write& one : group) records.push_back(one.record);
    disk_.failing_commits = dice_.chance(10) ? 1 : 0;
    const bool is_written = disk_.failing_commits == 0;
    ASSERT_EQ(store_->commit(records, true).has_value(), is_written);
    if (!is_written) return;  // Then nothing is fresh either.
    for (const Write& one : group) {
      stale_now_.erase(one.record.key);
      log_.push_back(one);
    }
    expect_stale();
  }
  [[nodiscard]] const store::Record* last(const std::string& key, const std::vector<Write>& group) const {
    const store::Record* out = nullptr;
    for (const auto* list : {&log_, &group})
      for (const Write& one : *list)
        if (one.record.key == key) out = &one.record;
    return out;
  }
  void compact() {
    const store::Revision until = store_->state().last_revision - (dice_.chance(60) ? 0 : dice_.below(10));
    ASSERT_TRUE(store_->compact(until));
    std::set<store::Revision> gone;
    for (const Write& one : log_)
      if (one.record.revision <= store_->state().compacted_revision) {
        gone.insert(one.record.previous_revision);
        if (one.record.value == nullptr) gone.insert(one.record.revision);
      }
    std::erase_if(log_, [&](const Write& one) { return gone.contains(one.record.revision); });
  }

  enum class Reading { kFresh, kStale, kNot };
  [[nodiscard]] Reading reading_of(const Write& one) const {
    const Rule* rule = rule_of(one.record.key);
    if (one.record.value == nullptr || (rule == nullptr && one.kind == kPlain)) return Reading::kFresh;
    std::vector<KeyList> providers;
    if (rule != nullptr) {
      providers = rule->providers;
    } else {
      for (const Rule& other : rules_) providers.insert(providers.end(), other.providers.begin(), other.providers.end());
    }
    const auto its = std::ranges::find(providers, one.kind, &KeyList::kind);
    if (its == providers.end()) return Reading::kNot;
    if (one.kind == kPlain) return its == providers.begin() ? Reading::kFresh : Reading::kStale;
    const auto key = std::ranges::find(its->keys, one.key);
    if (key == its->keys.end()) return Reading::kNot;
    return rule != nullptr && its == providers.begin() && key == its->keys.begin() ? Reading::kFresh : Reading::kStale;
  }
  [[nodiscard]] std::map<std::string, const Write*> lasts() const {
    std::map<std::string, const Write*> out;
    for (const Write& one : log_) out[one.record.key] = &one;
    return out;
  }
  [[nodiscard]] bool all_is_readable() const {
    return std::ranges::none_of(lasts(), [&](const auto& one) { return reading_of(*one.second) == Reading::kNot; });
  }

  static std::string text(const store::Record& one) { return line_of(one) + " " + (one.value == nullptr ? "" : *one.value); }
  /// What is told forwards and backwards, what is old, and of what is said that it cannot be read.
  void compare() {
    std::vector<std::string> wanted;
    for (const Write& one : log_)
      if (reading_of(one) != Reading::kNot) wanted.push_back(text(one.record));
    std::vector<std::string> unreadable;
    stale_now_.clear();
    for (const auto& [key, one] : lasts()) {
      if (reading_of(*one) == Reading::kNot) unreadable.push_back(key);
      if (reading_of(*one) == Reading::kStale) stale_now_.insert(key);
    }
    for (const bool is_back : {false, true}) {
      std::vector<std::string> told;
      const auto each = [&](const store::Record& one) -> Result<void> {
        told.push_back(text(one));
        return {};
      };
      const auto done = is_back ? store_->read_back([](const store::RecordHead&) { return true; }, each) : store_->read(0, each);
      if (is_back) std::ranges::reverse(told);
      EXPECT_EQ(told, wanted) << (is_back ? "backwards" : "forwards");
      ASSERT_EQ(done.has_value(), unreadable.empty());
      if (unreadable.empty()) continue;
      const std::string& key = unreadable.front();
      EXPECT_TRUE(done.error().message.starts_with(
          fmt::format("{} d/{}{} cannot be read: ", plural_of(key), key.substr(key.rfind('/') + 1),
                      unreadable.size() == 1 ? "" : fmt::format(" (and {} other objects)", unreadable.size() - 1))))
          << done.error().message;
      EXPECT_EQ(done.error().code, ErrorCode::kCorrupt);
    }
    if (unreadable.empty()) expect_stale();
  }
  void expect_stale() const {
    EXPECT_EQ(stale_->size(), stale_now_.size());
    for (const auto& [key, one] : lasts()) EXPECT_EQ(stale_->contains(key), stale_now_.contains(key)) << key;
  }

  berth::testing::Dice dice_{0};
  Disk disk_;
  std::vector<Rule> rules_;
  std::vector<Write> log_;  ///< That the store still has.
  std::set<std::string> stale_now_;
  std::shared_ptr<StaleKeys> stale_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(EncryptionModel, AgreesWithAPlainListOfWhoSealedWhat) {
  for (std::uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) live(seed);
}

}  // namespace
}  // namespace berth::apiserver::encryption
