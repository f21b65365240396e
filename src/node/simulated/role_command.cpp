#include "node/simulated/role_command.h"

#include <algorithm>
#include <array>

namespace berth::node::simulated {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
}

/// "registry/openshift3/ose-descheduler:v3.11@sha256:…" → "ose-descheduler"
std::string_view image_name(std::string_view image) {
  image = image.substr(0, image.find('@'));
  image = base_name(image);
  return image.substr(0, image.find(':'));
}

std::optional<RoleCommand> role_of(std::vector<std::string> words) {
  if (words.empty()) return std::nullopt;
  const std::string_view program = base_name(words[0]);
  std::size_t consumed = 1;
  std::string role;
  if (program == "berth" && words.size() > 1) {
    role = words[1];
    consumed = 2;
  } else if (program == "descheduler" || program == "ose-descheduler") {
    role = "descheduler";
  } else if (program == "kube-scheduler") {
    role = "scheduler";
  }
  if (role != "descheduler" && role != "scheduler") return std::nullopt;
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(consumed));
  return RoleCommand{std::move(role), std::move(words)};
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 4> kShells = {"sh", "bash", "ash", "dash"};
  return std::ranges::find(kShells, base_name(program)) != kShells.end();
}

/// The script of `sh -c SCRIPT`, `sh -ec SCRIPT`, `sh -e -c SCRIPT`; nullopt for other words.
std::optional<std::string_view> script_of(const std::vector<std::string>& words) {
  if (words.size() < 3 || !is_shell(words[0])) return std::nullopt;
  for (std::size_t i = 1; i + 1 < words.size(); ++i)
    if (words[i].size() < 2 || words[i][0] != '-' || words[i].find_first_not_of("ceux", 1) != std::string::npos) return std::nullopt;
  return words[words.size() - 2].ends_with('c') ? std::optional<std::string_view>(words.back()) : std::nullopt;
}

/// The only command of a script, where it has just one; `set -e` and `exec` do not count.
std::optional<std::vector<std::string>> only_command(std::string_view text) {
  std::string joined(text);  // A line that ends in a backslash goes on in the next one.
  for (std::size_t at = 0; (at = joined.find("\\\n", at)) != std::string::npos;) joined.replace(at, 2, " ");
  std::string_view script = joined;
  std::optional<std::vector<std::string>> found;
  while (!script.empty()) {
    const std::size_t end = script.find_first_of("\n;");
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
    auto words = split_words(line);
    if (!words) return std::nullopt;
    if (!words->empty() && words->front() == "exec") words->erase(words->begin());
    if (words->empty() || words->front() == "set") continue;
    if (found) return std::nullopt;
    found = std::move(words);
  }
  return found;
}

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view command) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : command) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else if (quote == '"' && (c == '$' || c == '`' || c == '\\'))
        return std::nullopt;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      if (in_word) out.push_back(std::exchange(word, {}));
      in_word = false;
    } else if (std::string_view("$`\\|&<>*?(){}[]~#!").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return std::nullopt;
  if (in_word) out.push_back(std::move(word));
  return out;
}

std::optional<RoleCommand> read_role_command(std::string_view image, const std::vector<std::string>& command,
                                             const std::vector<std::string>& args) {
  std::vector<std::string> words = command;
  if (words.empty()) words.emplace_back(image_name(image));
  words.insert(words.end(), args.begin(), args.end());
  if (const auto script = script_of(words)) {
    auto only = only_command(*script);
    return only ? role_of(std::move(*only)) : std::nullopt;
  }
  return role_of(std::move(words));
}

}  // namespace berth::node::simulated
