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

#include "cli/configuration.h"

namespace berth::cli {

/// What the process was called by: "berth", or "oc" where that is a link to it.
std::string program_name();
void set_program_name(std::string_view argv0);

/// Parses; a value means "exit with this code now" (help was printed: 0; wrong usage, explained on standard error: 2).
inline std::optional<int> parse_args(CLI::App& app, std::vector<std::string> args) {
  auto configured = with_configuration(app, std::move(args));
  if (!configured) {
    fmt::print(stderr, "error: {}\n", configured.error().message);
    return 2;
  }
  args = std::move(*configured);
  if (std::string name = app.get_name(); name.starts_with("berth")) app.name(program_name() + name.substr(5));
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
