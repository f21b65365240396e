// What `adm taint` is told, and what it makes of a node's taints. Pure.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::cli {

struct TaintChange {
  std::string key, value, effect;
  bool remove = false;
};

/// `key=value:Effect`, `key:Effect`, `key=value:Effect-`, `key:Effect-`, `key-`.
Result<TaintChange> parse_taint(std::string spec);
/// Whether the changes go together: a taint is not added twice, nor added and removed at once.
Result<void> check_together(const std::vector<TaintChange>& changes);
/// The node's new taint list, or why it cannot be.
Result<json::Array> changed_taints(const json::Value& node, const std::vector<TaintChange>& changes, bool overwrite);

}  // namespace berth::cli
