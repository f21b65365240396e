#include "client/leadership.h"

#include <atomic>
#include <future>

#include "base/lifeline.h"
#include "base/log.h"

namespace berth::client {
namespace {

/// How long a component that leads may take to catch up.
constexpr Duration kCatchUpPatience = std::chrono::seconds(30);

/// Until when the lease is held.
class Fence {
 public:
  /// `clock` must outlive it.
  Fence(const Clock& clock, std::string lease) : clock_(clock), lease_(std::move(lease)) {}
  void open_until(TimePoint until) { until_us_ = std::chrono::duration_cast<std::chrono::microseconds>(until.time_since_epoch()).count(); }
  void close() { until_us_ = 0; }
  [[nodiscard]] bool is_open() const { return clock_.now() < TimePoint{} + std::chrono::microseconds(until_us_.load()); }
  [[nodiscard]] const std::string& lease() const { return lease_; }

 private:
  const Clock& clock_;
  std::string lease_;
  std::atomic<std::int64_t> until_us_ = 0;
};

class FencedTransport final : public Transport {
 public:
  FencedTransport(std::shared_ptr<Transport> below, std::shared_ptr<const Fence> fence)
      : below_(std::move(below)), fence_(std::move(fence)) {}

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    if (request.method == "GET" || request.method == "HEAD" || fence_->is_open()) return below_->send(std::move(request), std::move(done));
    const model::ApiStatus refusal{
        .code = 403, .reason = "Forbidden", .message = fmt::format("the lease {} is not held: nothing is written", fence_->lease())};
    done({.status = 403, .headers = {}, .body = json::serialize(refusal.to_json())});
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    return below_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    below_->upgrade(std::move(request), std::move(done));
  }
  [[nodiscard]] bool is_in_process() const override { return below_->is_in_process(); }

 private:
  std::shared_ptr<Transport> below_;
  std::shared_ptr<const Fence> fence_;
};

const SystemClock kClock;

}  // namespace

struct Leadership::Impl : Guarded<Leadership::Impl> {
  Impl(std::shared_ptr<Transport> t, LeadershipOptions o, EventLoop* l, LeaderCallbacks cb)
      : options(std::move(o)),
        loop(l),
        callbacks(std::move(cb)),
        thread(options.election_loop == nullptr ? std::make_unique<ThreadLoop>("election") : nullptr),
        election_loop(thread ? *thread : *options.election_loop),
        client(options.transport ? options.transport : t, &election_loop, options.user_agent),
        fence(std::make_shared<Fence>(thread ? static_cast<const Clock&>(kClock) : election_loop,
                                      options.election.ns + "/" + options.election.name)),
        fenced(std::make_shared<FencedTransport>(std::move(t), fence)) {}

  LeadershipOptions options;
  EventLoop* loop;
  LeaderCallbacks callbacks;
  std::unique_ptr<ThreadLoop> thread;
  EventLoop& election_loop;
  Client client;
  std::shared_ptr<Fence> fence;
  std::shared_ptr<FencedTransport> fenced;
  std::unique_ptr<LeaderElector> elector;  ///< On the election's loop.

  // On the component's loop, where it has one:
  std::uint64_t terms = 0;    ///< Leaderships begun and lost.
  std::uint64_t told_of = 0;  ///< The last that the component was told of.
  TimerId patience = TimerId::kNone;
  bool owes_a_start = false;  ///< A leadership began, and was lost before the component was told.

  /// Tells the component, on its loop where it has one.
  void tell(std::function<void(Impl&)> what) {
    if (has_ended()) return;
    if (loop == nullptr) return what(*this);
    loop->post(guarded(std::move(what)));
  }

  /// It leads once it knows all that whoever led before has written, or has been waited for.
  void begin_term(bool is_resumed) {
    if (!is_resumed) owes_a_start = true;
    const auto term = ++terms;
    if (!options.catch_up) return lead(term);
    patience = loop->schedule_after(kCatchUpPatience, guarded([term](Impl& self) {
                                      log::warning("leader-election", "leading by what was known: not everything can be watched");
                                      self.lead(term);
                                    }));
    options.catch_up(guarded([term](Impl& self) { self.lead(term); }));
  }

  void lead(std::uint64_t term) {
    if (terms != term || std::exchange(told_of, term) == term) return;
    wait_no_more();
    const auto& resumed = callbacks.on_resumed_leading;
    const bool is_start = std::exchange(owes_a_start, false) || !resumed;
    if (const auto& begin = is_start ? callbacks.on_started_leading : resumed) begin();
  }

  void end_term() {
    ++terms;
    wait_no_more();
    if (callbacks.on_stopped_leading) callbacks.on_stopped_leading();
  }

  void wait_no_more() {
    if (loop != nullptr) loop->cancel(std::exchange(patience, TimerId::kNone));
  }

  void elect() {
    LeaderCallbacks on_election;
    on_election.on_renewed = [this](TimePoint until) { fence->open_until(until); };
    on_election.on_started_leading = [this] { tell([](Impl& self) { self.begin_term(false); }); };
    on_election.on_resumed_leading = [this] { tell([](Impl& self) { self.begin_term(true); }); };
    on_election.on_stopped_leading = [this] {
      fence->close();
      tell(&Impl::end_term);
      if (options.stands_again && !has_ended())
        election_loop.post(guarded([](Impl& self) {
          if (self.elector) self.elector->start();
        }));
    };
    on_election.on_new_leader = [this](const std::string& leader) {
      tell([leader](Impl& self) {
        if (self.callbacks.on_new_leader) self.callbacks.on_new_leader(leader);
      });
    };
    elector = std::make_unique<LeaderElector>(client, options.election, std::move(on_election));
    elector->start();
  }

  /// Gives the lease up, on the election's own thread.
  void resign() {
    end();
    if (!thread) {
      elector.reset();
      return;
    }
    auto released = std::make_shared<std::promise<void>>();
    thread->post([this, released] {
      if (elector && elector->is_leader())
        elector->stop([released] { released->set_value(); });
      else
        released->set_value();
    });
    released->get_future().wait_for(std::chrono::seconds(2));
    std::promise<void> gone;
    thread->post([&] {
      elector.reset();
      gone.set_value();
    });
    gone.get_future().wait();
    thread->stop();
  }
};

Leadership::Leadership(std::shared_ptr<Transport> transport, LeadershipOptions options, EventLoop* loop, LeaderCallbacks callbacks)
    : impl_(std::make_shared<Impl>(std::move(transport), std::move(options), loop, std::move(callbacks))) {}

Leadership::~Leadership() {
  impl_->fence->close();
  impl_->resign();
}

void Leadership::start() { impl_->election_loop.post(impl_->guarded(&Impl::elect)); }

bool Leadership::holds() const { return impl_->fence->is_open(); }
std::shared_ptr<Transport> Leadership::transport() const { return impl_->fenced; }

std::unique_ptr<Leadership> seek_leadership(Client& plain, LeaderElectionConfig election, std::function<void()> lead,
                                            std::function<void()> lost, std::function<void(std::function<void()> done)> catch_up,
                                            EventLoop* election_loop) {
  LeadershipOptions wanted{
      .election = std::move(election), .user_agent = plain.user_agent(), .catch_up = std::move(catch_up), .election_loop = election_loop};
  LeaderCallbacks callbacks{.on_started_leading = std::move(lead), .on_stopped_leading = std::move(lost)};
  return std::make_unique<Leadership>(plain.transport(), std::move(wanted), plain.loop(), std::move(callbacks));
}

}  // namespace berth::client
