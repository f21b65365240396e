// What a pass knows of groups from those before it.
#pragma once
#include <map>
#include <string>

#include "autoscaler/pass.h"

namespace berth::autoscaler {

class KnownGroups {
 public:
  /// By group: of the last good node, or as the provider says.
  [[nodiscard]] const NodeTemplates& templates() const { return templates_; }
  /// Those of the pass' groups, made anew where there is a node to look at.
  void make_templates(Pass& pass);
  /// Nobody knows any more how the nodes of a group that is gone would go: they stay.
  void tell_of_gone(Pass& pass);

 private:
  NodeTemplates templates_;
  std::map<std::string, std::size_t> sizes_;  ///< Of the last pass, with how many nodes.
};

}  // namespace berth::autoscaler
