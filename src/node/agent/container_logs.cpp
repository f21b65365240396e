#include "node/agent/container_logs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "base/split.h"
#include "net/http.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxRead = 128 << 10;    // At once.
constexpr std::size_t kMaxHeldBack = 1 << 20;  // Of a line whose end has not come.

/// TIME STREAM P TEXT
bool is_partial_line(std::string_view line) {
  const auto stream = line.find(' ');
  const auto tag = stream == std::string_view::npos ? stream : line.find(' ', stream + 1);
  return tag != std::string_view::npos && line.substr(tag + 1).starts_with('P');
}

bool compress(const std::string& from) {
  const std::string fresh = from + ".tmp";
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return false;
  gzFile out = gzopen(fresh.c_str(), "wb6");
  char buffer[1 << 16];
  ssize_t n = 0;
  bool well = out != nullptr;
  while (well && (n = ::read(in, buffer, sizeof buffer)) > 0) well = gzwrite(out, buffer, static_cast<unsigned>(n)) == n;
  ::close(in);
  well = (out && gzclose(out) == Z_OK) && well && n == 0;
  std::error_code error;
  if (well) fs::rename(fresh, from + ".gz", error);
  if (!well || error) {
    fs::remove(fresh, error);
    return false;
  }
  fs::remove(from, error);
  return true;
}

}  // namespace

std::optional<LogQueryError> read_log_options(const std::string& query, TimePoint now, LogOptions& options) {
  std::optional<std::int64_t> since_seconds;
  for (const auto& [key, value] : net::parse_query(query)) {
    const bool yes = !value.empty() && value != "false" && value != "0";
    if (key == "timestamps")
      options.timestamps = yes;
    else if (key == "previous")
      options.previous = yes;
    else if (key == "follow")
      options.follow = yes;
    else if (key == "sinceTime" && !(options.since = parse_rfc3339(value)))
      return LogQueryError::kUnreadable;
    else if (key == "stream" && value == "Stdout")
      options.stream = "stdout";
    else if (key == "stream" && value == "Stderr")
      options.stream = "stderr";
    else if (key == "stream" && value != "All" && !value.empty())
      return LogQueryError::kInvalid;
    // "tail" is what older clients say; "all" is as good as nothing.
    if ((key != "tailLines" && key != "tail" && key != "limitBytes" && key != "sinceSeconds") || (key == "tail" && value == "all"))
      continue;
    std::int64_t number = 0;
    const auto end = std::from_chars(value.data(), value.data() + value.size(), number);
    if (end.ec != std::errc() || end.ptr != value.data() + value.size()) return LogQueryError::kUnreadable;
    (key == "limitBytes" ? options.limit_bytes : key == "sinceSeconds" ? since_seconds : options.tail_lines) = number;
  }
  if (options.tail_lines.value_or(0) < 0 || options.limit_bytes.value_or(1) < 1 || since_seconds.value_or(1) < 1 ||
      (since_seconds && options.since))
    return LogQueryError::kInvalid;
  // Longer ago than the clock can tell is the beginning.
  constexpr std::int64_t kAges = std::int64_t{100} * 365 * 24 * 3600;
  if (since_seconds) options.since = now - std::chrono::seconds(std::min(*since_seconds, kAges));
  return std::nullopt;
}

std::string render_log(std::string_view raw, const LogOptions& options) {
  std::vector<std::string> lines;
  bool open = false;
  for (const std::string_view line : split(raw, '\n')) {
    // TIME STREAM TAG TEXT
    const std::size_t stream = line.find(' ');
    const std::size_t tag = stream == std::string_view::npos ? stream : line.find(' ', stream + 1);
    const std::size_t text = tag == std::string_view::npos ? tag : line.find(' ', tag + 1);
    if (text == std::string_view::npos) continue;
    const std::string_view time = line.substr(0, stream);
    if (!options.stream.empty() && line.substr(stream + 1, tag - stream - 1) != options.stream) continue;
    const bool is_partial = line.substr(tag + 1, text - tag - 1).starts_with('P');
    if (options.since) {
      const auto at = parse_rfc3339(time);
      if (at && *at < *options.since) continue;
    }
    if (open)
      lines.back() += line.substr(text + 1);
    else
      lines.push_back((options.timestamps ? std::string(time) + " " : std::string()) + std::string(line.substr(text + 1)));
    open = is_partial;
    if (!is_partial) lines.back() += '\n';
  }
  std::size_t first = 0;
  if (options.tail_lines && *options.tail_lines >= 0 && static_cast<std::size_t>(*options.tail_lines) < lines.size())
    first = lines.size() - static_cast<std::size_t>(*options.tail_lines);
  std::string out;
  for (std::size_t i = first; i < lines.size(); ++i) out += lines[i];
  if (options.limit_bytes && *options.limit_bytes >= 0 && out.size() > static_cast<std::size_t>(*options.limit_bytes))
    out.resize(static_cast<std::size_t>(*options.limit_bytes));
  return out;
}

bool LogFollower::open() {
  file_ = OwnedFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  return file_.is_open();
}

void LogFollower::seek_tail() {
  if (!options_.tail_lines) return;
  std::int64_t left = *std::exchange(options_.tail_lines, std::nullopt);
  char buffer[1 << 16];
  off_t at = ::lseek(file_.get(), 0, SEEK_END);
  while (at > 0) {
    const off_t begin = std::max<off_t>(0, at - static_cast<off_t>(sizeof buffer));
    const ssize_t n = ::pread(file_.get(), buffer, static_cast<std::size_t>(at - begin), begin);
    if (n <= 0) break;
    for (ssize_t i = n - 1; i >= 0; --i) {
      // That many ends of lines stay; a line under way comes on top.
      if (buffer[i] == '\n' && left-- == 0) return static_cast<void>(::lseek(file_.get(), begin + i + 1, SEEK_SET));
    }
    at = begin;
  }
  ::lseek(file_.get(), 0, SEEK_SET);
}

bool LogFollower::fill() {
  char buffer[1 << 16];
  ssize_t n = 0;
  std::size_t taken = 0;
  while (taken < kMaxRead && (n = ::read(file_.get(), buffer, sizeof buffer)) > 0) {
    rest_.append(buffer, static_cast<std::size_t>(n));
    taken += static_cast<std::size_t>(n);
  }
  return n <= 0;
}

/// Of a line that was split (tag P), all parts together, as far as memory should hold them.
std::size_t LogFollower::whole_lines() const {
  auto end = rest_.rfind('\n');
  if (end == std::string::npos || rest_.size() > kMaxHeldBack) return rest_.size() > kMaxHeldBack ? rest_.size() : 0;
  while (true) {
    const auto before = end == 0 ? std::string::npos : rest_.rfind('\n', end - 1);
    const auto begin = before == std::string::npos ? 0 : before + 1;
    if (!is_partial_line(std::string_view(rest_).substr(begin, end - begin))) return end + 1;
    if (before == std::string::npos) return 0;
    end = before;
  }
}

std::string LogFollower::read(bool is_over) {
  if (!file_.is_open()) {
    is_at_end_ = !open();
    if (is_at_end_) return {};
    seek_tail();
  }
  is_at_end_ = fill();
  if (is_at_end_) {
    // Another file may stand under the name by now.
    struct stat own {
    }, named{};
    if (::fstat(file_.get(), &own) == 0 && ::stat(path_.c_str(), &named) == 0 && own.st_ino != named.st_ino && open()) is_at_end_ = fill();
  }
  const std::size_t end = is_over && is_at_end_ ? rest_.size() : whole_lines();
  const std::string text = render_log(std::string_view(rest_).substr(0, end), options_);
  rest_.erase(0, end);
  if (options_.limit_bytes) *options_.limit_bytes -= static_cast<std::int64_t>(text.size());
  return text;
}

bool rotate_log(const std::string& path, int max_files, TimePoint now, const std::function<bool()>& reopen) {
  const fs::path file(path);
  const std::string prefix = file.filename().string() + ".";
  std::vector<std::string> rotated;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    if (name.ends_with(".tmp"))
      fs::remove(entry.path(), error);
    else
      rotated.push_back(entry.path());
  }
  // Stamps sort by age. Room is made for the one to come and the one in use.
  std::ranges::sort(rotated);
  const std::size_t keep = static_cast<std::size_t>(std::max(max_files - 2, 0));
  while (rotated.size() > keep) {
    fs::remove(rotated.front(), error);
    rotated.erase(rotated.begin());
  }
  for (const std::string& old : rotated)
    if (!old.ends_with(".gz")) compress(old);
  std::string stamp = format_rfc3339(now);
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  std::ranges::replace(stamp, 'T', '-');
  if (stamp.ends_with('Z')) stamp.pop_back();
  const std::string aside = path + "." + stamp;
  fs::rename(path, aside, error);
  if (error) return false;
  if (reopen()) return true;
  fs::rename(aside, path, error);
  return false;
}

}  // namespace berth::node::agent
