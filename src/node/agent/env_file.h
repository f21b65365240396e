// Files with environment variables (env[].valueFrom.fileKeyRef; kubelet util/env).
#pragma once
#include <string>
#include <string_view>

#include "base/error.h"

namespace berth::node::agent {

/// The value of `key` in lines of NAME='value': single quotes, in which everything is itself, lines too; comments and empty lines are left
/// out. Empty when the key is not there. Every line up to the key's must be well formed.
[[nodiscard]] Result<std::string> env_file_value(std::string_view text, std::string_view key);

}  // namespace berth::node::agent
