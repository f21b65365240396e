#include "node/agent/memory_alarm.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace berth::node::agent {
namespace {

constexpr std::uint64_t kSlackBytes = 1 << 20;
/// Some task waited for memory for 100 ms within the window. A short window needs a privilege that containers lack; 2 s are always allowed.
constexpr std::array<std::string_view, 2> kTriggers = {"some 50000 500000", "some 100000 2000000"};

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

void drain(int fd) {
  std::uint64_t count = 0;
  while (::read(fd, &count, sizeof count) > 0) {
  }
}

/// Reads a control file to its end, which makes it ready to report the next change. False: its group is gone.
bool reread(int fd) {
  char buffer[4096];
  ssize_t n;
  while ((n = ::pread(fd, buffer, sizeof buffer, 0)) < 0 && errno == EINTR) {
  }
  return n >= 0;
}

}  // namespace

MemoryAlarm::MemoryAlarm(const Cgroups& cgroups, const std::vector<std::string>& groups, const std::string& proc) : cgroups_(cgroups) {
  stop_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!cgroups.is_v2()) return;
  for (const std::string& group : groups) {
    open_trigger(group.empty() ? proc + "/pressure/memory" : cgroups.directory("memory", group) + "/memory.pressure");
    if (group.empty()) continue;
    const int fd = ::open((cgroups.directory("memory", group) + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    (void)reread(fd);
    triggers_.push_back({fd, true});
  }
}

MemoryAlarm::~MemoryAlarm() {
  for (const Threshold& threshold : thresholds_) ::close(threshold.event_fd);
  for (const Trigger& trigger : triggers_) ::close(trigger.fd);
  if (stop_fd_ >= 0) ::close(stop_fd_);
}

void MemoryAlarm::open_trigger(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  for (const std::string_view trigger : kTriggers) {
    // The terminating zero belongs to what the kernel reads.
    if (::write(fd, trigger.data(), trigger.size() + 1) < 0) continue;
    triggers_.push_back({fd, false});
    return;
  }
  ::close(fd);
}

int MemoryAlarm::open_threshold(const Level& level) const {
  const std::string directory = cgroups_.directory("memory", level.group);
  const int usage = ::open((directory + "/memory.usage_in_bytes").c_str(), O_RDONLY | O_CLOEXEC);
  if (usage < 0) return -1;
  const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const bool registered =
      event >= 0 &&
      write_control_file(directory + "/cgroup.event_control", fmt::format("{} {} {}", event, usage, level.usage_bytes)).has_value();
  ::close(usage);
  if (registered) return event;
  if (event >= 0) ::close(event);
  return -1;
}

void MemoryAlarm::arm(const std::vector<Level>& levels) {
  if (cgroups_.is_v2()) return;
  std::vector<Threshold> next;
  for (const Level& level : levels) {
    if (level.usage_bytes == 0) continue;
    const auto same = std::ranges::find_if(thresholds_, [&](const Threshold& t) {
      return t.event_fd >= 0 && t.level.group == level.group && distance(t.level.usage_bytes, level.usage_bytes) < kSlackBytes;
    });
    if (same != thresholds_.end()) {
      next.push_back(std::exchange(*same, Threshold{}));
    } else if (const int fd = open_threshold(level); fd >= 0) {
      next.push_back({level, fd});
    }
  }
  for (const Threshold& threshold : thresholds_)
    if (threshold.event_fd >= 0) ::close(threshold.event_fd);
  thresholds_ = std::move(next);
}

MemoryAlarm::Wake MemoryAlarm::wait(Duration longest) {
  std::vector<pollfd> files{{stop_fd_, POLLIN, 0}};
  for (const Threshold& threshold : thresholds_) files.push_back({threshold.event_fd, POLLIN, 0});
  for (const Trigger& trigger : triggers_) files.push_back({trigger.fd, POLLPRI, 0});
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(std::max(longest, Duration::zero())).count();
  const int ready = ::poll(files.data(), files.size(), static_cast<int>(std::min<std::int64_t>(milliseconds, 60'000)));
  if (ready <= 0) return Wake::kTimeout;
  if (files[0].revents != 0) return Wake::kStopped;
  bool threshold_hit = false;
  std::vector<Trigger> alive;
  for (std::size_t i = 1; i < files.size(); ++i) {
    const bool is_threshold = i <= thresholds_.size();
    if (files[i].revents & POLLIN && is_threshold) {
      drain(files[i].fd);
      threshold_hit = true;
    }
    if (is_threshold) continue;
    const Trigger& trigger = triggers_[i - 1 - thresholds_.size()];
    // A file of a group that is gone reports for ever. (memory.events sets the error bit with every change as well.)
    const short events = files[i].revents;
    const bool is_gone = trigger.is_events_file ? (events & POLLPRI) != 0 && !reread(trigger.fd) : (events & POLLERR) != 0;
    if (is_gone)
      ::close(trigger.fd);
    else
      alive.push_back(trigger);
  }
  triggers_ = std::move(alive);
  return threshold_hit ? Wake::kThreshold : Wake::kPressure;
}

void MemoryAlarm::stop() {
  const std::uint64_t one = 1;
  (void)!::write(stop_fd_, &one, sizeof one);
}

std::string MemoryAlarm::describe() const {
  if (!thresholds_.empty()) return "cgroup thresholds";
  return triggers_.empty() ? "polling" : "pressure triggers";
}

std::uint64_t alarm_usage_bytes(std::uint64_t usage_bytes, std::uint64_t available_bytes, std::uint64_t threshold_bytes) {
  return available_bytes > threshold_bytes ? usage_bytes + (available_bytes - threshold_bytes) : 0;
}

}  // namespace berth::node::agent
