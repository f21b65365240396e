#include "dashboard/feed.h"

#include <future>

#include "base/lifeline.h"
#include "client/informer.h"
#include "dashboard/rows.h"
#include "dashboard/sessions.h"
#include "dashboard/slim.h"

namespace berth::dashboard {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024, kMostUnread = 4 * 1024 * 1024;
constexpr auto kBatch = std::chrono::milliseconds(50);
constexpr auto kAskAgain = std::chrono::seconds(10), kAskForGroups = std::chrono::seconds(60);

/// What happens to every pod, by the thousand; the page sees it by the pods themselves, and a pod's own page asks for all of its events.
constexpr std::string_view kEventSelector =
    "reason!=Scheduled,reason!=Pulling,reason!=Pulled,reason!=Created,reason!=Started,reason!=SuccessfulCreate,reason!=SuccessfulDelete";

struct Watched {
  RowKind kind;
  model::Gvr gvr;
  std::string field_selector;
  std::unique_ptr<client::Client> client;  ///< Sees slim objects.
  std::unique_ptr<client::Informer> informer;
  std::string problem;      ///< Why it is not watched.
  std::string only;         ///< The one namespace that it is watched in where all may not be; `problem` says why.
  bool is_missing = false;  ///< There is nothing to watch, and nobody misses it.
};

/// "0/node-1", "1shop/web-1": a row's name among all rows, in the order in which a page wants them.
std::string key_of(RowKind kind, std::string_view ns, std::string_view name) {
  return fmt::format("{}{}/{}", static_cast<int>(kind), ns, name);
}

std::string line_of_gone(std::string_view key) {
  const auto slash = key.find('/');
  return json::serialize(gone_row(static_cast<RowKind>(key[0] - '0'), key.substr(1, slash - 1), key.substr(slash + 1))) + "\n";
}

struct Page {
  std::shared_ptr<net::ResponseWriter> writer;
  std::deque<std::string> waiting;  ///< Keys of what changed, oldest first.
  std::unordered_set<std::string> is_waiting;
  bool drains = false, wants_state = true;
};

}  // namespace

struct Feed::Impl : Guarded<Impl> {
  Impl(std::shared_ptr<client::Transport> transport, EventLoop& loop, FeedOptions options)
      : loop(loop), options(std::move(options)), client(std::move(transport), &loop, "berth-dashboard") {}

  EventLoop& loop;
  FeedOptions options;
  client::Client client;
  std::vector<std::unique_ptr<Watched>> watched;
  std::unordered_map<std::string, Bytes> rows;
  std::vector<std::shared_ptr<Page>> pages;
  std::string unreachable;
  bool is_running = false, flush_posted = false;
  std::uint64_t run = 0;  ///< Of which start timers and answers are.

  // --- starting and stopping ---

  void open(std::shared_ptr<net::ResponseWriter> writer) {
    if (has_ended()) return;
    auto page = std::make_shared<Page>();
    page->writer = std::move(writer);
    net::Headers headers;
    headers.add("Content-Type", "application/x-ndjson");
    headers.add("Cache-Control", "no-store");
    add_security_headers(headers);
    page->writer->start_stream(200, std::move(headers));
    page->writer->on_close(
        guarded([gone = std::weak_ptr(page)](Impl& self) { self.loop.post(self.guarded([gone](Impl& it) { it.close(gone.lock()); })); }));
    pages.push_back(page);
    if (!is_running) start();
    std::vector<std::string> keys;
    keys.reserve(rows.size());
    for (const auto& [key, row] : rows) keys.push_back(key);
    std::ranges::sort(keys);
    for (std::string& key : keys) mark(*page, key);
    flush_soon();
  }

  void close(const std::shared_ptr<Page>& page) {
    if (std::erase(pages, page) == 0 || !pages.empty()) return;
    in(options.linger, [](Impl& self) {
      if (self.pages.empty()) self.stop();
    });
  }

  void start() {
    is_running = true;
    ++run;
    const auto watch = [&](RowKind kind, std::string group, std::string resource, std::string selector, std::string version = "v1") {
      model::Gvr gvr{std::move(group), std::move(version), std::move(resource)};
      watched.push_back(std::make_unique<Watched>(Watched{kind, std::move(gvr), std::move(selector), nullptr, nullptr, "", ""}));
      ask(watched.back().get());
    };
    watch(RowKind::kNode, "", "nodes", "");
    watch(RowKind::kPod, "", "pods", "");
    watch(RowKind::kEvent, "", "events", std::string(kEventSelector));
    watch(RowKind::kBudget, "policy", "poddisruptionbudgets", "");
    watch(RowKind::kGroup, "scheduling.k8s.io", "podgroups", "", "v1alpha2");
    beat();
  }

  void stop() {
    is_running = flush_posted = false;
    ++run;
    watched.clear();
    rows.clear();
  }

  /// Runs later, on the loop, unless the feed was stopped meanwhile.
  void in(Duration delay, std::function<void(Impl&)> step) {
    loop.schedule_after(delay, guarded([step = std::move(step), of = run](Impl& self) {
                          if (self.run == of) step(self);
                        }));
  }

  // --- the cluster ---

  /// Whether the user may: an informer would try for ever and tell only the log.
  void ask(Watched* one) {
    client.list(one->gvr, namespace_of(*one), {.limit = 1},
                guarded([one, of = run](Impl& self, const client::ApiResult<client::ListPage>& page) {
                  if (self.run == of) self.answered(*one, page);
                }));
  }
  void answered(Watched& one, const client::ApiResult<client::ListPage>& page) {
    if (page) return watch(one);
    if (page.error().code == 403 && may_narrow(one)) {
      one.only = options.own_ns;
      set_problem(one, page.error().message);
      return ask(&one);
    }
    // Few servers have them, and the page is whole without.
    if (one.kind == RowKind::kGroup) {
      one.is_missing = true;
      tell_state();
      return in(kAskForGroups, [again = &one](Impl& self) { self.ask(again); });
    }
    if (one.only.empty()) set_problem(one, page.error().message);
    one.only.clear();  // Rights may come: all of it is asked for again.
    in(kAskAgain, [again = &one](Impl& self) { self.ask(again); });
  }

  /// A user of one namespace sees that one, and is told so.
  [[nodiscard]] bool may_narrow(const Watched& one) const {
    return one.kind != RowKind::kNode && one.kind != RowKind::kGroup && one.only.empty() && options.ns.empty() && !options.own_ns.empty();
  }
  [[nodiscard]] std::string namespace_of(const Watched& one) const {
    if (one.kind == RowKind::kNode) return {};
    return one.only.empty() ? options.ns : one.only;
  }

  void watch(Watched& one) {
    if (one.only.empty()) set_problem(one, "");
    one.is_missing = false;
    one.informer.reset();
    one.client = std::make_unique<client::Client>(with_slim_objects(client.transport(), one.kind), &loop, "berth-dashboard");
    one.informer = std::make_unique<client::Informer>(
        *one.client, one.gvr,
        client::InformerOptions{.ns = namespace_of(one), .label_selector = {}, .field_selector = one.field_selector, .page = 1000});
    const RowKind kind = one.kind;
    one.informer->add_handler({[this, kind](const client::ObjectRef& object) { changed(kind, object); },
                               [this, kind](const client::ObjectRef&, const client::ObjectRef& object) { changed(kind, object); },
                               [this, kind](const client::ObjectRef& object) { gone(kind, *object); }});
    one.informer->on_synced([this] { tell_state(); });
    one.informer->start();
  }

  void set_problem(Watched& one, const std::string& problem) {
    if (std::exchange(one.problem, problem) != problem) tell_state();
  }

  void changed(RowKind kind, const client::ObjectRef& object) {
    std::string line(row_in(object->text().here()));
    line += '\n';
    std::string key = key_of(kind, object->ns(), object->name());
    Bytes& row = rows[key];
    if (row && *row == line) return;  // Heartbeats and the like.
    row = make_bytes(std::move(line));
    mark_all(key);
  }

  void gone(RowKind kind, const client::Object& object) {
    const std::string key = key_of(kind, object.ns(), object.name());
    if (rows.erase(key) > 0 && kind != RowKind::kEvent) mark_all(key);  // What happened has happened, though the record of it expires.
  }

  void beat() {
    net::HttpRequest request;
    request.method = "GET";
    request.path = "/version";
    auto tell = guarded([](Impl& self, const std::string& problem) { self.unreachable = problem; });
    client.transport()->send(std::move(request), [tell, loop = &loop](const net::HttpResponse& response) {
      std::string problem = response.status == 0     ? response.body
                            : response.status == 401 ? "the cluster does not accept the kubeconfig's credentials"
                            : response.status >= 500 ? fmt::format("the cluster answers {}", response.status)
                                                     : "";
      loop->post([tell, problem = std::move(problem)] { tell(problem); });
    });
    tell_state();
    in(options.heartbeat, [](Impl& self) { self.beat(); });
  }

  // --- the pages ---

  static void mark(Page& page, const std::string& key) {
    if (page.is_waiting.insert(key).second) page.waiting.push_back(key);
  }
  void mark_all(const std::string& key) {
    for (const auto& page : pages) mark(*page, key);
    flush_soon();
  }
  void tell_state() {
    for (const auto& page : pages) page->wants_state = true;
    flush_soon();
  }

  void flush_soon() {
    if (pages.empty() || std::exchange(flush_posted, true)) return;
    in(kBatch, [](Impl& self) {
      self.flush_posted = false;
      for (const auto& page : std::vector(self.pages)) self.send(page);
    });
  }

  void send(const std::shared_ptr<Page>& page) {
    if (page->drains) return;
    while (!page->waiting.empty()) {
      if (page->writer->queued_bytes() > kMostUnread) return wait_for(page);
      std::string chunk;
      while (chunk.size() < kChunkBytes && !page->waiting.empty()) {
        const std::string key = std::move(page->waiting.front());
        page->waiting.pop_front();
        page->is_waiting.erase(key);
        const auto row = rows.find(key);
        chunk += row == rows.end() ? line_of_gone(key) : *row->second;
      }
      if (!page->writer->write(make_bytes(std::move(chunk)))) return close(page);
    }
    if (std::exchange(page->wants_state, false)) page->writer->write(make_bytes(state_line()));
  }

  void wait_for(const std::shared_ptr<Page>& page) {
    page->drains = true;
    auto drained = guarded([waiting = std::weak_ptr(page)](Impl& self) {
      const auto it = waiting.lock();
      if (!it) return;
      it->drains = false;
      self.send(it);
    });
    page->writer->on_drain([drained, loop = &loop] { loop->post(drained); });
  }

  [[nodiscard]] std::string state_line() const {
    json::Array problems;
    bool is_synced = !watched.empty();
    for (const auto& one : watched) {
      if (!one->problem.empty()) {
        json::Object problem{{"what", one->gvr.resource}, {"message", one->problem}};
        if (one->informer && !one->only.empty()) problem["only"] = one->only;
        problems.push_back(std::move(problem));
      }
      is_synced =
          is_synced && (one->is_missing || (!one->problem.empty() && !one->informer) || (one->informer && one->informer->has_synced()));
    }
    if (!unreachable.empty()) problems.push_back(json::Object{{"what", "cluster"}, {"message", unreachable}});
    return json::serialize(json::Object{{"kind", "state"}, {"synced", is_synced}, {"problems", std::move(problems)}}) + "\n";
  }
};

Feed::Feed(std::shared_ptr<client::Transport> transport, EventLoop& loop, FeedOptions options)
    : impl_(std::make_shared<Impl>(std::move(transport), loop, std::move(options))) {}

Feed::~Feed() {
  std::promise<void> stopped;
  impl_->loop.post([this, &stopped] {
    impl_->end();
    for (const auto& page : impl_->pages) page->writer->finish();
    impl_->pages.clear();
    impl_->stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
}

void Feed::subscribe(std::shared_ptr<net::ResponseWriter> writer) {
  impl_->loop.post([impl = impl_, writer = std::move(writer)]() mutable { impl->open(std::move(writer)); });
}

}  // namespace berth::dashboard
