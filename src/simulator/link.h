// A network between a component and the API server that can be cut, slowed and made to fail; and a clock that is wrong.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "base/lifeline.h"
#include "client/transport.h"
#include "simulator/random.h"

namespace berth::simulator {

/// For one thread, the loop's. Cutting ends all streams; requests under way are still answered.
class Link final : public client::Transport {
 public:
  explicit Link(EventLoop& loop, std::uint64_t seed = 0);

  /// Where it leads to from now on; null: the server is down, which cuts all streams.
  void lead_to(std::shared_ptr<client::Transport> inner);
  void cut();
  void heal() { is_cut_ = false; }
  /// What comes back comes so much later. Zero: at once.
  void set_delay(Duration delay) { delay_ = delay; }
  /// This share of requests is answered with 503, and never reaches the server.
  void set_failing(double share) { failing_ = share; }
  [[nodiscard]] bool is_open() const { return !is_cut_ && inner_ != nullptr; }

  /// Takes Events (their JSON) in the server's place, which then never sees them: in a simulation nobody reads them there, and they are
  /// half of all writes. Empty: they go to the server.
  std::function<void(std::string_view event)> on_event;
  /// Sees every request that reaches the server; may be empty.
  std::function<void(const net::HttpRequest&)> on_request;
  /// Sees every eviction before the server does; what it gives back is called at once when the server has accepted it. May be empty.
  std::function<std::function<void()>(const std::string& path)> on_eviction;
  /// Evictions that the server accepted.
  [[nodiscard]] std::int64_t evictions() const { return *evictions_; }

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override;
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override;
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override;
  [[nodiscard]] bool is_in_process() const override { return inner_ != nullptr && inner_->is_in_process(); }

 private:
  struct Stream;
  struct Handle;
  void end_streams();
  std::function<void(net::HttpResponse)> counted(const net::HttpRequest& request, std::function<void(net::HttpResponse)> done);
  net::StreamCallbacks wrap(const std::shared_ptr<Stream>& stream);
  void deliver(const std::shared_ptr<Stream>& stream, std::function<void()> what);

  EventLoop& loop_;
  Random random_;
  std::shared_ptr<client::Transport> inner_;
  bool is_cut_ = false;
  Duration delay_{0};
  double failing_ = 0;
  std::shared_ptr<std::int64_t> evictions_;
  std::vector<std::weak_ptr<Stream>> streams_;
  Lifeline lifeline_;
};

/// A component's own clock: the inner loop's time, so much ahead or behind. (A process of ours reads the machine's clock once and then
/// counts by the monotonic one: a clock that is set is seen by who starts afterwards.)
class SkewedLoop final : public EventLoop {
 public:
  explicit SkewedLoop(EventLoop& inner) : inner_(inner) {}
  /// Only while nobody's timers are set.
  void set_ahead(Duration ahead) { ahead_ = ahead; }
  [[nodiscard]] TimePoint now() const override { return inner_.now() + ahead_; }
  void post(Task task) override { inner_.post(std::move(task)); }
  TimerId schedule_at(TimePoint when, Task task) override { return inner_.schedule_at(when - ahead_, std::move(task)); }
  void cancel(TimerId id) override { inner_.cancel(id); }
  [[nodiscard]] bool is_here() const override { return inner_.is_here(); }

 private:
  EventLoop& inner_;
  Duration ahead_{0};
};

}  // namespace berth::simulator
