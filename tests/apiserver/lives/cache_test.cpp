// The object cache's life over a store that fails now and then: everything that it shows is held against a plain list of all writes.
#include "apiserver/cache/mirror.h"
#include "tests/apiserver/object_cache_fixture.h"
#include "tests/store/store_fixture.h"
#include "tests/support/long_life.h"

namespace berth::apiserver {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

/// The store behind it outlives the caches, and fails when it is told to.
struct FailingStore final : store::Store {
  struct Shared {
    std::unique_ptr<store::Store> store;
    int fail = 0;  ///< 1: no room, 2: broken.
    int syncs = 0, commits = 0;
  };
  std::shared_ptr<Shared> shared;
  explicit FailingStore(std::shared_ptr<Shared> all) : shared(std::move(all)) {}
  [[nodiscard]] store::StoreState state() const override { return shared->store->state(); }
  Result<void> failure() const {
    return fail(shared->fail == 1 ? ErrorCode::kUnavailable : ErrorCode::kCorrupt, shared->fail == 1 ? "no room" : "broken");
  }
  Result<void> commit(std::span<const store::Record> records, bool sync) override {
    if (shared->fail != 0) return failure();
    ++shared->commits;
    shared->syncs += sync ? 1 : 0;
    return shared->store->commit(records, sync);
  }
  Result<void> read(store::Revision after, const std::function<Result<void>(store::Record)>& each) override {
    return shared->store->read(after, each);
  }
  Result<void> compact(store::Revision revision) override { return shared->fail == 1 ? failure() : shared->store->compact(revision); }
  Result<void> probe() override { return shared->fail != 0 ? failure() : shared->store->probe(); }
};

/// One write, as a list of all of them keeps it.
struct Known {
  std::string key, ns, name, node, phase, text;
  std::map<std::string, std::string> labels;
  Revision revision = 0, created = 0;
  bool is_delete = false;
  TimePoint expires{};
};

struct Picture {
  std::map<std::string, Known> objects;
  std::vector<std::pair<Known, std::optional<Known>>> log;  ///< With the state before.

  [[nodiscard]] std::map<std::string, Known> at(Revision revision) const {
    std::map<std::string, Known> out;
    for (const auto& [known, before] : log) {
      if (known.revision > revision) break;
      if (known.is_delete)
        out.erase(known.key);
      else
        out[known.key] = known;
    }
    return out;
  }
};

/// A filter as plain code reads it.
struct Wanted {
  std::string ns, name, node, not_phase, label;
  [[nodiscard]] WatchFilter filter() const {
    WatchFilter out{.prefix = make_prefix("", "pods", ns)};
    if (!name.empty()) out.name = name;
    if (!not_phase.empty()) out.fields.terms.push_back({"status.phase", false, not_phase});
    if (!node.empty()) out.fields.terms.push_back({"spec.nodeName", true, node});
    if (!label.empty()) out.labels = *model::Selector::parse(label);
    return out;
  }
  [[nodiscard]] bool fits(const Known& one) const {
    const auto app = one.labels.find("app");
    return (ns.empty() || one.ns == ns) && (name.empty() || one.name == name) && (node.empty() || one.node == node) &&
           (not_phase.empty() || one.phase != not_phase) && one.key.starts_with("//pods/") &&
           (label.empty() || (label == "app=w" ? app != one.labels.end() && app->second == "w" : app == one.labels.end()));
  }
  [[nodiscard]] std::string words() const { return fmt::format("{}/{} on {} not {} {}", ns, name, node, not_phase, label); }
};

struct Listener {
  Wanted wanted;
  Revision from = 0;
  std::size_t capacity = 0;
  bool is_initial = false;
  std::shared_ptr<RecordingSink> sink;
  std::unique_ptr<Watch> watch;
  std::vector<std::string> expected;
  bool is_full = false;
  void expect(std::string event) {
    if (is_full) return;
    if (expected.size() == capacity)
      is_full = true;
    else
      expected.push_back(std::move(event));
  }
  void take(const Known& now, const std::optional<Known>& before) {
    const bool was = before && wanted.fits(*before), is = !now.is_delete && wanted.fits(now);
    if (!was && !is) return;
    expect(fmt::format("{} {}/{}@{}", is ? (was ? "MODIFIED" : "ADDED") : "DELETED", now.ns, now.name, now.revision));
  }
};

class Life {
 public:
  Life(const char* file, std::unique_ptr<store::Store> store, std::function<std::unique_ptr<store::Store>()> reopen)
      : life_(file, 61, 24'000), shared_(std::make_shared<FailingStore::Shared>()), reopen_(std::move(reopen)) {
    shared_->store = std::move(store);
    open();
  }
  void live() {
    for (int i = 0; i < 4000; ++i) step();
    listeners_.clear();
    own_.clear();
    mirror_.reset();
    cache_.reset();
    life_.expect_as_recorded();
  }

 private:
  void wrong(const std::string& what) {
    if (++wrongs_ < 4) ADD_FAILURE() << what << "\n" << life_.last();
  }
  void tell(std::string line) { life_.tell(std::move(line)); }
  template <typename T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + life_.dice.below(list.size()));
  }

  void open() {
    CacheOptions options;
    options.history_events = 60;
    options.compaction_interval = minutes(5);
    auto opened = ObjectCache::open(std::make_unique<FailingStore>(shared_), clock_, options, meta_of_json, true);
    ASSERT_TRUE(opened) << opened.error().message;
    cache_ = std::move(*opened);
    mirror_ = std::make_unique<Mirror>(*cache_, "", "pods");
    pods_ = std::make_shared<RecordingSink>();
    sets_ = std::make_shared<RecordingSink>();
    own_.push_back(cache_->watch({.prefix = make_prefix("", "pods")}, cache_->revision(), false, pods_));
    own_.push_back(cache_->watch({.prefix = make_prefix("apps", "sets")}, cache_->revision(), false, sets_));
  }
  /// The process ends, and begins anew over what its store has.
  void begin_anew() {
    listeners_.clear();
    own_.clear();
    mirror_.reset();
    cache_->end();
    cache_.reset();
    shared_->fail = 0;
    if (reopen_) {
      shared_->store.reset();
      shared_->store = reopen_();
    }
    open();
    tell(fmt::format("anew at {}, compacted {}", cache_->revision(), shared_->store->state().compacted_revision));
  }

  Proposal random_proposal(Known& known) {
    known.ns = one_of<std::string>({"a", "a", "b"});
    known.name = fmt::format("p{}", life_.dice.below(life_.dice.chance(80) ? 12 : 150));
    TestPod pod{.ns = known.ns,
                .name = known.name,
                .node = one_of<std::string>({"", "n1", "n2"}),
                .phase = one_of<std::string>({"Pending", "Running", "Odd"})};
    if (life_.dice.chance(60)) pod.labels = {{"app", one_of<std::string>({"w", "v"})}};
    pod.padding = static_cast<std::size_t>(life_.dice.below(3)) * 100;
    Proposal out = pod_proposal(pod);
    if (life_.dice.chance(15)) {
      // Other resources have histories of their own.
      out.key = make_key("apps", "sets", known.ns, known.name);
    }
    known.key = out.key;
    known.node = pod.node;
    known.phase = pod.phase;
    for (const auto& [key, value] : pod.labels) known.labels[key] = value;
    if (life_.dice.chance(15)) {
      out.expires_at = clock_.now() + seconds(1 + life_.dice.below(400));
      known.expires = out.expires_at;
      out.value.pop_back();
      out.value += fmt::format(",\"expiresAtUs\":{}}}", out.expires_at.time_since_epoch().count());
    }
    out.relaxed_durability = life_.dice.chance(30);
    out.is_delete = life_.dice.chance(30);
    known.is_delete = out.is_delete;
    const auto now = picture_.objects.find(out.key);
    const Revision there = now == picture_.objects.end() ? 0 : now->second.revision;
    out.expected = one_of<std::optional<Revision>>({std::nullopt, std::nullopt, 0, there, there, there - 1, there + 1, 7});
    if (out.expected && *out.expected < 0) out.expected = 5;
    return out;
  }

  /// What a list says of the proposal, which is next.
  std::string foreseen(const Proposal& proposal, const std::map<std::string, Known>& objects) const {
    const auto now = objects.find(proposal.key);
    if (proposal.expected == 0 && now != objects.end()) return "exists";
    if (now == objects.end() && (proposal.is_delete || proposal.expected.value_or(0) != 0)) return "not found";
    if (now != objects.end() && proposal.expected && *proposal.expected != now->second.revision) return "another revision";
    return "done";
  }
  static std::string said(const ProposeResult& result) {
    if (result) return "done";
    switch (result.error()) {
      case ProposeError::kExists:
        return "exists";
      case ProposeError::kNotFound:
        return "not found";
      case ProposeError::kRevisionMismatch:
        return "another revision";
      case ProposeError::kStorage:
        return "not stored";
      case ProposeError::kUncertain:
        return "uncertain";
      case ProposeError::kTooLarge:
        return "too large";
    }
    return "?";
  }

  void take(Known known) {
    std::optional<Known> before;
    if (const auto was = picture_.objects.find(known.key); was != picture_.objects.end()) before = was->second;
    known.created = before ? before->created : known.revision;
    if (known.is_delete) {
      picture_.objects.erase(known.key);
      if (before) {
        Known gone = *before;
        gone.is_delete = true;
        gone.revision = known.revision;
        known = gone;
      }
    } else {
      picture_.objects[known.key] = known;
    }
    picture_.log.emplace_back(known, before);
    for (Listener& one : listeners_)
      if (!one.is_full) one.take(known, before);
  }

  /// Objects whose time has come: in which order the cache let them go, its own watches tell.
  void take_expired() {
    while (picture_revision() < cache_->revision()) {
      const Revision next = picture_revision() + 1;
      std::string key;
      for (const auto& [plural, sink] : {std::pair("pods", pods_), std::pair("sets", sets_)})
        for (const std::string& event : sink->events())
          if (event.starts_with("DELETED ") && event.ends_with(fmt::format("@{}", next)))
            key = fmt::format("/{}/{}/{}", *plural == 'p' ? "" : "apps", plural, event.substr(8, event.rfind('@') - 8));
      const auto gone = picture_.objects.find(key);
      if (gone == picture_.objects.end() || gone->second.expires == TimePoint{} || gone->second.expires > clock_.now())
        return wrong(fmt::format("revision {} is nobody's: {}", next, key));
      Known known = gone->second;
      known.is_delete = true;
      known.revision = next;
      tell(fmt::format("  {} has gone by its age", key));
      take(std::move(known));
    }
  }
  [[nodiscard]] Revision picture_revision() const { return picture_.log.empty() ? 0 : picture_.log.back().first.revision; }

  void write() {
    if (std::ranges::any_of(picture_.objects,
                            [&](const auto& one) { return one.second.expires != TimePoint{} && one.second.expires <= clock_.now(); })) {
      // Alone, so that it is known what happened in which order.
      cache_->propose(delete_proposal("nobody", "nothing"), [](const ProposeResult&) {});
      take_expired();
    }
    // Those proposed from within an answer are one group.
    const int more = life_.dice.chance(30) ? 1 + life_.dice.below(5) : 0;
    struct One {
      Known known;
      std::string said = "never answered";
      ObjectPtr object;
    };
    std::vector<One> all(static_cast<std::size_t>(more) + 1);
    std::vector<Proposal> proposals;
    for (One& one : all) proposals.push_back(random_proposal(one.known));
    const auto answer = [](One& one) {
      return [&one](ProposeResult result) {
        one.said = said(result);
        if (result) one.object = *result;
      };
    };
    const std::vector<Proposal> asked = proposals;
    cache_->propose(std::move(proposals[0]), [&, first = answer(all[0])](ProposeResult result) {
      first(std::move(result));
      for (std::size_t i = 1; i < all.size(); ++i) cache_->propose(std::move(proposals[i]), answer(all[i]));
    });
    for (int group = 0; group < 2; ++group) {
      // A group is stored whole or not at all.
      auto objects = picture_.objects;
      std::vector<std::size_t> members;
      for (std::size_t i = group == 0 ? 0 : 1; i < (group == 0 ? 1 : all.size()); ++i) members.push_back(i);
      Revision next = picture_revision();
      std::vector<std::string> foresaw;
      bool writes = false;
      std::vector<Known> taken;
      for (const std::size_t i : members) {
        std::string what = is_broken_ ? "not stored" : foreseen(asked[i], objects);
        if (what == "done") {
          writes = true;
          Known& known = all[i].known;
          known.revision = ++next;
          if (known.is_delete)
            objects.erase(known.key);
          else
            objects[known.key] = known;
          taken.push_back(known);
        }
        foresaw.push_back(std::move(what));
      }
      if (writes && shared_->fail != 0) {
        foresaw.assign(foresaw.size(), "not stored");
        taken.clear();
        if (shared_->fail == 2) is_broken_ = true;
      }
      for (std::size_t i = 0; i < members.size(); ++i) {
        const One& one = all[members[i]];
        const Proposal& proposal = asked[members[i]];
        tell(fmt::format("{} {} if {}: {}{}", proposal.is_delete ? "delete" : "put", proposal.key,
                         proposal.expected ? std::to_string(*proposal.expected) : "any", one.said,
                         one.object ? fmt::format(" {} made at {}", one.object->revision, one.object->create_revision) : ""));
        if (one.said != foresaw[i]) wrong("a plain list says: " + foresaw[i]);
        if (one.object && revision_in_bytes(one.object) != one.object->revision) wrong("its bytes carry another revision");
        if (one.object && one.object->revision != one.known.revision) wrong(fmt::format("revision {} was next", one.known.revision));
      }
      for (Known& known : taken) take(std::move(known));
    }
    if (cache_->is_read_only() != is_broken_) wrong("read-only?");
    take_expired();
  }

  Wanted random_filter() {
    Wanted out;
    if (life_.dice.chance(50)) out.ns = one_of<std::string>({"a", "b"});
    switch (life_.dice.below(6)) {
      case 0:
        out.name = fmt::format("p{}", life_.dice.below(6));
        break;
      case 1:
        out.node = one_of<std::string>({"n1", "n2"});
        break;
      case 2:
        out.node = "n1";
        out.not_phase = "Odd";
        break;
      case 3:
        out.label = one_of<std::string>({"app=w", "!app"});
        break;
      default:
        break;
    }
    return out;
  }

  void begin_watch() {
    Listener one;
    one.wanted = random_filter();
    one.is_initial = life_.dice.chance(40);
    one.from = std::max<Revision>(0, cache_->revision() - life_.dice.below(90));
    one.capacity = static_cast<std::size_t>(life_.dice.chance(80) ? 100'000 : life_.dice.below(12));
    one.sink = std::make_shared<RecordingSink>(one.capacity);
    if (one.is_initial) {
      for (const auto& [key, known] : picture_.objects)
        if (one.wanted.fits(known)) one.expect(fmt::format("ADDED {}/{}@{}", known.ns, known.name, known.revision));
      one.expect(fmt::format("BOOKMARK@{}", cache_->revision()));
    } else {
      for (const auto& [known, before] : picture_.log)
        if (known.revision > one.from) one.take(known, before);
    }
    one.watch = cache_->watch(one.wanted.filter(), one.from, one.is_initial, one.sink);
    tell(fmt::format("watch {} {} room {}: {}", one.wanted.words(), one.is_initial ? "all" : fmt::format("from {}", one.from), one.capacity,
                     one.watch ? fmt::format("{} events", one.sink->events().size()) : "expired"));
    if (one.watch) listeners_.push_back(std::move(one));
    check_watches();
  }

  void check_watches() {
    for (const Listener& one : listeners_) {
      const auto got = one.sink->events();
      if (got == one.expected) continue;
      std::size_t same = 0;
      while (same < got.size() && same < one.expected.size() && got[same] == one.expected[same]) ++same;
      wrong(fmt::format("a watch of {} got as its event {}: {} instead of {}", one.wanted.words(), same,
                        same < got.size() ? got[same] : "nothing", same < one.expected.size() ? one.expected[same] : "nothing"));
    }
  }

  void list() {
    const Wanted wanted = random_filter();
    const bool is_past = life_.dice.chance(50);
    const Revision at = is_past ? std::max<Revision>(0, cache_->revision() - life_.dice.below(80)) : cache_->revision();
    const auto limit = static_cast<std::size_t>(one_of<int>({0, 1, 2, 3, 10}));
    std::string after;
    if (life_.dice.chance(40)) after = make_key("", "pods", wanted.ns.empty() ? "a" : wanted.ns, fmt::format("p{}", life_.dice.below(12)));
    std::optional<ListResult> got =
        is_past ? cache_->list_at(at, wanted.filter(), after, limit) : std::optional(cache_->list(wanted.filter(), after, limit));
    if (!got) return tell(fmt::format("list at {}: expired", at));
    std::vector<std::string> names, expected;
    for (const auto& object : got->items) names.push_back(fmt::format("{}@{}", object->key, object->revision));
    std::size_t all = 0;
    for (const auto& [key, known] : picture_.at(at)) {
      if (!wanted.fits(known) || (!after.empty() && key <= after)) continue;
      if (limit == 0 || all < limit) expected.push_back(fmt::format("{}@{}", key, known.revision));
      ++all;
    }
    const bool selective = !wanted.name.empty() || !wanted.node.empty() || !wanted.label.empty();
    tell(fmt::format("list {} at {} after {} most {}: {} items, {} left", wanted.words(), at, after, limit, names.size(), got->remaining));
    if (names != expected) wrong(fmt::format("lists\n{}\ninstead of\n{}", fmt::join(names, "\n"), fmt::join(expected, "\n")));
    if (got->more != (all > expected.size())) wrong("more?");
    if (!selective && got->remaining != static_cast<std::int64_t>(all - expected.size()))
      wrong(fmt::format("{} are left", all - expected.size()));
    if (got->revision != at) wrong("of another revision");
  }

  void check_all() {
    std::size_t pods = 0, sets = 0;
    for (const auto& [key, known] : picture_.objects) {
      const ObjectPtr object = cache_->get(key);
      (key.starts_with("//pods/") ? pods : sets) += 1;
      if (object == nullptr || object->revision != known.revision || object->create_revision != known.created)
        wrong(fmt::format("{} is not as it was written", key));
      if (object != nullptr && (object->meta.field("spec.nodeName") != known.node || object->meta.field("status.phase") != known.phase ||
                                object->meta.name != known.name || object->meta.ns != known.ns))
        wrong(fmt::format("{} has other fields", key));
    }
    for (const auto& [prefix, count] : cache_->counts())
      if (count != (prefix == "//pods" ? pods : sets)) wrong(fmt::format("{} of {}", count, prefix));
    if (mirror_->list().size() != pods || mirror_->empty() != (pods == 0) || mirror_->list("a").empty() != mirror_->empty("a"))
      wrong("the mirror shows something else");
  }

  void step() {
    switch (const int what = life_.dice.below(100); what) {
      case 0:
        begin_anew();
        is_broken_ = false;
        take_expired();
        break;
      case 1:
      case 2:
        clock_.advance(seconds(life_.dice.below(700)));
        tell("time goes by");
        break;
      case 3:
        shared_->fail = life_.dice.chance(85) ? 1 : 2;
        tell(shared_->fail == 1 ? "the store has no room" : "the store breaks");
        break;
      case 4:
      case 5:
        if (!is_broken_) shared_->fail = 0;
        break;
      case 6: {
        const auto done = cache_->pack_texts(cache_->revision() - life_.dice.below(20));
        tell(fmt::format("packed{}", done.is_round ? ", once round" : ""));
        break;
      }
      case 7:
        cache_->wait_for(cache_->revision() + life_.dice.below(3) - 1, seconds(1), [&](bool ok) { tell(fmt::format("waited: {}", ok)); });
        break;
      case 8:
        check_all();
        break;
      case 9:
      case 10:
        if (!listeners_.empty()) {
          Listener& one = listeners_[static_cast<std::size_t>(life_.dice.below(listeners_.size()))];
          one.watch->request_bookmark();
          one.expect(fmt::format("BOOKMARK@{}", cache_->revision()));
        }
        break;
      case 11:
      case 12:
        if (!listeners_.empty()) {
          const int at = life_.dice.below(listeners_.size());
          tell(fmt::format("the watch of {} ends with {} events", listeners_[static_cast<std::size_t>(at)].wanted.words(),
                           listeners_[static_cast<std::size_t>(at)].expected.size()));
          listeners_.erase(listeners_.begin() + at);
        }
        break;
      default:
        if (what < 20)
          begin_watch();
        else if (what < 35)
          list();
        else
          write();
    }
    check_watches();
    if (listeners_.size() > 12) listeners_.erase(listeners_.begin());
  }

  berth::testing::LongLife life_;
  ManualClock clock_;
  std::shared_ptr<FailingStore::Shared> shared_;
  std::function<std::unique_ptr<store::Store>()> reopen_;
  std::unique_ptr<ObjectCache> cache_;
  std::unique_ptr<Mirror> mirror_;
  std::shared_ptr<RecordingSink> pods_, sets_;
  std::vector<std::unique_ptr<Watch>> own_;
  Picture picture_;
  std::vector<Listener> listeners_;
  bool is_broken_ = false;
  int wrongs_ = 0;
};

TEST(CacheLives, OverMemoryAreAsRecorded) { Life("tests/apiserver/lives/cache.txt", store::make_memory_store(), {}).live(); }

TEST(CacheLives, OverSqliteAreTheSame) {
  const store::TemporaryDirectory directory;
  const auto open = [&]() {
    auto opened = store::open_sqlite_store({.path = directory.file("life.db"), .full_sync = false});
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : store::make_memory_store();
  };
  Life("tests/apiserver/lives/cache.txt", open(), open).live();
}

}  // namespace
}  // namespace berth::apiserver
