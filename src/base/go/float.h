// Numbers with a fraction as Go prints them (package strconv).
#pragma once
#include <string>

namespace berth::go {

/// strconv.FormatFloat(value, 'g', -1, 32): "0.05", "1e-07", "1e+06", "NaN", "+Inf".
std::string format_float(float value);
/// The same with 64 bits.
std::string format_float(double value);
/// As encoding/json writes a finite number: the fewest digits, with an exponent below 1e-6 and from 1e21 on ("1e-7", "1e+21").
std::string format_json_number(double value);

}  // namespace berth::go
