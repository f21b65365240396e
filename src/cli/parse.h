// How every subcommand reads its arguments.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

/// Parses; a value means "exit with this code now" (help was printed: 0; wrong usage, explained on standard error: 2).
inline std::optional<int> parse_args(CLI::App& app, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back.
  try {
    app.parse(args);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
}

}  // namespace berth::cli
