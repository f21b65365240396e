// Immutable shared text: one serialised revision of an object, sent as it is to every reader.
#pragma once
#include <memory>
#include <string>

namespace berth {

using Bytes = std::shared_ptr<const std::string>;
inline Bytes make_bytes(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

}  // namespace berth
