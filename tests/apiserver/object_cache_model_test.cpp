// The cache against a plain map and a plain list of all that ever happened: writes with every expectation, lists of now and of then, and
// watches that begin anywhere, want anything and end at any time.
#include <algorithm>
#include <map>

#include "tests/apiserver/object_cache_fixture.h"
#include "tests/support/life.h"

namespace berth::apiserver {
namespace {

struct State {
  TestPod pod;
  Revision revision = 0, created = 0;
};

struct Change {
  Revision revision = 0;
  std::string key;
  std::optional<State> before, now;
};

/// A filter, and the same in plain words.
struct Wish {
  WatchFilter filter;
  std::string text;
  std::vector<std::function<bool(const TestPod&)>> all;
  bool is_selective = false;  ///< Beyond the prefix.
  [[nodiscard]] bool wants(const std::optional<State>& state) const {
    return state && std::ranges::all_of(all, [&](const auto& one) { return one(state->pod); });
  }
};

struct Watching {
  Wish wish;
  Revision after = 0;
  std::size_t capacity = SIZE_MAX;
  std::shared_ptr<RecordingSink> sink;
  std::unique_ptr<Watch> watch;
  std::vector<std::string> expected{};
  void expect(std::string event) {
    if (watch != nullptr && expected.size() < capacity) expected.push_back(std::move(event));
  }
};

constexpr std::size_t kHistory = 80;

class CacheModel : public CacheFixture {
 protected:
  void play(std::uint64_t seed, int steps) {
    dice_ = std::make_unique<testing_dice>(seed);
    changes_.clear();
    states_.clear();
    watching_.clear();
    open(store::make_memory_store(), true, {.history_events = kHistory});
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      step();
      for (const auto& one : watching_) EXPECT_EQ(one->sink->events(), one->expected) << one->wish.text << " after " << one->after;
    }
    watching_.clear();
    cache_.reset();
  }

 private:
  using testing_dice = berth::testing::Dice;

  void step() {
    const int what = dice_->below(20);
    if (what < 9) return write();
    if (what < 12) return list();
    if (what < 14) return list_then();
    if (what < 17) return begin_watch();
    if (what < 18) return end_watch();
    if (what < 19) return ask_for_bookmark();
    (void)cache_->pack_texts(changes_.empty() ? 0 : changes_.back().revision);
    expect_gets();
  }

  TestPod some_pod() {
    TestPod out{.ns = fmt::format("ns{}", dice_->below(2)), .name = fmt::format("p{}", dice_->below(7))};
    out.node = dice_->chance(30) ? "" : fmt::format("n{}", dice_->below(3));
    out.phase = dice_->chance(50) ? "Pending" : "Running";
    if (dice_->chance(70)) out.labels = {{"app", dice_->chance(50) ? "a" : "b"}};
    if (dice_->chance(20)) out.padding = 300;
    return out;
  }
  [[nodiscard]] std::optional<State> known(const std::string& key) const {
    const auto found = states_.find(key);
    return found != states_.end() ? std::optional(found->second) : std::nullopt;
  }

  void write() {
    const TestPod pod = some_pod();
    const std::string key = make_key("", "pods", pod.ns, pod.name);
    const std::optional<State> before = known(key);
    std::optional<Revision> expected;
    if (dice_->chance(25)) expected = 0;
    if (dice_->chance(25)) expected = before ? before->revision : 1 + dice_->below(40);
    if (dice_->chance(10)) expected = 1 + dice_->below(40);
    const bool deletes = dice_->chance(30);
    const auto answer = propose(deletes ? delete_proposal(pod.ns, pod.name, expected) : pod_proposal(pod, expected));
    const auto refused = refusal(before, expected, deletes);
    ASSERT_EQ(answer.has_value(), !refused.has_value());
    if (refused) {
      EXPECT_EQ(answer.error(), *refused);
      return;
    }
    const Revision revision = (changes_.empty() ? 0 : changes_.back().revision) + 1;
    EXPECT_EQ((*answer)->revision, revision);
    EXPECT_EQ(revision_in_bytes(*answer), revision);
    Change change{revision, key, before, std::nullopt};
    if (!deletes) change.now = State{pod, revision, before ? before->created : revision};
    if (deletes)
      states_.erase(key);
    else
      states_[key] = *change.now;
    changes_.push_back(change);
    EXPECT_EQ(cache_->revision(), revision);
    for (const auto& one : watching_) tell(*one, change);
  }
  static std::optional<ProposeError> refusal(const std::optional<State>& before, std::optional<Revision> expected, bool deletes) {
    if (expected && *expected == 0 && !deletes) return before ? std::optional(ProposeError::kExists) : std::nullopt;
    if (!before && (deletes || (expected && *expected != 0))) return ProposeError::kNotFound;
    if (expected && before && *expected != before->revision)
      return *expected == 0 ? ProposeError::kExists : ProposeError::kRevisionMismatch;
    return std::nullopt;
  }

  Wish some_wish() {
    Wish out;
    const std::string ns = dice_->chance(50) ? "" : fmt::format("ns{}", dice_->below(2));
    out.filter = pods(ns);
    out.text = "in " + ns;
    if (!ns.empty()) out.all.emplace_back([ns](const TestPod& pod) { return pod.ns == ns; });
    const auto add = [&](const std::string& text, std::function<bool(const TestPod&)> one) {
      out.text += ", " + text;
      out.all.push_back(std::move(one));
      out.is_selective = true;
    };
    if (dice_->chance(20)) {
      const std::string name = fmt::format("p{}", dice_->below(7));
      out.filter.name = name;
      add("named " + name, [name](const TestPod& pod) { return pod.name == name; });
    }
    if (dice_->chance(40)) {
      const std::string node = dice_->chance(20) ? "" : fmt::format("n{}", dice_->below(3));
      const bool equals = dice_->chance(70);
      out.filter.fields.terms.push_back({"spec.nodeName", equals, node});
      add(fmt::format("spec.nodeName{}{}", equals ? "=" : "!=", node), [=](const TestPod& pod) { return (pod.node == node) == equals; });
    }
    if (dice_->chance(20)) {
      out.filter.fields.terms.push_back({"status.phase", true, "Running"});
      add("running", [](const TestPod& pod) { return pod.phase == "Running"; });
    }
    if (dice_->chance(10)) {
      out.filter.fields.terms.push_back({"metadata.name", true, "p1"});
      add("metadata.name=p1", [](const TestPod& pod) { return pod.name == "p1"; });
    }
    if (dice_->chance(10)) {
      out.filter.fields.terms.push_back({"metadata.namespace", true, "ns1"});
      add("metadata.namespace=ns1", [](const TestPod& pod) { return pod.ns == "ns1"; });
    }
    if (dice_->chance(30)) {
      const bool is_a = dice_->chance(50);
      out.filter.labels = *model::Selector::parse(is_a ? "app=a" : "app!=a");
      add(is_a ? "app=a" : "app!=a", [is_a](const TestPod& pod) { return (!pod.labels.empty() && pod.labels[0].second == "a") == is_a; });
    }
    if (dice_->chance(10)) {
      out.filter.also = [](const StoredObject& object) { return object.text_bytes() > 300; };
      add("large", [](const TestPod& pod) { return pod.padding > 0; });
    }
    return out;
  }

  // Lists.

  void list() {
    expect_list(some_wish(), states_, changes_.empty() ? 0 : changes_.back().revision,
                [&](const auto& filter, auto after, auto limit) { return std::optional(cache_->list(filter, after, limit)); });
  }
  void list_then() {
    if (changes_.empty()) return;
    const Revision last = changes_.back().revision, then = std::max<Revision>(1, last - dice_->below(120));
    std::map<std::string, State> states;
    for (const Change& one : changes_) {
      if (one.revision > then) break;
      if (one.now)
        states[one.key] = *one.now;
      else
        states.erase(one.key);
    }
    expect_list(some_wish(), states, then, [&](const auto& filter, auto after, auto limit) {
      auto out = cache_->list_at(then, filter, after, limit);
      EXPECT_TRUE(out || last - then > static_cast<Revision>(kHistory) / 2) << "it is not long ago";
      return out;
    });
  }
  template <typename Ask>
  void expect_list(const Wish& wish, const std::map<std::string, State>& states, Revision revision, Ask ask) {
    const std::string after =
        dice_->chance(60) ? "" : make_key("", "pods", fmt::format("ns{}", dice_->below(2)), fmt::format("p{}", dice_->below(7)));
    const std::size_t limit = dice_->chance(40) ? 0 : static_cast<std::size_t>(1 + dice_->below(5));
    const std::optional<ListResult> answer = ask(wish.filter, std::string_view(after), limit);
    if (!answer) return;
    std::vector<std::string> all, seen;
    for (const auto& [key, state] : states)
      if (key > after && wish.wants(state)) all.push_back(fmt::format("{}@{} of {}", key, state.revision, state.created));
    for (const ObjectPtr& one : answer->items) seen.push_back(fmt::format("{}@{} of {}", one->key, one->revision, one->create_revision));
    const std::size_t whole = all.size();
    if (limit != 0 && whole > limit) all.resize(limit);
    EXPECT_EQ(seen, all) << wish.text;
    EXPECT_EQ(answer->revision, revision);
    EXPECT_EQ(answer->more, all.size() < whole) << wish.text;
    EXPECT_TRUE(wish.is_selective || answer->remaining == static_cast<std::int64_t>(whole - all.size())) << answer->remaining;
  }
  void expect_gets() {
    std::size_t count = 0;
    for (int i = 0; i < 14; ++i) {
      const std::string key = make_key("", "pods", fmt::format("ns{}", i / 7), fmt::format("p{}", i % 7));
      const ObjectPtr object = cache_->get(key);
      const auto state = known(key);
      ASSERT_EQ(object != nullptr, state.has_value()) << key;
      if (object == nullptr) continue;
      ++count;
      EXPECT_EQ(object->revision, state->revision);
      EXPECT_EQ(revision_in_bytes(object), state->revision);
      EXPECT_EQ(object->meta.field("spec.nodeName"), state->pod.node);
    }
    const auto counts = cache_->counts();
    EXPECT_EQ(counts.empty() ? 0 : counts[0].second, count);
  }

  // Watches.

  void begin_watch() {
    if (watching_.size() >= 8) return end_watch();
    auto mine = std::make_unique<Watching>();
    mine->wish = some_wish();
    if (dice_->chance(20)) mine->capacity = static_cast<std::size_t>(dice_->below(6));
    mine->sink = std::make_shared<RecordingSink>(mine->capacity);
    const Revision last = changes_.empty() ? 0 : changes_.back().revision;
    const bool with_state = dice_->chance(30);
    mine->after = dice_->chance(15) ? last + dice_->below(4) : dice_->chance(50) ? last : std::max<Revision>(0, last - dice_->below(120));
    if (with_state) mine->after = last;
    mine->watch = cache_->watch(mine->wish.filter, mine->after, with_state, mine->sink);
    if (mine->watch == nullptr) {
      EXPECT_GT(last - mine->after, static_cast<Revision>(kHistory) / 2) << "it is not long ago";
      EXPECT_TRUE(mine->sink->events().empty());
      return;
    }
    if (with_state) {
      for (const auto& [key, state] : states_)
        if (mine->wish.wants(state)) mine->expect(fmt::format("ADDED {}/{}@{}", state.pod.ns, state.pod.name, state.revision));
      mine->expect(fmt::format("BOOKMARK@{}", last));
    }
    for (const Change& one : changes_) tell(*mine, one);
    watching_.push_back(std::move(mine));
  }
  static void tell(Watching& one, const Change& change) {
    if (change.revision <= one.after) return;
    const bool wanted = one.wish.wants(change.before), wants = one.wish.wants(change.now);
    if (!wanted && !wants) return;
    const TestPod& pod = (change.now ? change.now : change.before)->pod;
    one.expect(fmt::format("{} {}/{}@{}", !wants ? "DELETED" : wanted ? "MODIFIED" : "ADDED", pod.ns, pod.name, change.revision));
  }
  void end_watch() {
    if (watching_.empty()) return;
    const auto at = watching_.begin() + dice_->below(watching_.size());
    if (dice_->chance(50)) {
      watching_.erase(at);
      return;
    }
    (*at)->watch.reset();  // What it was told stays as it is.
  }
  void ask_for_bookmark() {
    if (watching_.empty()) return;
    Watching& one = *watching_[static_cast<std::size_t>(dice_->below(watching_.size()))];
    const Revision last = changes_.empty() ? 0 : changes_.back().revision;
    if (one.watch == nullptr || one.after > last) return;
    one.watch->request_bookmark();
    one.expect(fmt::format("BOOKMARK@{}", last));
  }

  std::unique_ptr<testing_dice> dice_;
  std::vector<Change> changes_;
  std::map<std::string, State> states_;
  std::vector<std::unique_ptr<Watching>> watching_;
};

TEST_F(CacheModel, AgreesWithAPlainHistory) {
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) play(seed, 600);
}

}  // namespace
}  // namespace berth::apiserver
