#include "node/simulated/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace berth::node::simulated {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDepth = 8;

struct Call {
  ShellWorld& world;
  const std::vector<std::string>& words;
  const std::string& input;
  const std::string& now;
  int depth = 0;
};

std::string program_name(const std::string& word) { return word.substr(word.rfind('/') + 1); }

std::string absolute(const ShellWorld& world, const std::string& path) {
  std::vector<std::string> parts;
  const std::string whole = path.starts_with('/') ? path : world.directory + "/" + path;
  for (std::size_t at = 0; at < whole.size();) {
    const auto end = std::min(whole.find('/', at), whole.size());
    const std::string part = whole.substr(at, end - at);
    at = end + 1;
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string out;
  for (const std::string& part : parts) out += "/" + part;
  return out.empty() ? "/" : out;
}

bool is_directory(const ShellWorld& world, const std::string& path) {
  if (path == "/" || path == world.directory || path == "/tmp" || path == "/etc" || path == "/bin") return true;
  const auto below = world.files.lower_bound(path + "/");
  return below != world.files.end() && below->first.starts_with(path + "/");
}

ShellResult said(std::string output) { return {0, std::move(output), {}, false}; }
ShellResult failed(int code, std::string errors) { return {code, {}, std::move(errors), false}; }

std::string joined(const std::vector<std::string>& words, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < words.size(); ++i) out += (i == from ? "" : " ") + words[i];
  return out;
}

std::string unescaped(const std::string& text) {
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

ShellResult run_echo(const Call& call) {
  std::size_t from = 1;
  bool newline = true, escapes = false;
  for (; from < call.words.size() && (call.words[from] == "-n" || call.words[from] == "-e"); ++from)
    (call.words[from] == "-n" ? newline : escapes) = call.words[from] != "-n";
  const std::string text = joined(call.words, from);
  return said((escapes ? unescaped(text) : text) + (newline ? "\n" : ""));
}

ShellResult run_printf(const Call& call) {
  if (call.words.size() < 2) return failed(2, "printf: usage: printf FORMAT [ARGUMENT...]\n");
  std::string out;
  std::size_t next = 2;
  const std::string format = unescaped(call.words[1]);
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const char kind = format[++i];
    if (kind == '%')
      out += '%';
    else
      out += next < call.words.size() ? call.words[next++] : "";
  }
  return said(std::move(out));
}

/// The texts of the files named from `from` on, or the input.
std::optional<std::string> texts(const Call& call, std::size_t from, ShellResult& result) {
  if (from >= call.words.size()) return call.input;
  std::string out;
  for (std::size_t i = from; i < call.words.size(); ++i) {
    const std::string path = absolute(call.world, call.words[i]);
    const auto found = call.world.files.find(path);
    if (found != call.world.files.end()) {
      out += found->second;
      continue;
    }
    const char* const why = is_directory(call.world, path) ? "Is a directory" : "No such file or directory";
    result = failed(1, fmt::format("{}: {}: {}\n", program_name(call.words[0]), call.words[i], why));
    return std::nullopt;
  }
  return out;
}

ShellResult run_cat(const Call& call) {
  ShellResult result;
  if (auto text = texts(call, 1, result)) result.output = std::move(*text);
  return result;
}

ShellResult run_count(const Call& call) {
  ShellResult result;
  const bool lines_only = call.words.size() > 1 && call.words[1] == "-l";
  if (const auto text = texts(call, lines_only ? 2 : 1, result)) {
    const auto lines = std::ranges::count(*text, '\n');
    result.output = lines_only ? fmt::format("{}\n", lines) : fmt::format("{} {}\n", lines, text->size());
  }
  return result;
}

ShellResult run_grep(const Call& call) {
  std::size_t at = 1;
  bool quiet = false;
  for (; at < call.words.size() && call.words[at].starts_with('-'); ++at) quiet |= call.words[at].find('q') != std::string::npos;
  if (at >= call.words.size()) return failed(2, "grep: a text to look for is missing\n");
  ShellResult result;
  const auto text = texts(call, at + 1, result);
  if (!text) return result;
  for (std::size_t from = 0; from < text->size();) {
    const auto end = std::min(text->find('\n', from), text->size());
    if (const std::string line = text->substr(from, end - from); line.find(call.words[at]) != std::string::npos)
      result.output += line + "\n";
    from = end + 1;
  }
  result.exit_code = result.output.empty() ? 1 : 0;
  if (quiet) result.output.clear();
  return result;
}

ShellResult run_ls(const Call& call) {
  std::string path = call.world.directory;
  for (std::size_t i = 1; i < call.words.size(); ++i)
    if (!call.words[i].starts_with('-')) path = absolute(call.world, call.words[i]);
  if (call.world.files.contains(path)) return said(path + "\n");
  if (!is_directory(call.world, path)) return failed(2, fmt::format("ls: {}: No such file or directory\n", path));
  const std::string prefix = path == "/" ? "/" : path + "/";
  std::vector<std::string> names;
  for (const auto& [file, text] : call.world.files)
    if (file.starts_with(prefix)) names.push_back(file.substr(prefix.size(), file.find('/', prefix.size()) - prefix.size()));
  if (path == "/") names.insert(names.end(), {"bin", "etc", "tmp"});
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  std::string out;
  for (const std::string& name : names) out += name + "\n";
  return said(std::move(out));
}

ShellResult run_files(const Call& call) {
  const std::string command = program_name(call.words[0]);
  for (std::size_t i = 1; i < call.words.size(); ++i) {
    if (call.words[i].starts_with('-')) continue;
    const std::string path = absolute(call.world, call.words[i]);
    if (command == "touch") call.world.files.try_emplace(path);
    if (command == "mkdir") call.world.files.try_emplace(path + "/.keep");
    if (command != "rm") continue;
    const bool forced = call.words[1].starts_with('-') && call.words[1].find('f') != std::string::npos;
    const auto gone =
        std::erase_if(call.world.files, [&](const auto& file) { return file.first == path || file.first.starts_with(path + "/"); });
    if (gone == 0 && !forced) return failed(1, fmt::format("rm: {}: No such file or directory\n", call.words[i]));
  }
  return {};
}

ShellResult run_test(const Call& call) {
  std::vector<std::string> words(call.words.begin() + 1, call.words.end());
  if (!words.empty() && words.back() == "]") words.pop_back();
  const bool negated = !words.empty() && words[0] == "!";
  if (negated) words.erase(words.begin());
  bool holds = words.size() == 1 && !words[0].empty();
  if (words.size() == 2) {
    const std::string path = absolute(call.world, words[1]);
    if (words[0] == "-f") holds = call.world.files.contains(path);
    if (words[0] == "-d") holds = is_directory(call.world, path);
    if (words[0] == "-e") holds = call.world.files.contains(path) || is_directory(call.world, path);
    if (words[0] == "-n") holds = !words[1].empty();
    if (words[0] == "-z") holds = words[1].empty();
  }
  if (words.size() == 3) holds = (words[1] == "!=") != (words[0] == words[2]);
  return {holds != negated ? 0 : 1, {}, {}, false};
}

ShellResult run_env(const Call& call) {
  std::string out;
  for (const auto& [name, value] : call.world.environment) out += fmt::format("{}={}\n", name, value);
  return said(std::move(out));
}

ShellResult run_cd(const Call& call) {
  const std::string path = absolute(call.world, call.words.size() > 1 ? call.words[1] : "/");
  if (!is_directory(call.world, path)) return failed(1, fmt::format("sh: cd: {}: No such file or directory\n", path));
  call.world.directory = path;
  return {};
}

ShellResult run_exit(const Call& call) {
  int code = 0;
  if (call.words.size() > 1) std::from_chars(call.words[1].data(), call.words[1].data() + call.words[1].size(), code);
  return {code & 255, {}, {}, true};
}

ShellResult run_lines(ShellWorld& world, const std::string& text, const std::string& input, const std::string& now, int depth);

ShellResult run_sh(const Call& call) {
  for (std::size_t i = 1; i + 1 < call.words.size(); ++i)
    if (call.words[i].starts_with('-') && call.words[i].ends_with('c')) {
      ShellResult result = run_lines(call.world, call.words[i + 1], call.input, call.now, call.depth + 1);
      result.is_over = false;
      return result;
    }
  ShellResult result = run_lines(call.world, call.input, {}, call.now, call.depth + 1);
  result.is_over = false;
  return result;
}

using Command = ShellResult (*)(const Call&);
const std::map<std::string, Command>& commands() {
  static const std::map<std::string, Command> kCommands = {
      {"echo", run_echo},
      {"printf", run_printf},
      {"cat", run_cat},
      {"wc", run_count},
      {"grep", run_grep},
      {"ls", run_ls},
      {"touch", run_files},
      {"mkdir", run_files},
      {"rm", run_files},
      {"test", run_test},
      {"[", run_test},
      {"env", run_env},
      {"printenv", run_env},
      {"cd", run_cd},
      {"exit", run_exit},
      {"sh", run_sh},
      {"bash", run_sh},
      {"ash", run_sh},
      {"pwd", [](const Call& call) { return said(call.world.directory + "\n"); }},
      {"hostname", [](const Call& call) { return said(call.world.hostname + "\n"); }},
      {"date", [](const Call& call) { return said(call.now + "\n"); }},
      {"whoami", [](const Call&) { return said("root\n"); }},
      {"id", [](const Call&) { return said("uid=0(root) gid=0(root) groups=0(root)\n"); }},
      {"uname", [](const Call&) { return said("Linux\n"); }},
      {"ps", [](const Call&) { return said("PID   USER     TIME  COMMAND\n    1 root      0:00 (simulated)\n"); }},
      {"true", [](const Call&) { return ShellResult{}; }},
      {":", [](const Call&) { return ShellResult{}; }},
      {"sleep", [](const Call&) { return ShellResult{}; }},
      {"sync", [](const Call&) { return ShellResult{}; }},
      {"false", [](const Call&) { return failed(1, {}); }},
  };
  return kCommands;
}

ShellResult run_one(const Call& call) {
  if (call.words.empty()) return {};
  if (call.depth > kMaxDepth) return failed(2, "sh: too deep\n");
  const auto found = commands().find(program_name(call.words[0]));
  if (found == commands().end()) return failed(127, fmt::format("sh: {}: not found\n", call.words[0]));
  return found->second(call);
}

// ---- words

struct Word {
  std::string text;
  bool is_operator = false;
};

/// "$NAME", "${NAME}", "$?" at `at`, which is moved behind it.
std::string variable(const ShellWorld& world, const std::string& text, std::size_t& at, int last) {
  const std::size_t from = ++at;
  if (at < text.size() && text[at] == '?') return ++at, std::to_string(last);
  const bool braces = at < text.size() && text[at] == '{';
  if (braces) ++at;
  std::string name;
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_')) name += text[at++];
  if (braces && at < text.size() && text[at] == '}') ++at;
  if (name.empty() && at == from) return "$";
  const auto found = world.environment.find(name);
  return found == world.environment.end() ? "" : found->second;
}

std::vector<Word> split(const ShellWorld& world, const std::string& text, int last) {
  std::vector<Word> out;
  std::string word;
  bool has_word = false;
  const auto end_word = [&] {
    if (has_word) out.push_back({std::exchange(word, {}), false});
    has_word = false;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\'') {
      const auto close = std::min(text.find('\'', at + 1), text.size());
      word += text.substr(at + 1, close - at - 1), has_word = true, at = close + 1;
    } else if (c == '"') {
      has_word = true;
      for (++at; at < text.size() && text[at] != '"';) {
        if (text[at] == '$') {
          word += variable(world, text, at, last);
        } else {
          if (text[at] == '\\' && at + 1 < text.size()) ++at;
          word += text[at++];
        }
      }
      ++at;
    } else if (c == '$') {
      if (const std::string value = variable(world, text, at, last); !value.empty()) word += value, has_word = true;
    } else if (c == '\\' && at + 1 < text.size()) {
      word += text[at + 1], has_word = true, at += 2;
    } else if (std::string_view(";|&<>").find(c) != std::string_view::npos) {
      if (c == '>' && word == "2") word.clear(), has_word = false, out.push_back({"2", true});
      end_word();
      const bool is_double = at + 1 < text.size() && text[at + 1] == c && c != '<' && c != ';';
      out.push_back({std::string(is_double ? 2 : 1, c), true}), at += is_double ? 2 : 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word(), ++at;
    } else {
      word += c, has_word = true, ++at;
    }
  }
  end_word();
  return out;
}

/// One command with its redirections; a word NAME=VALUE alone sets a variable.
ShellResult run_command(ShellWorld& world, const std::vector<Word>& words, std::string input, const std::string& now, int depth) {
  std::vector<std::string> plain;
  std::string target;
  bool appends = false, drops_errors = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].is_operator) {
      plain.push_back(words[i].text);
      continue;
    }
    const bool of_errors = words[i].text == "2";
    if (of_errors) ++i;
    if (i + 1 >= words.size()) return failed(2, "sh: syntax error: unexpected end of line\n");
    if (words[i + 1].is_operator) {  // 2>&1
      i += 2;
      continue;
    }
    const std::string& file = words[++i].text;
    if (of_errors) {
      drops_errors = true;
    } else if (words[i - 1].text == "<") {
      const auto found = world.files.find(absolute(world, file));
      if (found == world.files.end()) return failed(1, fmt::format("sh: can't open {}: no such file\n", file));
      input = found->second;
    } else {
      target = absolute(world, file), appends = words[i - 1].text == ">>";
    }
  }
  if (plain.size() == 1)
    if (const auto equals = plain[0].find('='); equals != std::string::npos && equals > 0) {
      world.environment[plain[0].substr(0, equals)] = plain[0].substr(equals + 1);
      return {};
    }
  if (!plain.empty() && plain[0] == "exec") plain.erase(plain.begin());
  if (!plain.empty() && plain[0] == "export") {
    for (std::size_t i = 1; i < plain.size(); ++i)
      if (const auto equals = plain[i].find('='); equals != std::string::npos)
        world.environment[plain[i].substr(0, equals)] = plain[i].substr(equals + 1);
    return {};
  }
  ShellResult result = run_one({world, plain, input, now, depth});
  if (drops_errors) result.errors.clear();
  if (!target.empty()) {
    std::string& file = world.files[target];
    if (!appends) file.clear();
    if (target != "/dev/null") file += result.output.substr(0, kMaxFileBytes - std::min(kMaxFileBytes, file.size()));
    result.output.clear();
  }
  return result;
}

/// One line: pipelines joined by ;, && and ||.
ShellResult run_line(ShellWorld& world, const std::string& line, const std::string& input, const std::string& now, int depth, int last) {
  ShellResult all;
  all.exit_code = last;
  const std::vector<Word> words = split(world, line, last);
  std::vector<Word> command;
  std::string piped = input;
  bool runs = true;
  const auto finish = [&](const std::string& separator) {
    if (runs && !command.empty()) {
      ShellResult one = run_command(world, command, piped, now, depth);
      all.errors += one.errors, all.exit_code = one.exit_code, all.is_over |= one.is_over;
      if (separator == "|")
        piped = std::move(one.output);
      else
        all.output += one.output;
    }
    command.clear();
    if (separator != "|") piped = input;
    if (separator == "&&") runs = runs ? all.exit_code == 0 : false;
    if (separator == "||") runs = all.exit_code != 0;
    if (separator == ";" || separator == "&") runs = true;
  };
  for (const Word& word : words) {
    const bool separates = word.is_operator && (word.text == ";" || word.text == "&&" || word.text == "||" || word.text == "|");
    if (!separates)
      command.push_back(word);
    else if (finish(word.text); all.is_over)
      return all;
  }
  finish(";");
  return all;
}

ShellResult run_lines(ShellWorld& world, const std::string& text, const std::string& input, const std::string& now, int depth) {
  ShellResult all;
  for (std::size_t from = 0; from < text.size() && !all.is_over;) {
    const auto end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    from = end + 1;
    if (line.starts_with('#')) continue;
    ShellResult one = run_line(world, line, input, now, depth, all.exit_code);
    all.output += one.output, all.errors += one.errors, all.exit_code = one.exit_code, all.is_over = one.is_over;
  }
  return all;
}

}  // namespace

ShellResult run_words(ShellWorld& world, const std::vector<std::string>& words, const std::string& input, const std::string& now) {
  ShellResult result = run_one({world, words, input, now, 0});
  result.is_over = false;
  return result;
}

ShellResult run_script(ShellWorld& world, const std::string& text, const std::string& input, const std::string& now) {
  return run_lines(world, text, input, now, 0);
}

bool is_known_program(const std::string& word) { return commands().contains(program_name(word)); }

bool reads_commands(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  const std::string name = program_name(words[0]);
  if (name != "sh" && name != "bash" && name != "ash") return false;
  return std::ranges::none_of(words, [](const std::string& word) { return word.starts_with('-') && word.ends_with('c'); });
}

}  // namespace berth::node::simulated
