#include "dashboard/sessions.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/split.h"

namespace berth::dashboard {
namespace {

bool is_same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && !a.empty() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// The values of all cookies of the name: another server on this host may have set one of its own.
std::vector<std::string_view> cookies_of(const net::HttpRequest& request, std::string_view name) {
  std::vector<std::string_view> out;
  for (const auto& [field, value] : request.headers.fields()) {
    if (!net::equal_ignoring_case(field, "Cookie")) continue;
    for (auto one : words(value, ';')) {
      while (one.starts_with(' ')) one.remove_prefix(1);
      const auto equals = one.find('=');
      if (equals != std::string_view::npos && one.substr(0, equals) == name) out.push_back(one.substr(equals + 1));
    }
  }
  return out;
}

/// Following a link to the page itself is nobody's forgery: it shows the page, or takes a token that only its owner knows.
bool is_visit(const net::HttpRequest& request) {
  return request.method == "GET" && request.path == "/" && request.headers.get("Sec-Fetch-Dest") == "document";
}

bool is_from_elsewhere(const net::HttpRequest& request) {
  const auto origin = request.headers.get("Origin");
  if (!origin.empty() && origin != "http://" + std::string(request.headers.get("Host"))) return true;
  const auto site = request.headers.get("Sec-Fetch-Site");
  return !site.empty() && site != "same-origin" && site != "none" && !is_visit(request);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

constexpr std::string_view kWants =
    "this address needs a session. Open the one that berth printed: it has a token, good for one browser. "
    "After its use berth prints another";

}  // namespace

bool is_loopback_host(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (host.size() < name.size() || !net::equal_ignoring_case(host.substr(0, name.size()), name)) continue;
    const auto rest = host.substr(name.size());
    if (rest.empty()) return true;
    return rest.size() > 1 && rest.size() <= 6 && rest[0] == ':' &&
           std::ranges::all_of(rest.substr(1), [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

void add_security_headers(net::Headers& headers) {
  headers.add("Content-Security-Policy",
              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action "
              "'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'");
  headers.add("X-Content-Type-Options", "nosniff");
  headers.add("X-Frame-Options", "DENY");
  headers.add("Referrer-Policy", "no-referrer");
  headers.add("Cross-Origin-Opener-Policy", "same-origin");
  headers.add("Cross-Origin-Resource-Policy", "same-origin");
  headers.add("Permissions-Policy", "camera=(), geolocation=(), microphone=(), usb=()");
}

net::HttpResponse refusal(const net::HttpRequest& request, int status, std::string_view message) {
  net::HttpResponse out;
  out.status = status;
  add_security_headers(out.headers);
  out.headers.add("Cache-Control", "no-store");
  if (request.headers.get("Accept").find("text/html") != std::string_view::npos) {
    out.headers.add("Content-Type", "text/html; charset=utf-8");
    out.body = fmt::format("<!doctype html><html lang=\"en\"><title>berth</title><h1>{} {}</h1><p>{}</p>\n", status,
                           net::reason_phrase(status), escaped(message));
  } else {
    out.headers.add("Content-Type", "application/json");
    out.body = json::serialize(json::Object{{"message", message}, {"code", status}}) + "\n";
  }
  return out;
}

std::string random_secret() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) std::abort();  // No secret is worse than no dashboard.
  return hex(bytes);
}

Sessions::Sessions(Options options) : options_(std::move(options)), token_(options_.secret()) {}

std::string Sessions::token() const {
  MutexLock lock(mutex_);
  return token_;
}

Sessions::Session* Sessions::session_of(const net::HttpRequest& request) const {
  const TimePoint now = options_.clock->now();
  std::erase_if(sessions_, [&](const Session& one) { return now - one.used > options_.idle; });
  for (const std::string_view cookie : cookies_of(request, options_.cookie))
    for (Session& one : sessions_)
      if (is_same_secret(one.secret, cookie)) return &one;
  return nullptr;
}

bool Sessions::has_session(const net::HttpRequest& request) const {
  MutexLock lock(mutex_);
  return session_of(request) != nullptr;
}

std::optional<net::HttpResponse> Sessions::judge(const net::HttpRequest& request) {
  if (!is_loopback_host(request.headers.get("Host")))
    return refusal(request, 403, "the dashboard answers only under localhost, 127.0.0.1 and [::1]");
  if (is_from_elsewhere(request)) return refusal(request, 403, "another page asks: the dashboard serves its own page only");
  if (auto exchanged = exchange(request)) return exchanged;
  {
    MutexLock lock(mutex_);
    if (Session* session = session_of(request)) {
      session->used = options_.clock->now();
      return std::nullopt;
    }
  }
  return refusal(request, 401, kWants);
}

std::optional<net::HttpResponse> Sessions::exchange(const net::HttpRequest& request) {
  if (request.path != "/" || request.method != "GET") return std::nullopt;
  std::string given;
  for (const auto& [key, value] : net::parse_query(request.query))
    if (key == "token") given = value;
  if (given.empty()) return std::nullopt;
  std::string secret, next;
  {
    MutexLock lock(mutex_);
    if (!is_same_secret(given, token_)) {
      // An address that was opened before, in the browser that opened it: the session goes on.
      if (session_of(request) == nullptr)
        return refusal(request, 401, "this address was used before, or is not the one that berth printed. " + std::string(kWants));
    } else {
      token_ = next = options_.secret();
      if (sessions_.size() >= kMostSessions) sessions_.erase(std::ranges::min_element(sessions_, {}, &Session::used));
      secret = sessions_.emplace_back(options_.secret(), options_.clock->now()).secret;
    }
  }
  net::HttpResponse out;
  add_security_headers(out.headers);
  out.headers.add("Content-Type", "text/html; charset=utf-8");
  out.headers.add("Cache-Control", "no-store");
  if (!secret.empty()) out.headers.add("Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", options_.cookie, secret));
  // Not a redirect: one that began on another site's page would be followed without the cookie.
  out.body =
      "<!doctype html><html lang=\"en\"><title>berth</title><meta http-equiv=\"refresh\" content=\"0; url=/\"><a href=\"/\">berth</a>\n";
  if (!next.empty() && options_.on_new_token) options_.on_new_token(std::move(next));
  return out;
}

}  // namespace berth::dashboard
