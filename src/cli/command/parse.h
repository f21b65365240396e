// How every subcommand reads its arguments.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

/// What the process was called by: "berth", or "oc" where that is a link to it.
std::string program_name();
void set_program_name(std::string_view argv0);

/// Parses; a value means "exit with this code now" (help was printed: 0; wrong usage, explained on standard error: 2).
std::optional<int> parse_args(CLI::App& app, std::vector<std::string> args);

}  // namespace berth::cli
