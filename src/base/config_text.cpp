// A configuration's text: where its fields stand, what stands there twice, and reading it with or without the documents' callouts.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/config_reader.h"
#include "base/config_repair.h"
#include "base/yaml.h"

namespace berth::config {
namespace {

/// What one reading of a text came to.
struct Reading {
  std::string error;
  Look look;
  std::vector<std::string> notes;
};

Reading attempt(const std::string& text, const ReadOptions& options, const std::function<void(const Reader&)>& read) {
  Reading out;
  const auto document = json::parse_yaml(text);
  if (!document) {
    out.error = fmt::format("{}: {}", options.file, document.error().message);
    return out;
  }
  Problems problems(options.file, line_finder(text), options.as_kubernetes);
  for (const std::string& path : repeated_keys(text)) problems.add(path, "stands here a second time", Refusal::kOfBerth);
  read(Reader(&*document, "", problems));
  out.look = {true, problems.size(), problems.lines()};
  out.error = problems.text();
  out.notes = problems.notes();
  return out;
}

/// "requests[cpu]" as the places of a document have it: "requests.cpu".
std::string with_dotted_keys(std::string_view path) {
  std::string out;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const bool is_key = path[at] == '[' && at + 1 < path.size() && (path[at + 1] < '0' || path[at + 1] > '9');
    const auto end = is_key ? path.find(']', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += path[at];
      continue;
    }
    out.append(1, '.').append(path.substr(at + 1, end - at - 1));
    at = end;
  }
  return out;
}

}  // namespace

std::function<int(const std::string&)> line_finder(std::string_view text, std::size_t document) {
  std::vector<json::YamlPlaces> places;
  if (!json::read_yaml(text, &places) || document >= places.size()) return [](const std::string&) { return 0; };
  return [lines = std::move(places[document].lines)](const std::string& asked) {
    const std::string dotted = with_dotted_keys(asked);
    for (std::string_view path = dotted;;) {
      if (const auto found = lines.find(path); found != lines.end()) return static_cast<int>(found->second);
      if (path.empty()) return 1;
      const auto end = path.find_last_of(".[");
      path = path.substr(0, end == std::string_view::npos ? 0 : end);
    }
  };
}

std::vector<std::string> repeated_keys(std::string_view text) {
  std::vector<json::YamlPlaces> places;
  std::vector<std::string> out;
  if (json::read_yaml(text, &places)) {
    for (json::YamlPlaces& document : places) std::ranges::move(document.repeated, std::back_inserter(out));
    return out;
  }
  // JSON that is no YAML.
  static_cast<void>(json::parse(text, {.duplicates = &out}));
  return out;
}

Result<void> read_text(std::string_view text, const ReadOptions& options, const std::function<void(const Reader& root)>& read) {
  Reading given = attempt(std::string(text), options, read);
  const auto take = [&](const Reading& taken) -> Result<void> {
    if (options.notes != nullptr) options.notes->insert(options.notes->end(), taken.notes.begin(), taken.notes.end());
    return {};
  };
  if (given.look.is_taken()) return take(given);
  if (options.notes == nullptr || options.as_kubernetes) return invalid(given.error);
  Reading last;
  const Mended mended = as_documents_mean(text, TextKind::kConfiguration, given.look, [&](const std::string& tried) {
    last = attempt(tried, options, read);
    return last.look;
  });
  if (!mended.look.is_taken()) {
    // What else is wrong is told as well, so that nobody has to come a second time.
    const bool has_more = !given.look.is_parsed && mended.look.is_parsed;
    return invalid(has_more ? fmt::format("{}\n{}", given.error, attempt(mended.text, options, read).error) : given.error);
  }
  for (const std::string& change : mended.changes) options.notes->push_back(fmt::format("{}: {}", options.file, change));
  return take(last);
}

/// Whether a line begins a document: three dashes, and a blank or nothing behind them.
static bool begins_document(std::string_view line) {
  return line.starts_with("---") && (line.size() == 3 || std::string_view(" \t\r").contains(line[3]));
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
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (begins_document(line)) {
      end_document();
      line.remove_prefix(3);
    }
    ++lines;
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
