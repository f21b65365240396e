#include "node/devices/plugin_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

namespace berth::node::devices {

bool is_served(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) return false;
  socket_path.copy(address.sun_path, socket_path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool answers = socket >= 0 && (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
                                       errno == EAGAIN);  // Its queue is full: somebody is there, and busy.
  if (socket >= 0) ::close(socket);
  return answers;
}

Result<SocketFolder> SocketFolder::take(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string name = folder + "/berth.lock";
  const int lock = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", name, std::generic_category().message(errno)));
  SocketFolder out(folder, lock);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0 || is_served(out.socket()))
    return fail(ErrorCode::kUnavailable, fmt::format("{} is served by another node of this machine", folder));
  std::filesystem::remove(out.socket(), error);
  return out;
}

SocketFolder::~SocketFolder() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace berth::node::devices
