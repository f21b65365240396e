// Writing a text as a JSON string without making a value of it.
#pragma once
#include <string>
#include <string_view>

namespace berth::json {

/// Appends the text as a JSON string, quotes included.
void quote_to(std::string& out, std::string_view text);

}  // namespace berth::json
