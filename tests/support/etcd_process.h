// A real etcd of one member for a test: in a temporary directory, on free ports of the loopback, ended with the test. Debian's etcd-server.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace berth::testing_support {

inline std::string etcd_program() {
  for (const char* path : {"/usr/bin/etcd", "/usr/local/bin/etcd"})
    if (::access(path, X_OK) == 0) return path;
  return "";
}

inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

class EtcdProcess {
 public:
  explicit EtcdProcess(std::vector<std::string> more = {}) : more_(std::move(more)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-etcd-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    port_ = free_port();
    peer_port_ = free_port();
    start();
  }
  ~EtcdProcess() {
    stop();
    std::error_code none;
    std::filesystem::remove_all(directory_, none);
  }
  EtcdProcess(const EtcdProcess&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void pause() { ::kill(pid_, SIGSTOP); }
  void resume() { ::kill(pid_, SIGCONT); }
  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void start() {
    const std::string client = url(), peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    std::vector<std::string> words = {etcd_program(),
                                      "--data-dir",
                                      directory_ + "/data",
                                      "--listen-client-urls",
                                      client,
                                      "--advertise-client-urls",
                                      client,
                                      "--listen-peer-urls",
                                      peer,
                                      "--initial-advertise-peer-urls",
                                      peer,
                                      "--initial-cluster",
                                      "default=" + peer,
                                      "--unsafe-no-fsync",
                                      "--logger",
                                      "zap",
                                      "--log-outputs",
                                      directory_ + "/log"};
    words.insert(words.end(), more_.begin(), more_.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    ::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    for (int tries = 0; tries < 4000 && !answers(); ++tries) ::poll(nullptr, 0, 25);
  }

 private:
  /// Connections are accepted long before anybody is there to serve them.
  [[nodiscard]] bool answers() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    const timeval patience{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    constexpr std::string_view kQuestion = "GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n";
    char answer = 0;
    const bool is_there = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                          ::send(fd, kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) > 0 && ::recv(fd, &answer, 1, 0) == 1;
    ::close(fd);
    return is_there;
  }

  std::vector<std::string> more_;
  std::string directory_;
  int port_ = 0, peer_port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace berth::testing_support
