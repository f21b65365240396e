// gRPC calls as bytes, without generated code: the one transport of everybody who speaks it (container runtimes, external providers,
// key management). What the bytes are is the caller's.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/expected.h"

namespace berth::net {

/// gRPC's own codes, those that anybody asks for.
enum class GrpcCode {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14
};

struct GrpcFailure {
  int code = 0;  ///< GrpcCode, or another of gRPC's.
  std::string message;
  [[nodiscard]] bool is(GrpcCode wanted) const { return code == static_cast<int>(wanted); }
  /// Nobody answered: not there, too slow, or called off.
  [[nodiscard]] bool is_unanswered() const {
    return is(GrpcCode::kUnavailable) || is(GrpcCode::kDeadlineExceeded) || is(GrpcCode::kCancelled);
  }
};
using GrpcAnswer = Expected<std::string, GrpcFailure>;

struct GrpcAddress {
  std::string target;                                             ///< "host:port", "unix:///path"
  std::string ca_pem, certificate_pem, private_key_pem;           ///< With one of them the connection is TLS; without plain.
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< Sent with every call; names in lower case.
};

/// Thread-safe; calls block.
class GrpcCalls {
 public:
  /// kUnavailable when this program was built without gRPC. Nothing is connected yet.
  static Result<std::unique_ptr<GrpcCalls>> open(const GrpcAddress& address);
  virtual ~GrpcCalls() = default;
  /// `method`: "/package.Service/Method". When `cancel` becomes true the call ends within a fraction of a second.
  virtual GrpcAnswer call(const std::string& method, const std::string& request, int timeout_ms,
                          const std::atomic<bool>* cancel = nullptr) = 0;
  /// What `method` streams, message by message, on the caller's thread, until the stream ends or `cancel` becomes true; then why it ended
  /// (kCancelled, kUnavailable, …; code 0: the other side has said all).
  virtual GrpcFailure read_stream(const std::string& method, const std::string& request,
                                  const std::function<void(const std::string&)>& on_message, const std::atomic<bool>& cancel) = 0;
};

struct GrpcServiceOptions {
  std::string address = "127.0.0.1:0";                          ///< Or "unix:///path".
  std::string certificate_pem, private_key_pem, client_ca_pem;  ///< TLS where given; with an authority, clients must show a certificate.
};

/// Answers unary calls one after the other on a thread of its own. The destructor ends it.
class GrpcService {
 public:
  /// `method`: "/package.Service/Method".
  using Handler = std::function<GrpcAnswer(const std::string& method, const std::string& request)>;
  static Result<std::unique_ptr<GrpcService>> start(const GrpcServiceOptions& options, Handler handler);
  virtual ~GrpcService() = default;
  [[nodiscard]] virtual int port() const = 0;
};

}  // namespace berth::net
