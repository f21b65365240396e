#include "client/leader_election.h"

#include "base/lifeline.h"
#include "base/log.h"

namespace berth::client {
namespace {

const Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
constexpr double kJitter = 1.2;  // client-go's JitterFactor
/// Looks of who waits in a retry_period: a renewal counts from when it is seen, so that is how late a dead leader is noticed.
constexpr int kLooks = 4;
constexpr Duration kAskAgain = std::chrono::minutes(1);  ///< Whether a right that was missing was given.
constexpr Duration kLeastPatience = std::chrono::seconds(1);

json::Value text(std::string_view s) { return json::Value(s); }

}  // namespace

struct LeaderElector::Impl : Guarded<LeaderElector::Impl> {
  enum class State { kStopped, kAcquiring, kLeading };

  Impl(Client& c, LeaderElectionConfig cfg, LeaderCallbacks cb)
      : client(c), loop(c.loop()), config(std::move(cfg)), callbacks(std::move(cb)), random(config.seed) {}

  Client client;
  EventLoop* loop;
  LeaderElectionConfig config;
  LeaderCallbacks callbacks;
  std::mt19937_64 random;

  State state = State::kStopped;
  bool is_without = false;      ///< Leads, and may not have the lease.
  std::uint64_t attempt = 0;    ///< The newest.
  std::uint64_t acting = 0;     ///< Whose step is run.
  std::uint64_t concluded = 0;  ///< Attempts up to this one have come to something: their answers are ignored …
  std::uint64_t taken_by = 0;   ///< … except of writes that took or renewed the lease later than this one did.
  json::Value lease;            ///< As last read or written; null when unknown.
  std::string observed_spec;
  TimePoint observed_at{};
  TimePoint written_at{};  ///< When the last write of the lease was sent: the others' clocks cannot start before.
  std::string holder, reported_holder;
  std::string said;  ///< The last warning.
  TimePoint said_at{};
  /// The last lease that it led by: its uid, and leaseTransitions.
  std::optional<std::pair<std::string, std::int64_t>> led_by;
  TimerId retry_timer = TimerId::kNone, deadline_timer = TimerId::kNone, patience_timer = TimerId::kNone;

  [[nodiscard]] bool holds_lease() const { return holder == config.identity; }

  [[nodiscard]] bool is_lease_valid() const {
    const auto seconds = json::get_int(lease, {"spec", "leaseDurationSeconds"});
    return !lease.is_null() && observed_at + std::chrono::seconds(seconds) > loop->now();
  }

  /// Notes a lease as the server has it; a changed record counts from now.
  void observe(json::Value seen) {
    const auto* spec = json::find(seen, "spec");
    auto text = spec != nullptr ? json::serialize(*spec) : std::string();
    if (text != observed_spec || lease.is_null()) {
      observed_spec = std::move(text);
      observed_at = loop->now();
    }
    lease = std::move(seen);
    holder = json::get_string(lease, {"spec", "holderIdentity"});
  }

  void report_holder() {
    if (holder == reported_holder) return;
    reported_holder = holder;
    if (callbacks.on_new_leader && !holder.empty()) callbacks.on_new_leader(holder);
  }

  template <typename Step>
  Client::Done answer(Step step) {
    return guarded([id = acting, step](Impl& self, ApiResult<json::Value> result) {
      if (id <= self.concluded) return;
      self.acting = id;
      step(self, std::move(result));
    });
  }

  /// Of a write that takes or renews the lease.
  template <typename Step>
  Client::Done write_answer(Step otherwise) {
    return guarded([id = acting, sent = written_at, otherwise](Impl& self, ApiResult<json::Value> result) {
      const bool is_in_time = id > self.taken_by && sent + self.config.lease_duration > self.loop->now();
      if (!(result && is_in_time) && id <= self.concluded) return;
      self.acting = id;
      if (result && is_in_time) return self.succeeded(sent, std::move(*result));
      otherwise(self, std::move(result));
    });
  }

  // --- one attempt: update what we hold, or read, then create or update ---

  void try_once() {
    acting = ++attempt;
    lose_patience_after(patience());
    if (state == State::kLeading && holds_lease() && is_lease_valid()) {
      const auto next = next_lease();
      // Somebody else wrote, or the write's answer was lost: look before giving up.
      client.update(kLeases, config.ns, config.name, next, write_answer([](Impl& self, const ApiResult<json::Value>&) { self.read(); }));
      return;
    }
    read();
  }

  void read() {
    client.get(kLeases, config.ns, config.name, answer([](Impl& self, ApiResult<json::Value> result) {
                 if (!result) return result.error().is("NotFound") ? self.create() : self.refused(result);
                 self.observe(std::move(*result));
                 // The right was given meanwhile, and somebody else was first.
                 if (self.is_without && !self.holder.empty() && !self.holds_lease() && self.is_lease_valid()) return self.lost();
                 if (!self.holder.empty() && !self.holds_lease() && self.is_lease_valid()) return self.failed({});
                 self.write();
               }));
  }

  void create() {
    lease = json::Value(nullptr);
    holder.clear();
    const auto next = next_lease();
    client.create(kLeases, config.ns, next, write_answer([](Impl& self, const ApiResult<json::Value>& result) { self.refused(result); }));
  }

  void write() {
    const auto next = next_lease();
    client.update(kLeases, config.ns, config.name, next,
                  write_answer([](Impl& self, const ApiResult<json::Value>& result) { self.refused(result); }));
  }

  /// The lease with us as its holder from now on.
  json::Value next_lease() {
    json::Value next = lease.is_null() ? json::Value(json::Object{{"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}}) : lease;
    json::set(next, {"metadata", "name"}, text(config.name));
    json::set(next, {"metadata", "namespace"}, text(config.ns));
    written_at = loop->now();
    const auto now = format_rfc3339_micro(written_at);
    const auto transitions = json::get_int(next, {"spec", "leaseTransitions"});
    if (!holds_lease()) {
      json::set(next, {"spec", "acquireTime"}, text(now));
      json::set(next, {"spec", "leaseTransitions"}, lease.is_null() ? 0 : transitions + 1);
    }
    json::set(next, {"spec", "holderIdentity"}, text(config.identity));
    json::set(next, {"spec", "leaseDurationSeconds"}, std::chrono::duration_cast<std::chrono::seconds>(config.lease_duration).count());
    json::set(next, {"spec", "renewTime"}, text(now));
    return next;
  }

  // --- what follows from an attempt ---

  /// When the lease that somebody else holds will have run out; apart from the other candidates' by some of their ways to the server.
  [[nodiscard]] Duration until_expiry(double chance) const {
    constexpr Duration kApart = std::chrono::milliseconds(200);
    if (lease.is_null() || !is_lease_valid()) return config.retry_period * 2;
    const auto seconds = json::get_int(lease, {"spec", "leaseDurationSeconds"});
    return observed_at + std::chrono::seconds(seconds) - loop->now() + std::chrono::duration_cast<Duration>(kApart * chance);
  }

  /// A server that was stopped, or whose cable is out, never answers and closes nothing; client-go's locks have as much time.
  [[nodiscard]] Duration patience() const { return std::max<Duration>(config.renew_deadline / 2, kLeastPatience); }

  /// Without an answer by then another attempt goes over another connection, beside this one, which may be slow and no more.
  void lose_patience_after(Duration delay) {
    loop->cancel(patience_timer);
    patience_timer = loop->schedule_after(delay, guarded([](Impl& self) {
                                            if (self.state == State::kStopped) return;
                                            self.say(fmt::format("lease {}/{}: the server has not answered for {}", self.config.ns,
                                                                 self.config.name, format_go_duration(self.patience())));
                                            self.try_once();
                                          }));
  }

  void retry_after(Duration delay) {
    loop->cancel(patience_timer);
    loop->cancel(retry_timer);
    retry_timer = loop->schedule_after(delay, guarded([](Impl& self) {
                                         if (self.state != State::kStopped) self.try_once();
                                       }));
  }

  void refused(const ApiResult<json::Value>& result) {
    if (result)
      failed("the answer came after the lease that it gave had run out");
    else if (result.error().code == 403 && config.goes_without)
      lead_without(result.error().message);
    else
      failed(result.error().message);
  }

  void lead_without(const std::string& why) {
    say(fmt::format(
        "leading without the Lease {}/{}: {}; grant get, create and update on it, and run no second one of this name until then", config.ns,
        config.name, why));
    const bool is_new = state == State::kAcquiring;
    concluded = attempt;
    state = State::kLeading;
    is_without = true;
    loop->cancel(deadline_timer);
    retry_after(kAskAgain);
    if (callbacks.on_renewed) callbacks.on_renewed(loop->now() + kAskAgain + config.lease_duration);
    if (is_new) led_by.reset();
    if (is_new && callbacks.on_started_leading) callbacks.on_started_leading();
  }

  /// Each taking counts one transition, but for who never stopped being the holder. One that was given up and taken by nobody else counts
  /// one.
  void begin_term(bool is_new) {
    std::pair now(std::string(json::get_string(lease, {"metadata", "uid"})), json::get_int(lease, {"spec", "leaseTransitions"}));
    const bool is_again = led_by && led_by->first == now.first && now.second <= led_by->second + 1;
    led_by = std::move(now);
    if (!is_new) return;
    const auto& begin = is_again && callbacks.on_resumed_leading ? callbacks.on_resumed_leading : callbacks.on_started_leading;
    if (begin) begin();
  }

  /// The write, sent then, took or renewed the lease.
  void succeeded(TimePoint sent, json::Value written) {
    taken_by = acting;
    concluded = attempt;
    is_without = false;
    observe(std::move(written));
    const bool is_new = state == State::kAcquiring;
    state = State::kLeading;
    if (callbacks.on_renewed) callbacks.on_renewed(sent + config.lease_duration);
    // The next renewal begins in retry_period, and then has renew_deadline to succeed, and never longer than the lease.
    loop->cancel(deadline_timer);
    const TimePoint deadline = std::min(loop->now() + config.retry_period + config.renew_deadline, sent + config.lease_duration);
    deadline_timer = loop->schedule_at(deadline, guarded(&Impl::lost));
    retry_after(config.retry_period);
    if (is_new) log::info("leader-election", "{} leads {}/{}", config.identity, config.ns, config.name);
    begin_term(is_new);
    if (!has_ended()) report_holder();
  }

  /// The same is said again only after a while: attempts come every few seconds.
  void say(const std::string& what) {
    constexpr Duration kPause = std::chrono::minutes(5);
    if (what == said && loop->now() - said_at < kPause) return;
    said = what;
    said_at = loop->now();
    log::warning("leader-election", "{}", what);
    if (callbacks.on_waiting) callbacks.on_waiting(what);
  }

  void failed(const std::string& why) {
    if (acting != attempt) return;  // A later one is under way.
    concluded = attempt;
    if (!why.empty())
      say(fmt::format("lease {}/{}: {}", config.ns, config.name, why));
    else if (state == State::kAcquiring)
      say(fmt::format("waiting for leader {} on Lease {}/{}", holder, config.ns, config.name));
    if (state == State::kLeading) {
      retry_after(config.retry_period);
    } else {
      const double chance = static_cast<double>(random() >> 11) / static_cast<double>(1ULL << 53);
      retry_after(
          std::min(std::chrono::duration_cast<Duration>(config.retry_period / kLooks * (1 + kJitter * chance)), until_expiry(chance)));
    }
    report_holder();
  }

  void lost() {
    log::warning("leader-election", "{} could not renew {}/{} in time and leads no more", config.identity, config.ns, config.name);
    finish({});
  }

  void finish(std::function<void()> done) {
    const bool was_leading = state == State::kLeading;
    state = State::kStopped;
    is_without = false;
    taken_by = concluded = ++attempt;
    loop->cancel(patience_timer);
    loop->cancel(retry_timer);
    loop->cancel(deadline_timer);
    if (was_leading && callbacks.on_stopped_leading) callbacks.on_stopped_leading();
    if (has_ended()) return;
    if (was_leading && config.release_on_stop && holds_lease()) return release(std::move(done));
    if (done) loop->post(std::move(done));
  }

  void release(std::function<void()> done) {
    auto free = lease;
    const auto now = format_rfc3339_micro(loop->now());
    json::set(free, {"spec", "holderIdentity"}, "");
    json::set(free, {"spec", "leaseDurationSeconds"}, 1);
    json::set(free, {"spec", "acquireTime"}, text(now));
    json::set(free, {"spec", "renewTime"}, text(now));
    holder.clear();
    lease = json::Value(nullptr);
    reported_holder.clear();
    client.update(kLeases, config.ns, config.name, free, [done = std::move(done)](const ApiResult<json::Value>&) {
      if (done) done();
    });
  }
};

Result<void> LeaderElector::validate(const LeaderElectionConfig& config) {
  if (config.name.empty()) return invalid("leader election: the lease's name must not be empty");
  if (config.identity.empty()) return invalid("leader election: the identity must not be empty");
  if (config.lease_duration < std::chrono::seconds(1)) return invalid("leaseDuration must be at least one second");
  if (config.renew_deadline < std::chrono::microseconds(1)) return invalid("renewDeadline must be greater than zero");
  if (config.retry_period < std::chrono::microseconds(1)) return invalid("retryPeriod must be greater than zero");
  if (config.lease_duration <= config.renew_deadline) return invalid("leaseDuration must be greater than renewDeadline");
  if (config.renew_deadline <= std::chrono::duration_cast<Duration>(config.retry_period * kJitter)) {
    return invalid("renewDeadline must be greater than retryPeriod*JitterFactor");
  }
  return {};
}

LeaderElector::LeaderElector(Client& client, LeaderElectionConfig config, LeaderCallbacks callbacks)
    : impl_(std::make_shared<Impl>(client, std::move(config), std::move(callbacks))) {}

LeaderElector::~LeaderElector() {
  impl_->end();
  impl_->loop->cancel(impl_->patience_timer);
  impl_->loop->cancel(impl_->retry_timer);
  impl_->loop->cancel(impl_->deadline_timer);
}

void LeaderElector::start() {
  if (impl_->state != Impl::State::kStopped) return;
  impl_->state = Impl::State::kAcquiring;
  impl_->retry_after(Duration::zero());
}

void LeaderElector::stop(std::function<void()> done) { impl_->finish(std::move(done)); }
bool LeaderElector::is_leader() const { return impl_->state == Impl::State::kLeading; }
const std::string& LeaderElector::leader() const { return impl_->holder; }

}  // namespace berth::client
