#include "node/simulated/pod_sessions.h"

#include <atomic>
#include <deque>

#include "base/json.h"
#include "base/lifeline.h"
#include "base/mutex.h"
#include "model/api_status.h"
#include "net/websocket.h"
#include "node/simulated/pod_shell.h"

namespace berth::node::simulated {
namespace {

// Channels of channel.k8s.io (client-go/tools/remotecommand).
enum Channel : char { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3 };
constexpr unsigned char kCloseChannel = 255;  // v5: the next byte is the channel that has ended.
constexpr std::size_t kMaxWorlds = 256, kMaxInput = 1 << 20;

/// A world and the lock of who works in it.
struct OwnedWorld {
  Mutex mutex;
  ShellWorld world;
};

std::shared_ptr<OwnedWorld> world_of(const ExecTarget& target) {
  static Mutex mutex;
  static std::map<std::string, std::shared_ptr<OwnedWorld>> worlds BERTH_GUARDED_BY(mutex);
  static std::deque<std::string> order BERTH_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  const std::string key = target.pod_uid + "/" + target.container;
  if (const auto found = worlds.find(key); found != worlds.end()) return found->second;
  auto made = std::make_shared<OwnedWorld>();
  made->world.hostname = target.pod;
  made->world.environment = {{"HOME", "/root"},
                             {"HOSTNAME", target.pod},
                             {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                             {"KUBERNETES_SERVICE_PORT", "443"}};
  made->world.files = {{"/etc/hostname", target.pod + "\n"}, {"/etc/hosts", "127.0.0.1\tlocalhost\n"}};
  worlds[key] = made;
  order.push_back(key);
  if (order.size() > kMaxWorlds) {
    worlds.erase(order.front());
    order.pop_front();
  }
  return made;
}

json::Object outcome_of(const ShellResult& result, const std::vector<std::string>& command) {
  if (result.not_found) {
    const std::string why = fmt::format(
        "error executing command in container: failed to exec in container: exec: \"{}\": executable file not found in $PATH (the pod is "
        "simulated: its "
        "shell knows a few programs alone)",
        command.empty() ? std::string() : command[0]);
    return {{"metadata", json::Object()},
            {"status", "Failure"},
            {"message", "Internal error occurred: " + why},
            {"reason", "InternalError"},
            {"code", 500}};
  }
  if (result.code == 0) return {{"metadata", json::Object()}, {"status", "Success"}};
  json::Object cause{{"reason", "ExitCode"}, {"message", std::to_string(result.code)}};
  return {{"metadata", json::Object()},
          {"status", "Failure"},
          {"message", fmt::format("command terminated with non-zero exit code: exit status {}", result.code)},
          {"reason", "NonZeroExitCode"},
          {"details", json::Object{{"causes", json::Array{std::move(cause)}}}}};
}

/// One exec. Owned by the list of sessions (keep) until its socket has closed and another session comes.
class ExecSession : public Guarded<ExecSession> {
 public:
  ExecSession(const ExecTarget& target, const net::HttpRequest& request, TimePoint now)
      : world_(world_of(target)), now_(format_rfc3339(now)) {
    for (const auto& [key, value] : net::parse_query(request.query)) {
      if (key == "command") command_.push_back(value);
      if (key == "input") has_input_ = value == "1" || value == "true";
      if (key == "tty") has_terminal_ = value == "1" || value == "true";
    }
  }

  void start(std::unique_ptr<net::RawStream> stream) {
    net::WebSocket::Callbacks callbacks;
    callbacks.on_message = guarded([](ExecSession& self, net::WebSocketMessage::Kind, const std::string& data) { self.hear(data); });
    callbacks.on_close = guarded([](ExecSession& self, std::uint16_t, const std::string&) { self.has_closed_ = true; });
    const MutexLock lock(mutex_);  // A message may come before there is a socket to answer by.
    shell_ = std::make_unique<PodShell>(world_->world, now_);
    socket_ = std::make_shared<net::WebSocket>(std::move(stream), net::WebSocketRole::kServer, std::move(callbacks));
    if (PodShell::is_interactive(command_)) {
      if (!has_input_) return end_session({});
      if (has_terminal_) say(kStdout, kPrompt);
    } else if (!has_input_ || !PodShell::wants_input(command_)) {
      run("");
    }
  }
  [[nodiscard]] bool has_closed() const { return has_closed_; }

 private:
  static constexpr std::string_view kPrompt = "/ # ";

  void say(Channel channel, std::string_view text) BERTH_REQUIRES(mutex_) {
    if (text.empty()) return;
    std::string frame(1, channel);
    for (const char c : text) {
      if (c == '\n' && has_terminal_) frame += '\r';
      frame += c;
    }
    socket_->send(net::WebSocketMessage::Kind::kBinary, frame);
  }

  void hear(const std::string& data) {
    const MutexLock lock(mutex_);
    if (is_over_ || data.empty()) return;
    if (static_cast<unsigned char>(data[0]) == kCloseChannel) {
      if (data.size() > 1 && data[1] == kStdin) finish_input();
      return;
    }
    if (data[0] != kStdin) return;  // Sizes of a terminal.
    for (const char c : std::string_view(data).substr(1)) {
      if (has_terminal_ && (c == '\4' || c == '\3')) return finish_input();
      input_ += has_terminal_ && c == '\r' ? '\n' : c;
    }
    if (has_terminal_) say(kStdout, std::string_view(data).substr(1) == "\r" ? "\n" : std::string_view(data).substr(1));
    if (input_.size() > kMaxInput) return finish_input();
    if (PodShell::is_interactive(command_)) take_lines();
  }

  void take_lines() BERTH_REQUIRES(mutex_) {
    for (std::size_t end = input_.find('\n'); end != std::string::npos && !is_over_; end = input_.find('\n')) {
      const std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      {
        const MutexLock lock(world_->mutex);
        last_ = shell_->line(line, "");
      }
      tell(last_);
      if (last_.ended) return end_session(last_);
      if (has_terminal_) say(kStdout, kPrompt);
    }
  }

  void finish_input() BERTH_REQUIRES(mutex_) {
    if (is_over_) return;
    if (!PodShell::is_interactive(command_)) return run(input_);
    if (!input_.empty()) input_ += '\n';
    take_lines();
    if (!is_over_) end_session(last_);
  }

  void run(const std::string& input) BERTH_REQUIRES(mutex_) {
    ShellResult result;
    {
      const MutexLock lock(world_->mutex);
      result = shell_->run(command_, input);
    }
    tell(result);
    end_session(result);
  }

  void tell(const ShellResult& result) BERTH_REQUIRES(mutex_) {
    say(kStdout, result.out);
    if (!result.not_found) say(has_terminal_ ? kStdout : kStderr, result.err);
  }
  void end_session(const ShellResult& result) BERTH_REQUIRES(mutex_) {
    is_over_ = true;
    std::string frame(1, kError);
    frame += json::serialize(json::Value(outcome_of(result, command_)));
    socket_->send(net::WebSocketMessage::Kind::kBinary, frame);
    socket_->close();
  }

  const std::shared_ptr<OwnedWorld> world_;
  const std::string now_;
  std::atomic<bool> has_closed_{false};
  Mutex mutex_;  ///< Of what follows.
  std::vector<std::string> command_ BERTH_GUARDED_BY(mutex_);
  bool has_input_ BERTH_GUARDED_BY(mutex_) = false,
                  has_terminal_ BERTH_GUARDED_BY(mutex_) = false, is_over_ BERTH_GUARDED_BY(mutex_) = false;
  std::string input_ BERTH_GUARDED_BY(mutex_);
  ShellResult last_ BERTH_GUARDED_BY(mutex_);
  std::unique_ptr<PodShell> shell_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<net::WebSocket> socket_ BERTH_GUARDED_BY(mutex_);
};

/// The sessions that run, so that somebody owns them; those that have closed go when the next one comes.
void keep(std::shared_ptr<ExecSession> session) {
  static Mutex mutex;
  static std::deque<std::shared_ptr<ExecSession>> sessions BERTH_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  std::erase_if(sessions, [](const auto& one) { return one->has_closed(); });
  sessions.push_back(std::move(session));
}

}  // namespace

void answer_exec(const ExecTarget& target, const net::HttpRequest& request, net::ResponseWriter& writer, TimePoint now) {
  const auto refuse = [&](std::string message) {
    const model::ApiStatus status = model::bad_request(std::move(message));
    net::HttpResponse response;
    response.status = status.code;
    response.headers.add("Content-Type", "application/json");
    response.body = json::serialize(status.to_json());
    writer.respond(std::move(response));
  };
  if (!net::is_websocket_request(request))
    return refuse(fmt::format("pod {} is simulated: its small shell is reached over WebSockets alone, as kubectl 1.30 and later ask first",
                              target.pod));
  const std::string protocol = net::choose_websocket_protocol(request, {"v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"});
  if (protocol.empty()) return refuse("unable to upgrade: a simulated pod speaks v5.channel.k8s.io, v4.channel.k8s.io and channel.k8s.io");
  auto answer = net::websocket_answer(request, protocol);
  if (!answer) return refuse("the WebSocket handshake is malformed");
  auto session = std::make_shared<ExecSession>(target, request, now);
  if (auto stream = writer.upgrade(std::move(*answer))) {
    keep(session);
    session->start(std::move(stream));
  }
}

}  // namespace berth::node::simulated
