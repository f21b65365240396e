#include "node/simulated/pod_shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/split.h"

namespace berth::node::simulated {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;

using Words = std::vector<std::string>;

ShellResult failed(int code, std::string text) { return {.err = std::move(text), .code = code}; }
/// Nothing of the line runs behind it.
ShellResult no_line(std::string_view why) { return {.err = fmt::format("sh: syntax error: {}\n", why), .code = 2, .ended = true}; }

/// What stands between `;`, `&&`, `||` and ends of lines that no quotes hold.
struct Statement {
  std::string join;  ///< In front of it: ";", "&&" or "||".
  std::string_view text;
};
std::vector<Statement> statements_of(std::string_view text) {
  std::vector<Statement> out;
  std::string join = ";";
  std::size_t start = 0;
  char quote = 0;
  const auto end = [&](std::size_t at, std::string next) {
    out.push_back({std::exchange(join, std::move(next)), text.substr(start, at - start)});
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == ';' || c == '\n') {
      end(i, ";");
      start = i + 1;
    } else if ((c == '&' || c == '|') && i + 1 < text.size() && text[i + 1] == c) {
      end(i, std::string(2, c));
      start = ++i + 1;
    }
  }
  end(text.size(), ";");
  return out;
}

bool is_name_sign(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<std::string_view> lines_of(std::string_view text) {
  if (text.empty()) return {};
  if (text.ends_with('\n')) text.remove_suffix(1);
  return split(text, '\n').list();
}

std::string program_name(std::string_view program) { return std::string(program.substr(program.rfind('/') + 1)); }

/// "\n", "\t", "\\" of printf and echo -e.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    out += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
  }
  return out;
}

/// %s and %d, the format again while arguments are left.
std::string formatted(const Words& words) {
  std::string out;
  std::size_t next = 2;
  do {
    const std::string format = unescaped(words[1]);
    const std::size_t before = next;
    for (std::size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%' || i + 1 == format.size()) {
        out += format[i];
      } else if (format[++i] == '%') {
        out += '%';
      } else if (next < words.size()) {
        out += words[next++];
      }
    }
    if (next == before) break;
  } while (next < words.size() && out.size() < kMaxBytes);
  return out;
}

/// The number after -n, or in "-5"; 10 where nothing is said.
std::size_t count_of(const Words& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) continue;
    std::string_view text = std::string_view(words[i]).substr(1);
    if (text.starts_with('n') || text.starts_with('c')) text.remove_prefix(1);
    if (text.empty() && i + 1 < words.size()) text = words[i + 1];
    std::size_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc()) return number;
  }
  return 10;
}

}  // namespace

bool PodShell::is_interactive(const Words& command) {
  if (command.empty()) return false;
  const std::string name = program_name(command[0]);
  if (name != "sh" && name != "bash" && name != "ash") return false;
  return std::ranges::all_of(command.begin() + 1, command.end(),
                             [](const std::string& word) { return word.starts_with('-') && word != "-c"; });
}

bool PodShell::wants_input(const Words& command) {
  if (command.empty()) return false;
  static const std::set<std::string, std::less<>> filters = {"cat", "wc", "head", "tail", "grep", "tee", "sort"};
  return filters.contains(program_name(command[0])) || (command.size() > 2 && command[1] == "-c");
}

std::string PodShell::path_of(std::string_view name) const {
  std::string all = name.starts_with('/') ? std::string(name) : folder_ + "/" + std::string(name);
  std::vector<std::string> parts;
  for (const auto part : berth::words(all, '/')) {
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (part != "." && part != "..") parts.emplace_back(part);
  }
  return fmt::format("/{}", fmt::join(parts, "/"));
}

bool PodShell::is_folder(const std::string& path) const {
  static const std::set<std::string, std::less<>> always = {"/", "/bin", "/etc", "/root", "/tmp", "/var", "/usr", "/home"};
  if (always.contains(path)) return true;
  const auto below = world_.files.lower_bound(path + "/");
  return below != world_.files.end() && below->first.starts_with(path + "/");
}

std::vector<PodShell::Word> PodShell::words_of(std::string_view text, std::string& fault) const {
  std::vector<Word> out;
  std::string word;
  bool has_word = false;
  const auto end_word = [&] {
    if (has_word) out.push_back({std::exchange(word, {}), false});
    has_word = false;
  };
  const auto variable = [&](std::size_t& i) {
    if (i + 1 < text.size() && text[i + 1] == '?') return ++i, word += std::to_string(last_), void();
    const bool braces = i + 1 < text.size() && text[i + 1] == '{';
    std::size_t at = i + 1 + (braces ? 1 : 0);
    const std::size_t start = at;
    while (at < text.size() && is_name_sign(text[at])) ++at;
    if (at == start) return word += '$', void();
    const auto found = world_.environment.find(std::string(text.substr(start, at - start)));
    if (found != world_.environment.end()) word += found->second;
    i = braces && at < text.size() && text[at] == '}' ? at : at - 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') {
      const auto end = text.find('\'', i + 1);
      if (end == std::string_view::npos) return fault = "syntax error: unterminated quoted string", out;
      word += text.substr(i + 1, end - i - 1);
      has_word = true;
      i = end;
    } else if (c == '"') {
      has_word = true;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\' && i + 1 < text.size() && std::string_view("\"\\$`").find(text[i + 1]) != std::string_view::npos)
          word += text[++i];
        else if (text[i] == '$')
          variable(i);
        else
          word += text[i];
      }
      if (i >= text.size()) return fault = "syntax error: unterminated quoted string", out;
    } else if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      has_word = true;
    } else if (c == '$') {
      if (i + 1 < text.size() && text[i + 1] == '(') return fault = "syntax error: the shell of a simulated pod knows no $(...)", out;
      has_word = true;
      variable(i);
    } else if (c == ' ' || c == '\t') {
      end_word();
    } else if (c == '#' && !has_word) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (std::string_view(";\n|&<>").find(c) != std::string_view::npos) {
      std::string sign(1, c == '\n' ? ';' : c);
      if (c == '>' && has_word && (word == "2" || word == "1")) {
        sign = word == "2" ? "2>" : ">";
        word.clear();
        has_word = false;
      }
      end_word();
      if (i + 1 < text.size() && text[i + 1] == c && c != ';' && c != '\n' && c != '<') sign += text[++i];
      if (text.substr(i + 1).starts_with("&1") && sign == "2>") sign = "2>&1", i += 2;
      if (text.substr(i + 1).starts_with("&2") && sign == ">") sign = "1>&2", i += 2;
      if (sign == "&") return fault = "syntax error: the shell of a simulated pod runs nothing in the background", out;
      out.push_back({sign, true});
    } else {
      word += c;
      has_word = true;
    }
  }
  end_word();
  return out;
}

ShellResult PodShell::run(const Words& command, const std::string& input) {
  if (command.empty()) return failed(1, "no command\n");
  const std::string name = program_name(command[0]);
  if ((name == "sh" || name == "bash" || name == "ash") && command.size() >= 2) {
    for (std::size_t i = 1; i + 1 < command.size(); ++i)
      if (command[i].starts_with('-') && command[i].ends_with('c')) return line(command[i + 1], input);
    return failed(2, fmt::format("{}: can't open '{}'\n", name, command.back()));
  }
  ShellResult result = program(command, input);
  result.not_found = result.code == 127;
  return result;
}

ShellResult PodShell::line(std::string_view text, const std::string& input) {
  std::string fault;
  static_cast<void>(words_of(text, fault));  // What is no line at all does nothing.
  if (!fault.empty()) return failed(2, fmt::format("sh: {}\n", fault));
  ShellResult all;
  for (const Statement& statement : statements_of(text)) {
    const bool runs = statement.join == ";" || (statement.join == "&&" ? last_ == 0 : last_ != 0);
    if (!runs) continue;
    const auto words = words_of(statement.text, fault);  // With the variables as they are now.
    if (words.empty()) continue;
    const ShellResult one = pipeline(words, input);
    last_ = one.code;
    if (all.out.size() < kMaxBytes) all.out += one.out;
    if (all.err.size() < kMaxBytes) all.err += one.err;
    all.ended = one.ended;
    if (all.ended) break;
  }
  all.code = last_;
  return all;
}

ShellResult PodShell::pipeline(const std::vector<Word>& words, const std::string& input) {
  ShellResult result{.out = input};
  std::vector<Word> part;
  std::string errors;
  for (std::size_t i = 0; i <= words.size(); ++i) {
    if (i < words.size() && !(words[i].is_operator && words[i].text == "|")) {
      part.push_back(words[i]);
      continue;
    }
    result = command(std::exchange(part, {}), result.out);
    errors += result.err;
  }
  result.err = std::move(errors);
  return result;
}

ShellResult PodShell::command(std::vector<Word> words, const std::string& input) {
  Words plain;
  std::string from = input, out_path, err_path;
  bool appends = false, joins = false, swaps = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].is_operator) {
      plain.push_back(words[i].text);
      continue;
    }
    const std::string sign = words[i].text;
    if (sign == "2>&1") {
      joins = true;
      continue;
    }
    if (sign == "1>&2") {
      swaps = true;
      continue;
    }
    if (i + 1 >= words.size() || words[i + 1].is_operator) return no_line("a file is missing after " + sign);
    const std::string path = path_of(words[++i].text);
    if (sign == "<") {
      const auto found = world_.files.find(path);
      if (found == world_.files.end()) return failed(1, fmt::format("sh: can't open {}: no such file\n", words[i].text));
      from = found->second;
    } else if (sign.starts_with("2>")) {
      err_path = path;
    } else {
      out_path = path;
      appends = sign == ">>";
    }
  }
  static const std::set<std::string, std::less<>> unknown = {"for", "while", "until", "if", "case", "function", "{", "("};
  if (!plain.empty() && unknown.contains(plain[0])) return no_line(fmt::format("the shell of a simulated pod knows no \"{}\"", plain[0]));
  if (plain.size() == 1 && plain[0].find('=') != std::string::npos && is_name_sign(plain[0][0])) {
    const auto at = plain[0].find('=');
    world_.environment[plain[0].substr(0, at)] = plain[0].substr(at + 1);
    return {};
  }
  ShellResult result = plain.empty() ? ShellResult{} : program(plain, from);
  if (result.code == 127 && result.err.empty()) result.err = fmt::format("sh: {}: not found\n", plain[0]);
  if (joins) result.out += std::exchange(result.err, {});
  if (swaps) result.err += std::exchange(result.out, {});
  if (!out_path.empty()) {
    std::string text = std::exchange(result.out, {});
    if (out_path != "/dev/null") world_.files[out_path] = ((appends ? world_.files[out_path] : std::string()) + text).substr(0, kMaxBytes);
  }
  if (!err_path.empty()) {
    std::string text = std::exchange(result.err, {});
    if (err_path != "/dev/null") world_.files[err_path] = std::move(text);
  }
  return result;
}

ShellResult PodShell::program(const Words& words, const std::string& input) {
  const std::string name = program_name(words[0]);
  const auto rest = [&](std::size_t from) {
    return fmt::format("{}", fmt::join(words.begin() + static_cast<std::ptrdiff_t>(std::min(from, words.size())), words.end(), " "));
  };
  if (name == "echo") {
    const bool bare = words.size() > 1 && words[1] == "-n", escapes = words.size() > 1 && words[1] == "-e";
    return {.out = (escapes ? unescaped(rest(2)) : rest(bare ? 2 : 1)) + (bare ? "" : "\n")};
  }
  if (name == "printf") return words.size() < 2 ? failed(2, "printf: a format is missing\n") : ShellResult{.out = formatted(words)};
  if (name == "true" || name == ":" || name == "sleep" || name == "sync" || name == "set") return {};
  if (name == "false") return {.code = 1};
  if (name == "exit") return {.code = words.size() > 1 ? std::atoi(words[1].c_str()) & 255 : last_, .ended = true};
  if (name == "hostname") return {.out = world_.hostname + "\n"};
  if (name == "pwd") return {.out = folder_ + "\n"};
  if (name == "date") return {.out = now_ + "\n"};
  if (name == "whoami") return {.out = "root\n"};
  if (name == "id") return {.out = "uid=0(root) gid=0(root) groups=0(root)\n"};
  if (name == "uname") return {.out = words.size() > 1 ? "Linux " + world_.hostname + " simulated\n" : "Linux\n"};
  if (name == "ps") return {.out = "PID   USER     TIME  COMMAND\n    1 root      0:00 (simulated)\n"};
  if (name == "env" || name == "printenv") {
    ShellResult result;
    for (const auto& [key, value] : world_.environment)
      if (words.size() < 2 || key == words[1]) result.out += words.size() < 2 ? fmt::format("{}={}\n", key, value) : value + "\n";
    result.code = words.size() > 1 && result.out.empty() ? 1 : 0;
    return result;
  }
  if (name == "export") {
    for (std::size_t i = 1; i < words.size(); ++i)
      if (const auto at = words[i].find('='); at != std::string::npos) world_.environment[words[i].substr(0, at)] = words[i].substr(at + 1);
    return {};
  }
  if (name == "cd") {
    const std::string to = path_of(words.size() > 1 ? words[1] : "/root");
    if (!is_folder(to)) return failed(2, fmt::format("sh: cd: can't cd to {}: No such file or directory\n", words[1]));
    folder_ = to;
    return {};
  }
  if (name == "seq" && words.size() > 1) {
    ShellResult result;
    const int from = words.size() > 2 ? std::atoi(words[1].c_str()) : 1, to = std::atoi(words.back().c_str());
    for (int i = from; i <= to && result.out.size() < kMaxBytes; ++i) result.out += fmt::format("{}\n", i);
    return result;
  }
  if (name == "test" || name == "[") return judge(words);
  if (name == "ls") return list_files(words);
  if (name == "mkdir" || name == "rm" || name == "touch" || name == "cp" || name == "mv" || name == "tee") {
    if (name != "tee") return change_files(words);
    for (std::size_t i = 1; i < words.size(); ++i) world_.files[path_of(words[i])] = input;
    return {.out = input};
  }
  if (name == "cat" || name == "wc" || name == "head" || name == "tail" || name == "grep" || name == "sort") return show(words, input);
  if (name == "sh" || name == "bash" || name == "ash") return words.size() > 1 ? run(words, input) : line(input, "");
  return {.code = 127};
}

ShellResult PodShell::show(const Words& words, const std::string& input) const {
  const std::string name = program_name(words[0]);
  std::string text, pattern;
  bool has_file = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with('-') && words[i].size() > 1) {
      if (words[i] == "-n" && name != "grep") ++i;
      continue;
    }
    if (name == "grep" && pattern.empty()) {
      pattern = words[i];
      continue;
    }
    const auto found = world_.files.find(path_of(words[i]));
    if (found == world_.files.end()) return failed(1, fmt::format("{}: can't open '{}': No such file or directory\n", name, words[i]));
    text += found->second;
    has_file = true;
  }
  if (!has_file) text = input;
  if (name == "cat") return {.out = std::move(text)};
  auto lines = lines_of(text);
  ShellResult result;
  if (name == "wc") {
    const bool bytes = words.size() > 1 && words[1] == "-c";
    return {.out = fmt::format("{}\n", bytes ? text.size() : static_cast<std::size_t>(std::ranges::count(text, '\n')))};
  }
  if (name == "sort") std::ranges::sort(lines);
  if (const auto count = count_of(words); name == "head" && lines.size() > count) lines.resize(count);
  if (const auto count = count_of(words); name == "tail" && lines.size() > count)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  const bool inverts = name == "grep" && std::ranges::find(words, "-v") != words.end();
  for (const std::string_view one : lines)
    if (name != "grep" || (one.find(pattern) != std::string_view::npos) != inverts) result.out += fmt::format("{}\n", one);
  if (name == "grep") result.code = result.out.empty() ? 1 : 0;
  if (name == "grep" && std::ranges::find(words, "-q") != words.end()) result.out.clear();
  return result;
}

ShellResult PodShell::judge(Words words) const {
  if (words[0] == "[") {
    if (words.back() != "]") return failed(2, "sh: missing ]\n");
    words.pop_back();
  }
  words.erase(words.begin());
  const bool negated = !words.empty() && words[0] == "!";
  if (negated) words.erase(words.begin());
  bool holds = false;
  if (words.size() == 1) holds = !words[0].empty();
  if (words.size() == 2) {
    const std::string path = path_of(words[1]);
    if (words[0] == "-n") holds = !words[1].empty();
    if (words[0] == "-z") holds = words[1].empty();
    if (words[0] == "-f") holds = world_.files.contains(path);
    if (words[0] == "-d") holds = is_folder(path);
    if (words[0] == "-e") holds = world_.files.contains(path) || is_folder(path);
  }
  if (words.size() == 3) {
    const long a = std::atol(words[0].c_str()), b = std::atol(words[2].c_str());
    if (words[1] == "=" || words[1] == "==") holds = words[0] == words[2];
    if (words[1] == "!=") holds = words[0] != words[2];
    if (words[1] == "-eq") holds = a == b;
    if (words[1] == "-gt") holds = a > b;
    if (words[1] == "-lt") holds = a < b;
  }
  return {.code = holds != negated ? 0 : 1};
}

ShellResult PodShell::list_files(const Words& words) const {
  ShellResult result;
  std::string path = folder_;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!words[i].starts_with('-')) path = path_of(words[i]);
  if (world_.files.contains(path)) return {.out = path + "\n"};
  if (!is_folder(path)) return failed(1, fmt::format("ls: {}: No such file or directory\n", path));
  std::set<std::string> names;
  if (path == "/") names = {"bin", "etc", "home", "root", "tmp", "usr", "var"};
  const std::string below = path == "/" ? path : path + "/";
  for (auto at = world_.files.lower_bound(below); at != world_.files.end() && at->first.starts_with(below); ++at) {
    const std::string rest = at->first.substr(below.size());
    if (const std::string first = rest.substr(0, rest.find('/')); !first.empty()) names.insert(first);
  }
  for (const std::string& name : names) result.out += name + "\n";
  return result;
}

ShellResult PodShell::change_files(const Words& words) {
  const std::string name = program_name(words[0]);
  Words paths;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!words[i].starts_with('-')) paths.push_back(path_of(words[i]));
  if (name == "cp" || name == "mv") {
    const auto found = paths.size() == 2 ? world_.files.find(paths[0]) : world_.files.end();
    if (found == world_.files.end())
      return failed(1, fmt::format("{}: can't stat '{}': No such file or directory\n", name, words.size() > 1 ? words[1] : ""));
    const std::string text = found->second;
    if (name == "mv") world_.files.erase(found);
    world_.files[is_folder(paths[1]) ? paths[1] + paths[0].substr(paths[0].rfind('/')) : paths[1]] = text;
    return {};
  }
  for (const std::string& path : paths) {
    if (name == "touch") world_.files.try_emplace(path);
    if (name == "mkdir") world_.files.try_emplace(path + "/");
    if (name == "rm")
      std::erase_if(world_.files, [&](const auto& file) { return file.first == path || file.first.starts_with(path + "/"); });
  }
  return {};
}

}  // namespace berth::node::simulated
