// The client's side of HTTP/1.1 connections: a pool a reactor, and one driver a connection.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/gate.h"
#include "net/address.h"
#include "net/client.h"
#include "net/connection.h"
#include "net/http_parser.h"

namespace berth::net {

/// `scheme://host:port/prefix` taken apart.
struct Url {
  bool is_https = false;
  std::string host;  ///< Without brackets.
  std::uint16_t port = 0;
  std::string host_header;
  std::string prefix;  ///< Without a slash at the end.
};
Result<Url> parse_url(std::string_view text);

class ClientSession;

/// What a stream's handle and its session share.
struct StreamControl {
  Gate gate;  ///< Of the callbacks.
  bool is_cancelled = false;
  StreamCallbacks callbacks;
  std::atomic<bool> is_paused{false};
  std::weak_ptr<ClientSession> session;  ///< On the reactor's thread only.
};

/// One request on its way.
struct ClientOp {
  enum class Kind { kExchange, kStream, kUpgrade };
  Kind kind = Kind::kExchange;
  std::string wire;
  std::string method;
  bool is_replayable = false;
  MonotonicTime deadline = MonotonicTime::max();
  std::function<void(HttpResponse)> done;
  std::function<void(std::unique_ptr<RawStream>, HttpResponse)> upgraded;
  std::shared_ptr<StreamControl> stream;

  void fail(std::string why);
};
using ClientOpPtr = std::shared_ptr<ClientOp>;

/// The connections of one reactor to one server. Used on the reactor's thread only, except for the constant members.
class ClientPool : public std::enable_shared_from_this<ClientPool> {
 public:
  struct Options {
    Url url;
    TlsContext tls;
    std::string server_name;  ///< To be verified.
    bool verify = true;
    std::size_t max_connections = 1, max_answer_bytes = 0;
    std::function<std::string(const SocketAddress&)> refuse_address;
    std::string node_name;
  };
  ClientPool(std::shared_ptr<Reactor> reactor, Options options);

  /// Starts the operation on an idle connection, a new one, or queues it.
  void submit(ClientOpPtr op);
  void cancel(const ClientOpPtr& op);
  void resume(const ClientOpPtr& op);
  /// Fails everything, now and later.
  void shut_down();

  // For sessions:
  void release(const std::shared_ptr<ClientSession>& session);
  /// `op` may be null. `repeat`: it goes to a new connection.
  void gone(const std::shared_ptr<ClientSession>& session, const ClientOpPtr& op, bool repeat);
  /// Starts connecting to the address at `index`; false when there is none.
  bool connect(const std::shared_ptr<ClientSession>& session, std::size_t index);
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] Reactor& reactor() { return *reactor_; }
  [[nodiscard]] const std::shared_ptr<Reactor>& reactor_ptr() const { return reactor_; }

 private:
  struct Address {
    std::string bytes;  ///< A sockaddr.
  };
  static std::vector<Address> resolve(const std::string& host, std::uint16_t port, bool numeric_only, std::string& problem);
  void open_connection(ClientOpPtr op);
  void resolved(std::vector<Address> addresses, std::string problem);
  /// Leaves out the addresses that must not be connected to; the reason when none is left.
  std::string drop_refused(std::vector<Address>& addresses) const;
  void run_queue();
  void watch_queue();

  std::shared_ptr<Reactor> reactor_;
  const Options options_;

  std::vector<std::shared_ptr<ClientSession>> idle_;  ///< Last used last.
  std::unordered_set<std::shared_ptr<ClientSession>> sessions_;
  std::size_t exchange_connections_ = 0;
  std::deque<ClientOpPtr> queue_;
  std::vector<ClientOpPtr> waiting_for_address_;
  std::vector<Address> addresses_;
  MonotonicTime addresses_until_{};
  bool is_resolving_ = false, is_shut_down_ = false, is_watching_queue_ = false;
};

class ClientSession final : public Driver, public std::enable_shared_from_this<ClientSession> {
 public:
  ClientSession(std::shared_ptr<ClientPool> pool, ClientOpPtr op);
  void attach(std::shared_ptr<Connection> connection) { connection_ = std::move(connection); }
  /// Sends a further request on the idle connection.
  void begin(ClientOpPtr op);
  void close(const std::string& why);
  /// Goes on reading after a pause.
  void resume();
  [[nodiscard]] const ClientOpPtr& op() const { return op_; }
  [[nodiscard]] bool is_exchange() const { return is_exchange_; }
  /// Whether an idle connection can still be used.
  [[nodiscard]] bool is_usable() const;
  [[nodiscard]] const std::shared_ptr<Connection>& connection() const { return connection_; }

  void on_open() override;
  std::size_t on_input(std::string_view data) override;
  void on_eof() override;
  void on_tick(MonotonicTime now) override;
  void on_closed(const std::string& why) override;

 private:
  [[nodiscard]] bool is_paused() const { return op_ && op_->stream && op_->stream->is_paused; }
  void progress_stream();
  void finish(bool leftover);
  void hand_over();

  std::shared_ptr<ClientPool> pool_;
  std::shared_ptr<Connection> connection_;
  ClientOpPtr op_;
  ResponseParser parser_;
  bool is_exchange_, is_reused_ = false, was_open_ = false, header_told_ = false, eof_waits_ = false;
  std::size_t address_index_ = 0;
  MonotonicTime idle_since_{}, connect_until_{};
};

}  // namespace berth::net
