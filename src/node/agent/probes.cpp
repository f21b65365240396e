#include "node/agent/probes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace berth::node::agent {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

int port_of(const json::Value& value, const json::Value& container) {
  if (value.is_int64()) return static_cast<int>(value.get_int64());
  if (!value.is_string()) return 0;
  for (const json::Value& port : json::get_array(container, {"ports"}))
    if (json::get_string(port, {"name"}) == json::as_view(value)) return static_cast<int>(json::get_int(port, {"containerPort"}));
  return std::atoi(value.get_string().c_str());
}

/// -1 ms left means the time is over.
int left_ms(std::chrono::steady_clock::time_point deadline) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count());
}

/// Nullopt: connected.
std::optional<std::string> connect_to(int fd, const std::string& host, int port, std::chrono::steady_clock::time_point deadline) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const std::string where = fmt::format("{}:{}", host, port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return fmt::format("dial tcp {}: not an IPv4 address", where);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINPROGRESS) return fmt::format("dial tcp {}: connect: {}", where, std::strerror(errno));
    pollfd wait{fd, POLLOUT, 0};
    if (::poll(&wait, 1, std::max(left_ms(deadline), 0)) <= 0) return fmt::format("dial tcp {}: i/o timeout", where);
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return fmt::format("dial tcp {}: connect: {}", where, error == ECONNREFUSED ? "connection refused" : std::strerror(error));
  }
  return std::nullopt;
}

std::optional<std::string> probe_http(const json::Value& get, const std::string& host, int port, std::chrono::steady_clock::time_point deadline) {
  if (json::get_string(get, {"scheme"}) == "HTTPS") return "HTTPS probes are not supported by this node";
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  std::string path(json::get_string(get, {"path"}, "/"));
  if (!path.starts_with('/')) path = "/" + path;
  const std::string url = fmt::format("Get \"http://{}:{}{}\"", host, port, path);
  if (const auto error = connect_to(socket.fd(), host, port, deadline)) return fmt::format("{}: {}", url, *error);
  std::string request = fmt::format("GET {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n", path, host, port);
  for (const json::Value& header : json::get_array(get, {"httpHeaders"}))
    request += fmt::format("{}: {}\r\n", json::get_string(header, {"name"}), json::get_string(header, {"value"}));
  request += "\r\n";
  if (::send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) return url + ": write failed";
  std::string answer;
  char buffer[1024];
  while (answer.find("\r\n") == std::string::npos && answer.size() < 4096) {
    pollfd wait{socket.fd(), POLLIN, 0};
    if (::poll(&wait, 1, std::max(left_ms(deadline), 0)) <= 0) return url + ": context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    const ssize_t n = ::recv(socket.fd(), buffer, sizeof buffer, 0);
    if (n <= 0) return url + ": EOF";
    answer.append(buffer, static_cast<std::size_t>(n));
  }
  const std::size_t space = answer.find(' ');
  const int status = space == std::string::npos ? 0 : std::atoi(answer.c_str() + space + 1);
  if (status >= 200 && status < 400) return std::nullopt;
  return fmt::format("HTTP probe failed with statuscode: {}", status);
}

}  // namespace

std::optional<std::string> run_probe(const json::Value& probe, const ProbeTarget& target) {
  const std::int64_t seconds = std::max<std::int64_t>(1, json::get_int(probe, {"timeoutSeconds"}, 1));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  if (const json::Value* exec = json::find(probe, "exec")) {
    const json::Value request = json::Object{{"container_id", target.container_id}, {"cmd", json::get_array(*exec, {"command"})}, {"timeout", std::to_string(seconds)}};
    const auto answer = target.runtime.call("RuntimeService/ExecSync", request, static_cast<int>(seconds * 1000 + 2000));
    if (!answer) return fmt::format("command timed out or could not run: {}", answer.error().message);
    if (json::get_int(*answer, {"exit_code"}) == 0) return std::nullopt;
    return fmt::format("command exited with code {}", json::get_int(*answer, {"exit_code"}));
  }
  if (const json::Value* get = json::find(probe, "httpGet")) {
    const json::Value* port = json::find(*get, "port");
    return probe_http(*get, std::string(json::get_string(*get, {"host"}, target.pod_ip)), port ? port_of(*port, target.container) : 0, deadline);
  }
  if (const json::Value* tcp = json::find(probe, "tcpSocket")) {
    const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const json::Value* port = json::find(*tcp, "port");
    return connect_to(socket.fd(), std::string(json::get_string(*tcp, {"host"}, target.pod_ip)), port ? port_of(*port, target.container) : 0, deadline);
  }
  return "this kind of probe is not supported by this node";
}

bool ProbeCounter::take(const json::Value& probe, bool success) {
  const std::int64_t needed = success ? json::get_int(probe, {"successThreshold"}, 1) : json::get_int(probe, {"failureThreshold"}, 3);
  int& count = success ? successes_ : failures_;
  (success ? failures_ : successes_) = 0;
  if (++count < needed || verdict_ == success) return false;
  verdict_ = success;
  return true;
}

}  // namespace berth::node::agent
