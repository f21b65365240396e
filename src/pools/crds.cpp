#include "pools/crds.h"

#include "base/check.h"
#include "base/json.h"

namespace berth::pools {

/// definitions.yaml.
std::string_view definitions_text();

const std::vector<OwnKind>& own_kinds() {
  static const std::vector<OwnKind> all = {{"NodePool", {"karpenter.sh", "v1", "nodepools"}},
                                           {"NodeClaim", {"karpenter.sh", "v1", "nodeclaims"}},
                                           {"SimulatedNodeClass", {"sim.berth.dev", "v1alpha1", "simulatednodeclasses"}},
                                           {"MachineNodeClass", {"berth.dev", "v1alpha1", "machinenodeclasses"}}};
  return all;
}

const std::vector<json::Value>& definitions() {
  static const std::vector<json::Value> all = [] {
    auto read = json::parse_yaml(definitions_text());
    BERTH_CHECK(read.has_value(), "the definitions of pools are no YAML: {}", read.error().message);
    return std::vector<json::Value>(read->get_array().begin(), read->get_array().end());
  }();
  return all;
}

}  // namespace berth::pools
