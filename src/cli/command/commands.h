// What a subcommand of `berth` is to the others.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

/// One role or verb. `run` gets the arguments after the subcommand's name.
struct Command {
  std::string name, summary, group;
  int (*run)(const std::vector<std::string>& args);
};
/// All subcommands, in help order: cli/commands.cpp, which alone knows them.
const std::vector<Command>& commands();

}  // namespace berth::cli
