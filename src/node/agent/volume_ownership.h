// Whom the files of a volume belong to (pkg/volume/volume_linux.go).
#pragma once
#include <cstdint>
#include <string>

#include "base/json.h"

namespace berth::node::agent {

/// Gives what is in a volume to a pod's fsGroup, as deep as a path can name; what a container nests deeper stays its own.
/// `keeps_where_root_has_it`: a volume whose root is as the pod wants it is not walked.
void give_to_group(const std::string& directory, std::int64_t group, bool keeps_where_root_has_it);
/// fsGroupChangePolicy OnRootMismatch.
[[nodiscard]] bool keeps_owner_where_root_has_it(const json::Value& pod);

}  // namespace berth::node::agent
