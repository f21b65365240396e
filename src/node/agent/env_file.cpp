#include "node/agent/env_file.h"

namespace berth::node::agent {

Result<std::string> env_file_value(std::string_view text, std::string_view key) {
  constexpr std::string_view kBlanks = " \t";
  const auto wrong = [](std::string_view why) { return invalid(fmt::format("invalid environment variable format: {}", why)); };
  const auto take_line = [&text] {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  };
  while (!text.empty()) {
    std::string_view line = take_line();
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(kBlanks)));
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return wrong("missing '='");
    const std::string_view name = line.substr(0, equals);
    if (name.find_first_not_of(kBlanks) == std::string_view::npos) return wrong("empty variable name");
    if (kBlanks.find(name.back()) != std::string_view::npos) return wrong("whitespace before '=' is not allowed");
    std::string_view rest = line.substr(equals + 1);
    if (!rest.empty() && kBlanks.find(rest.front()) != std::string_view::npos) {  // As in a shell: the name gets nothing.
      if (name == key) return std::string();
      continue;
    }
    if (!rest.starts_with('\'')) return wrong("value must be enclosed in single quotes");
    rest.remove_prefix(1);
    std::string value;
    std::size_t end = rest.find('\'');
    while (end == std::string_view::npos) {
      value += rest;
      value += '\n';
      if (text.empty()) return wrong("unclosed single quote");
      rest = take_line();
      end = rest.find('\'');
    }
    value += rest.substr(0, end);
    std::string_view behind = rest.substr(end + 1);
    behind.remove_prefix(std::min(behind.size(), behind.find_first_not_of(kBlanks)));
    if (!behind.empty() && !behind.starts_with('#')) return wrong("unexpected content after closing quote");
    if (name == key) return value;
  }
  return std::string();
}

}  // namespace berth::node::agent
