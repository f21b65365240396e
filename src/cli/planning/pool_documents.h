// Files of NodePools, read as a server reads them that has their definitions.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::cli {

/// NodePools, NodeClaims and SimulatedNodeClasses, with their defaults. The error tells all that is wrong, a line each: file, line, field.
Result<std::vector<json::Value>> read_pool_documents(const std::vector<std::string>& files);

}  // namespace berth::cli
