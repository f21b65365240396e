// The informer's life:
//
//   start --> list (pages) --> emit the difference --> watch from the list's revision <--+
//               ^   ^                                     |      |                      |
//               |   +-- after a pause: failed list        |      +-- ended, lost: after a pause, from the last revision seen
//               +-- 410 in any form, refused watch  ------+
//
// In the server's own process there are no pages: the watch begins with what is there (sendInitialEvents), in objects that the server
// holds.
//
// Decoding happens on the transport's thread; everything else on the loop.
#include "client/informer.h"

#include "base/lifeline.h"
#include "base/log.h"
#include "base/mutex.h"
#include "client/informer_store.h"
#include "client/response.h"
#include "client/watch_decoder.h"
#include "model/watch_options.h"

namespace berth::client {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(200);
constexpr Duration kLongestPause = std::chrono::seconds(30);
/// A watch that ends sooner without having brought anything counts as a failure.
constexpr Duration kShortWatch = std::chrono::seconds(1);
/// How long after its agreed end a watch may stay silent before it is given up.
constexpr Duration kWatchOverdue = std::chrono::seconds(30);
/// How long a watch that does not say when it is current has to be without news to be taken for it.
constexpr Duration kQuiet = std::chrono::seconds(1);
constexpr int kMinWatchSeconds = 300;  // client-go's reflector: five to ten minutes
/// Watches are begun anew to find dead connections and to spread over servers. Within a process there is neither.
constexpr int kMinWatchSecondsInProcess = 12 * 3600;
/// Events, and objects of a list, handled at once. Who else has tasks on the loop (answers to what the handlers wrote, a node's heartbeats)
/// comes between, however many wait.
constexpr std::size_t kEventsATurn = 256;

std::uint64_t hash_of(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325ULL) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

bool is_expired(const ApiStatus& status) { return status.code == 410 || status.is("Expired") || status.is("Gone"); }

/// The server is busy or away, not unwilling: the watch may go on from where it was.
bool is_passing(const ApiStatus& status) { return status.code == 0 || status.code == 429 || status.code >= 500; }

/// One watch request on its way. Filled by the transport's callbacks, emptied on the loop.
struct WatchSession {
  Mutex mutex;
  WatchDecoder decoder BERTH_GUARDED_BY(mutex);
  std::deque<WatchEvent> events BERTH_GUARDED_BY(mutex);
  net::HttpResponse answer BERTH_GUARDED_BY(mutex){
      .status = 0, .headers = {}, .body = {}};  ///< The head; and the body, when it is not a watch's.
  bool is_posted BERTH_GUARDED_BY(mutex) = false, is_ended BERTH_GUARDED_BY(mutex) = false, is_broken BERTH_GUARDED_BY(mutex) = false;
  std::string end_error BERTH_GUARDED_BY(mutex);

  std::function<void()> take;                 ///< Has them handled; posted to the loop.
  std::unique_ptr<net::StreamHandle> handle;  // on the loop only, as the rest
  TimePoint started{};
  bool brought_events = false;
  bool is_listing = false;           ///< What is there comes first, until a bookmark ends it.
  bool brought_news_lately = false;  ///< Since is_quiet was looked at.
};

}  // namespace

struct Informer::Impl : Guarded<Informer::Impl> {
  Impl(Client& client, Gvr gvr, InformerOptions options)
      : transport(client.transport()),
        loop(client.loop()),
        user_agent(client.user_agent()),
        gvr(std::move(gvr)),
        options(std::move(options)) {
    const auto seed = hash_of(this->options.ns + "/" + this->options.label_selector + "/" + this->options.field_selector,
                              hash_of(this->gvr.group + "/" + this->gvr.resource));
    random.seed(seed ^ this->options.seed);
  }

  std::shared_ptr<Transport> transport;
  EventLoop* loop;
  std::string user_agent;
  Gvr gvr;
  InformerOptions options;
  std::mt19937_64 random;

  InformerStore store;
  std::vector<std::shared_ptr<InformerHandler>> handlers;
  std::vector<std::function<void()>> waiting_for_sync;
  bool is_started = false, is_synced = false;
  bool has_listed = false;    ///< The server has the kind, and shows it.
  std::string last_revision;  ///< As the server wrote it.
  std::int64_t revision = 0;
  int failures = 0;

  std::uint64_t list_id = 0;  ///< Answers to earlier lists are ignored.
  std::vector<ObjectRef> listed;
  std::string list_revision;
  std::optional<std::size_t> taken;  ///< So many of them: they are taken into the cache, and no event is until all are.
  bool list_whole = false;           ///< A continue token expired: take the list in one piece.
  std::shared_ptr<WatchSession> session;
  TimerId timer = TimerId::kNone, quiet_timer = TimerId::kNone;
  void (Impl::*next_step)() = nullptr;  ///< What the timer runs.

  bool is_behind = false;  ///< The watch was lost, and what came since is not known yet.
  std::function<void(bool)> behind_changed;
  std::uint64_t asked = 0;        ///< To be current, so often.
  std::uint64_t list_proves = 0;  ///< `asked` when the list began.
  std::map<std::uint64_t, std::function<void()>> waiting_to_be_current;

  void stop() {
    end();
    loop->cancel(timer);
    loop->cancel(quiet_timer);
    session.reset();
    handlers.clear();
  }

  net::HttpRequest request(std::string query) const {
    net::HttpRequest out;
    out.method = "GET";
    out.path = resource_path(gvr, options.ns);
    if (!options.label_selector.empty()) query += "&labelSelector=" + net::percent_encode(options.label_selector);
    if (!options.field_selector.empty()) query += "&fieldSelector=" + net::percent_encode(options.field_selector);
    out.query = std::move(query);
    out.headers.add("User-Agent", user_agent);
    out.headers.add("Accept", "application/json");
    return out;
  }

  /// Runs a step of this informer on the loop later, unless it is gone by then.
  void later(Duration delay, void (Impl::*step)()) {
    loop->cancel(timer);
    next_step = step;
    timer = loop->schedule_after(delay, guarded([step](Impl& self) {
                                   self.timer = TimerId::kNone;
                                   (self.*step)();
                                 }));
  }

  Duration next_pause(int retry_after_seconds) {
    ++failures;
    const auto doubled = failures > 16 ? kLongestPause : kFirstPause * (std::int64_t{1} << (failures - 1));
    const auto base = std::min<Duration>(doubled, kLongestPause);
    const auto jittered = base * (900 + static_cast<std::int64_t>(random() % 201)) / 1000;
    return std::max<Duration>(jittered, std::chrono::seconds(retry_after_seconds));
  }

  // --- list ---

  void begin_list() {
    session.reset();
    listed.clear();
    taken.reset();
    list_proves = asked;
    if (!transport->is_in_process()) return list_page({});
    open_watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=", true);
  }

  void list_page(const std::string& token) {
    const auto id = ++list_id;
    std::string query = "resourceVersion=";
    if (options.page > 0 && !list_whole) query = "limit=" + std::to_string(options.page) + (token.empty() ? "&resourceVersion=" : "");
    if (!token.empty()) query += "&continue=" + net::percent_encode(token);
    auto take = guarded([id](Impl& self, ApiResult<ObjectPage>& page) {
      if (self.list_id == id) self.take_page(std::move(page));
    });
    transport->send(request(std::move(query)), [take, loop = loop](net::HttpResponse response) {
      loop->post([take, page = std::make_shared<ApiResult<ObjectPage>>(decode_response(response))] { take(*page); });
    });
  }

  static ApiResult<ObjectPage> decode_response(const net::HttpResponse& response) {
    if (response.status != 200) return std::unexpected(status_of(response));
    auto page = decode_list(response.body);
    if (page) return std::move(*page);
    return std::unexpected(transport_error(page.error().message));
  }

  void take_page(ApiResult<ObjectPage> page) {
    if (!page) {
      if (is_expired(page.error()) && !listed.empty() && !list_whole) {
        list_whole = true;
        return begin_list();
      }
      return list_failed(page.error());
    }
    listed.insert(listed.end(), std::make_move_iterator(page->objects.begin()), std::make_move_iterator(page->objects.end()));
    if (!page->continue_token.empty()) return list_page(page->continue_token);
    list_revision = page->resource_version;
    take_list();
  }

  void list_failed(const ApiStatus& status) {
    list_whole = false;
    // The core group is always there: a 404 from it is a fault like any other.
    if (status.code == 404 && !has_listed && !gvr.group.empty()) return not_served();
    if (status.code == 403 && !has_listed && options.is_optional) return forbidden(status.message);
    report("list", status.message);
    later(next_pause(status.retry_after_seconds), &Impl::begin_list);
  }

  /// All that is there is in `listed`: the cache takes the difference, deletions first, since what they free is there for what is added.
  void take_list() {
    list_whole = false;
    taken = 0;
    forget_all_but_listed();
    take_turn();
  }

  void take_turn() {
    const std::size_t end = std::min(listed.size(), *taken + kEventsATurn);
    while (!has_ended() && *taken < end) put(std::exchange(listed[(*taken)++], nullptr), true);
    if (*taken == listed.size()) return list_taken();
    loop->post(guarded([list = list_id](Impl& self) {
      if (self.list_id == list && self.taken) self.take_turn();
    }));
  }

  /// Only now the cache is as new as the list.
  void list_taken() {
    taken.reset();
    listed = {};
    if (!list_revision.empty()) note_revision(list_revision);
    has_listed = true;
    tell_synced();
    tell_current(list_proves);
    if (has_ended()) return;
    if (!session) return begin_watch();
    if (!waiting_to_be_current.empty()) return rewatch();  // Who asked while it was on its way.
    loop->post(session->take);
  }

  void tell_synced() {
    if (has_ended() || std::exchange(is_synced, true)) return;
    for (const auto& synced : std::exchange(waiting_for_sync, {})) synced();
  }

  /// A server that does not know the kind has no object of it: whoever waits for this cache need not wait until it does. Once objects were
  /// seen, a 404 is a fault: nothing vanishes by it.
  void not_served() {
    if (!is_synced) log::info("informer", "{} are not served", gvr.resource);
    go_on_without();
  }

  /// A right that is given later fills the cache then.
  void forbidden(const std::string& message) {
    if (!is_synced) log::warning("informer", "going on without {}: {}; grant list and watch on them", gvr.resource, message);
    go_on_without();
  }

  void go_on_without() {
    tell_synced();
    tell_current(list_proves);
    // Who asked while this list was on its way is answered by the next.
    if (!has_ended()) later(waiting_to_be_current.empty() ? kLongestPause : Duration::zero(), &Impl::begin_list);
  }

  void forget_all_but_listed() {
    if (store.size() == 0) return;
    std::set<std::pair<std::string_view, std::string_view>> present;
    for (const auto& object : listed) present.emplace(object->ns(), object->name());
    for (const auto& known : store.all()) {
      if (!present.contains({known->ns(), known->name()})) remove(known);
    }
  }

  // --- current: as new as whoever asks ---

  void catch_up(std::function<void()> done) {
    waiting_to_be_current.emplace(++asked, std::move(done));
    if (session && !session->is_listing && !taken) return rewatch();
    retry_now();  // Or a list is on its way: the watch after it will tell.
  }

  void retry_now() {
    if (session || taken || timer == TimerId::kNone) return;
    failures = 0;
    loop->cancel(std::exchange(timer, TimerId::kNone));
    (this->*next_step)();
  }

  void set_behind(bool now) {
    if (has_ended() || !is_synced || std::exchange(is_behind, now) == now) return;
    if (behind_changed) behind_changed(now);
  }

  void tell_current(std::uint64_t proven) {
    set_behind(false);
    while (!has_ended() && !waiting_to_be_current.empty() && waiting_to_be_current.begin()->first <= proven)
      waiting_to_be_current.extract(waiting_to_be_current.begin()).mapped()();
  }

  [[nodiscard]] bool is_waiting_to_be_current() const { return is_behind || !waiting_to_be_current.empty(); }

  void look_for_quiet(const std::shared_ptr<WatchSession>& at) {
    loop->cancel(quiet_timer);
    quiet_timer = loop->schedule_after(kQuiet, guarded([looked_at = std::weak_ptr(at)](Impl& self) {
                                         self.quiet_timer = TimerId::kNone;
                                         const auto s = looked_at.lock();
                                         if (!s || self.session != s || !self.is_waiting_to_be_current()) return;
                                         if (is_quiet(*s)) return self.tell_current(self.asked);
                                         self.look_for_quiet(s);
                                       }));
  }

  static bool is_quiet(WatchSession& session) {
    const MutexLock lock(session.mutex);
    return !std::exchange(session.brought_news_lately, false) && session.answer.status == 200 && session.events.empty();
  }

  // --- watch ---

  void begin_watch() { open_watch("resourceVersion=" + net::percent_encode(last_revision), false); }

  void open_watch(const std::string& from, bool is_listing) {
    session = std::make_shared<WatchSession>();
    session->started = loop->now();
    session->is_listing = is_listing;
    const bool tells_when_current = !is_listing && is_waiting_to_be_current();
    const int shortest = transport->is_in_process() ? kMinWatchSecondsInProcess : kMinWatchSeconds;
    const int seconds = shortest + static_cast<int>(random() % static_cast<unsigned>(shortest));
    auto query = fmt::format("watch=true&allowWatchBookmarks=true&{}&timeoutSeconds={}", from, seconds);
    if (tells_when_current) {
      query += fmt::format("&{}=true", model::kTellWhenCurrent);
      look_for_quiet(session);
    }
    later(std::chrono::seconds(seconds) + kWatchOverdue, &Impl::rewatch);
    const auto current = session;
    current->take = guarded([from = std::weak_ptr(current)](Impl& self) {
      if (const auto posted = from.lock(); posted && self.session == posted) self.take_events(posted);
    });
    // With its mutex, which clang does not see of an operator's argument.
    auto notify = [loop = loop](WatchSession& s) BERTH_NO_THREAD_SAFETY_ANALYSIS {
      if (!std::exchange(s.is_posted, true)) loop->post(s.take);
    };
    net::StreamCallbacks callbacks;
    // The callbacks must not keep the session alive: it owns the handle whose destruction ends them.
    callbacks.on_header = [weak = std::weak_ptr(current)](int status, const net::Headers& headers) {
      if (const auto s = weak.lock()) {
        MutexLock lock(s->mutex);
        s->answer.status = status;
        if (status != 200) s->answer.headers = headers;
      }
    };
    callbacks.on_data = [weak = std::weak_ptr(current), notify](std::string_view data) {
      const auto s = weak.lock();
      if (!s) return;
      MutexLock lock(s->mutex);
      if (s->answer.status != 200) {
        s->answer.body.append(data);
        return;
      }
      if (s->is_broken) return;
      s->is_broken = !s->decoder.feed(data, s->events);
      if (!s->events.empty() || s->is_broken) notify(*s);
    };
    callbacks.on_event = [weak = std::weak_ptr(current), notify](std::string_view type, const KeptTextRef& object) {
      const auto s = weak.lock();
      if (!s) return;
      const MutexLock lock(s->mutex);
      s->is_broken = s->is_broken || !WatchDecoder::take(type, object, s->events);
      notify(*s);
    };
    callbacks.on_end = [weak = std::weak_ptr(current), notify](std::string error) {
      const auto s = weak.lock();
      if (!s) return;
      MutexLock lock(s->mutex);
      s->is_ended = true;
      s->end_error = std::move(error);
      notify(*s);
    };
    current->handle = transport->stream(request(std::move(query)), std::move(callbacks));
  }

  void rewatch() {
    session.reset();
    begin_watch();
  }

  void take_events(const std::shared_ptr<WatchSession>& current) {
    if (taken) return;  // Comes again afterwards.
    std::vector<WatchEvent> events;
    bool is_ended = false, is_broken = false;
    {
      MutexLock lock(current->mutex);
      auto& waiting = current->events;
      const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(std::min(waiting.size(), kEventsATurn));
      events.assign(std::make_move_iterator(waiting.begin()), std::make_move_iterator(end));
      waiting.erase(waiting.begin(), end);
      current->is_posted = !waiting.empty();
      if (current->is_posted) loop->post(current->take);
      is_ended = !current->is_posted && current->is_ended;
      is_broken = !current->is_posted && current->is_broken;
    }
    for (auto event = events.begin(); event != events.end(); ++event) {
      if (event->type == WatchEvent::Type::kError) return watch_failed(event->status);
      current->is_listing ? gather(*current, std::move(*event)) : apply(std::move(*event));
      if (has_ended() || session != current) return;
      current->brought_events = current->brought_news_lately = true;
      failures = 0;
      if (taken) return give_back(*current, std::next(event), events.end());
    }
    if (is_broken) return watch_failed(transport_error("the watch stream is malformed"));
    if (is_ended) watch_ended(*current);
  }

  using Events = std::vector<WatchEvent>::iterator;
  static void give_back(WatchSession& of, Events from, Events to) {
    const MutexLock lock(of.mutex);
    of.events.insert(of.events.begin(), std::make_move_iterator(from), std::make_move_iterator(to));
  }

  /// Only at the end it is known what is no longer there.
  void gather(WatchSession& of, WatchEvent event) {
    if (event.type != WatchEvent::Type::kBookmark) return listed.push_back(std::move(event.object));
    if (!ends_what_was(event)) return;
    of.is_listing = false;
    list_revision = event.object->revision() == 0 ? std::string() : std::to_string(event.object->revision());
    take_list();
  }

  static bool ends_what_was(const WatchEvent& bookmark) { return bookmark.object->text()->contains(model::kInitialEventsEnd); }

  void apply(WatchEvent event) {
    note_revision(event.object->revision());
    switch (event.type) {
      case WatchEvent::Type::kAdded:
      case WatchEvent::Type::kModified:
        put(std::move(event.object));
        break;
      case WatchEvent::Type::kDeleted:
        remove(std::move(event.object));
        break;
      case WatchEvent::Type::kBookmark:
        if (ends_what_was(event)) tell_current(asked);  // Who asked has had the watch begun anew.
        break;
      case WatchEvent::Type::kError:
        break;
    }
  }

  void watch_ended(WatchSession& ended) {
    net::HttpResponse answer;
    std::string error;
    {
      const MutexLock lock(ended.mutex);
      answer = std::move(ended.answer);
      error = std::move(ended.end_error);
    }
    // Half a list is none, however it ended.
    if (answer.status == 0 || (answer.status == 200 && ended.is_listing)) return watch_failed(transport_error(error));
    if (answer.status != 200) return watch_failed(status_of(answer));
    const bool was_short = !ended.brought_events && loop->now() - ended.started < kShortWatch;
    if (!was_short && error.empty()) return rewatch();
    session.reset();
    set_behind(true);
    later(next_pause(0), &Impl::rewatch);
  }

  void watch_failed(const ApiStatus& status) {
    const bool was_listing = session && session->is_listing;
    session.reset();
    if (was_listing) return list_failed(status);
    set_behind(is_behind || is_passing(status) || is_expired(status));
    if (is_expired(status)) {
      // The first time at once; a server that goes on so is not hammered with lists.
      const auto pause = next_pause(0);
      return later(failures == 1 ? Duration::zero() : pause, &Impl::begin_list);
    }
    report("watch", status.message);
    later(next_pause(status.retry_after_seconds), is_passing(status) ? &Impl::rewatch : &Impl::begin_list);
  }

  void report(std::string_view what, std::string_view message) const {
    if (failures == 0 || failures == 5 || failures % 50 == 49)
      log::warning("informer", "{} of {} failed, trying again: {}", what, gvr.resource, message);
  }

  // --- cache and handlers ---

  void note_revision(const std::string& text) {
    last_revision = text;
    std::from_chars(text.data(), text.data() + text.size(), revision);
  }
  void note_revision(std::int64_t seen) {
    if (seen == 0) return;
    revision = seen;
    last_revision = std::to_string(seen);
  }

  /// A watch never goes back; a list is the truth even when the server's store was set back to an earlier state.
  void put(ObjectRef object, bool is_listed = false) {
    auto before = store.get(object->ns(), object->name());
    if (before && before->uid() != object->uid()) {
      // Deleted and made again while nobody looked: two objects, not one that changed.
      remove(before);
      before = nullptr;
    }
    if (before && object->revision() != 0) {
      const bool is_old = is_listed ? object->revision() == before->revision() : object->revision() <= before->revision();
      if (is_old) return;
    }
    store.put(object);
    for (std::size_t i = 0; i < handlers.size(); ++i) {
      const auto handler = handlers[i];
      if (before && handler->on_update) handler->on_update(before, object);
      if (!before && handler->on_add) handler->on_add(object);
    }
  }

  void remove(ObjectRef object) {
    const auto known = store.get(object->ns(), object->name());
    if (!known || known->uid() != object->uid()) return;
    store.erase(object->ns(), object->name());
    for (std::size_t i = 0; i < handlers.size(); ++i) {
      const auto handler = handlers[i];
      if (handler->on_delete) handler->on_delete(object);
    }
  }
};

Informer::Informer(Client& client, Gvr gvr, InformerOptions options)
    : impl_(std::make_shared<Impl>(client, std::move(gvr), std::move(options))) {}

Informer::~Informer() { impl_->stop(); }

void Informer::add_handler(InformerHandler handler) {
  auto shared = std::make_shared<InformerHandler>(std::move(handler));
  const auto known = impl_->store.all();
  impl_->handlers.push_back(shared);
  if (!shared->on_add) return;
  for (const auto& object : known) shared->on_add(object);
}

void Informer::start() {
  if (std::exchange(impl_->is_started, true)) return;
  impl_->loop->post(impl_->guarded(&Impl::begin_list));
}

bool Informer::has_synced() const { return impl_->is_synced; }

void Informer::on_synced(std::function<void()> synced) {
  if (impl_->is_synced) return synced();
  impl_->waiting_for_sync.push_back(std::move(synced));
}

void Informer::on_behind(std::function<void(bool)> changed) { impl_->behind_changed = std::move(changed); }
bool Informer::is_current() const { return impl_->has_listed && !impl_->is_behind; }
void Informer::retry_now() {
  if (impl_->is_behind) impl_->retry_now();
}
void Informer::catch_up(std::function<void()> done) { impl_->catch_up(std::move(done)); }

std::int64_t Informer::revision() const { return impl_->revision; }
ObjectRef Informer::get(std::string_view ns, std::string_view name) const { return impl_->store.get(ns, name); }
void Informer::for_each(const std::function<void(const ObjectRef&)>& each) const { impl_->store.for_each(each); }
void Informer::for_each_in(std::string_view ns, const std::function<void(const ObjectRef&)>& each) const {
  impl_->store.for_each_in(ns, each);
}
void Informer::add_index(std::string index, std::function<std::vector<std::string>(const Object&)> keys) {
  impl_->store.add_index(std::move(index), std::move(keys));
}
std::vector<ObjectRef> Informer::by_index(std::string_view index, std::string_view key) const { return impl_->store.by_index(index, key); }
std::size_t Informer::size() const { return impl_->store.size(); }

}  // namespace berth::client
