// How long the kernel remembers connections, on a node that leads Services (kube-proxy's setupConntrack).
#pragma once
#include <string>

namespace berth::node::services {

/// Raises what is lower than a node with Services needs; what an administrator set higher stays. `root`: /proc/sys.
void raise_conntrack_settings(const std::string& root, unsigned processors);

}  // namespace berth::node::services
