#include "bench/watch_clients.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "bench/bench.h"

namespace berth::bench {
namespace {

/// TLS as these clients speak it; null when the identity is unusable.
SSL_CTX* make_context(const std::string& certificate_pem, const std::string& key_pem) {
  auto* out = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_mode(out, SSL_MODE_RELEASE_BUFFERS);
  BIO* certificate_text = BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size()));
  BIO* key_text = BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size()));
  X509* certificate = PEM_read_bio_X509(certificate_text, nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
  const bool is_good = SSL_CTX_use_certificate(out, certificate) == 1 && SSL_CTX_use_PrivateKey(out, key) == 1;
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(certificate_text);
  BIO_free(key_text);
  if (is_good) return out;
  SSL_CTX_free(out);
  return nullptr;
}

nghttp2_nv field(std::string_view name, std::string_view value) {
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())), reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
          name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

WatchClients::~WatchClients() {
  for (const auto& link : links_) {
    nghttp2_session_del(link->session);
    SSL_free(link->ssl);
    if (link->fd >= 0) ::close(link->fd);
  }
  if (epoll_ >= 0) ::close(epoll_);
  SSL_CTX_free(context_);
}

std::string WatchClients::connect(Link& link) {
  link.fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (link.fd < 0) return "no more sockets";
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options_.port);
  // Addresses of the loopback's net in turn: one has 28,000 ports.
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<std::uint32_t>(links_.size() % 8));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(link.fd, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) return "cannot bind";
  if (::connect(link.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "cannot connect";
  link.ssl = SSL_new(context_);
  static constexpr std::string_view kHttp2 = "\x02h2", kHttp1 = "\x08http/1.1";
  const auto offered = options_.http2 ? kHttp2 : kHttp1;
  SSL_set_alpn_protos(link.ssl, reinterpret_cast<const unsigned char*>(offered.data()), static_cast<unsigned>(offered.size()));
  SSL_set_fd(link.ssl, link.fd);
  if (SSL_connect(link.ssl) != 1) return "no TLS handshake";
  return {};
}

std::string WatchClients::ask(Link& link, int number) {
  if (options_.http2) return ask_http2(link, number);
  const auto text = "GET " + options_.path(number / options_.watches, number % options_.watches) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  return SSL_write(link.ssl, text.data(), static_cast<int>(text.size())) > 0 ? "" : "cannot send";
}

std::string WatchClients::ask_http2(Link& link, int client) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* data, std::size_t size, void* user) {
        auto* self = static_cast<WatchClients*>(user);
        self->count(*self->reading_, reinterpret_cast<const char*>(data), size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto* self = static_cast<WatchClients*>(user);
    if (frame->hd.type == NGHTTP2_HEADERS) ++self->reading_->answers;
    return 0;
  });
  nghttp2_session_client_new(&link.session, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20};  // As Go's clients have it.
  nghttp2_submit_settings(link.session, NGHTTP2_FLAG_NONE, &window, 1);
  nghttp2_session_set_local_window_size(link.session, NGHTTP2_FLAG_NONE, 0, 1 << 30);
  for (int i = 0; i < options_.watches; ++i) {
    const std::string path = options_.path(client, i);
    const nghttp2_nv fields[] = {field(":method", "GET"), field(":scheme", "https"), field(":path", path), field(":authority", "x")};
    nghttp2_submit_request(link.session, nullptr, fields, std::size(fields), nullptr, nullptr);
  }
  flush(link);
  return {};
}

void WatchClients::flush(Link& link) {
  const std::uint8_t* data = nullptr;
  for (ssize_t size = 0; (size = nghttp2_session_mem_send(link.session, &data)) > 0;) SSL_write(link.ssl, data, static_cast<int>(size));
}

void WatchClients::count(Link& link, const char* data, std::size_t size) {
  const auto& marker = options_.marker;
  link.tail.append(data, size);
  std::size_t at = 0;
  for (std::size_t found = 0; (found = link.tail.find(marker, at)) != std::string::npos; at = found + marker.size()) ++seen_;
  link.tail.erase(0, std::max(at, link.tail.size() - std::min(link.tail.size(), marker.size() - 1)));
}

bool WatchClients::read_link(Link& link) {
  static std::array<char, 256 * 1024> buffer;
  const int got = SSL_read(link.ssl, buffer.data(), static_cast<int>(buffer.size()));
  if (got <= 0) return SSL_get_error(link.ssl, got) == SSL_ERROR_WANT_READ;
  const auto size = static_cast<std::size_t>(got);
  if (link.session == nullptr) {
    if (link.answers == 0) link.answers = 1;
    count(link, buffer.data(), size);
    return true;
  }
  reading_ = &link;
  nghttp2_session_mem_recv(link.session, reinterpret_cast<const std::uint8_t*>(buffer.data()), size);
  if (nghttp2_session_want_write(link.session) != 0) flush(link);
  return true;
}

std::string WatchClients::open() {
  epoll_ = ::epoll_create1(0);
  context_ = make_context(options_.certificate_pem, options_.private_key_pem);
  if (context_ == nullptr) return "the clients' certificate is unusable";
  const int connections = options_.http2 ? options_.clients : options_.clients * options_.watches;
  const std::size_t wanted = options_.http2 ? static_cast<std::size_t>(options_.watches) : 1;
  for (int i = 0; i < connections; ++i) {
    links_.push_back(std::make_unique<Link>());
    auto& link = *links_.back();
    if (auto problem = connect(link); !problem.empty()) return problem;
    if (auto problem = ask(link, i); !problem.empty()) return problem;
    while (link.answers < wanted)
      if (!read_link(link)) return "the server ended a connection";
    ::fcntl(link.fd, F_SETFL, O_NONBLOCK);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &link}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, link.fd, &event);
  }
  return {};
}

bool WatchClients::take(int wait_ms) {
  std::array<epoll_event, 256> ready;
  const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), wait_ms);
  for (int i = 0; i < count; ++i) {
    auto& link = *static_cast<Link*>(ready[static_cast<std::size_t>(i)].data.ptr);
    if (!read_link(link)) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, link.fd, nullptr);
  }
  return count > 0;
}

std::size_t WatchClients::read(std::size_t events) {
  static constexpr int kSilenceMs = 30'000;
  seen_ = 0;
  while (seen_ < events)
    if (!take(kSilenceMs)) break;
  return seen_;
}

std::size_t WatchClients::idle(double seconds) {
  seen_ = 0;
  const double end = now_seconds() + seconds;
  for (double left = seconds; left > 0; left = end - now_seconds()) take(static_cast<int>(left * 1000) + 1);
  return seen_;
}

}  // namespace berth::bench
