#include "cli/commands.h"

#include <cstdio>

namespace berth::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {};
  return table;
}

int main(int argc, char** argv) {
  std::string name = argc > 1 ? argv[1] : "--help";
  for (const Command& command : commands())
    if (command.name == name) return command.run(std::vector<std::string>(argv + 2, argv + argc));
  std::fprintf(stderr, "Usage: berth COMMAND [flags]\n");
  for (const Command& command : commands()) std::fprintf(stderr, "  %-12s %s\n", command.name.c_str(), command.summary.c_str());
  return name == "--help" ? 0 : 2;
}

}  // namespace berth::cli
