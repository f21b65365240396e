// Regular expressions in Go's syntax, which is RE2's.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace berth::cel {

/// A compiled pattern (a re2::RE2), or why it is none in the words of Go's regexp ("error parsing regexp: missing closing ]: `[a`").
Expected<std::shared_ptr<const void>, std::string> compile_pattern(std::string_view pattern);

}  // namespace berth::cel
