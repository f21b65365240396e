// Numbers and durations read and printed as Go's library does, with its error texts: kubelet configurations are full of them, and users
// compare what is said.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "base/go/duration.h"
#include "base/go/float.h"
#include "base/go/strings.h"
#include "model/quantity.h"

namespace berth::node::eviction {

/// The text of the error as value: these functions have nothing else to say.
template <typename T>
using TextResult = Expected<T, std::string>;

/// strconv.ParseFloat(text, 32) as a float: decimal, exponents, "inf", "infinity", "nan" in any case, hexadecimal floats, underscores
/// between digits. Errors: `strconv.ParseFloat: parsing "x": invalid syntax` or `…: value out of range`.
TextResult<float> parse_float32(std::string_view text);
/// A parsed quantity and how Go prints it: as it was written where it could be kept in one 64-bit integer, else in canonical form. (A
/// decimal amount of 1e21 and more loses its suffix in print, as in Go.)
struct WrittenQuantity {
  model::Quantity value;
  std::string text;
};
/// resource.ParseQuantity, with its errors. A text without digits but of the right shape ("", "+", ".") is what Go makes of it: an error or
/// 0.
TextResult<WrittenQuantity> parse_quantity(std::string_view text);

}  // namespace berth::node::eviction
