// The nodes that a command line names: by name, by label, or all.
#pragma once
#include <string>
#include <vector>

#include "cli/command/session.h"

namespace berth::cli {

inline const client::Gvr kNodes{"", "v1", "nodes"};

struct NodeChoice {
  std::vector<std::string> names;
  std::string selector;
  bool all = false;

  /// -l/--selector and --all; names are positional and differ from verb to verb.
  void add_to(CLI::App& app);
  /// The names; exactly one way of naming must be used, and a selector that matches nothing is an error, too.
  Result<std::vector<std::string>> resolve(Session& session) const;
};

}  // namespace berth::cli
