// What containers have written to their own filesystems, measured on the disk itself. The runtime's figures are up to ten seconds old
// (containerd's sampler): when a disk runs full, that is long enough to take the wrong pod for the culprit.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "node/agent/node_stats.h"

namespace berth::node::agent {

/// The directories with what overlay containers have written, by container id: from the text of /proc/self/mountinfo, where runtimes mount
/// containers at …/ID/rootfs. Others are not in it.
[[nodiscard]] std::map<std::string, std::string> writable_layers(std::string_view mountinfo);

/// Replaces the runtime's figures by measured ones, where a container's layer is found; the pods' sums follow.
void measure_writable_layers(std::vector<PodFigures>& pods, const std::string& proc);

}  // namespace berth::node::agent
