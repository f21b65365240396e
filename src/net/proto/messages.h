// Messages of a protocol whose text is known: JSON to bytes and back.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace berth::net::proto {

/// Thread-safe.
class Messages {
 public:
  enum class Side { kRequest, kAnswer };
  /// kUnavailable when this program was built without gRPC; kInvalid when the text cannot be read.
  static Result<std::unique_ptr<Messages>> of(std::string_view proto);
  virtual ~Messages() = default;
  /// `method`: "package.Service/Method". The errors: no such method; the document or the bytes are no such message.
  [[nodiscard]] virtual Result<std::string> encode(const std::string& method, Side side, const json::Value& document) const = 0;
  [[nodiscard]] virtual Result<json::Value> decode(const std::string& method, Side side, const std::string& bytes) const = 0;
};

}  // namespace berth::net::proto
