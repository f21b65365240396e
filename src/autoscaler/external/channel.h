// Unary gRPC calls with requests and answers as JSON documents. The messages are built at run time from the text of a .proto of our own
// (protocol.h), so that no code is generated.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace berth::autoscaler::external {

struct ChannelAddress {
  std::string address;                   ///< host:port
  std::string certificate_pem, key_pem;  ///< The client's own; empty: none.
  std::string ca_pem;                    ///< With it the connection is TLS; without it plain.
};

/// Thread-safe; calls block.
class Channel {
 public:
  /// kUnavailable when this program was built without gRPC; kInvalid when the .proto cannot be read.
  static Result<std::unique_ptr<Channel>> open(const ChannelAddress& address, std::string_view proto);
  virtual ~Channel() = default;
  /// `method`: "package.Service/Method". Bytes are base64 in JSON, int64 fields strings; in answers every field is there. kNotFound: the
  /// server has no such method. kUnavailable: it cannot be reached, or did not answer in time. kInternal: its own error, with its words.
  virtual Result<json::Value> call(const std::string& method, const json::Value& request, int timeout_ms) = 0;
};

}  // namespace berth::autoscaler::external
