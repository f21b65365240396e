// Containers whose program is one of berth's own roles: on simulated nodes too they do their work, when somebody is there to run them
// (SimulatedNodesOptions::programs). Document 002 §16.3.5's descheduler Job is one.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::node::simulated {

struct RoleCommand {
  std::string role;  ///< "descheduler" or "scheduler".
  std::vector<std::string> args;
  friend bool operator==(const RoleCommand&, const RoleCommand&) = default;
  [[nodiscard]] auto parts() const { return std::tie(role, args); }
};

/// What a container of this image and command (with its args behind it) runs; nullopt: none of berth's roles. Understood are `berth ROLE
/// …`, `descheduler …` and `kube-scheduler …` with any directory before them, alone or as the one command of a `sh -c` script; without a
/// command the image's name says it (ose-descheduler, descheduler, kube-scheduler, berth with the role as its first argument).
[[nodiscard]] std::optional<RoleCommand> read_role_command(std::string_view image, const std::vector<std::string>& command,
                                                           const std::vector<std::string>& args);

/// The words of a simple shell command, quotes taken off; nullopt where a shell would do more than run one program (variables, pipes, …).
[[nodiscard]] std::optional<std::vector<std::string>> split_words(std::string_view command);

}  // namespace berth::node::simulated
