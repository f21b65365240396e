// Immutable shared text: one serialised revision of an object, sent as it is to every reader.
#pragma once
#include <memory>
#include <string>

namespace berth {

using Bytes = std::shared_ptr<const std::string>;
/// A text that may be packed while nobody reads it (kept_text.h).
class KeptText;
using KeptTextRef = std::shared_ptr<const KeptText>;
inline Bytes make_bytes(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

}  // namespace berth
