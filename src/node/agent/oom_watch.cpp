#include "node/agent/oom_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace berth::node::agent {
namespace {

constexpr int kCounterPeriodMs = 1000;

/// The text behind `key=` up to the next comma; nullopt when it is not there.
std::optional<std::string_view> field(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; (at = text.find(key, at)) != std::string_view::npos; at += key.size()) {
    const bool starts = at == 0 || text[at - 1] == ',' || text[at - 1] == ':';
    const std::size_t value = at + key.size();
    if (!starts || value >= text.size() || text[value] != '=') continue;
    return text.substr(value + 1, std::min(text.find(',', value), text.size()) - value - 1);
  }
  return std::nullopt;
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string as_path(std::string_view group) {
  return group.empty() || group.front() != '/' ? "/" + std::string(group) : std::string(group);
}

std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t from = text.find(before);
  if (from == std::string_view::npos) return {};
  const std::size_t start = from + before.size(), end = after.empty() ? text.size() : text.find(after, start);
  return end == std::string_view::npos ? std::string_view{} : text.substr(start, end - start);
}

}  // namespace

std::optional<OomKill> OomLogParser::feed(std::string_view record) {
  if (const std::size_t text = record.find(';'); text != std::string_view::npos) record.remove_prefix(text + 1);
  record = record.substr(0, record.find('\n'));
  if (record.find("invoked oom-killer") != std::string_view::npos) {
    is_open_ = true;
    kill_ = OomKill{{}, 0, "/", "/"};
    return std::nullopt;
  }
  if (const std::size_t at = record.find("oom-kill:constraint="); at != std::string_view::npos) {
    is_open_ = false;
    const std::string_view fields = record.substr(at);
    OomKill kill;
    kill.limit_group = as_path(field(fields, "oom_memcg").value_or("/"));
    kill.victim_group = as_path(field(fields, "task_memcg").value_or("/"));
    kill.process = field(fields, "task").value_or("");
    kill.pid = number(field(fields, "pid").value_or(""));
    return kill;
  }
  if (!is_open_) return std::nullopt;
  if (const std::string_view victim = between(record, "Task in ", " killed as a result of limit of "); !victim.empty()) {
    kill_.victim_group = as_path(victim);
    kill_.limit_group = as_path(between(record, " killed as a result of limit of ", ""));
  }
  const std::string_view pid = between(record, "Killed process ", " (");
  if (pid.empty()) return std::nullopt;
  is_open_ = false;
  kill_.pid = number(pid);
  kill_.process = between(record, " (", ")");
  return kill_;
}

std::string system_oom_message(const OomKill& kill) {
  if (kill.process.empty() || kill.pid == 0) return "System OOM encountered";
  return fmt::format("System OOM encountered, victim process: {}, pid: {}", kill.process, kill.pid);
}

bool is_system_oom(const OomKill& kill, const std::string& node_cgroup) {
  return kill.limit_group == "/" || (!node_cgroup.empty() && kill.limit_group == node_cgroup);
}

OomWatch::OomWatch(const Cgroups& cgroups, Options options) : cgroups_(cgroups), options_(std::move(options)) {
  stop_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  log_fd_ = ::open(options_.log.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  // Kills of the past have been told of by whoever ran then.
  if (log_fd_ >= 0 && ::lseek(log_fd_, 0, SEEK_END) < 0) {
    ::close(log_fd_);
    log_fd_ = -1;
  }
  thread_ = std::thread([this] { log_fd_ >= 0 ? follow_log() : follow_counter(); });
}

OomWatch::~OomWatch() {
  const std::uint64_t one = 1;
  (void)!::write(stop_fd_, &one, sizeof one);
  thread_.join();
  ::close(stop_fd_);
  if (log_fd_ >= 0) ::close(log_fd_);
}

void OomWatch::follow_log() {
  OomLogParser parser;
  std::array<char, 8192> record;  // One read gives one record; longer ones do not exist.
  for (;;) {
    pollfd files[] = {{stop_fd_, POLLIN, 0}, {log_fd_, POLLIN, 0}};
    if (::poll(files, 2, -1) < 0 && errno != EINTR) return;
    if (files[0].revents != 0) return;
    for (;;) {
      const ssize_t n = ::read(log_fd_, record.data(), record.size());
      if (n < 0 && errno == EPIPE) continue;  // Records were overwritten before they were read: go on with the oldest that is left.
      if (n <= 0) break;
      const auto kill = parser.feed(std::string_view(record.data(), static_cast<std::size_t>(n)));
      if (kill && is_system_oom(*kill, options_.node_cgroup)) options_.system_oom(*kill);
    }
  }
}

void OomWatch::follow_counter() {
  // Without the log only a node that is a cgroup can be told apart: its count holds its containers' own limits as well, so that what they
  // add is left out.
  const auto count = [&]() -> std::optional<std::uint64_t> {
    const auto all = cgroups_.oom_kills(options_.node_cgroup);
    if (!all) return std::nullopt;
    return *all - std::min(*all, cgroups_.oom_kills(options_.node_cgroup + "/kubepods").value_or(0));
  };
  std::optional<std::uint64_t> last = count();
  for (;;) {
    pollfd stop{stop_fd_, POLLIN, 0};
    if (::poll(&stop, 1, kCounterPeriodMs) > 0) return;
    const auto now = count();
    if (now && last && *now > *last) options_.system_oom(OomKill{{}, 0, options_.node_cgroup.empty() ? "/" : options_.node_cgroup, {}});
    if (now) last = now;
  }
}

}  // namespace berth::node::agent
