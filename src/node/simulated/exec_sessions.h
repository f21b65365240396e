// exec, attach and port-forward of simulated containers, over WebSocket (v4 and v5.channel.k8s.io): a shell in memory answers (shell.h),
// and a port says over HTTP whose it is.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/event_loop.h"
#include "net/http.h"
#include "node/simulated/shell.h"

namespace berth::node::simulated {

struct ExecTarget {
  std::string pod, container, container_id;
  std::string log;  ///< What attach shows at first.
  std::string now;
};

/// Lives on the nodes' loop, on which `start` is called; what is under way goes on by itself until its client leaves.
class ExecSessions {
 public:
  explicit ExecSessions(EventLoop& loop) : loop_(loop) {}
  /// Answers a request of `action` (exec, attach, portForward). False: it asks for no WebSocket, or for none of those that are known;
  /// nothing was answered.
  bool start(std::string_view action, const ExecTarget& target, const net::HttpRequest& request, net::ResponseWriter& writer);

 private:
  struct World {
    std::mutex mutex;
    ShellWorld shell;
  };
  class Session;
  class Forward;
  std::shared_ptr<World> world_of(const ExecTarget& target);

  EventLoop& loop_;
  std::map<std::string, std::shared_ptr<World>> worlds_;  ///< By container id.
};

}  // namespace berth::node::simulated
