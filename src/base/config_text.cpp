// A configuration's text: where its fields stand, what stands there twice, and reading it with or without the documents' callouts.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/config_reader.h"

namespace berth::config {
namespace {

std::shared_ptr<YAML::Node> load(const std::string& text) {
  try {
    return std::make_shared<YAML::Node>(YAML::Load(text));
  } catch (const YAML::Exception&) {
    return nullptr;
  }
}

/// The length of the key of `map` that stands at the beginning of `path` and ends there with it, with a dot or a bracket: the longest,
/// since keys may have dots themselves ("memory.available"). Its line and value besides; 0 when there is none.
std::size_t match_key(const YAML::Node& map, std::string_view path, int& line, YAML::Node& value) {
  std::size_t best = 0;
  for (const auto& member : map) {
    if (!member.first.IsScalar()) continue;
    const std::string& key = member.first.Scalar();
    if (key.size() < best || key.empty() || !path.starts_with(key)) continue;
    if (path.size() > key.size() && path[key.size()] != '.' && path[key.size()] != '[') continue;
    best = key.size();
    line = member.first.Mark().line;
    value.reset(member.second);
  }
  return best;
}

int find_line(const YAML::Node& root, std::string_view path) {
  YAML::Node at;
  at.reset(root);
  int line = at.Mark().line;
  while (!path.empty()) {
    if (path[0] == '.') path.remove_prefix(1);
    YAML::Node next;
    if (path.starts_with('[')) {
      const std::size_t close = path.find(']');
      const auto index = static_cast<std::size_t>(std::stoul(std::string(path.substr(1, close - 1))));
      if (!at.IsSequence() || index >= at.size()) break;
      next.reset(at[index]);
      line = next.Mark().line;
      path.remove_prefix(close + 1);
    } else {
      const std::size_t length = at.IsMap() ? match_key(at, path, line, next) : 0;
      if (length == 0) break;
      path.remove_prefix(length);
    }
    at.reset(next);
  }
  return line + 1;
}

void find_repeated(const YAML::Node& node, const std::string& path, std::vector<std::string>& out) {
  if (node.IsSequence()) {
    std::size_t i = 0;
    for (const auto& item : node) find_repeated(item, fmt::format("{}[{}]", path, i++), out);
  }
  if (!node.IsMap()) return;
  std::set<std::string> seen;
  for (const auto& member : node) {
    if (!member.first.IsScalar()) continue;
    const std::string& key = member.first.Scalar();
    const std::string at = path.empty() ? key : path + "." + key;
    if (key != "<<" && !seen.insert(key).second) out.push_back(at);
    find_repeated(member.second, at, out);
  }
}

/// What one reading of a text came to.
struct Attempt {
  std::string error;
  std::size_t problems = SIZE_MAX;  ///< As many as can be when it cannot be parsed.
  std::vector<std::string> notes;
};

Attempt attempt(const std::string& text, const ReadOptions& options, const std::function<void(const Reader&)>& read) {
  Attempt out;
  const auto document = json::parse_yaml(text);
  if (!document) {
    out.error = fmt::format("{}: {}", options.file, document.error().message);
    return out;
  }
  Problems problems(options.file, line_finder(text), options.as_kubernetes);
  for (const std::string& path : repeated_keys(text)) problems.add(path, "stands here a second time", Refusal::kOfBerth);
  read(Reader(&*document, "", problems));
  out.problems = problems.size();
  out.error = problems.text();
  out.notes = problems.notes();
  return out;
}

}  // namespace

std::function<int(const std::string&)> line_finder(std::string text) {
  return [root = load(text)](const std::string& path) {
    try {
      return root ? find_line(*root, path) : 0;
    } catch (const std::exception&) {  // yaml-cpp and stoul report by throwing; a path that cannot be followed has no line.
      return 0;
    }
  };
}

std::vector<std::string> repeated_keys(std::string_view text) {
  std::vector<std::string> out;
  if (const auto root = load(std::string(text))) {
    find_repeated(*root, "", out);
    return out;
  }
  // JSON that is no YAML.
  static_cast<void>(json::parse(text, {.duplicates = &out}));
  return out;
}

Result<void> read_text(std::string_view text, const ReadOptions& options, const std::function<void(const Reader& root)>& read) {
  Attempt best = attempt(std::string(text), options, read);
  if (const std::string repaired = best.problems > 0 ? without_callouts(text) : std::string(text); repaired != text) {
    Attempt again = attempt(repaired, options, read);
    if (again.problems < best.problems) best = std::move(again);
  }
  if (best.problems > 0) return invalid(best.error);
  if (options.notes != nullptr) options.notes->insert(options.notes->end(), best.notes.begin(), best.notes.end());
  return {};
}

std::vector<std::string> split_documents(std::string_view text) {
  std::vector<std::string> out;
  std::string current;
  bool has_content = false;
  std::size_t lines = 0;
  const auto end_document = [&] {
    if (has_content) out.push_back(current);
    current.assign(lines, '\n');
    has_content = false;
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++lines;
    if (line.starts_with("---")) {
      end_document();
      continue;
    }
    const auto first = line.find_first_not_of(" \t\r");
    has_content = has_content || (first != std::string_view::npos && line[first] != '#');
    current.append(line).append("\n");
  }
  end_document();
  return out;
}

Result<std::string> read_whole_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return invalid(path + ": cannot be read: it is a directory");
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalid,
                fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::ostringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  return text.str();
}

}  // namespace berth::config
