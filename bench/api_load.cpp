#include "bench/api_load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/kubeconfig.h"

namespace berth::bench {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double proc_status_mb(pid_t pid, const char* field) {
  std::istringstream lines(read_text(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(field)) return std::atof(line.c_str() + std::strlen(field) + 1) / 1024;
  return 0;
}

}  // namespace

Child::Child(std::vector<std::string> args, std::string log_path) {
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "berth";
  std::vector<char*> argv{const_cast<char*>(binary.c_str())};
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    const int log = open(log_path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(log, 1);
    dup2(log, 2);
    execv(binary.c_str(), argv.data());
    _exit(127);
  }
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
}

bool Child::alive() const { return pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0; }
double Child::rss_mb() const { return proc_status_mb(pid_, "VmRSS:"); }
double Child::peak_rss_mb() const { return proc_status_mb(pid_, "VmHWM:"); }

double Child::cpu_seconds() const {
  const std::string stat = read_text(fmt::format("/proc/{}/stat", pid_));
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Result<std::unique_ptr<Target>> Target::open(const Options& options, const std::vector<std::string>& flags) {
  std::unique_ptr<Target> target(new Target());
  target->kubeconfig_ = options.kubeconfig;
  if (options.kubeconfig.empty()) {
    std::string pattern = "/tmp/berth-bench.XXXXXX";
    target->directory_ = mkdtemp(pattern.data());
    const std::string log = target->directory_ + "/log";
    std::vector<std::string> args{"server", "--data-dir", target->directory_ + "/data", "--listen", "127.0.0.1:0"};
    args.insert(args.end(), flags.begin(), flags.end());
    target->server_ = std::make_unique<Child>(std::move(args), log);
    const std::string mark = "export KUBECONFIG=";
    std::string text;
    if (!wait_until(
            [&] {
              text = read_text(log);
              return text.find(mark) != std::string::npos || !target->server_->alive();
            },
            30) ||
        text.find(mark) == std::string::npos)
      return fail(ErrorCode::kUnavailable, "the API server did not start: " + text);
    const std::size_t start = text.find(mark) + mark.size();
    target->kubeconfig_ = text.substr(start, text.find('\n', start) - start);
  }
  auto config = client::load_kubeconfig(target->kubeconfig_, "");
  if (!config) return std::unexpected(config.error());
  config->http.max_connections = 64;
  auto transport = client::make_https_transport(config->http, config->bearer_token);
  if (!transport) return std::unexpected(transport.error());
  target->transport_ = std::move(*transport);
  return target;
}

Target::~Target() {
  transport_.reset();
  server_.reset();
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

LoadResult run_load(client::Transport& transport, std::size_t count, std::size_t in_flight,
                    const std::function<net::HttpRequest(std::size_t)>& request) {
  std::mutex mutex;
  std::condition_variable all_done;
  LoadResult result;
  std::vector<float> latencies_ms(count);
  std::atomic<std::size_t> next{0};
  std::size_t finished = 0;
  // Each answer sends the next request: always `in_flight` on the way, no thread of our own needed.
  std::function<void()> send_next = [&] {
    const std::size_t i = next.fetch_add(1);
    if (i >= count) return;
    const double start = now_seconds();
    transport.send(request(i), [&, i, start](net::HttpResponse response) {
      latencies_ms[i] = static_cast<float>((now_seconds() - start) * 1e3);
      bool last;
      {
        std::lock_guard lock(mutex);
        if (response.status >= 200 && response.status < 300) {
          ++result.done;
        } else if (result.failed++ == 0) {
          result.first_error = fmt::format("{}: {}", response.status, response.body.substr(0, 300));
        }
        last = ++finished == count;
        if (last) all_done.notify_one();  // Under the lock: the waiter may destroy everything right after.
      }
      if (!last) send_next();
    });
  };
  const double start = now_seconds();
  for (std::size_t i = 0; i < std::min(in_flight, count); ++i) send_next();
  std::unique_lock lock(mutex);
  all_done.wait(lock, [&] { return finished == count; });
  result.seconds = now_seconds() - start;
  std::sort(latencies_ms.begin(), latencies_ms.end());
  result.p50_ms = count == 0 ? 0 : latencies_ms[count / 2];
  result.p99_ms = count == 0 ? 0 : latencies_ms[count * 99 / 100];
  return result;
}

net::HttpRequest post_json(std::string path, std::string body) {
  net::HttpRequest request;
  request.method = "POST";
  request.path = std::move(path);
  request.headers.add("Content-Type", "application/json");
  request.headers.add("Accept", "application/json");
  request.body = std::move(body);
  return request;
}

std::string pod_json(const std::string& name, const std::string& ns) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"{}","labels":{{"app":"bench"}}}},"spec":{{"containers":[{{"name":"pause",)"
      R"("image":"registry.k8s.io/pause:3.10","ports":[{{"containerPort":80}}],"resources":{{"requests":{{"cpu":"100m","memory":"500Mi"}},)"
      R"("limits":{{"cpu":"100m","memory":"500Mi"}}}}}}]}}}})",
      name, ns);
}

std::string node_json(std::size_t index) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"node-{0}","labels":{{"kubernetes.io/hostname":"node-{0}","topology.kubernetes.io/zone":"zone-{1}"}}}},)"
      R"("status":{{"capacity":{{"pods":"110","cpu":"4","memory":"32Gi"}},"allocatable":{{"pods":"110","cpu":"4","memory":"32Gi"}},)"
      R"("conditions":[{{"type":"Ready","status":"True","reason":"KubeletReady"}}]}}}})",
      index, index % 3);
}

namespace {

/// The bytes of field `number` of a protobuf message, or nothing; a malformed message has no fields.
std::string_view field_bytes(std::string_view message, std::uint64_t number) {
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0; at < message.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.size()) {
    const std::uint64_t tag = varint(), value = varint();
    if ((tag & 7) == 0) continue;
    if ((tag & 7) != 2 || value > message.size() - at) return {};
    if (tag >> 3 == number) return message.substr(at, value);
    at += value;
  }
  return {};
}

}  // namespace

WatchCounter::WatchCounter(client::Transport& transport, std::string path, std::string query, WatchForm form) {
  net::HttpRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.query = "watch=true&allowWatchBookmarks=true" + (query.empty() ? "" : "&" + query);
  const bool is_protobuf = form == WatchForm::kProtobuf;
  request.headers.add("Accept", is_protobuf ? "application/vnd.kubernetes.protobuf,application/json" : "application/json");
  net::StreamCallbacks callbacks;
  callbacks.on_header = [this](int status, const net::Headers&) { started = status == 200; };
  if (is_protobuf) {
    callbacks.on_data = [this](std::string_view data) { consume_frames(data); };
  } else {
    callbacks.on_data = [this](std::string_view data) { consume(data); };
  }
  callbacks.on_end = [this](const std::string&) { ended = true; };
  stream_ = transport.stream(std::move(request), std::move(callbacks));
}

WatchCounter::~WatchCounter() = default;

void WatchCounter::consume(std::string_view data) {
  while (!data.empty()) {
    const auto* newline = static_cast<const char*>(std::memchr(data.data(), '\n', data.size()));
    if (newline == nullptr) {
      partial_ += data;
      return;
    }
    const auto end = static_cast<std::size_t>(newline - data.data());
    if (partial_.empty()) {
      look_at(data.substr(0, end));
    } else {
      partial_ += data.substr(0, end);
      look_at(partial_);
      partial_.clear();
    }
    data.remove_prefix(end + 1);
  }
}

void WatchCounter::consume_frames(std::string_view data) {
  if (!partial_.empty()) {
    partial_ += data;
    data = partial_;
  }
  while (data.size() >= 4) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(data[i]);
    if (data.size() - 4 < size) break;
    look_at_frame(data.substr(4, size));
    data.remove_prefix(4 + size);
  }
  if (partial_.empty()) {
    partial_ = data;
  } else {
    partial_.erase(0, partial_.size() - data.size());
  }
}

void WatchCounter::look_at_frame(std::string_view frame) {
  // metav1.WatchEvent {1: type, 2: RawExtension {1: body}}, the body "k8s\0" and runtime.Unknown {2: Pod {1: ObjectMeta {6}, 2: PodSpec
  // {10}}}.
  const auto body = field_bytes(field_bytes(frame, 2), 1);
  const auto pod = field_bytes(body.substr(std::min<std::size_t>(4, body.size())), 2);
  const auto digits = field_bytes(field_bytes(pod, 1), 6);
  std::uint64_t revision = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), revision);
  const auto type = field_bytes(frame, 1);
  count_event(type, revision, type == "MODIFIED" && !field_bytes(field_bytes(pod, 2), 10).empty());
}

void WatchCounter::look_at(std::string_view line) {
  constexpr std::string_view kHead = R"({"type":")", kRevision = R"("resourceVersion":")", kNode = R"("nodeName":")";
  std::uint64_t revision = 0;
  if (const auto* at = static_cast<const char*>(memmem(line.data(), line.size(), kRevision.data(), kRevision.size())))
    std::from_chars(at + kRevision.size(), line.data() + line.size(), revision);
  auto type = line.substr(std::min(kHead.size(), line.size()));
  type = type.substr(0, type.find('"'));
  count_event(type, revision, type == "MODIFIED" && memmem(line.data(), line.size(), kNode.data(), kNode.size()) != nullptr);
}

void WatchCounter::count_event(std::string_view type, std::uint64_t revision, bool is_bound) {
  const auto count = [](std::atomic<std::size_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  };
  if (revision <= last_revision_ && type != "BOOKMARK") count(disordered);
  last_revision_ = revision;
  if (is_bound) count(bound);
  count(type == "ADDED" ? added : type == "MODIFIED" ? modified : type == "DELETED" ? deleted : other);
}

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool wait_until(const std::function<bool()>& done, double seconds) {
  const double end = now_seconds() + seconds;
  while (!done()) {
    if (now_seconds() > end) return false;
    usleep(2000);
  }
  return true;
}

}  // namespace berth::bench
