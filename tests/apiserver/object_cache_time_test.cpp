// The cache over time against plain lists: groups of writes, a store that fails, events that go by themselves, compaction, histories that
// end, and restarts. What reaches the store is compared line by line, and so is all that is seen.
#include <algorithm>
#include <list>
#include <map>

#include "apiserver/cache/history.h"
#include "apiserver/cache/mirror.h"
#include "tests/apiserver/disk.h"
#include "tests/apiserver/object_cache_fixture.h"
#include "tests/support/life.h"

namespace berth::apiserver {
namespace {

using Lines = std::vector<std::string>;

constexpr Duration kInterval = std::chrono::minutes(5);
constexpr Duration kMostUnsynced = std::chrono::seconds(5);
constexpr std::size_t kAround = 400;  ///< What an object costs beside its text, in a history.

struct Object {
  TestPod pod;
  std::string key;
  Revision revision = 0, created = 0;
  std::size_t text_bytes = 0;
  TimePoint expires_at{};
};

struct Change {
  Revision revision = 0;
  std::optional<Object> before, now;
  [[nodiscard]] const std::string& key() const { return now ? now->key : before->key; }
};

/// A write as the test means it.
struct Wish {
  TestPod pod;
  std::string plural;
  bool deletes = false, relaxed = false;
  std::optional<Revision> expected;
  TimePoint expires_at{};
  bool is_own = false;  ///< The cache's, of what goes by itself.
  [[nodiscard]] std::string key() const { return make_key("", plural, pod.ns, pod.name); }
  [[nodiscard]] Proposal proposal() const {
    Proposal out = deletes ? delete_proposal(pod.ns, pod.name, expected) : pod_proposal(pod, expected);
    out.key = key();
    out.relaxed_durability = relaxed;
    if (deletes || expires_at == TimePoint{}) return out;
    out.expires_at = expires_at;
    out.value.insert(1, fmt::format(R"("expiresAtUs":{},)", expires_at.time_since_epoch().count()));
    out.revision_offset = out.value.find(R"("resourceVersion":")") + 19;
    return out;
  }
};

std::size_t digits(Revision revision) { return std::to_string(revision).size(); }

/// What a resource's watches may begin from: its writes, the oldest first, with what each costs.
struct PlainHistory {
  struct Ring {
    std::list<std::pair<Revision, std::size_t>> writes;
    Revision floor = 0;
    [[nodiscard]] std::size_t bytes() const {
      std::size_t sum = 0;
      for (const auto& one : writes) sum += one.second;
      return sum;
    }
    void drop() {
      floor = writes.front().first;
      writes.pop_front();
    }
  };
  std::size_t most = 0, most_bytes = 0;
  Revision floor = 0;
  std::map<std::string, Ring> rings;

  void add(const std::string& plural, const Change& change) {
    std::size_t cost = sizeof(CacheEvent);
    if (change.before) cost += change.before->text_bytes + kAround;
    if (!change.now) cost += change.before->text_bytes - digits(change.before->revision) + digits(change.revision) + kAround;
    Ring& ring = rings.try_emplace(plural, Ring{{}, floor}).first->second;
    ring.writes.emplace_back(change.revision, cost);
    if (ring.writes.size() > most) ring.drop();
    for (;;) {
      std::size_t sum = 0;
      for (const auto& [name, one] : rings) sum += one.bytes();
      if (sum <= most_bytes) return;
      std::ranges::max_element(rings, {}, [](const auto& one) { return one.second.bytes(); })->second.drop();
    }
  }
  [[nodiscard]] Revision floor_of(const std::string& plural) const {
    const auto ring = rings.find(plural);
    return ring == rings.end() ? floor : ring->second.floor;
  }
};

/// What the cache ought to be, without an index, a heap or a ring.
class PlainCache {
 public:
  explicit PlainCache(const CacheOptions& options) : options_(options) {}

  void open(TimePoint now, Revision compacted) {
    expiries_.clear();
    touched_.clear();
    is_read_only = is_full = false;
    expired_early = 0;
    listed_from = 0;
    compacted_ = goal_ = compacted;
    last_ = revision();
    next_ = now + kInterval;
    unsynced_since_ = now;
    for (const auto& [key, object] : objects) {
      touched_.insert(plural_of(key));
      if (object.expires_at != TimePoint{}) expiries_.push_back({object.expires_at, object.revision, key});
    }
    history = {options_.history_events, options_.history_bytes, compacted, {}};
    for (const std::string plural : {"leases", "pods"}) {
      // The newest that fit; the next one before them is the floor. What had been forgotten with what superseded it is no write any more.
      std::vector<const Change*> its;
      for (const Change& one : changes)
        if (plural_of(one.key()) == plural && is_in_store(one)) its.push_back(&one);
      std::size_t first = its.size();
      while (first > 0 && its.size() - first < options_.history_events && its[first - 1]->revision > compacted) --first;
      if (first > 0 && its[first - 1]->revision > compacted) history.rings[plural].floor = its[first - 1]->revision;
      for (; first < its.size(); ++first) begun_.insert(its[first]);
    }
    for (const Change& one : changes)
      if (begun_.contains(&one)) history.add(plural_of(one.key()), one);
    begun_.clear();
  }

  /// All groups that come of these: the next one of what is proposed when the first is answered.
  void propose(TimePoint now, std::vector<std::vector<Wish>> groups) {
    std::erase_if(groups, [](const auto& one) { return one.empty(); });
    for (std::size_t i = 0;; ++i) {
      std::vector<Wish> batch = i < groups.size() ? groups[i] : std::vector<Wish>();
      for (Wish& one : due(now)) batch.push_back(std::move(one));
      if (batch.empty()) break;
      process(now, batch);
    }
    compact(now);
  }

  [[nodiscard]] Revision revision() const { return changes.empty() ? 0 : changes.back().revision; }
  static std::string plural_of(std::string_view key) { return std::string(key.substr(2, key.find('/', 2) - 2)); }

  std::map<std::string, Object> objects;
  std::vector<Change> changes;
  PlainHistory history;
  Lines lines;                       ///< What the store is asked.
  std::vector<std::string> answers;  ///< What the proposals are answered.
  int failing_commits = 0, failing_compactions = 0;
  ErrorCode failure = ErrorCode::kUnavailable;
  bool is_read_only = false, is_full = false;
  std::uint64_t expired_early = 0;
  Revision listed_from = 0;
  [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> counts() const {
    std::map<std::string, std::size_t> out;
    for (const std::string& plural : touched_) out["//" + plural] = 0;
    for (const auto& [key, object] : objects) ++out["//" + plural_of(key)];
    return {out.begin(), out.end()};
  }

 private:
  struct Expiry {
    TimePoint when;
    Revision revision;
    std::string key;
  };

  [[nodiscard]] bool is_in_store(const Change& change) const {
    if (!change.now && change.revision <= compacted_) return false;
    return std::ranges::none_of(changes, [&](const Change& later) {
      return later.revision <= compacted_ && later.before && later.before->revision == change.revision;
    });
  }

  std::vector<Wish> due(TimePoint now) {
    std::vector<Wish> out;
    if (is_read_only) return out;
    std::size_t bytes = 0;
    for (const auto& [key, object] : objects)
      if (object.expires_at != TimePoint{}) bytes += object.text_bytes;
    std::size_t excess = options_.expiring_bytes != 0 && bytes > options_.expiring_bytes ? bytes - options_.expiring_bytes : 0;
    std::ranges::sort(expiries_, {}, [](const Expiry& one) { return std::pair(one.when, one.revision); });
    while (!expiries_.empty() && (expiries_.front().when <= now || excess > 0)) {
      const Expiry first = expiries_.front();
      expiries_.erase(expiries_.begin());
      const auto object = objects.find(first.key);
      if (object == objects.end() || object->second.revision != first.revision) continue;
      excess -= std::min(excess, object->second.text_bytes);
      if (first.when > now) ++expired_early;
      out.push_back({.pod = object->second.pod,
                     .plural = plural_of(first.key),
                     .deletes = true,
                     .relaxed = true,
                     .expected = first.revision,
                     .expires_at = {},
                     .is_own = true});
    }
    return out;
  }

  static std::string_view refusal(const std::optional<Object>& before, const Wish& wish) {
    if (wish.expected == 0 && before) return "exists";
    if (!before && (wish.deletes || wish.expected.value_or(0) != 0)) return "not found";
    if (before && wish.expected && *wish.expected != before->revision) return "mismatch";
    return {};
  }

  void process(TimePoint now, const std::vector<Wish>& batch) {
    std::map<std::string, std::optional<Object>> changed;
    std::vector<Change> group;
    std::vector<std::string> said;
    bool sync = false;
    for (const Wish& wish : batch) {
      if (is_read_only) {
        said.emplace_back("storage");
        continue;
      }
      const std::string key = wish.key();
      std::optional<Object> before;
      if (const auto found = changed.find(key); found != changed.end())
        before = found->second;
      else if (const auto known = objects.find(key); known != objects.end())
        before = known->second;
      if (const auto refused = refusal(before, wish); !refused.empty()) {
        said.emplace_back(refused);
        continue;
      }
      sync = sync || !wish.relaxed;
      const Revision mine = revision() + static_cast<Revision>(group.size()) + 1;
      Change change{mine, before, std::nullopt};
      if (!wish.deletes)
        change.now =
            Object{wish.pod, key, mine, before ? before->created : mine, wish.proposal().value.size() + digits(mine), wish.expires_at};
      changed[key] = change.now;
      group.push_back(change);
      said.push_back(fmt::format("{} of {}", mine, change.now ? change.now->created : before->created));
    }
    if (!group.empty() && !write(now, group, sync)) {
      std::ranges::fill(said, "storage");
      for (const Wish& wish : batch)
        if (wish.is_own && objects.contains(wish.key())) expiries_.push_back({now + std::chrono::seconds(30), *wish.expected, wish.key()});
    }
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (!batch[i].is_own) answers.push_back(said[i]);
  }

  bool write(TimePoint now, const std::vector<Change>& group, bool sync) {
    sync = sync || (unsynced_since_ && now >= *unsynced_since_ + kMostUnsynced);
    std::string line = sync ? "commit" : "commit, some time";
    for (const Change& one : group)
      line += fmt::format("; {} of {} after {} {}{}", one.revision, one.now ? one.now->created : one.before->created,
                          one.before ? one.before->revision : 0, one.key(), one.now ? fmt::format(" {}", one.now->text_bytes) : " gone");
    lines.push_back(std::move(line));
    if (failing_commits > 0) {
      --failing_commits;
      (failure == ErrorCode::kUnavailable ? is_full : is_read_only) = true;
      return false;
    }
    is_full = false;
    if (sync) unsynced_since_.reset();
    if (!sync && !unsynced_since_) unsynced_since_ = now;
    for (const Change& one : group) {
      if (one.now)
        objects[one.key()] = *one.now;
      else
        objects.erase(one.key());
      if (one.now) touched_.insert(plural_of(one.key()));
      if (one.now && one.now->expires_at != TimePoint{}) expiries_.push_back({one.now->expires_at, one.revision, one.key()});
      changes.push_back(one);
      history.add(plural_of(one.key()), one);
    }
    return true;
  }

  void compact(TimePoint now) {
    if (is_read_only) return;
    if (now >= next_) {
      goal_ = std::max(goal_, std::min(last_, revision() - static_cast<Revision>(options_.history_events)));
      listed_from = last_;
      last_ = revision();
      next_ = now + kInterval;
    }
    if (goal_ <= compacted_) return;
    const Revision until = std::min(goal_, compacted_ + 1000);
    lines.push_back(fmt::format("compact {}", until));
    if (failing_compactions > 0) {
      --failing_compactions;
      if (failure == ErrorCode::kUnavailable)
        goal_ = compacted_;
      else
        is_read_only = true;
      return;
    }
    compacted_ = until;
  }

  CacheOptions options_;
  std::vector<Expiry> expiries_;
  std::set<std::string> touched_;  ///< Resources that had an object since the cache was opened.
  std::set<const Change*> begun_;
  Revision compacted_ = 0, goal_ = 0, last_ = 0;
  TimePoint next_{};
  std::optional<TimePoint> unsynced_since_;
};

std::string text_of(const ProposeResult& result) {
  if (result) return fmt::format("{} of {}", (*result)->revision, (*result)->create_revision);
  switch (result.error()) {
    case ProposeError::kExists:
      return "exists";
    case ProposeError::kNotFound:
      return "not found";
    case ProposeError::kRevisionMismatch:
      return "mismatch";
    case ProposeError::kStorage:
      return "storage";
    default:
      return "something else";
  }
}

class CacheOverTime : public CacheFixture {
 protected:
  void live(std::uint64_t seed, int steps) {
    dice_ = berth::testing::Dice(seed);
    disk_ = {};
    options_ = {.history_events = static_cast<std::size_t>(8 + dice_.below(20)),
                .history_bytes = dice_.chance(50) ? std::size_t{12'000} : std::size_t{1} << 20,
                .expiring_bytes = dice_.chance(50) ? std::size_t{2'500} : 0,
                .compaction_interval = kInterval};
    plain_ = std::make_unique<PlainCache>(options_);
    restart();
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      step();
      compare();
      if (i % 20 == 0) look_at_all();
    }
    mirror_.reset();
    cache_.reset();
  }

 private:
  void restart() {
    mirror_.reset();
    cache_.reset();
    disk_.failing_commits = disk_.failing_compactions = plain_->failing_commits = plain_->failing_compactions = 0;
    open(std::make_unique<OnDisk>(disk_), true, options_);
    plain_->open(clock_.now(), disk_.store->state().compacted_revision);
    mirror_ = std::make_unique<Mirror>(*cache_, "", "pods");
    mirrored_ = static_cast<std::uint64_t>(
        std::ranges::count(plain_->objects, "pods", [](const auto& one) { return PlainCache::plural_of(one.first); }));
    mirrored_from_ = plain_->revision();
  }

  void step() {
    const int what = dice_.below(100);
    if (what < 4) {
      restart();
      look_at_all(200);
    } else if (what < 12) {
      clock_.advance(std::chrono::seconds(dice_.chance(30) ? 1 + dice_.below(400) : dice_.below(40)));
    } else if (what < 16) {
      disk_.failure = plain_->failure = dice_.chance(75) ? ErrorCode::kUnavailable : ErrorCode::kInternal;
      disk_.failing_commits = plain_->failing_commits = dice_.below(3);
      disk_.failing_compactions = plain_->failing_compactions = dice_.below(2);
    } else if (what < 19) {
      (void)cache_->pack_texts(cache_->revision() - dice_.below(20));
    } else if (plain_->is_read_only && what < 40) {
      restart();
    } else {
      write();
    }
  }

  Wish some_wish() {
    Wish out;
    out.plural = dice_.chance(70) ? "pods" : "leases";
    out.pod = {.ns = fmt::format("ns{}", dice_.below(2)), .name = fmt::format("p{}", dice_.below(6)), .node = "n1"};
    // Leases are never as long as pods: no two histories are of one size.
    out.pod.padding = static_cast<std::size_t>(dice_.below(30)) * 20 + (out.plural == "pods" ? 0 : 7);
    const auto known = plain_->objects.find(out.key());
    if (dice_.chance(20)) out.expected = 0;
    if (dice_.chance(30)) out.expected = known != plain_->objects.end() ? known->second.revision : 3;
    if (dice_.chance(8)) out.expected = plain_->revision() + 1 + dice_.below(2);
    out.deletes = dice_.chance(25);
    if (out.deletes && out.expected == 0) out.expected.reset();
    out.relaxed = dice_.chance(40);
    if (!out.deletes && dice_.chance(25)) out.expires_at = clock_.now() + std::chrono::seconds(1 + dice_.below(200));
    return out;
  }

  /// One write, and perhaps a group of others that somebody makes when that one is answered.
  void write() {
    const Wish first = some_wish();
    std::vector<Wish> group;
    if (dice_.chance(40))
      for (int i = dice_.below(6); i >= 0; --i) group.push_back(some_wish());
    answers_.clear();
    plain_->answers.clear();
    cache_->propose(first.proposal(), [&](const ProposeResult& result) {
      answers_.push_back(text_of(result));
      for (const Wish& wish : group)
        cache_->propose(wish.proposal(), [&](const ProposeResult& other) { answers_.push_back(text_of(other)); });
    });
    plain_->propose(clock_.now(), {{first}, group});
    EXPECT_EQ(answers_, plain_->answers);
  }

  void compare() {
    EXPECT_EQ(disk_.lines, plain_->lines);
    disk_.lines.clear();
    plain_->lines.clear();
    EXPECT_EQ(cache_->revision(), plain_->revision());
    EXPECT_EQ(cache_->is_read_only(), plain_->is_read_only);
    EXPECT_EQ(cache_->is_writable(), !plain_->is_read_only && !plain_->is_full);
    EXPECT_EQ(cache_->expired_early(), plain_->expired_early);
    EXPECT_EQ(cache_->counts(), plain_->counts());
    compare_mirror();
    for (int i = 0; i < 3; ++i) {
      const Wish one = some_wish();
      const ObjectPtr there = cache_->get(one.key());
      const auto known = plain_->objects.find(one.key());
      ASSERT_EQ(there != nullptr, known != plain_->objects.end()) << one.key();
      if (there == nullptr) continue;
      EXPECT_EQ(there->revision, known->second.revision);
      EXPECT_EQ(there->create_revision, known->second.created);
      EXPECT_EQ(there->text_bytes(), known->second.text_bytes);
      EXPECT_EQ(there->expires, known->second.expires_at != TimePoint{});
      EXPECT_EQ(revision_in_bytes(there), there->revision);
    }
  }

  /// Documents of the pods, in the order of their keys.
  void compare_mirror() {
    for (const std::string ns : {"", "ns0", "ns1", "ns2"}) {
      Lines seen, wanted;
      for (const Mirror::Document& one : mirror_->list(ns))
        seen.push_back(fmt::format("{}/{}@{}", json::get_string(*one, {"metadata", "namespace"}),
                                   json::get_string(*one, {"metadata", "name"}), json::get_string(*one, {"metadata", "resourceVersion"})));
      for (const auto& [key, one] : plain_->objects)
        if (PlainCache::plural_of(key) == "pods" && (ns.empty() || one.pod.ns == ns))
          wanted.push_back(fmt::format("{}/{}@{}", one.pod.ns, one.pod.name, one.revision));
      EXPECT_EQ(seen, wanted) << ns;
      EXPECT_EQ(ns.empty() ? mirror_->empty() : mirror_->empty(ns), wanted.empty()) << ns;
    }
    std::uint64_t changes = mirrored_;
    for (const Change& one : plain_->changes)
      if (one.revision > mirrored_from_ && PlainCache::plural_of(one.key()) == "pods") ++changes;
    EXPECT_EQ(mirror_->generation(), changes);
  }

  /// Every watch from every of the last revisions, and every list of then.
  void look_at_all(Revision last = 40) {
    for (const std::string plural : {"pods", "leases"}) {
      const WatchFilter filter{.prefix = make_prefix("", plural)};
      const Revision floor = plain_->history.floor_of(plural);
      std::map<std::string, Object> then;
      auto at = plain_->changes.begin();
      for (Revision after = std::max<Revision>(0, plain_->revision() - last); after <= plain_->revision(); ++after) {
        for (; at != plain_->changes.end() && at->revision <= after; ++at) {
          if (at->now)
            then[at->key()] = *at->now;
          else
            then.erase(at->key());
        }
        const auto sink = std::make_shared<RecordingSink>();
        const auto watch = cache_->watch(filter, after, false, sink);
        ASSERT_EQ(watch != nullptr, after >= floor) << plural << " after " << after << " of " << plain_->revision();
        if (watch != nullptr) {
          EXPECT_EQ(sink->events(), events_after(plural, after)) << plural << " after " << after;
        }
        const auto list = cache_->list_at(after, filter, {}, 0);
        ASSERT_EQ(list.has_value(), after >= std::max(floor, plain_->listed_from)) << plural << " at " << after;
        if (list) {
          EXPECT_EQ(texts_of(*list), texts_of(then, plural)) << plural << " at " << after;
        }
      }
      EXPECT_EQ(texts_of(cache_->list(filter, {}, 0)), texts_of(plain_->objects, plural));
    }
  }
  [[nodiscard]] Lines events_after(const std::string& plural, Revision after) const {
    Lines out;
    for (const Change& one : plain_->changes) {
      if (one.revision <= after || PlainCache::plural_of(one.key()) != plural) continue;
      const TestPod& pod = (one.now ? one.now : one.before)->pod;
      out.push_back(fmt::format("{} {}/{}@{}", !one.now ? "DELETED" : one.before ? "MODIFIED" : "ADDED", pod.ns, pod.name, one.revision));
    }
    return out;
  }
  static Lines texts_of(const ListResult& list) {
    Lines out;
    for (const ObjectPtr& one : list.items)
      out.push_back(fmt::format("{} {} of {} {}", one->key, one->revision, one->create_revision, one->text_bytes()));
    return out;
  }
  static Lines texts_of(const std::map<std::string, Object>& objects, const std::string& plural) {
    Lines out;
    for (const auto& [key, one] : objects)
      if (PlainCache::plural_of(key) == plural)
        out.push_back(fmt::format("{} {} of {} {}", key, one.revision, one.created, one.text_bytes));
    return out;
  }

  berth::testing::Dice dice_{0};
  Disk disk_;
  CacheOptions options_;
  std::unique_ptr<PlainCache> plain_;
  std::unique_ptr<Mirror> mirror_;  ///< Of the pods.
  std::uint64_t mirrored_ = 0;      ///< Pods that were there when it began, …
  Revision mirrored_from_ = 0;      ///< … at this revision.
  Lines answers_;
};

TEST_F(CacheOverTime, AgreesWithPlainLists) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) live(seed, 250);
}

TEST_F(CacheOverTime, AnObjectIsAsLargeAsARequestCanBe) {
  open();
  Proposal largest = pod_proposal({.name = "p"});
  largest.value.resize(kMostObjectBytes, ' ');
  Proposal larger = largest;
  larger.key = make_key("", "pods", "default", "q");
  larger.value += ' ';
  EXPECT_TRUE(propose(std::move(largest)));
  EXPECT_EQ(propose(std::move(larger)).error(), ProposeError::kTooLarge);
  EXPECT_EQ(cache_->revision(), 1);
}

}  // namespace
}  // namespace berth::apiserver
