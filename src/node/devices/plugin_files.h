// The sockets of a directory that plugins and a node share.
#pragma once
#include <string>
#include <utility>

#include "base/error.h"

namespace berth::node::devices {

/// Whether somebody answers at a socket. Does not block longer than the kernel takes.
[[nodiscard]] bool is_served(const std::string& socket_path);

/// A folder whose kubelet.sock is this process's to serve. Owner: whoever serves there; another may when it is gone.
class SocketFolder {
 public:
  /// Makes the folder where it is not there, and takes away a socket that nobody answers at. kUnavailable: another node of the machine
  /// serves it, or it cannot be made.
  static Result<SocketFolder> take(const std::string& folder);
  ~SocketFolder();
  SocketFolder(SocketFolder&& other) noexcept : folder_(std::move(other.folder_)), lock_(std::exchange(other.lock_, -1)) {}
  SocketFolder& operator=(SocketFolder&&) = delete;
  [[nodiscard]] std::string socket() const { return folder_ + "/kubelet.sock"; }

 private:
  SocketFolder(std::string folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  std::string folder_;
  int lock_;
};

}  // namespace berth::node::devices
