// A small shell in memory: what answers `kubectl exec` into a container of a simulated node. No process runs; files live as long as the
// nodes' process. Words, quotes, variables, `;`, `&&`, `||`, pipes and `>`/`>>`/`<`; some twenty commands that scripts and tests use most.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace berth::node::simulated {

/// What a container's commands leave behind; and what they find.
struct ShellWorld {
  std::string hostname;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;  ///< By absolute path.
  std::string directory = "/";
};

struct ShellResult {
  int exit_code = 0;
  std::string output, errors;
  bool is_over = false;  ///< `exit` was said.
};

/// Runs a command's words as execve would: "sh -c TEXT" and plain commands alike. `now`: what `date` says. An unknown command has exit code
/// 127, as a shell says; a lone unknown program 126 in `exec`, which `is_known_program` tells.
ShellResult run_words(ShellWorld& world, const std::vector<std::string>& words, const std::string& input, const std::string& now);
/// Runs a line or a script.
ShellResult run_script(ShellWorld& world, const std::string& text, const std::string& input, const std::string& now);
[[nodiscard]] bool is_known_program(const std::string& word);
/// Whether these words start a shell that reads commands from its input.
[[nodiscard]] bool reads_commands(const std::vector<std::string>& words);

}  // namespace berth::node::simulated
