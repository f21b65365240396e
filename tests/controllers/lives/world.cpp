#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_string;
using json::Value;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::string> words(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(' ', at), path.size());
    out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// Puts the value, or takes the field away.
void put_at(Value& document, const std::string& path, const Value* value) {
  const auto keys = words(path);
  Value* at = &document;
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    Value* next = json::find(*at, keys[i]);
    if (next == nullptr || !next->is_object()) {
      if (value == nullptr) return;
      if (!at->is_object()) *at = json::Object{};
      next = &at->get_object()[keys[i]];
      *next = json::Object{};
    }
    at = next;
  }
  if (value == nullptr)
    at->get_object().erase(keys.back());
  else
    at->get_object()[keys.back()] = *value;
}

}  // namespace

std::vector<Field> pod_fields() {
  const Kind pod = kinds().pod;
  return {
      {pod, "status phase", {"Pending", "Running", "Succeeded", "Failed", "Unknown", ""}},
      {pod,
       "status conditions",
       {"[{type: Ready, status: 'True', lastTransitionTime: '$t'}]", "[{type: Ready, status: 'True', lastTransitionTime: '$t-5'}]",
        "[{type: Ready, status: 'False', lastTransitionTime: '$t'}]", "[{type: Ready, status: 'True'}]", ""}},
      {pod, "spec nodeName", {"n1", "n2", ""}},
      {pod, "metadata labels app", {"w", "v", "w", ""}},
      {pod, "metadata ownerReferences", {"", "[]"}},
      {pod, "metadata annotations controller.kubernetes.io/pod-deletion-cost", {"-3", "5", "05", "x", ""}},
      {pod, "status containerStatuses", {"[{name: c, restartCount: 3}]", "[{name: c, restartCount: 1}, {name: d, restartCount: 2}]", ""}}};
}

class World::Sink final : public KeySink {
 public:
  Sink(Led& led, TimePoint now) : led_(led), now_(now) {}
  void add(std::string key, Duration delay = Duration{0}) override {
    Key& one = led_.keys[key];
    if (one.is_due && one.due <= now_ + delay) return;
    one.is_due = true;
    one.due = now_ + delay;
  }

 private:
  Led& led_;
  TimePoint now_;
};

World::World(Settings settings)
    : life(settings.file, settings.seed, settings.readable), now(*parse_rfc3339("2026-01-05T10:00:00Z")), settings_(std::move(settings)) {}

void World::add(Make make) {
  Led& led = led_.emplace_back();
  led.controller = make();
  led.make = std::move(make);
  for (const Kind kind : led.controller->watches())
    if (std::ranges::find(watched_, kind) == watched_.end()) watched_.push_back(kind);
  Sink sink(led, now);
  led.controller->on_start(cache_, now, sink);
}

std::string World::at() const {
  return fmt::format("{:.1f}", std::chrono::duration<double>(now - *parse_rfc3339("2026-01-05T10:00:00Z")).count());
}

void World::wrong(const std::string& what) {
  if (++wrongs_ <= 3) ADD_FAILURE() << what << "\n" << life.last(16);
}

std::pair<std::string, std::string> World::names_of(Kind kind, const std::string& key) {
  return kind->namespaced ? split_key(key) : std::pair(std::string(), key);
}

Value* World::find(Kind kind, const std::string& key) {
  const auto [ns, name] = names_of(kind, key);
  const auto it = objects_.find({kind->kind, ns, name});
  return it == objects_.end() ? nullptr : &it->second.second;
}

std::vector<std::string> World::keys(Kind kind) const {
  std::vector<std::string> out;
  for (const auto& [name, object] : objects_)
    if (object.first == kind) out.push_back(kind->namespaced ? std::get<1>(name) + "/" + std::get<2>(name) : std::get<2>(name));
  return out;
}

std::string World::any(Kind kind) {
  const auto all = keys(kind);
  return all.empty() ? std::string() : life.dice.of(all);
}

std::string World::filled_in(std::string text) {
  const auto object_at = [&](std::size_t from, std::size_t end) -> std::pair<Kind, const Value*> {
    const std::string inside = text.substr(from, end - from), kind_name = inside.substr(0, inside.find(' ')),
                      key = inside.substr(inside.find(' ') + 1);
    for (const auto& [name, object] : objects_)
      if (std::get<0>(name) == kind_name && (key == std::get<2>(name) || key == std::get<1>(name) + "/" + std::get<2>(name)))
        return {object.first, &object.second};
    return {nullptr, nullptr};
  };
  for (std::size_t at = 0; (at = text.find('$', at)) != std::string::npos;) {
    if (text.compare(at, 2, "$t") == 0) {
      std::size_t end = at + 2;
      std::int64_t shift = 0;
      if (end < text.size() && (text[end] == '-' || text[end] == '+')) {
        const bool minus = text[end++] == '-';
        while (end < text.size() && text[end] >= '0' && text[end] <= '9') shift = shift * 10 + (text[end++] - '0');
        if (minus) shift = -shift;
      }
      text.replace(at, end - at, format_rfc3339(now + seconds(shift)));
      continue;
    }
    const std::size_t open = text.find('(', at), close = text.find(')', at);
    const auto [kind, object] = object_at(open + 1, close);
    const std::string uid = object == nullptr ? "uid-gone" : std::string(get_string(*object, {"metadata", "uid"}));
    std::string made = uid;
    if (text.compare(at, 6, "$owner") == 0) {
      const std::string inside = text.substr(open + 1, close - open - 1), name = inside.substr(inside.find_last_of("/ ") + 1);
      made = fmt::format("{{apiVersion: {}, kind: {}, name: {}, uid: {}, controller: true, blockOwnerDeletion: true}}",
                         kind == nullptr ? "v1" : kind->api_version(), inside.substr(0, inside.find(' ')), name, uid);
    }
    text.replace(at, close + 1 - at, made);
  }
  return text;
}

void World::put(Kind kind, const std::string& key, Value document, const std::string& said) {
  const auto [ns, name] = names_of(kind, key);
  if (kind->namespaced) json::set(document, {"metadata", "namespace"}, Value(ns));
  json::set(document, {"metadata", "name"}, Value(name));
  if (!said.empty()) life.tell(fmt::format("[{}] {}", at(), said));
  store(kind, document);
}

void World::show(Kind kind, const Value& document, bool is_delete) {
  if (const auto held = held_.find(kind); held != held_.end())
    held->second.emplace_back(document, is_delete);
  else
    observe(kind, document, is_delete);
}

void World::observe(Kind kind, const Value& document, bool is_delete) {
  const Event event = cache_.apply(kind, std::make_shared<Object>(document), is_delete);
  if (event.before == event.after) return;
  for (Led& led : led_) {
    const auto watches = led.controller->watches();
    if (std::ranges::find(watches, kind) == watches.end()) continue;
    Sink sink(led, now);
    led.controller->on_event(event, cache_, now, sink);
  }
}

void World::let_go() {
  auto held = std::exchange(held_, {});
  // In the order of the watched kinds: pointers have none that lasts.
  for (const Kind kind : watched_)
    if (const auto it = held.find(kind); it != held.end())
      for (const auto& [document, is_delete] : it->second) observe(kind, document, is_delete);
  for (Led& led : led_)
    for (auto& [name, key] : led.keys) key.unseen.clear();
}

// --- Edits

void World::make_one(const Sort& sort) {
  const std::string& key = life.dice.of(sort.names);
  if (find(sort.kind, key) != nullptr) return;
  Value document = yaml(filled_in(sort.document));
  std::vector<const Field*> of_kind;
  for (const Field& field : fields)
    if (field.kind == sort.kind) of_kind.push_back(&field);
  for (int i = life.dice.below(4); i > 0 && !of_kind.empty(); --i) {
    const Field& field = *life.dice.of(of_kind);
    const std::string& text = life.dice.of(field.values);
    const Value value = text.empty() ? Value() : yaml("v: " + filled_in(text)).at("v");
    put_at(document, field.path, text.empty() ? nullptr : &value);
  }
  put(sort.kind, key, document, fmt::format("make {} {}: {}", sort.kind->kind, key, brief(document)));
}

void World::change_one() {
  const Field& field = life.dice.of(fields);
  const std::string key = any(field.kind);
  if (key.empty()) return;
  change(field.kind, key, *find(field.kind, key), field);
}

void World::change(Kind kind, const std::string& key, Value document, const Field& field) {
  const std::string text = filled_in(life.dice.of(field.values));
  const Value value = text.empty() ? Value() : yaml("v: " + text).at("v");
  put_at(document, field.path, text.empty() ? nullptr : &value);
  put(kind, key, std::move(document), fmt::format("set {} {} {} = {}", kind->kind, key, field.path, text.empty() ? "-" : brief(value)));
}

void World::remove_one() {
  const Sort& sort = life.dice.of(sorts);
  const std::string key = any(sort.kind);
  if (key.empty()) return;
  DeleteOptions options;
  const int how = life.dice.below(8);
  if (how == 0) options.propagation = Propagation::kForeground;
  if (how == 1) options.propagation = Propagation::kOrphan;
  if (how == 2) options.grace_period_seconds = 0;
  remove(sort.kind, key, options, fmt::format("delete {} {} ({})", sort.kind->kind, key, how));
}

void World::hold_or_let_go() {
  if (!held_.empty()) {
    life.tell("the watches go on");
    return let_go();
  }
  const Kind kind = life.dice.of(watched_);
  life.tell(fmt::format("the watch of {} is late", kind->kind));
  held_[kind];
}

/// A controller begins over what there is: object by object, kind by kind, as the first lists come.
void World::begin(ControllerPtr& controller, const Make& make, const Cache& from, Cache& cache, KeySink& sink) const {
  controller = make();
  for (const Kind kind : controller->watches())
    from.for_each(kind, [&](const ObjectRef& object) { controller->on_event(cache.apply(kind, object, false), cache, now, sink); });
  controller->on_start(cache, now, sink);
}

void World::restart() {
  life.tell("the controllers begin anew");
  let_go();
  // All of them have one cache, which each kind comes to once.
  Cache cache;
  for (Led& led : led_) {
    led.keys.clear();
    led.controller = led.make();
  }
  for (const Kind kind : watched_)
    cache_.for_each(kind, [&](const ObjectRef& object) {
      const Event event = cache.apply(kind, object, false);
      for (Led& led : led_) {
        const auto watches = led.controller->watches();
        if (std::ranges::find(watches, kind) == watches.end()) continue;
        Sink sink(led, now);
        led.controller->on_event(event, cache, now, sink);
      }
    });
  cache_ = std::move(cache);
  for (Led& led : led_) {
    Sink sink(led, now);
    led.controller->on_start(cache_, now, sink);
  }
}

void World::edit() {
  const int what = life.dice.below(100);
  if (what < 2) return restart();
  if (what < 6) return hold_or_let_go();
  if (what < 8) {
    refuses_ = !refuses_;
    return life.tell(refuses_ ? "writes may be refused" : "writes are not refused");
  }
  if (what < 20) return make_one(life.dice.of(sorts));
  if (what < 26) return remove_one();
  int weights = 0;
  for (const Act& act : acts) weights += act.weight;
  if (what < 60 && weights > 0) {
    int left = life.dice.below(static_cast<std::size_t>(weights));
    for (const Act& act : acts)
      if ((left -= act.weight) < 0) return act.does();
  }
  change_one();
}

void World::play_kubelet(const std::vector<std::string>& nodes) {
  const std::string key = any(kinds().pod);
  if (key.empty()) return;
  Value pod = *find(kinds().pod, key);
  const auto ready = [&](const char* status) {
    merge(pod,
          yaml(filled_in(fmt::format("status: {{phase: Running, startTime: '$t', conditions: [{{type: Ready, status: '{}', "
                                     "lastTransitionTime: '$t'}}]}}",
                                     status))),
          true);
  };
  std::string said;
  if (!get_string(pod, {"metadata", "deletionTimestamp"}).empty()) {
    if (!get_array(pod, {"metadata", "finalizers"}).empty()) {
      json::set(pod, {"status", "phase"}, Value(life.dice.chance(50) ? "Failed" : "Succeeded"));
      said = "ends, held by its finalizers";
    } else {
      return erase(kinds().pod, key, fmt::format("pod {} is gone", key));
    }
  } else if (get_string(pod, {"spec", "nodeName"}).empty()) {
    json::set(pod, {"spec", "nodeName"}, Value(life.dice.of(nodes)));
    if (life.dice.chance(70)) ready("True");
    said = "is bound to " + std::string(get_string(pod, {"spec", "nodeName"}));
  } else if (const int how = life.dice.below(10); how < 6) {
    ready("True");
    said = "is ready";
  } else if (how < 8) {
    ready("False");
    said = "is not ready";
  } else {
    json::set(pod, {"status", "phase"}, Value(how == 8 ? "Failed" : "Succeeded"));
    said = how == 8 ? "fails" : "succeeds";
  }
  put(kinds().pod, key, std::move(pod), fmt::format("pod {} {}", key, said));
}

// --- Steps

/// A controller that begins here and now, and sees what the other one's cache holds, wants the same.
void World::ask_twin(const Led& led, const std::string& key, const Plan& plan) {
  Led twin{led.make, nullptr, {}};
  Sink sink(twin, now);
  Cache cache;
  begin(twin.controller, twin.make, cache_, cache, sink);
  const auto wants = [&](const Plan& of) {
    std::vector<std::string> out;
    for (const Write& write : of.writes) out.push_back(tell_write(write));
    std::ranges::sort(out);
    return fmt::format("{}", fmt::join(out, "\n  "));
  };
  const std::string fresh = wants(twin.controller->reconcile(key, now, cache)), old = wants(plan);
  if (fresh != old)
    wrong(fmt::format("{} of {} wants\n  {}\nwhile one that begins now wants\n  {}", led.controller->name(), key, old, fresh));
}

bool World::step() {
  Led* led = nullptr;
  std::map<std::string, Key>::iterator chosen;
  for (Led& one : led_)
    for (auto it = one.keys.begin(); it != one.keys.end(); ++it) {
      if (!it->second.is_due || it->second.due > now || !it->second.unseen.empty()) continue;
      if (led != nullptr && chosen->second.due <= it->second.due) continue;
      led = &one;
      chosen = it;
    }
  if (led == nullptr) return false;
  const std::string key = chosen->first;
  chosen->second.is_due = false;
  Plan plan = led->controller->reconcile(key, now, cache_);
  std::stable_sort(plan.writes.begin(), plan.writes.end(), [](const Write& a, const Write& b) { return a.stage < b.stage; });
  const std::string said = tell_plan(plan);
  std::string cooldown = plan.cooldown > Duration{0} ? fmt::format(" (pause {})", format_go_duration(plan.cooldown)) : "";
  life.tell(fmt::format("  {} {} {}{}{}", at(), led->controller->name(), key, cooldown, said.empty() ? ": nothing" : ""));
  for (std::size_t from = 0; from < said.size();) {
    const std::size_t end = said.find('\n', from);
    life.tell(said.substr(from, end - from));
    from = end + 1;
  }
  if (!settings_.has_memory) ask_twin(*led, key, plan);
  carry_out(*led, key, std::move(plan));
  if (judge) judge();
  return true;
}

void World::carry_out(Led& led, const std::string& name, Plan plan) {
  bool failed = plan.error.has_value(), slow_stopped = false;
  std::int64_t stage = plan.writes.empty() ? 0 : plan.writes.front().stage;
  std::set<Kind> unseen;
  for (Write& write : plan.writes) {
    if (write.stage != stage && failed) break;
    stage = write.stage;
    if (write.slow_start && slow_stopped) continue;
    std::string said;
    const ApiResult<Value> result = serve(write, said);
    const bool gone = !result && write.verb == Write::Verb::kDelete && result.error().code == 404;
    if (!said.empty()) life.tell(fmt::format("      {} {}: {}", write.kind->kind, write.name, said));
    if (result && held_.contains(write.kind)) unseen.insert(write.kind);
    const auto note = result || gone ? write.on_success : write.on_failure;
    const bool is_no_news = !result && write.is_quiet_where_it_exists && result.error().is("AlreadyExists");
    if (note && !gone && !is_no_news) {
      std::string message = note->message;
      const std::string with = result ? std::string(get_string(*result, {"metadata", "name"}, write.name)) : result.error().message;
      if (const std::size_t place = message.find("{}"); place != std::string::npos) message.replace(place, 2, with);
      life.tell(fmt::format("      event {} {} of {} {}: {}", note->type, note->reason, note->kind, note->name, message));
    }
    if (!result && !gone && !write.may_fail) failed = true;
    if (!result && write.slow_start) slow_stopped = true;
    led.controller->on_result(name, write, result, now);
  }
  Sink sink(led, now);
  for (const std::string& other : plan.enqueue) sink.add(other);
  Key& key = led.keys[name];
  key.unseen = std::move(unseen);
  if (failed)
    sink.add(name, seconds(1) * (1 << std::min(key.failures++, 6)));
  else
    key.failures = 0;
  if (plan.requeue_after && !failed) sink.add(name, std::max(*plan.requeue_after, Duration{1}));
}

void World::run(Duration time) {
  const TimePoint end = now + time;
  std::size_t left = settings_.steps_an_edit;
  while (left > 0) {
    if (step()) {
      --left;
      continue;
    }
    TimePoint next = end;
    for (const Led& led : led_)
      for (const auto& [name, key] : led.keys)
        if (key.is_due && key.unseen.empty()) next = std::min(next, key.due);
    if (next >= end) break;
    now = std::max(now, next);
  }
  if (left == 0) life.tell("  (still busy)");
  now = std::max(now, end);
}

// --- The life

void World::rest() {
  life.tell("rest");
  refuses_ = false;
  let_go();
  for (int i = 0; i < 6; ++i) {
    for (const std::string& key : keys(kinds().pod))
      if (const Value& pod = *find(kinds().pod, key);
          !get_string(pod, {"metadata", "deletionTimestamp"}).empty() && get_array(pod, {"metadata", "finalizers"}).empty())
        erase(kinds().pod, key, fmt::format("pod {} is gone", key));
    run(hours(i < 5 ? 0 : 2) + seconds(30));
  }
  if (judge_rest) judge_rest();
  if (settings_.is_restless) return;
  for (Led& led : led_)
    for (const auto& [name, key] : std::map(led.keys)) {
      Plan plan = led.controller->reconcile(name, now, cache_);
      // What is on its way, held by somebody's finalizers, may be told to go again.
      std::erase_if(plan.writes, [&](const Write& write) {
        const ObjectRef object = cache_.get(write.kind, write.ns, write.name);
        return write.verb == Write::Verb::kDelete && object && object->is_deleting();
      });
      if (!plan.writes.empty()) wrong(fmt::format("{} of {} is not at rest:\n{}", led.controller->name(), name, tell_plan(plan)));
    }
}

void World::empty_out() {
  life.tell("everything goes");
  for (int round = 0; round < 3; ++round) {
    for (const auto& [name, object] : std::map(objects_)) {
      const auto& [kind_name, ns, one] = name;
      const std::string key = ns.empty() ? one : ns + "/" + one;
      DeleteOptions options;
      if (round > 0) options.grace_period_seconds = 0;
      remove(object.first, key, options, "");
    }
    run(seconds(60));
  }
  for (const auto& [name, object] : std::map(objects_)) {
    const auto& [kind_name, ns, one] = name;
    erase(object.first, ns.empty() ? one : ns + "/" + one, fmt::format("left over: {} {}/{}", kind_name, ns, one));
  }
  run(hours(1));
}

void World::live() {
  for (int part = 0; part < 2; ++part) {
    for (const Sort& sort : sorts) make_one(sort);
    for (int i = 0; i < (part == 0 ? settings_.edits : settings_.edits / 4); ++i) {
      edit();
      run(Duration(life.dice.chance(50) ? 0 : life.dice.below(static_cast<std::size_t>(settings_.longest.count() / 500'000)) * 500'000));
    }
    rest();
    empty_out();
  }
  life.expect_as_recorded();
}

}  // namespace berth::controllers::lives
