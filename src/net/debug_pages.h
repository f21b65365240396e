// What an administrator looks at in a running process: /debug/pprof (processor profiles, heap figures, threads), /flagz and /statusz, by
// Kubernetes' paths. Whoever serves them has asked first who may (RBAC's non-resource URLs; nobody but system:masters by default for
// /debug).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "net/http.h"

namespace berth::net {

struct DebugFacts {
  std::string component;                                   ///< "kube-apiserver", as Kubernetes names it.
  std::vector<std::pair<std::string, std::string>> flags;  ///< Of its command line, by name without dashes.
  std::string version, emulated;                           ///< Its own, and that of the Kubernetes it stands for.
  std::vector<std::string> paths;                          ///< That it serves besides.
  bool profiling = true;                                   ///< False: nothing below /debug/pprof (--profiling=false).
};

/// Whether the path is one of these pages.
bool is_debug_page(std::string_view path);

/// Threading: any. A profile takes as long as it is asked for, on a thread of its own; the destructor ends it.
std::shared_ptr<Handler> make_debug_pages(DebugFacts facts);

}  // namespace berth::net
