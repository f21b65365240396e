// What a container has to say about its end (kuberuntime getTerminationMessage).
#pragma once
#include <string>
#include <string_view>

namespace berth::node::agent {

/// The last lines of a CRI log file's text, without their stamps: at most 80 lines and 2048 bytes.
[[nodiscard]] std::string tail_of_log(std::string_view raw);

/// The message of a container that ended: what it wrote to its file (at most 4096 bytes); under FallbackToLogsOnError the end of its log
/// when it wrote nothing and failed. `runtime_message` when there is neither.
[[nodiscard]] std::string termination_message(const std::string& file, std::string_view policy, int exit_code, const std::string& log_file,
                                              std::string runtime_message);

}  // namespace berth::node::agent
