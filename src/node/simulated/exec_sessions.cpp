#include "node/simulated/exec_sessions.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"
#include "net/websocket.h"

namespace berth::node::simulated {
namespace {

constexpr std::size_t kMaxWorlds = 2000, kMaxInput = 4 << 20;
enum Channel : char { kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4 };
constexpr char kCloseChannel = '\xff';  // Of v5: the byte behind it says which channel has ended.

std::string status_of(int exit_code) {
  if (exit_code == 0) return R"({"metadata":{},"status":"Success"})";
  const json::Object details{{"causes", json::Array{json::Object{{"reason", "ExitCode"}, {"message", std::to_string(exit_code)}}}}};
  return json::serialize(json::Object{{"metadata", json::Object{}},
                                      {"status", "Failure"},
                                      {"message", fmt::format("command terminated with non-zero exit code: exit status {}", exit_code)},
                                      {"reason", "NonZeroExitCode"},
                                      {"details", details}});
}

/// Whether a command does nothing before its input has ended.
bool waits_for_input(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = command[0].substr(command[0].rfind('/') + 1);
  if (name == "cat" || name == "wc") return command.size() == 1 || (command.size() == 2 && command[1].starts_with('-'));
  if (name == "grep") return command.size() == 2;
  return command.size() == 3 && command[1] == "-c" &&
         (command[2].find("cat") != std::string::npos || command[2].find("wc") != std::string::npos);
}

std::string for_terminal(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\r\n" : std::string(1, c);
  return out;
}

}  // namespace

/// One exec or attach. Holds itself until its connection is over: the callbacks of its WebSocket do, and go with it on the loop.
class ExecSessions::Session : public std::enable_shared_from_this<Session> {
 public:
  struct Options {
    std::vector<std::string> command;
    bool has_input = false, is_terminal = false, is_attached = false, tells_end_of_input = false;
    std::string greeting, now;
  };
  Session(EventLoop& loop, std::shared_ptr<World> world, Options options)
      : loop_(loop), world_(std::move(world)), options_(std::move(options)) {}

  void open(std::unique_ptr<net::RawStream> stream) {
    const std::lock_guard lock(mutex_);
    net::WebSocket::Callbacks callbacks;
    callbacks.on_message = [self = shared_from_this()](net::WebSocketMessage::Kind, std::string data) { self->take(data); };
    callbacks.on_close = [self = shared_from_this()](std::uint16_t, const std::string&) {
      self->loop_.post([self] {
        std::unique_ptr<net::WebSocket> gone;
        const std::lock_guard held(self->mutex_);
        gone = std::move(self->socket_);
      });
    };
    socket_ = std::make_unique<net::WebSocket>(std::move(stream), net::WebSocketRole::kServer, std::move(callbacks));
    if (options_.is_attached) return send(kStdout, options_.greeting);
    if (is_shell() && options_.has_input) return prompt();
    if (!options_.has_input || !options_.tells_end_of_input || !waits_for_input(options_.command)) run_command();
  }

 private:
  [[nodiscard]] bool is_shell() const { return reads_commands(options_.command); }

  void send(Channel channel, const std::string& text) {
    if (text.empty() || !socket_) return;
    socket_->send(net::WebSocketMessage::Kind::kBinary, std::string(1, channel) + (options_.is_terminal ? for_terminal(text) : text));
  }
  void prompt() {
    if (options_.is_terminal) send(kStdout, world_->shell.directory + " # ");
  }

  void take(const std::string& data) {
    const std::lock_guard lock(mutex_);
    if (data.empty() || !socket_ || is_done_) return;
    if (data[0] == kCloseChannel) return data.size() > 1 && data[1] == kStdin ? end_of_input() : void();
    if (data[0] != kStdin || options_.is_attached || input_.size() + data.size() > kMaxInput) return;
    if (!is_shell()) return void(input_ += data.substr(1));
    for (const char c : data.substr(1))
      if (options_.is_terminal ? take_key(c) : take_byte(c)) return;
  }

  /// True: the shell is over.
  bool take_byte(char c) {
    if (c != '\n') return input_ += c, false;
    return run_line(std::exchange(input_, {}));
  }

  bool take_key(char c) {
    if (c == '\r' || c == '\n') {
      send(kStdout, "\n");
      return run_line(std::exchange(input_, {}));
    }
    if (c == '\x04' && input_.empty()) return finish(last_), true;
    if (c == '\x03') {
      input_.clear();
      send(kStdout, "^C\n");
      prompt();
    } else if (c == '\x7f' || c == '\b') {
      if (!input_.empty()) input_.pop_back(), send(kStdout, "\b \b");
    } else {
      input_ += c;
      send(kStdout, std::string(1, c));
    }
    return false;
  }

  bool run_line(const std::string& line) {
    const ShellResult result = [&] {
      const std::lock_guard lock(world_->mutex);
      return run_script(world_->shell, line, {}, options_.now);
    }();
    tell(result);
    if (result.is_over) return finish(result.exit_code), true;
    prompt();
    return false;
  }

  void end_of_input() {
    if (options_.is_attached) return;
    if (!is_shell()) return run_command();
    if (!input_.empty() && run_line(std::exchange(input_, {}))) return;
    finish(last_);
  }

  void run_command() {
    const ShellResult result = [&] {
      const std::lock_guard lock(world_->mutex);
      return run_words(world_->shell, options_.command, input_, options_.now);
    }();
    tell(result);
    finish(result.exit_code);
  }

  void tell(const ShellResult& result) {
    send(kStdout, result.output);
    send(options_.is_terminal ? kStdout : kStderr, result.errors);
    last_ = result.exit_code;
  }

  void finish(int exit_code) {
    if (is_done_ || !socket_) return;
    is_done_ = true;
    options_.is_terminal = false;
    send(kError, status_of(exit_code));
    socket_->close();
  }

  EventLoop& loop_;
  const std::shared_ptr<World> world_;
  Options options_;
  std::mutex mutex_;
  std::unique_ptr<net::WebSocket> socket_;  ///< Null once the connection is over.
  std::string input_;
  int last_ = 0;
  bool is_done_ = false;
};

/// One port-forward: two channels a port, data and errors; each begins with the port's number.
class ExecSessions::Forward : public std::enable_shared_from_this<Forward> {
 public:
  Forward(EventLoop& loop, std::string pod, std::vector<std::uint16_t> ports)
      : loop_(loop), pod_(std::move(pod)), ports_(std::move(ports)) {}

  void open(std::unique_ptr<net::RawStream> stream) {
    const std::lock_guard lock(mutex_);
    net::WebSocket::Callbacks callbacks;
    callbacks.on_message = [self = shared_from_this()](net::WebSocketMessage::Kind, std::string data) { self->take(data); };
    callbacks.on_close = [self = shared_from_this()](std::uint16_t, const std::string&) {
      self->loop_.post([self] {
        std::unique_ptr<net::WebSocket> gone;
        const std::lock_guard held(self->mutex_);
        gone = std::move(self->socket_);
      });
    };
    socket_ = std::make_unique<net::WebSocket>(std::move(stream), net::WebSocketRole::kServer, std::move(callbacks));
    for (std::size_t i = 0; i < ports_.size(); ++i)
      for (const std::size_t channel : {2 * i, 2 * i + 1})
        send(channel, {static_cast<char>(ports_[i] & 0xff), static_cast<char>(ports_[i] >> 8)});
  }

 private:
  void send(std::size_t channel, const std::string& data) {
    if (socket_) socket_->send(net::WebSocketMessage::Kind::kBinary, std::string(1, static_cast<char>(channel)) + data);
  }

  /// Whatever is asked in HTTP is answered with the pod's name and port.
  void take(const std::string& data) {
    const std::lock_guard lock(mutex_);
    if (data.size() < 2) return;
    const auto channel = static_cast<unsigned char>(data[0]);
    std::string& asked = asked_[channel];
    if (channel % 2 != 0 || channel / 2 >= ports_.size() || asked.size() > kMaxInput) return;
    asked += data.substr(1);
    if (asked.find("\r\n\r\n") == std::string::npos) return;
    asked.clear();
    const std::string body = fmt::format("pod {} is simulated; its port {} answers this to all\n", pod_, ports_[channel / 2]);
    send(channel, fmt::format("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                              body.size(), body));
  }

  EventLoop& loop_;
  const std::string pod_;
  const std::vector<std::uint16_t> ports_;
  std::mutex mutex_;
  std::unique_ptr<net::WebSocket> socket_;
  std::map<unsigned char, std::string> asked_;
};

std::shared_ptr<ExecSessions::World> ExecSessions::world_of(const ExecTarget& target) {
  auto& world = worlds_[target.container_id];
  if (!world) {
    world = std::make_shared<World>();
    world->shell.hostname = target.pod;
    world->shell.environment = {{"HOME", "/root"}, {"HOSTNAME", target.pod}, {"PATH", "/bin"}};
    world->shell.files = {{"/etc/hostname", target.pod + "\n"}};
  }
  auto out = world;
  if (worlds_.size() > kMaxWorlds) std::erase_if(worlds_, [&](const auto& one) { return one.second.use_count() == 1; });
  return out;
}

bool ExecSessions::start(std::string_view action, const ExecTarget& target, const net::HttpRequest& request, net::ResponseWriter& writer) {
  if (!net::is_websocket_request(request)) return false;
  const bool forwards = action == "portForward";
  const std::string protocol =
      net::choose_websocket_protocol(request, forwards ? std::vector<std::string>{"v4.channel.k8s.io"}
                                                       : std::vector<std::string>{"v5.channel.k8s.io", "v4.channel.k8s.io"});
  auto headers = protocol.empty() ? std::nullopt : net::websocket_answer(request, protocol);
  if (!headers) return false;
  Session::Options options{.is_attached = action == "attach", .tells_end_of_input = protocol.starts_with("v5")};
  std::vector<std::uint16_t> ports;
  for (const auto& [key, value] : net::parse_query(request.query)) {
    const bool yes = value == "1" || value == "true";
    if (key == "command") options.command.push_back(value);
    if (key == "input" || key == "stdin") options.has_input = yes;
    if (key == "tty") options.is_terminal = yes;
    std::uint16_t port = 0;
    if ((key == "ports" || key == "port") && std::from_chars(value.data(), value.data() + value.size(), port).ec == std::errc())
      ports.push_back(port);
  }
  options.greeting = target.log;
  options.now = target.now;
  auto stream = writer.upgrade(std::move(*headers));
  if (!stream) return true;
  if (forwards)
    std::make_shared<Forward>(loop_, target.pod, std::move(ports))->open(std::move(stream));
  else
    std::make_shared<Session>(loop_, world_of(target), std::move(options))->open(std::move(stream));
  return true;
}

}  // namespace berth::node::simulated
