// A small shell in memory: what answers `kubectl exec` in a pod that no process stands behind.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::node::simulated {

/// What one container of a simulated pod looks like from within. Files live as long as the pod.
struct ShellWorld {
  std::string hostname;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;  ///< By absolute path; folders are what paths lead through.
};

struct ShellResult {
  std::string out, err;
  int code = 0;
  bool ended = false;      ///< `exit` was said.
  bool not_found = false;  ///< The program itself does not exist (of run alone).
};

/// Words, quotes, $VARIABLES, `;`, `&&`, `||`, pipes, `>`, `>>`, `2>`, `2>&1`, `<`, and some thirty programs. No loops, functions or jobs:
/// said in a message with code 2. Deterministic: no clock (`date` shows `now`), nothing outside its world. A file or an output holds at
/// most 1 MiB.
class PodShell {
 public:
  PodShell(ShellWorld& world, std::string now) : world_(world), now_(std::move(now)) {}
  /// A program with its arguments, as exec starts it. `input`: all of its standard input.
  ShellResult run(const std::vector<std::string>& command, const std::string& input);
  /// A line (or several) as `sh -c` takes it.
  ShellResult line(std::string_view text, const std::string& input);
  /// Whether a command reads its standard input: it is to be called when that has ended.
  [[nodiscard]] static bool wants_input(const std::vector<std::string>& command);
  /// A shell that reads its commands line by line from its input.
  [[nodiscard]] static bool is_interactive(const std::vector<std::string>& command);

 private:
  struct Word {
    std::string text;
    bool is_operator = false;
  };
  std::vector<Word> words_of(std::string_view text, std::string& fault) const;
  ShellResult pipeline(const std::vector<Word>& words, const std::string& input);
  ShellResult command(std::vector<Word> words, const std::string& input);
  ShellResult program(const std::vector<std::string>& words, const std::string& input);
  [[nodiscard]] std::string path_of(std::string_view name) const;
  [[nodiscard]] bool is_folder(const std::string& path) const;
  ShellResult list_files(const std::vector<std::string>& words) const;
  ShellResult show(const std::vector<std::string>& words, const std::string& input) const;
  ShellResult judge(std::vector<std::string> words) const;
  ShellResult change_files(const std::vector<std::string>& words);

  ShellWorld& world_;
  std::string now_, folder_ = "/";
  int last_ = 0;
};

}  // namespace berth::node::simulated
