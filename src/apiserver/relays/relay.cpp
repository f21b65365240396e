#include "apiserver/relays/relay.h"

#include "apiserver/relays/html_links.h"
#include "base/base64.h"
#include "base/lifeline.h"
#include "base/mutex.h"
#include "net/address.h"
#include "net/onward.h"
#include "net/reactor.h"
#include "net/splice.h"
#include "net/websocket.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kMaxRefusalBytes = 2048;
constexpr std::size_t kMaxQueuedBytes = 256 * 1024;
constexpr Duration kSocketPause = std::chrono::milliseconds(50);  // between looks whether a slow reader has read
constexpr std::size_t kMaxIdleRelayClients = 256;
constexpr std::string_view kUpstreamKey = "upstream|";
constexpr int kUpstreamTimeoutMs = 6'000;                          // kube-aggregator's, for what it asks by itself
constexpr Duration kUpstreamPatience = std::chrono::seconds(60);   // until it begins to answer
constexpr std::size_t kMaxUpstreamAnswerBytes = 32 * 1024 * 1024;  // an OpenAPI document

model::ApiStatus refused_by_node(int code, std::string message) {
  if (code == 400) return model::bad_request(std::move(message));
  model::ApiStatus status;
  status.code = code;
  status.reason = code == 404 ? "NotFound" : code == 403 ? "Forbidden" : code == 401 ? "Unauthorized" : "InternalError";
  status.message = code == 500 ? "Internal error occurred: " + message : std::move(message);
  return status;
}

/// Nothing answers there. Of an aggregated server in plain words, as kube-aggregator does.
void respond_unreachable(Responder& respond, Request& request, const FarEnd& far, const std::string& why) {
  if (far.upstream) return respond.text(request, 503, "text/plain; charset=utf-8", far.failure + why + "\n");
  respond.status(request, unavailable(far.failure + why));
}

/// The far end answered, but not what may be passed on. Of an aggregated server in plain words, as kube-aggregator does.
void respond_wrong(Responder& respond, Request& request, const FarEnd& far, int code, const std::string& why) {
  if (far.upstream) return respond.text(request, code, "text/plain; charset=utf-8", why + (code == 502 ? "" : "\n"));
  model::ApiStatus status;
  status.code = 500;
  status.message = why;
  respond.status(request, status);
}

std::string shown(const net::SocketAddress& where) {
  return where.address.is_ipv4() ? fmt::format("{}:{}", where.address.text(), where.port)
                                 : fmt::format("[{}]:{}", where.address.text(), where.port);
}

/// A streamed answer, passed on as it comes. Kept alive by its stream's callbacks; the answer's end, or the client's, cuts that circle.
class StreamRelay : public Guarded<StreamRelay> {
 public:
  StreamRelay(Relays& relays, RequestPtr request, const FarEnd& far, std::shared_ptr<net::HttpClient> client)
      : relays_(relays), request_(std::move(request)), far_(far), client_(std::move(client)) {}

  void start(net::HttpRequest onward) {
    net::StreamCallbacks callbacks;
    callbacks.on_header = [self = shared_from_this()](int status, const net::Headers& headers) { self->begin(status, headers); };
    callbacks.on_data = [self = shared_from_this()](std::string_view data) { self->pass(data); };
    callbacks.on_end = [self = shared_from_this()](const std::string& error) { self->finish(error); };
    request_->writer->on_close([self = shared_from_this()] {
      if (!self->is_socket_) self->let_go();  // The answer is over when it becomes a WebSocket; that tells of its own end.
    });
    auto stream = client_->stream(std::move(onward), std::move(callbacks));
    const MutexLock lock(mutex_);
    stream_ = std::move(stream);
    if (is_over_) relays_.clients.release_later(std::move(stream_));
    if (stream_ && is_held_) stream_->pause();
    if (far_.upstream) relays_.loop.schedule_after(kUpstreamPatience, guarded(&StreamRelay::time_out));
  }

 private:
  [[nodiscard]] bool is_log() const { return request_->info.subresource == "log"; }

  /// An aggregated server that says nothing holds nobody for ever, nor the place of his request.
  void time_out() {
    if (is_started_.exchange(true)) return;
    let_go();
    model::ApiStatus status;
    status.code = 504;
    status.reason = "Timeout";
    status.message = "Timeout: request did not complete within the allotted duration";
    relays_.respond.status(*request_, status);
  }

  void begin(int status, const net::Headers& from) {
    if (is_started_.exchange(true)) return;
    if (refuses(status, from)) return let_go();
    has_begun_ = true;
    // What a node refuses a log with is passed on as a Status (registry/rest GenericHttpResponseChecker).
    if (is_log() && (status < 200 || status > 206)) {
      refused_ = status;
      return;
    }
    if (is_log() && net::is_websocket_request(request_->http)) return begin_socket();
    relays_.respond.account(*request_, status);
    net::Headers to_client;
    if (!far_.path_prefix.empty())
      to_client = moved_headers(from);
    else if (far_.node.empty())
      to_client = net::headers_back(from);
    else if (const auto type = from.get("Content-Type"); !type.empty())
      to_client.add("Content-Type", std::string(type));
    request_->writer->start_stream(status, std::move(to_client));
  }

  /// Answers by itself where the far end's answer would lead the client elsewhere (CVE-2022-3172: an aggregated server's redirect, which
  /// carries the user's credentials away) or on in a protocol that nobody asked for.
  bool refuses(int status, const net::Headers& from) {
    if (status == 101 && !is_log()) {
      respond_wrong(relays_.respond, *request_, far_, 503,
                    fmt::format("backend tried to switch protocol \"{}\" when \"\" was requested", from.get("Upgrade")));
      return true;
    }
    if (!far_.upstream || status < 300 || status > 399 || from.get("Location").empty()) return false;
    respond_wrong(relays_.respond, *request_, far_, 502, "the backend attempted to redirect this request, which is not permitted");
    return true;
  }

  /// Headers of an application's answer, its redirects below the proxy's path; from now on a page's links are, too.
  net::Headers moved_headers(const net::Headers& from) {
    const std::string_view host = std::string_view(far_.url).substr(far_.url.find("://") + 3);
    const std::string asked(request_->http.headers.get("Host"));
    const auto type = from.get("Content-Type");
    const bool is_page = type.substr(0, type.find(';')) == "text/html" && from.get("Content-Encoding").empty();
    if (is_page && request_->http.method != "HEAD") page_ = std::make_unique<HtmlLinks>(far_.path_prefix, std::string(host), asked);
    net::Headers out;
    for (const auto& [name, value] : net::headers_back(from).fields()) {
      if (net::equal_ignoring_case(name, "Location"))
        out.add(name, link_below(value, far_.path_prefix, host, asked));
      else if (page_ == nullptr || !net::equal_ignoring_case(name, "Content-Length"))
        out.add(name, value);
    }
    return out;
  }

  /// A log as messages of a WebSocket (apiserver/pkg/util/wsstream, Reader).
  void begin_socket() {
    const auto protocol = net::choose_websocket_protocol(request_->http, {"binary.k8s.io", "base64.binary.k8s.io"});
    auto answer = net::websocket_answer(request_->http, protocol);
    if (!answer) {
      let_go();
      refused_ = 400;
      return relays_.respond.status(*request_, model::bad_request("the WebSocket handshake is malformed"));
    }
    relays_.respond.account(*request_, 101);
    is_base64_ = protocol == "base64.binary.k8s.io";
    is_socket_ = true;
    auto own = request_->writer->upgrade(std::move(*answer));
    if (own == nullptr) return let_go();
    net::WebSocket::Callbacks callbacks;
    callbacks.on_message = [](net::WebSocketMessage::Kind, std::string) {};
    callbacks.on_close = guarded([](StreamRelay& self, std::uint16_t, const std::string&) { self.let_go(); });
    socket_ = std::make_shared<net::WebSocket>(std::move(own), net::WebSocketRole::kServer, std::move(callbacks));
  }

  void send(std::string_view data) {
    if (is_base64_)
      socket_->send(net::WebSocketMessage::Kind::kText, base64_encode(data));
    else
      socket_->send(net::WebSocketMessage::Kind::kBinary, data);
    if (socket_->queued_bytes() < kMaxQueuedBytes) return;
    hold(true);
    wait_for_socket();
  }

  void wait_for_socket() {
    relays_.loop.schedule_after(kSocketPause, [self = shared_from_this(), socket = socket_] {
      if (socket->queued_bytes() >= kMaxQueuedBytes) return self->wait_for_socket();
      self->hold(false);
    });
  }

  void pass(std::string_view data) {
    if (!has_begun_) return;
    if (refused_ != 0) {
      if (refusal_.size() < kMaxRefusalBytes) refusal_ += data.substr(0, kMaxRefusalBytes - refusal_.size());
      return;
    }
    if (socket_ != nullptr) return send(data);
    auto& writer = *request_->writer;
    std::string bytes = page_ != nullptr ? page_->feed(data) : std::string(data);
    if (bytes.empty()) return;
    if (!writer.write(make_bytes(std::move(bytes))) || writer.queued_bytes() < kMaxQueuedBytes) return;
    hold(true);
    writer.on_drain([self = shared_from_this()] { self->hold(false); });
  }

  void hold(bool is_held) {
    const MutexLock lock(mutex_);
    is_held_ = is_held;
    if (stream_ == nullptr) return;
    if (is_held)
      stream_->pause();
    else
      stream_->resume();
  }

  void finish(const std::string& error) {
    if (!is_started_.exchange(true)) return respond_unreachable(relays_.respond, *request_, far_, error);
    if (!has_begun_) return;
    if (socket_ != nullptr) {
      socket_->close();
      return relays_.clients.release_later(std::move(socket_));
    }
    if (refused_ != 0 && is_log()) return relays_.respond.status(*request_, refused_by_node(refused_, refusal_));
    if (page_ != nullptr) request_->writer->write(make_bytes(page_->finish()));
    request_->writer->finish();
  }

  void let_go() {
    const MutexLock lock(mutex_);
    is_over_ = true;
    // Not here: this may be called from within one of the stream's own callbacks.
    if (stream_) relays_.clients.release_later(std::move(stream_));
  }

  Relays& relays_;
  const RequestPtr request_;
  const FarEnd far_;
  const std::shared_ptr<net::HttpClient> client_;
  // On the I/O thread of the stream alone:
  bool has_begun_ = false;
  int refused_ = 0;
  std::string refusal_;
  std::unique_ptr<HtmlLinks> page_;         ///< Where what comes is a page whose links have to move.
  std::shared_ptr<net::WebSocket> socket_;  ///< Where the client asked for one.
  bool is_base64_ = false;

  std::atomic<bool> is_socket_{false};
  std::atomic<bool> is_started_{false};  ///< Somebody answers: the far end's header, its failure, or that it took too long.

  Mutex mutex_;  ///< Guards what follows.
  std::unique_ptr<net::StreamHandle> stream_ BERTH_GUARDED_BY(mutex_);
  bool is_held_ BERTH_GUARDED_BY(mutex_) = false, is_over_ BERTH_GUARDED_BY(mutex_) = false;
};

void relay_upgrade(Responder& respond, const RequestPtr& request, const FarEnd& far, const std::shared_ptr<net::HttpClient>& client,
                   net::HttpRequest onward) {
  auto call_off =
      client->upgrade(std::move(onward), [&respond, request, far](std::unique_ptr<net::RawStream> stream, net::HttpResponse response) {
        if (stream == nullptr) {
          if (response.status == 0) return respond_unreachable(respond, *request, far, response.body);
          // An error is passed on; what is neither that nor the session leads elsewhere, or says what nobody asked for.
          if (response.status < 400)
            return respond_wrong(respond, *request, far, 503, fmt::format("invalid upgrade response: status code {}", response.status));
          respond.account(*request, response.status);
          response.headers = net::headers_back(response.headers);
          return request->writer->respond(std::move(response));
        }
        respond.account(*request, 101);
        auto own = request->writer->upgrade(std::move(response.headers));
        if (own != nullptr) net::splice(std::move(own), std::move(stream));
      });
  request->writer->on_close(std::move(call_off));
}

}  // namespace

model::ApiStatus unavailable(std::string message) {
  model::ApiStatus status;
  status.code = 503;
  status.reason = "ServiceUnavailable";
  status.message = std::move(message);
  return status;
}

/// What the checks of addresses ask, also when the server has gone.
struct RelayClients::Own {
  std::string service_cidr;
  std::atomic<std::uint16_t> port{0};
  Mutex mutex;
  std::optional<net::IpAddress> advertised BERTH_GUARDED_BY(mutex);

  bool is_this_server(const net::SocketAddress& where) {
    if (port == 0 || where.port != port) return false;
    const MutexLock lock(mutex);
    return where.address == advertised || net::leads_to_this_machine(where.address);
  }

  /// Why nothing may be sent there as to a node.
  std::string refuse_node(const net::SocketAddress& where) {
    if (is_this_server(where)) return fmt::format("{} is the API server itself, not a node", shown(where));
    if (where.address.is_unspecified() || where.address.is_multicast()) return fmt::format("{} is no node's address", shown(where));
    if (where.address.is_in(service_cidr)) return fmt::format("{} is in the range of Services, where no node is", shown(where));
    return {};
  }

  /// Why nothing may be sent there as to an aggregated server.
  std::string refuse_upstream(const net::SocketAddress& where) {
    if (is_this_server(where)) return fmt::format("{} is this API server itself: it would ask itself for ever", shown(where));
    if (where.address.is_unspecified() || where.address.is_multicast() || where.address.is_link_local())
      return fmt::format("{} is no server's address", shown(where));
    return {};
  }

  /// Why nothing may be sent there as to a pod.
  std::string refuse_pod(const net::SocketAddress& where, bool on_host) {
    if (auto why = refuse_node(where); !why.empty()) return why;
    if (where.address.is_loopback() || where.address.is_link_local()) return fmt::format("{} is no pod's address", shown(where));
    if (!on_host && net::leads_to_this_machine(where.address))
      return fmt::format("{} is this machine's own, not a pod's address", shown(where));
    return {};
  }
};

RelayClients::RelayClients(net::ClientConfig node_client, std::string service_cidr)
    : own_(std::make_shared<Own>()), node_client_(std::move(node_client)) {
  own_->service_cidr = std::move(service_cidr);
}

void RelayClients::stop() {
  std::shared_ptr<net::Reactor> reactor;
  {
    const MutexLock lock(mutex_);
    clients_.clear();
    reactor = reactor_;  // Kept: nothing goes on by it any more.
  }
  if (reactor) reactor->stop();
}

void RelayClients::serves_on(const std::string& advertise_address, std::uint16_t port) {
  const MutexLock lock(own_->mutex);
  own_->advertised = net::IpAddress::parse(advertise_address);
  own_->port = port;
}

void RelayClients::trust_node(const std::string& node, std::string ca_pem) {
  const MutexLock lock(mutex_);
  authorities_[node] = std::move(ca_pem);
  std::erase_if(clients_, [&](const auto& entry) { return entry.first.ends_with("|" + node); });
}

void RelayClients::set_node_client(net::ClientConfig node_client) {
  const MutexLock lock(mutex_);
  node_client_ = std::move(node_client);
  std::erase_if(clients_, [](const auto& entry) { return !entry.first.ends_with("|"); });
}

void RelayClients::set_front_proxy(std::string certificate_pem, std::string private_key_pem) {
  const MutexLock lock(mutex_);
  proxy_certificate_pem_ = std::move(certificate_pem);
  proxy_key_pem_ = std::move(private_key_pem);
  std::erase_if(clients_, [](const auto& entry) { return entry.first.starts_with(kUpstreamKey); });
}

Result<std::shared_ptr<net::HttpClient>> RelayClients::client_for(const FarEnd& far) {
  const MutexLock lock(mutex_);
  auto key = fmt::format("{}|{}|{}", far.url, far.on_host ? "host" : "", far.node);
  if (far.upstream)
    key = fmt::format("{}{}|{}|{}|{}|", kUpstreamKey, far.url, far.upstream->server_name, far.upstream->insecure,
                      std::hash<std::string>()(far.upstream->ca_pem));
  if (const auto found = clients_.find(key); found != clients_.end()) return found->second;
  if (reactor_ == nullptr) reactor_ = net::Reactor::start("relays");
  if (reactor_ == nullptr) return fail(ErrorCode::kUnavailable, "no I/O thread can be started");
  // Clients that nothing goes through make room; pods come and go.
  if (clients_.size() >= kMaxIdleRelayClients) std::erase_if(clients_, [](const auto& entry) { return entry.second.use_count() == 1; });
  auto made = make_client(far);
  if (made) clients_.emplace(key, *made);
  return made;
}

Result<std::shared_ptr<net::HttpClient>> RelayClients::make_client(const FarEnd& far) {
  // The certificate towards nodes is not for what runs in pods.
  auto config = far.node.empty() ? net::ClientConfig{} : node_client_;
  config.url = far.url;
  if (const auto own = authorities_.find(far.node); own != authorities_.end() && !far.node.empty()) config.ca_pem = own->second;
  // Without an authority as kube-apiserver: nodes show certificates that they signed themselves.
  config.insecure_skip_verify = config.ca_pem.empty();
  config.node_name = far.node;
  config.reactor = reactor_;
  if (far.upstream) {
    config.ca_pem = far.upstream->ca_pem;
    config.insecure_skip_verify = far.upstream->insecure;
    config.server_name = far.upstream->server_name;
    config.certificate_pem = proxy_certificate_pem_;
    config.private_key_pem = proxy_key_pem_;
    config.timeout_ms = kUpstreamTimeoutMs;
    config.max_answer_bytes = kMaxUpstreamAnswerBytes;
    config.refuse_address = [own = own_](const net::SocketAddress& where) { return own->refuse_upstream(where); };
  } else {
    config.refuse_address = [own = own_, is_node = !far.node.empty(), on_host = far.on_host](const net::SocketAddress& where) {
      return is_node ? own->refuse_node(where) : own->refuse_pod(where, on_host);
    };
  }
  auto made = net::HttpClient::create(std::move(config));
  if (!made) return std::unexpected(made.error());
  return std::shared_ptr<net::HttpClient>(std::move(*made));
}

void RelayClients::release_later(std::shared_ptr<void> what) {
  std::shared_ptr<net::Reactor> reactor;
  {
    const MutexLock lock(mutex_);
    reactor = reactor_;
  }
  if (reactor) reactor->post([what = std::move(what)] {});
}

Relays::Relays(Ground& ground, Responder& answers, net::ClientConfig node_client)
    : loop(ground.loop), respond(answers), clients(std::move(node_client), ground.options.service_cidr) {
  if (ground.options.advertise_port != 0) clients.serves_on(ground.options.advertise_address, ground.options.advertise_port);
}

void Relays::send_on(const RequestPtr& request, const FarEnd& far, net::HttpRequest onward) {
  auto client = clients.client_for(far);
  if (!client) return respond_unreachable(respond, *request, far, client.error().message);
  if (!onward.headers.get("Upgrade").empty()) return relay_upgrade(respond, request, far, *client, std::move(onward));
  std::make_shared<StreamRelay>(*this, request, far, std::move(*client))->start(std::move(onward));
}

}  // namespace berth::apiserver
