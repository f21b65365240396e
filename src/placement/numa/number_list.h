// Lists of numbers as the kernel writes them: processors, NUMA nodes.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"

namespace berth::placement::numa {

/// From 0 to 65535; nullopt: anything else.
[[nodiscard]] std::optional<int> number_in(std::string_view text);
/// "0-3,8". `of`: of what it is a list, for the error.
[[nodiscard]] Result<std::set<int>> parse_number_list(std::string_view text, std::string_view of);
[[nodiscard]] std::string number_list(const std::set<int>& numbers);

}  // namespace berth::placement::numa
