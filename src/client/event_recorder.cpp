#include "client/event_recorder.h"

#include "base/check.h"
#include "base/json_scan.h"
#include "base/lifeline.h"
#include "base/log.h"
#include "client/event_correlator.h"

namespace berth::client {
namespace {

const Gvr kCoreEvents{"", "v1", "events"};
const Gvr kNewEvents{"events.k8s.io", "v1", "events"};
constexpr int kMaxTries = 12;
constexpr Duration kRetryPause = std::chrono::seconds(10);
constexpr Duration kSeriesEnds = std::chrono::minutes(6);
constexpr Duration kSeriesRefresh = std::chrono::minutes(30);
constexpr std::size_t kMaxNoteBytes = 1024;  // apis/core/validation: NoteLengthLimit
constexpr std::size_t kMaxSeries = 4096;

json::Object reference_json(const ObjectReference& reference) {
  json::Object out;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  add("kind", reference.kind);
  add("namespace", reference.ns);
  add("name", reference.name);
  add("uid", reference.uid);
  add("apiVersion", reference.api_version);
  add("resourceVersion", reference.resource_version);
  add("fieldPath", reference.field_path);
  return out;
}

std::string reference_key(const ObjectReference& r) {
  std::string out;
  for (const auto* part : {&r.kind, &r.ns, &r.name, &r.uid, &r.api_version, &r.resource_version, &r.field_path})
    out.append(*part).push_back('\0');
  return out;
}

json::Value core_json(const CoreEvent& event) {
  json::Object source;
  if (!event.component.empty()) source["component"] = event.component;
  if (!event.host.empty()) source["host"] = event.host;
  return json::Object{{"kind", "Event"},
                      {"apiVersion", "v1"},
                      {"metadata", json::Object{{"name", event.name}, {"namespace", event.ns}}},
                      {"involvedObject", reference_json(event.involved)},
                      {"reason", event.reason},
                      {"message", event.message},
                      {"source", std::move(source)},
                      {"firstTimestamp", format_rfc3339(event.first)},
                      {"lastTimestamp", format_rfc3339(event.last)},
                      {"count", event.count},
                      {"type", event.type},
                      {"eventTime", nullptr},
                      {"reportingComponent", event.is_combined ? "" : event.component},
                      {"reportingInstance", event.is_combined ? "" : event.host}};
}

/// Cut as kube-scheduler does; never within a UTF-8 sequence.
std::string cut_note(std::string_view note) {
  static constexpr std::string_view kMore = " ...";
  if (note.size() <= kMaxNoteBytes) return std::string(note);
  auto size = kMaxNoteBytes - kMore.size();
  while (size > 0 && (static_cast<unsigned char>(note[size]) & 0xC0) == 0x80) --size;
  return std::string(note.substr(0, size)).append(kMore);
}

/// A write to the server: a new event, or a change of one that becomes a new event when it is gone there.
struct Write {
  std::string ns, name;
  json::Value event;
  std::optional<json::Value> patch;
  int tries = 0;
};

/// An events.k8s.io event that may become a series.
struct Series {
  json::Value event;
  std::string ns, name;
  TimePoint event_time{}, last_observed{};
  int count = 1;
};

}  // namespace

ObjectReference reference_to(const Object& object) {
  static const json::PathScanner scanner({"kind", "apiVersion"});
  std::array<std::string_view, 2> raw;
  ObjectReference out{.ns = object.ns(), .name = object.name(), .uid = object.uid(), .resource_version = std::to_string(object.revision())};
  const HeldText text = object.text();
  if (scanner.scan(*text, raw)) {
    out.kind = json::unquote(raw[0]);
    out.api_version = json::unquote(raw[1]);
  }
  return out;
}

ObjectReference reference_to(const json::Value& document) {
  const auto text = [&](json::Path path) { return std::string(json::get_string(document, path)); };
  return {.api_version = text({"apiVersion"}),
          .kind = text({"kind"}),
          .ns = text({"metadata", "namespace"}),
          .name = text({"metadata", "name"}),
          .uid = text({"metadata", "uid"}),
          .resource_version = text({"metadata", "resourceVersion"})};
}

struct EventRecorder::Impl : Guarded<EventRecorder::Impl> {
  Impl(Client& c, EventRecorderOptions o) : client(c), loop(c.loop()), options(std::move(o)), random(options.seed) {}

  Client client;
  EventLoop* loop;
  EventRecorderOptions options;
  std::mt19937_64 random;

  EventCorrelator correlator;
  LruCache<std::shared_ptr<Series>> series{kMaxSeries};
  TimerId finish_timer = TimerId::kNone, refresh_timer = TimerId::kNone;
  std::int64_t last_nanos = 0;

  std::deque<Write> queue;
  std::map<std::string, std::deque<Write>> busy;  ///< Names being written, with what has to follow.
  std::size_t pending = 0;
  std::uint64_t dropped = 0;
  int in_flight = 0;

  [[nodiscard]] const Gvr& gvr() const { return options.shape == EventRecorderOptions::Shape::kCore ? kCoreEvents : kNewEvents; }

  /// NAME.NANOSECONDS in hexadecimal; never the same twice.
  std::string make_name(const std::string& object) {
    last_nanos = std::max(last_nanos + 1, std::int64_t{loop->now().time_since_epoch().count()} * 1000);
    return fmt::format("{}.{:x}", object, last_nanos);
  }

  void core_event(const ObjectReference& regarding, std::string_view type, std::string_view reason, std::string_view message) {
    const auto now = loop->now();
    CoreEvent event{.involved = regarding,
                    .name = make_name(regarding.name),
                    .ns = regarding.ns.empty() ? "default" : regarding.ns,
                    .type = std::string(type),
                    .reason = std::string(reason),
                    .message = std::string(message),
                    .component = options.component,
                    .host = options.host,
                    .first = now,
                    .last = now};
    const auto correlated = correlator.correlate(std::move(event), now, make_name(regarding.name));
    if (!correlated) return;
    Write write{.ns = correlated->ns, .name = correlated->name, .event = core_json(*correlated), .patch = std::nullopt};
    if (correlated->count > 1) {
      write.patch =
          json::Object{{"count", correlated->count}, {"lastTimestamp", format_rfc3339(correlated->last)}, {"message", correlated->message}};
    }
    enqueue(std::move(write));
  }

  void new_event(const ObjectReference& regarding, std::string_view type, std::string_view reason, std::string_view message,
                 std::string_view action, const ObjectReference* related) {
    const auto now = loop->now();
    std::string key;
    for (const auto part : {type, action, reason}) key.append(part).push_back('\0');
    key += reference_key(regarding);
    if (related != nullptr) key += reference_key(*related);
    auto& entry = series.get_or_make(key, [this](std::shared_ptr<Series>& out) {
      if (out->count > 1) write_series(*out);
    });
    if (entry) {
      ++entry->count;
      entry->last_observed = now;
      if (entry->count == 2) write_series(*entry);
      return;
    }
    entry = std::make_shared<Series>();
    entry->ns = regarding.ns.empty() ? "default" : regarding.ns;
    entry->name = make_name(regarding.name);
    entry->event_time = now;
    json::Object event{{"kind", "Event"},
                       {"apiVersion", "events.k8s.io/v1"},
                       {"metadata", json::Object{{"name", entry->name}, {"namespace", entry->ns}}},
                       {"eventTime", format_rfc3339_micro(now)},
                       {"reportingController", options.component},
                       {"reportingInstance", options.component + "-" + options.host},
                       {"action", action},
                       {"reason", reason},
                       {"regarding", reference_json(regarding)},
                       {"note", cut_note(message)},
                       {"type", type}};
    if (related != nullptr) event["related"] = reference_json(*related);
    entry->event = std::move(event);
    enqueue({.ns = entry->ns, .name = entry->name, .event = entry->event, .patch = std::nullopt});
    start_timers();
  }

  void write_series(const Series& s) {
    json::Object text{{"count", s.count}, {"lastObservedTime", format_rfc3339_micro(s.last_observed)}};
    auto whole = s.event;
    whole.as_object()["series"] = text;
    enqueue({.ns = s.ns, .name = s.name, .event = std::move(whole), .patch = json::Object{{"series", std::move(text)}}});
  }

  void start_timers() {
    if (finish_timer == TimerId::kNone) finish_timer = every(kSeriesEnds, &Impl::finish_series, &Impl::finish_timer);
    if (refresh_timer == TimerId::kNone) refresh_timer = every(kSeriesRefresh, &Impl::refresh_series, &Impl::refresh_timer);
  }

  TimerId every(Duration period, void (Impl::*step)(), TimerId Impl::*timer) {
    return loop->schedule_after(period, guarded([period, step, timer](Impl& self) {
                                  (self.*step)();
                                  self.*timer = self.every(period, step, timer);
                                }));
  }

  void finish_series() {
    const auto before = loop->now() - kSeriesEnds;
    series.erase_if([&](const std::shared_ptr<Series>& s) {
      if (s->count == 1) return s->event_time < before;
      if (s->last_observed >= before) return false;
      write_series(*s);
      return true;
    });
  }

  void refresh_series() {
    series.erase_if([&](const std::shared_ptr<Series>& s) {
      if (s->count > 1) write_series(*s);
      return false;
    });
  }

  // --- writing ---

  void enqueue(Write write) {
    if (pending >= options.max_queued) {
      if (dropped++ == 0)
        log::warning("events", "more than {} events are waiting to be written; further ones are dropped", options.max_queued);
      return;
    }
    ++pending;
    if (const auto same = busy.find(write.name); same != busy.end())
      same->second.push_back(std::move(write));
    else
      queue.push_back(std::move(write));
    pump();
  }

  void pump() {
    while (in_flight < options.max_in_flight && !queue.empty()) {
      auto write = std::make_shared<Write>(std::move(queue.front()));
      queue.pop_front();
      // Two writes of one event that were queued together: the second follows the first.
      if (const auto [same, is_new] = busy.try_emplace(write->name); !is_new) {
        same->second.push_back(std::move(*write));
        continue;
      }
      ++in_flight;
      send(std::move(write));
    }
  }

  void send(std::shared_ptr<Write> write) {
    auto done = guarded([write](Impl& self, ApiResult<json::Value> result) { self.sent(write, std::move(result)); });
    if (write->patch)
      client.patch(gvr(), write->ns, write->name, PatchType::kStrategicMerge, *write->patch, std::move(done), "", Answer::kNone);
    else
      client.create(gvr(), write->ns, write->event, std::move(done), Answer::kNone);
  }

  void sent(const std::shared_ptr<Write>& write, ApiResult<json::Value> result) {
    if (!result) {
      const auto& status = result.error();
      if (write->patch && status.is("NotFound")) {
        // It expired on the server: told anew, with its count.
        write->patch.reset();
        return send(write);
      }
      if (status.code == 0 && ++write->tries < kMaxTries) {
        const auto pause = kRetryPause * (1000 + static_cast<std::int64_t>(random() % 251)) / 1000;
        loop->schedule_after(pause, guarded([write](Impl& self) { self.send(write); }));
        return;
      }
      if (!status.is("AlreadyExists")) log::warning("events", "event {}/{} was not written: {}", write->ns, write->name, status.message);
    }
    --pending;
    --in_flight;
    auto next = busy.extract(write->name);
    BERTH_CHECK(!next.empty(), "the write of event {}/{} is answered twice", write->ns, write->name);
    for (auto it = next.mapped().rbegin(); it != next.mapped().rend(); ++it) queue.push_front(std::move(*it));
    pump();
  }
};

EventRecorder::EventRecorder(Client& client, EventRecorderOptions options) : impl_(std::make_shared<Impl>(client, std::move(options))) {}

EventRecorder::~EventRecorder() {
  impl_->end();
  impl_->loop->cancel(impl_->finish_timer);
  impl_->loop->cancel(impl_->refresh_timer);
}

void EventRecorder::event(const ObjectReference& regarding, std::string_view type, std::string_view reason, std::string_view message,
                          std::string_view action, const ObjectReference* related) {
  if (impl_->options.shape == EventRecorderOptions::Shape::kCore)
    impl_->core_event(regarding, type, reason, message);
  else
    impl_->new_event(regarding, type, reason, message, action, related);
}

std::size_t EventRecorder::pending() const { return impl_->pending; }
std::uint64_t EventRecorder::dropped() const { return impl_->dropped; }

}  // namespace berth::client
