// A configuration's text: where its fields stand, what stands there twice, and reading it with or without the documents' callouts.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/config_reader.h"
#include "base/yaml.h"

namespace berth::config {
namespace {

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

std::function<int(const std::string&)> line_finder(std::string_view text) {
  json::YamlPlaces places;
  if (!json::read_yaml(text, &places)) return [](const std::string&) { return 0; };
  return [lines = std::move(places.lines)](std::string_view path) {
    for (;;) {
      if (const auto found = lines.find(path); found != lines.end()) return static_cast<int>(found->second);
      if (path.empty()) return 1;
      const auto end = path.find_last_of(".[");
      path = path.substr(0, end == std::string_view::npos ? 0 : end);
    }
  };
}

std::vector<std::string> repeated_keys(std::string_view text) {
  json::YamlPlaces places;
  if (json::read_yaml(text, &places)) return std::move(places.repeated);
  // JSON that is no YAML.
  std::vector<std::string> out;
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
