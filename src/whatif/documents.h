// The world as API objects, for components that read those.
#pragma once
#include <vector>

#include "whatif/world.h"

namespace berth::whatif {

/// Every object as it is by now: nodes, pods (those that moved run where they are), and the rest as it was read. The error: the documents
/// of nodes and pods were not kept.
Result<std::vector<json::Value>> documents_of(World& world);

}  // namespace berth::whatif
