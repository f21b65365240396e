// The one binary: one subcommand a role.
#include "cli/commands.h"

int main(int argc, char** argv) { return berth::cli::main(argc, argv); }
