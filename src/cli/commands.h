// The table of subcommands of `berth`.
#pragma once
#include "cli/command/commands.h"

namespace berth::cli {

/// Runs the subcommand that argv names; returns the process's exit code.
int main(int argc, char** argv);

}  // namespace berth::cli
