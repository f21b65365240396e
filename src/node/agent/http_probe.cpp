#include "node/agent/http_probe.h"

#include <atomic>
#include <chrono>
#include <future>

#include "net/client.h"

namespace berth::node::agent {
namespace {

constexpr std::size_t kMostRead = 10 * 1024;
constexpr int kMaxRedirects = 10;  // As many as Go's client follows.

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

/// `rest` is what stands behind "//": an authority, then a path.
std::optional<HttpPlace> read_authority(bool is_tls, std::string_view rest) {
  const std::size_t end = rest.find_first_of("/?#");
  std::string_view authority = rest.substr(0, end);
  std::string path(end == std::string_view::npos ? "/" : rest.substr(end));
  if (!path.starts_with('/')) path = "/" + path;
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
  HttpPlace place{is_tls, {}, is_tls ? 443 : 80, std::move(path)};
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    place.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    const std::size_t colon = authority.find(':');
    place.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (port.size() > 1) {
    place.port = 0;
    for (const char c : port.substr(1)) {
      if (c < '0' || c > '9' || place.port > 65535) return std::nullopt;
      place.port = place.port * 10 + (c - '0');
    }
  }
  if (place.host.empty() || place.port == 0 || place.port > 65535) return std::nullopt;
  return place;
}

/// The answer, of whose body no more is read than a probe looks at (k8s.io/kubernetes/pkg/probe/http maxRespBodyLength): what runs in a pod
/// may go on for ever. Status 0: there was none, for the reason in the body.
net::HttpResponse beginning_of(net::HttpClient& client, net::HttpRequest request, int timeout_ms) {
  std::promise<void> done;
  std::atomic<bool> is_done{false};
  net::HttpResponse answer{.status = 0, .headers = {}, .body = {}};
  std::size_t bytes = 0;
  const auto finish = [&] {
    if (!is_done.exchange(true)) done.set_value();
  };
  net::StreamCallbacks callbacks;
  callbacks.on_header = [&](int status, const net::Headers& headers) { answer.status = status, answer.headers = headers; };
  callbacks.on_data = [&](std::string_view data) {
    if (is_done) return;
    answer.body += data.substr(0, kMostRead - answer.body.size());
    bytes += data.size();
    if (bytes > kMostRead) finish();
  };
  callbacks.on_end = [&](std::string error) {
    if (!error.empty() && !is_done) answer = {.status = 0, .headers = {}, .body = std::move(error)};
    finish();
  };
  auto over = done.get_future();
  auto stream = client.stream(std::move(request), std::move(callbacks));
  const bool in_time = over.wait_for(std::chrono::milliseconds(timeout_ms)) == std::future_status::ready;
  stream.reset();  // From here on nothing is called back.
  if (!in_time && !is_done) return {.status = 0, .headers = {}, .body = "timeout awaiting the response"};
  return answer;
}

net::HttpResponse ask(const HttpPlace& place, const net::Headers& headers, int timeout_ms) {
  net::ClientConfig config{.url = place.origin(), .insecure_skip_verify = true, .timeout_ms = timeout_ms};
  auto client = net::HttpClient::create(config);
  if (!client) {
    net::HttpResponse failed;
    failed.status = 0;
    failed.body = client.error().message;
    return failed;
  }
  net::HttpRequest request;
  request.method = "GET";
  const std::size_t question = place.path.find('?');
  request.path = place.path.substr(0, question);
  if (question != std::string::npos) request.query = place.path.substr(question + 1);
  request.headers = headers;
  return beginning_of(**client, std::move(request), timeout_ms);
}

}  // namespace

std::string host_and_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::string HttpPlace::origin() const { return fmt::format("{}://{}", is_tls ? "https" : "http", host_and_port(host, port)); }

std::optional<HttpPlace> HttpPlace::resolve(std::string_view location) const {
  location = location.substr(0, location.find('#'));
  for (const bool tls : {false, true}) {
    const std::string_view scheme = tls ? "https://" : "http://";
    if (location.starts_with(scheme)) return read_authority(tls, location.substr(scheme.size()));
  }
  if (location.starts_with("//")) return read_authority(is_tls, location.substr(2));
  const std::size_t mark = location.find_first_of(":/?");
  if (mark != std::string_view::npos && location[mark] == ':') return std::nullopt;  // Another scheme.
  HttpPlace next = *this;
  const std::string own = path.substr(0, path.find('?'));
  if (location.starts_with('/'))
    next.path = location;
  else if (location.starts_with('?'))
    next.path = own + std::string(location);
  else if (!location.empty())
    next.path = own.substr(0, own.rfind('/') + 1) + std::string(location);
  return next;
}

HttpAnswer follow_http(HttpPlace place, const net::Headers& headers, int timeout_ms) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  const std::string host = place.host;
  for (int redirects = 0;; ++redirects) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now()).count();
    const net::HttpResponse response = ask(place, headers, static_cast<int>(std::max<std::int64_t>(left, 1)));
    if (response.status == 0) {
      const bool is_late = response.body.find("time") != std::string::npos;
      return {.status = 0,
              .error = is_late ? "context deadline exceeded (Client.Timeout exceeded while awaiting headers)" : response.body,
              .body = {}};
    }
    const auto location = response.headers.get("Location");
    if (!is_redirect(response.status) || location.empty()) return {response.status, {}, response.body};
    const auto next = place.resolve(location);
    if (!next || next->host != host) return {response.status, {}, response.body};
    if (redirects == kMaxRedirects) return {.status = 0, .error = fmt::format("stopped after {} redirects", kMaxRedirects), .body = {}};
    place = *next;
  }
}

}  // namespace berth::node::agent
