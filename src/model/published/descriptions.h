// Short descriptions of fields, for `kubectl explain`.
#pragma once
#include <string_view>
#include <vector>

namespace berth::model {

/// Of a type's field, or of the type itself with an empty field; empty when nothing is said.
std::string_view describe(std::string_view type, std::string_view field);
/// The values a string field may have, in order; empty when it is free.
std::vector<std::string_view> enum_values(std::string_view type, std::string_view field);

}  // namespace berth::model
