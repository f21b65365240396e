// The one binary: one subcommand a role.
#include <sys/stat.h>

#include "cli/commands.h"

int main(int argc, char** argv) {
  // Whatever the caller's umask: nobody else writes what is made here. Who asked for more privacy keeps it; secrets are 0600 in any case.
  ::umask(::umask(0) | 022);
  return berth::cli::main(argc, argv);
}
