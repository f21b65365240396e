// What Prometheus wants to know of any process: memory, processor time, files, start (client libraries' process_* metrics).
#pragma once
#include <string>

namespace berth::metrics {

/// In the text exposition format, read anew from /proc; empty where there is none.
std::string expose_process();

}  // namespace berth::metrics
