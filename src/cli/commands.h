// The table of subcommands of `berth`.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

/// Runs the subcommand that argv names; returns the process's exit code.
int main(int argc, char** argv);

/// One role or verb. `run` gets the arguments after the subcommand's name.
struct Command {
  std::string name, summary, group;
  int (*run)(const std::vector<std::string>& args);
};
/// All subcommands, in help order.
const std::vector<Command>& commands();

}  // namespace berth::cli
