// Scheduler plugins from libraries: `berth --plugin FILE.so COMMAND …` (docs/plugins.md).
#pragma once
#include <string>
#include <vector>

#include "base/error.h"

namespace berth::cli {

/// Takes the leading `--plugin FILE` and `--plugin=FILE` from `args` (of the whole command, without its name). The error says what is
/// missing.
Result<std::vector<std::string>> take_plugin_flags(std::vector<std::string>& args);

/// Loads the library for good and registers its plugins, so that every profile made from here on may name them. One that was built for
/// another berth is refused before any of its code runs. Before other threads; loading a file twice is loading it once.
Result<void> load_plugins(const std::string& file);

}  // namespace berth::cli
