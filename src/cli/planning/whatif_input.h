// The cluster that what-if, capacity and pack are asked about: a dump or a live one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/planning/placement_input.h"
#include "whatif/whatif.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct WhatIfFlags {
  PlacementFlags placement;
  std::string prices_file, at, output = "text";
  std::size_t most_rows = 40;
  bool may_lack_nodes = false;  ///< Set by the command: some are bought.

  /// Everything but -f. `formats`: of -o.
  void add_to(CLI::App& app, const std::string& present_config_flag, const std::vector<std::string>& formats);
};

/// Reads the cluster; says on standard error by whose configuration the answer is. `refused`, where given: what a live cluster answered
/// instead.
Result<whatif::Present> read_present(const WhatIfFlags& flags, std::optional<model::ApiStatus>* refused = nullptr);
/// Prints the answer as the flags want it.
void print_answer(const json::Value& answer, const WhatIfFlags& flags);

}  // namespace berth::cli
