// A pass in the log, as much of it as logVerbosity asks for.
#pragma once
#include "autoscaler/actions.h"

namespace berth::autoscaler {

/// The lines: from 2 on one of what the pass found, from 4 on why pods and nodes stay as they are and what would help, from 6 on how each
/// group is.
std::vector<std::string> describe_pass(const Actions& actions, std::int64_t verbosity, Duration length);
void log_pass(const Actions& actions, std::int64_t verbosity, Duration length);

}  // namespace berth::autoscaler
