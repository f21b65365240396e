// A network between a client and the API server that it happens to be led to: late, lossy, cut without a word, as TCP shows it to a client.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "client/transport.h"
#include "simulator/random.h"

namespace berth::world {

/// For the loop's thread.
class Wire final : public client::Transport {
 public:
  /// `loop` is the network's; the client hears what comes on `home`, its own.
  Wire(EventLoop& loop, EventLoop& home, std::uint64_t seed) : loop_(loop), home_(home), random_(seed, "wire") {}

  /// To another server, or (null) to none: what is under way is lost, whether the server has seen it or not.
  void lead_to(std::shared_ptr<client::Transport> server);
  [[nodiscard]] bool leads_nowhere() const { return server_ == nullptr; }
  /// Nothing passes, and nobody is told: who waits gives up after a while.
  void cut();
  void heal() { is_cut_ = false; }
  /// Its client's process is killed at this moment: nothing that is said on the way out is heard.
  bool is_dumb = false;
  Duration least_delay = std::chrono::microseconds(100), most_delay = std::chrono::milliseconds(2);
  /// Shares of requests that never arrive, and of those whose answers do not.
  double loses_requests = 0, loses_answers = 0;
  /// Sees what is sent, at that moment. May be empty.
  std::function<void(const net::HttpRequest&)> on_send;
  /// Sees the paths of creations of which nobody told the client what became of them. May be empty.
  std::function<void(const std::string&)> on_doubt;

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override;
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override;
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override;

 private:
  struct Exchange;
  struct Stream;
  struct Handle;
  using ExchangePtr = std::shared_ptr<Exchange>;
  using StreamPtr = std::shared_ptr<Stream>;
  void lose(const ExchangePtr& exchange, Duration after);
  void lose(const StreamPtr& stream, Duration after);
  void deliver(const StreamPtr& stream, std::function<void()> what);
  void end_streams(Duration noticed_after);
  Duration delay();

  EventLoop &loop_, &home_;
  simulator::Random random_;
  std::shared_ptr<client::Transport> server_;
  std::uint64_t epoch_ = 0;  ///< Connections of an earlier one are dead.
  bool is_cut_ = false;
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace berth::world
