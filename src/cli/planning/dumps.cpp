#include "cli/planning/dumps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "base/object_text.h"
#include "model/etcd_snapshot.h"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

/// Without a second copy of what may be a gigabyte, and without clearing what is overwritten.
Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  std::ifstream in(path, std::ios::binary);
  if (!in || fs::is_directory(path, error)) return fail(ErrorCode::kNotFound, fmt::format("{}: cannot be read", path));
  std::string out;
  const auto size = fs::file_size(path, error);
  out.resize_and_overwrite(error ? 0 : size, [&](char* to, std::size_t most) {
    in.read(to, static_cast<std::streamsize>(most));
    return static_cast<std::size_t>(in.gcount());
  });
  return out;
}

/// "dump.yaml: 120000 objects" on a terminal, while a large file is read.
class ReadingLine {
 public:
  ReadingLine(const std::string& file, std::size_t bytes) : file_(file), is_shown_(bytes > (64U << 20) && isatty(STDERR_FILENO) != 0) {}
  ~ReadingLine() {
    if (is_shown_) std::fputs("\r\x1b[K", stderr);
  }
  ReadingLine(const ReadingLine&) = delete;
  ReadingLine& operator=(const ReadingLine&) = delete;
  void count() {
    constexpr std::size_t kEvery = 5000;
    if (++objects_ % kEvery == 0 && is_shown_) std::fprintf(stderr, "\r%s: %zu objects\x1b[K", file_.c_str(), objects_);
  }

 private:
  const std::string& file_;
  bool is_shown_;
  std::size_t objects_ = 0;
};

std::string read_stream(std::istream& in) {
  std::ostringstream text;
  if (in.peek() != std::istream::traits_type::eof()) text << in.rdbuf();
  return std::move(text).str();
}

/// Files below a folder, such as a must-gather's; a file is itself.
std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  if (path == "-" || !fs::is_directory(path, error)) return {path};
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error)) {
    const std::string extension = entry.path().extension();
    if (entry.is_regular_file(error) && (extension == ".yaml" || extension == ".yml" || extension == ".json")) out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

Result<Dumps> Dumps::find(const std::vector<std::string>& paths) {
  Dumps out;
  for (const std::string& path : paths) {
    const auto below = files_of(path);
    if (below.empty()) return invalid(fmt::format("{}: there is no .yaml, .yml or .json file in this folder", path));
    out.files_.insert(out.files_.end(), below.begin(), below.end());
  }
  for (const std::string& file : out.files_) {
    std::error_code error;
    if (file == "-") {
      out.kept_[file] = read_stream(std::cin);
    } else if (!fs::is_regular_file(file, error)) {
      std::ifstream in(file, std::ios::binary);
      if (!in) return fail(ErrorCode::kNotFound, fmt::format("{}: cannot be read", file));
      out.kept_[file] = read_stream(in);
    }
  }
  return out;
}

Result<void> Dumps::for_each(const Visitor& each, std::string_view word) const {
  for (const std::string& file : files_) {
    const auto kept = kept_.find(file);
    Text read = file == last_.file ? std::exchange(last_, {}) : Text{};
    if (kept == kept_.end() && read.file.empty()) {
      auto text = read_file(file);
      if (!text) return std::unexpected(text.error());
      read = {file, std::move(*text)};
    }
    const std::string& text = kept == kept_.end() ? read.text : kept->second;
    ReadingLine line(file, text.size());
    const auto with_file = [&](json::Value object) {
      line.count();
      each(std::move(object), file);
    };
    if (model::is_etcd_snapshot(text)) {
      const auto notes = model::read_etcd_snapshot(text, with_file);
      if (!notes) return invalid(fmt::format("{}: {}", file, notes.error().message));
      if (!word.empty()) {
        last_ = std::move(read);
        continue;
      }
      for (const std::string& note : model::sentences_of(*notes)) std::fprintf(stderr, "note: %s: %s\n", file.c_str(), note.c_str());
      continue;
    }
    std::vector<std::string> notes;
    if (auto done = config::for_each_object(text, with_file, notes, word); !done)
      return invalid(fmt::format("{}: {}", file, done.error().message));
    if (word.empty())
      for (const std::string& note : notes) fmt::print(stderr, "warning: {}: {}\n", file, note);
    if (!word.empty()) last_ = std::move(read);
  }
  return {};
}

}  // namespace berth::cli
