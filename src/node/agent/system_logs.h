// The machine's own logs at a kubelet's /logs/: pages that list folders, and files as they are.
#pragma once
#include <memory>
#include <string>

#include "net/http.h"

namespace berth::node::agent {

/// Answers GET of `path` (from "/logs" on) with what stands below the folder `root`: a folder as a page of links, a file as text; 301 where
/// a folder's slash is missing, 404 for what is not there. Links are followed as long as they stay below `root`: a pod that may write there
/// shows nobody the machine's other files. A reader who does not read holds half a megabyte. May block. (pkg/kubelet/server,
/// InstallSystemLogHandler)
void answer_system_log(const std::string& root, const std::string& path, const std::shared_ptr<net::ResponseWriter>& writer);

}  // namespace berth::node::agent
