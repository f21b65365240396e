// The serving side of the external protocols, for the reference provider (examples/external-provider) and for tests.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace berth::autoscaler::external {

struct ServiceOptions {
  std::string address = "127.0.0.1:0";
  /// TLS, where given; with an authority clients must show a certificate that it has signed.
  std::string certificate_pem, key_pem, client_ca_pem;
};

/// Answers unary calls one after the other, on a thread of its own. The destructor ends it.
class Service {
 public:
  /// `method`: the short name. Errors become gRPC's: kNotFound UNIMPLEMENTED, kUnavailable UNAVAILABLE, others INTERNAL.
  using Answer = std::function<Result<json::Value>(std::string_view method, const json::Value& request)>;
  static Result<std::unique_ptr<Service>> start(const ServiceOptions& options, std::string_view proto, Answer answer);
  virtual ~Service() = default;
  [[nodiscard]] virtual int port() const = 0;
};

}  // namespace berth::autoscaler::external
