#include "controllers/engine.h"

#include "base/log.h"

namespace berth::controllers {
namespace {

/// Steps per task of the loop, so that timers and answers are not held up by a long queue.
constexpr int kStepsPerTurn = 64;

bool is_namespace_terminating(const ApiStatus& status) {
  for (const model::StatusCause& cause : status.causes)
    if (cause.reason == "NamespaceTerminating") return true;
  return false;
}

std::string fill(std::string message, std::string_view with) {
  if (const std::size_t at = message.find("{}"); at != std::string::npos) message.replace(at, 2, with);
  return message;
}

/// What a write holds besides what its step told of: the body of a status or a deletion.
constexpr std::size_t kBytesOfWrite = 1024;

/// The server asks everybody who makes objects to come again: it has no room for them now.
bool is_held_back(const Write& write, const ApiStatus& status) {
  return write.verb == Write::Verb::kCreate && status.code == 429 && status.retry_after_seconds > 0;
}

bool is_read(Write::Verb verb) { return verb == Write::Verb::kGet || verb == Write::Verb::kList || verb == Write::Verb::kDeleteCollection; }

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

EventNote note_about(Kind kind, const Object& object, std::string_view type, std::string_view reason, std::string message) {
  EventNote note;
  note.api_version = kind->api_version();
  note.kind = kind->kind;
  note.ns = object.ns();
  note.name = object.name();
  note.uid = object.uid();
  note.resource_version = std::to_string(object.revision());
  note.type = type;
  note.reason = reason;
  note.message = std::move(message);
  return note;
}

std::pair<std::string, std::string> split_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {std::string(), std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

struct Engine::Key {
  std::string name;
  bool queued = false, running = false, dirty = false;
  int failures = 0;
  TimerId timer = TimerId::kNone;
  TimePoint timer_at{}, not_before{}, queued_at{};
};

struct Engine::Queue {
  ControllerPtr controller;
  std::unordered_map<std::string, std::unique_ptr<Key>> keys;
  std::deque<Key*> ready;
  int running = 0;
  metrics::Gauge* depth = nullptr;
  metrics::Counter* adds = nullptr;
  metrics::Counter* retries = nullptr;
  metrics::Histogram* queue_seconds = nullptr;
  metrics::Histogram* work_seconds = nullptr;
};

/// One plan being carried out, then waiting for its writes to be seen.
struct Engine::Run {
  Queue* queue = nullptr;
  Key* key = nullptr;
  Plan plan;
  TimePoint started{};
  std::size_t next = 0;
  int in_flight = 0, slow_in_flight = 0, slow_window = 1;
  std::int64_t stage = 0;
  bool failed = false, slow_stopped = false, over = false;
  bool is_cut = false;    ///< More was wanted than one plan may hold.
  Duration held_back{0};  ///< So long no object is to be made.
  std::size_t bytes = 0;
  std::string error;
  std::map<Kind, std::int64_t> seen_at_least;
  std::vector<std::size_t> deleted;  ///< Indexes of deletes that were accepted.
  int waits = 0;
  TimerId timeout = TimerId::kNone;
};

class Engine::Sink final : public KeySink {
 public:
  Sink(Engine& engine, Queue& queue) : engine_(engine), queue_(queue) {}
  void add(std::string key, Duration delay) override { engine_.enqueue(queue_, key, delay); }

 private:
  Engine& engine_;
  Queue& queue_;
};

Engine::Engine(EventLoop& loop, Api& api, EngineOptions options, metrics::Registry* metrics)
    : loop_(loop), api_(api), options_(std::move(options)), metrics_(metrics) {}

Engine::~Engine() {
  lifeline_.end();
  for (const auto& queue : queues_)
    for (const auto& [name, key] : queue->keys)
      if (key->timer != TimerId::kNone) loop_.cancel(key->timer);
}

void Engine::add(ControllerPtr controller) {
  if (options_.disabled.contains(controller->name())) return;
  auto queue = std::make_unique<Queue>();
  queue->controller = std::move(controller);
  if (metrics_ != nullptr) {
    const metrics::Labels labels = {{"name", std::string(queue->controller->name())}};
    const std::vector<double> bounds = metrics::exponential_buckets(1e-8, 10, 10);
    queue->depth = &metrics_->gauge("workqueue_depth", "Current depth of workqueue", labels);
    queue->adds = &metrics_->counter("workqueue_adds_total", "Total number of adds handled by workqueue", labels);
    queue->retries = &metrics_->counter("workqueue_retries_total", "Total number of retries handled by workqueue", labels);
    queue->queue_seconds = &metrics_->histogram("workqueue_queue_duration_seconds",
                                                "How long in seconds an item stays in workqueue before being requested", bounds, labels);
    queue->work_seconds = &metrics_->histogram("workqueue_work_duration_seconds",
                                               "How long in seconds processing an item from workqueue takes", bounds, labels);
  }
  for (const Kind kind : queue->controller->watches()) watchers_[kind].push_back(queue.get());
  if (queue->controller->watches_custom_kinds()) custom_watchers_.push_back(queue.get());
  queues_.push_back(std::move(queue));
}

void Engine::add_custom_kind(Kind kind) {
  cache_.add_custom_kind(kind);
  watchers_[kind] = custom_watchers_;
}

void Engine::filled_custom_kind(Kind kind) {
  if (!started_ || stopped_ || !watchers_.contains(kind)) return;
  for (Queue* queue : custom_watchers_) {
    Sink sink(*this, *queue);
    queue->controller->on_custom_kind(cache_, loop_.now(), sink);
  }
}

void Engine::drop_custom_kind(Kind kind, bool are_gone) {
  if (are_gone) {
    std::vector<ObjectRef> all;
    cache_.for_each(kind, [&](const ObjectRef& object) { all.push_back(object); });
    for (const ObjectRef& object : all) observe(kind, object, true);
  }
  watchers_.erase(kind);
  cache_.drop_custom_kind(kind);
}

std::vector<Kind> Engine::watched_kinds() const {
  std::vector<Kind> all;
  for (const model::KindInfo& info : model::all_kinds())
    if (watchers_.contains(&info)) all.push_back(&info);
  return all;
}

void Engine::observe(Kind kind, ObjectRef object, bool is_delete) {
  if (stopped_) return;
  const Event event = cache_.apply(kind, std::move(object), is_delete);
  release_waiters(event);
  if (event.before == event.after) return;
  const auto it = watchers_.find(kind);
  if (it == watchers_.end()) return;
  for (Queue* queue : it->second) {
    if (event.is_heartbeat && !queue->controller->counts_heartbeats()) continue;
    Sink sink(*this, *queue);
    queue->controller->on_event(event, cache_, loop_.now(), sink);
  }
}

void Engine::start() {
  started_ = true;
  for (const auto& queue : queues_) {
    Sink sink(*this, *queue);
    queue->controller->on_start(cache_, loop_.now(), sink);
  }
  drain();
}

void Engine::resume() {
  is_paused_ = false;
  if (started_) post_drain();
}

void Engine::stop() { stopped_ = true; }

bool Engine::is_idle() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const auto& queue) { return queue->ready.empty() && queue->running == 0; });
}

void Engine::enqueue(Queue& queue, const std::string& name, Duration delay) {
  std::unique_ptr<Key>& slot = queue.keys[name];
  if (!slot) {
    slot = std::make_unique<Key>();
    slot->name = name;
  }
  Key& key = *slot;
  if (delay <= Duration{0}) {
    make_ready(queue, key);
    return;
  }
  const TimePoint when = loop_.now() + delay;
  if (key.timer != TimerId::kNone) {
    if (key.timer_at <= when) return;
    loop_.cancel(key.timer);
  }
  key.timer_at = when;
  key.timer = loop_.schedule_at(when, lifeline_.guard([this, &queue, name] {
    const auto it = queue.keys.find(name);
    if (it == queue.keys.end()) return;
    it->second->timer = TimerId::kNone;
    make_ready(queue, *it->second);
  }));
}

void Engine::make_ready(Queue& queue, Key& key) {
  if (key.running) {
    key.dirty = true;
    return;
  }
  if (key.queued) return;
  if (const TimePoint now = loop_.now(); now < key.not_before) {
    enqueue(queue, key.name, key.not_before - now);
    return;
  }
  key.queued = true;
  key.queued_at = loop_.now();
  queue.ready.push_back(&key);
  if (queue.adds != nullptr) queue.adds->add(), queue.depth->set(static_cast<double>(queue.ready.size()));
  post_drain();
}

void Engine::post_drain() {
  if (!started_ || drain_posted_) return;
  drain_posted_ = true;
  loop_.post(lifeline_.guard([this] {
    drain_posted_ = false;
    drain();
  }));
}

/// The controllers take turns, and the next begins where this one ended: who always has something to do, and much, keeps nobody waiting.
void Engine::drain() {
  int budget = kStepsPerTurn;
  for (std::size_t idle = 0; idle < queues_.size() && budget > 0 && !stopped_ && !is_paused_;) {
    if (bytes_in_flight_ > options_.bytes_in_flight) return;  // Whoever ends comes by here.
    Queue& queue = *queues_[turn_];
    turn_ = (turn_ + 1) % queues_.size();
    ++idle;
    if (queue.ready.empty() || queue.running >= queue.controller->concurrency()) continue;
    Key* key = queue.ready.front();
    queue.ready.pop_front();
    step(queue, *key);
    idle = 0;
    --budget;
  }
  if (budget <= 0) post_drain();
}

void Engine::step(Queue& queue, Key& key) {
  key.queued = false;
  key.running = true;
  ++queue.running;
  ++steps_;
  auto run = std::make_shared<Run>();
  run->queue = &queue;
  run->key = &key;
  run->started = loop_.now();
  try {
    run->plan = queue.controller->reconcile(key.name, run->started, cache_);
  } catch (const std::exception& e) {
    run->plan = Plan{};
    run->plan.error = fmt::format("unexpected document: {}", e.what());
  }
  if (queue.depth != nullptr) {
    queue.depth->set(static_cast<double>(queue.ready.size()));
    queue.queue_seconds->observe(seconds(run->started - key.queued_at));
  }
  if (options_.trace)
    log::info(queue.controller->name(), "step {}: {} writes, {} events", key.name, run->plan.writes.size(), run->plan.events.size());
  for (const EventNote& note : run->plan.events) api_.note(queue.controller->event_source(), note);
  for (const std::string& other : run->plan.enqueue) enqueue(queue, other, Duration{0});
  if (run->plan.error) {
    run->failed = true;
    run->error = *run->plan.error;
  }
  std::vector<Write>& writes = run->plan.writes;
  std::stable_sort(writes.begin(), writes.end(), [](const Write& a, const Write& b) { return a.stage < b.stage; });
  run->is_cut = run->plan.is_full();
  // What a plan has too much is left away from its end, as if it had failed there.
  if (writes.size() > Plan::kMostWrites && std::ranges::none_of(writes, is_read, &Write::verb)) writes.resize(Plan::kMostWrites);
  run->bytes = run->plan.bytes + writes.size() * kBytesOfWrite;
  bytes_in_flight_ += run->bytes;
  if (!run->plan.writes.empty()) run->stage = run->plan.writes.front().stage;
  pump(run);
}

void Engine::pump(const std::shared_ptr<Run>& run) {
  std::vector<Write>& writes = run->plan.writes;
  while (run->next < writes.size() && run->in_flight < options_.writes_in_flight) {
    const Write& write = writes[run->next];
    if (write.stage != run->stage) {
      if (run->in_flight > 0) return;
      if (run->failed || run->held_back > Duration{0}) break;
      run->stage = write.stage;
    }
    if ((write.slow_start && run->slow_stopped) || (write.verb == Write::Verb::kCreate && run->held_back > Duration{0})) {
      ++run->next;
      continue;
    }
    if (write.slow_start) {
      if (run->slow_in_flight >= run->slow_window) return;
      ++run->slow_in_flight;
    }
    const std::size_t index = run->next++;
    ++run->in_flight;
    api_.send(write, lifeline_.guard([this, run, index](ApiResult<json::Value> result) {
      if (!stopped_) answered(run, index, std::move(result));
    }));
  }
  if (run->in_flight == 0) finish(run);
}

void Engine::answered(const std::shared_ptr<Run>& run, std::size_t index, ApiResult<json::Value> result) {
  Write& write = run->plan.writes[index];
  --run->in_flight;
  if (write.slow_start) --run->slow_in_flight;
  const bool gone = !result && write.verb == Write::Verb::kDelete && result.error().code == 404;
  if (!result && is_held_back(write, result.error())) {
    // No failure that is told again and again: the step is taken anew when the server has asked for it.
    run->held_back = std::max<Duration>(run->held_back, std::chrono::seconds(result.error().retry_after_seconds));
  } else if (result || gone) {
    done(*run, index, result);
  } else {
    failed(*run, write, result.error());
  }
  run->queue->controller->on_result(run->key->name, write, result, loop_.now());
  write.body = nullptr;  // The largest part of a big plan's memory.
  pump(run);
}

void Engine::done(Run& run, std::size_t index, const ApiResult<json::Value>& result) {
  Write& write = run.plan.writes[index];
  if (write.slow_start) run.slow_window = std::min(run.slow_window + 1, options_.writes_in_flight);
  if (write.verb == Write::Verb::kDelete) {
    run.deleted.push_back(index);
  } else if (!is_read(write.verb) && watchers_.contains(write.kind)) {
    std::int64_t revision = 0;
    const std::string_view text = json::get_string(*result, {"metadata", "resourceVersion"});
    std::from_chars(text.data(), text.data() + text.size(), revision);
    // A subresource may answer with another kind (Scale, Binding), whose revision is the object's all the same.
    run.seen_at_least[write.kind] = std::max(run.seen_at_least[write.kind], revision);
  }
  if (!write.on_success || !result) return;
  const std::string name(json::get_string(*result, {"metadata", "name"}, write.name));
  write.on_success->message = fill(std::move(write.on_success->message), name);
  api_.note(run.queue->controller->event_source(), *write.on_success);
}

void Engine::failed(Run& run, Write& write, const ApiStatus& status) {
  const bool silent = write.may_fail || (write.verb == Write::Verb::kCreate && is_namespace_terminating(status));
  if (write.slow_start) run.slow_stopped = true;
  const bool is_no_news = is_namespace_terminating(status) || (write.is_quiet_where_it_exists && status.is("AlreadyExists"));
  if (write.on_failure && !is_no_news) {
    write.on_failure->message = fill(std::move(write.on_failure->message), status.message);
    api_.note(run.queue->controller->event_source(), *write.on_failure);
  }
  if (silent) return;
  run.failed = true;
  if (run.error.empty()) run.error = fmt::format("{} {}/{}: {}", write.kind->plural, write.ns, write.name, status.message);
}

void Engine::finish(const std::shared_ptr<Run>& run) {
  if (run->over) return;
  run->over = true;
  bytes_in_flight_ -= run->bytes;
  post_drain();
  if (run->queue->work_seconds != nullptr) run->queue->work_seconds->observe(seconds(loop_.now() - run->started));
  count_waits(*run);
  if (run->waits == 0)
    settle(*run->queue, *run->key, *run);
  else
    hold(run);
}

void Engine::count_waits(Run& run) const {
  for (const auto& [kind, revision] : run.seen_at_least)
    if (cache_.revision(kind) < revision) ++run.waits;
  std::erase_if(run.deleted, [&](std::size_t index) {
    const Write& write = run.plan.writes[index];
    const ObjectRef object = cache_.get(write.kind, write.ns, write.name);
    return write.uid.empty() || !object || object->uid() != write.uid || object->is_deleting() || !watchers_.contains(write.kind);
  });
  run.waits += static_cast<int>(run.deleted.size());
}

void Engine::hold(const std::shared_ptr<Run>& run) {
  for (const auto& [kind, revision] : run->seen_at_least)
    if (cache_.revision(kind) < revision) revision_waiters_[kind].emplace(revision, run);
  for (const std::size_t index : run->deleted) deletion_waiters_.emplace(run->plan.writes[index].uid, run);
  run->timeout = loop_.schedule_after(options_.visibility_timeout, lifeline_.guard([this, run] {
    if (std::exchange(run->waits, 0) != 0) settle(*run->queue, *run->key, *run);
  }));
}

void Engine::release_waiters(const Event& event) {
  const auto release = [this](const std::shared_ptr<Run>& run) {
    if (run->waits == 0 || --run->waits > 0) return;
    loop_.cancel(run->timeout);
    settle(*run->queue, *run->key, *run);
  };
  std::vector<std::shared_ptr<Run>> released;
  if (const auto it = revision_waiters_.find(event.kind); it != revision_waiters_.end()) {
    const auto end = it->second.upper_bound(cache_.revision(event.kind));
    for (auto waiter = it->second.begin(); waiter != end; ++waiter) released.push_back(waiter->second);
    it->second.erase(it->second.begin(), end);
  }
  const auto release_uid = [&](const std::string& uid) {
    const auto [begin, end] = deletion_waiters_.equal_range(uid);
    for (auto waiter = begin; waiter != end; ++waiter) released.push_back(waiter->second);
    deletion_waiters_.erase(begin, end);
  };
  if (!deletion_waiters_.empty()) {
    if (event.after && event.after->is_deleting()) release_uid(event.after->uid());
    if (event.before && (!event.after || event.after->uid() != event.before->uid())) release_uid(event.before->uid());
  }
  for (const std::shared_ptr<Run>& run : released) release(run);
}

void Engine::settle(Queue& queue, Key& key, Run& run) {
  const TimePoint now = loop_.now();
  key.running = false;
  --queue.running;
  key.not_before = now + run.plan.cooldown;
  if (run.failed) {
    const Controller& controller = *queue.controller;
    const Duration most = controller.retry_most() == Duration{0} ? options_.backoff_max : controller.retry_most();
    Duration delay = controller.retry_base() == Duration{0} ? options_.backoff_base : controller.retry_base();
    for (int i = 0; i < key.failures && delay < most; ++i) delay *= 2;
    ++key.failures;
    if (queue.retries != nullptr) queue.retries->add();
    if (key.failures > 3)
      log::warning(queue.controller->name(), "\"{}\" failed {} times, trying again: {}", key.name, key.failures, run.error);
    enqueue(queue, key.name, std::min(delay, most));
  } else {
    key.failures = 0;
  }
  if (run.held_back > Duration{0} && !run.failed) {
    // Whatever happens meanwhile, the server is not asked more than once a second; what is to be deleted need not wait longer.
    key.not_before = std::max(key.not_before, now + std::min<Duration>(run.held_back, std::chrono::seconds(1)));
    enqueue(queue, key.name, run.held_back);
  }
  if (run.is_cut && !run.failed && run.held_back == Duration{0}) key.dirty = true;
  // What failed waits longer each time, whatever the plan hoped for.
  if (run.plan.requeue_after && !run.failed) enqueue(queue, key.name, std::max(*run.plan.requeue_after, Duration{1}));
  if (key.dirty) {
    key.dirty = false;
    make_ready(queue, key);
  }
  if (!queue.ready.empty()) post_drain();
  if (!key.queued && key.timer == TimerId::kNone && key.not_before <= now) queue.keys.erase(std::string(key.name));
}

}  // namespace berth::controllers
