#include "cli/command/data_dir.h"

#include <cstdlib>

namespace berth::cli {

std::string default_data_dir() {
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr && *home != '\0' ? home : ".") + "/.berth";
}

}  // namespace berth::cli
