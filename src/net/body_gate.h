// What the bodies of requests are held to while they come, in both versions of HTTP.
#pragma once
#include <atomic>
#include <functional>
#include <memory>

#include "net/http.h"
#include "net/http_parser.h"

namespace berth::net {

/// What the bodies of all sessions of a server share.
struct BodyRules {
  std::size_t max_bytes = SIZE_MAX;
  std::function<bool(const HttpRequest& head)> may_send;
  std::atomic<std::size_t> bytes{0};  ///< Kept of requests that are not complete.
};

struct BodyPace {
  /// Of a body from whomever: what a review or a patch needs.
  static constexpr std::size_t kUnaskedBytes = 16 * 1024;
  /// The slowest body accepted, once the header timeout is over.
  static constexpr std::size_t kMinBytesPerSecond = 16 * 1024;
};

/// Of the requests of one session or stream, one after the other. On the reactor's thread.
class BodyGate {
 public:
  explicit BodyGate(std::shared_ptr<BodyRules> rules) : rules_(std::move(rules)) {}
  ~BodyGate() { count(0); }
  BodyGate(const BodyGate&) = delete;
  BodyGate& operator=(const BodyGate&) = delete;

  /// So many bytes have come. Why no more are taken; status 0: go on. `head` gives the request without its body: whoever sends much is
  /// asked for, once a request.
  template <typename Head>
  ParseFailure take(std::size_t bytes, const Head& head) {
    count(bytes);
    if (bytes <= BodyPace::kUnaskedBytes) return {};
    if (rules_->may_send && !may_send_) may_send_ = rules_->may_send(head());
    if (rules_->may_send && !may_send_) return {401, "Unauthorized"};
    if (rules_->bytes.load(std::memory_order_relaxed) > rules_->max_bytes)
      return {429, "too many large requests are under way, please try again later"};
    return {};
  }
  /// The body is whole, or wanted no more.
  void end() {
    count(0);
    may_send_ = false;
  }

 private:
  void count(std::size_t bytes) {
    rules_->bytes += bytes - counted_;  // Of unsigned numbers, whichever is more.
    counted_ = bytes;
  }

  std::shared_ptr<BodyRules> rules_;
  std::size_t counted_ = 0;  ///< In rules_->bytes.
  bool may_send_ = false;
};

/// A request without its body.
inline HttpRequest head_of(const HttpRequest& request) {
  return {request.method, request.path, request.query, request.headers, {}, request.peer, request.remote_address};
}

}  // namespace berth::net
