#include "node/agent/probes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "base/owned_fd.h"
#include "node/agent/http_probe.h"
#include "node/agent/object_data.h"
#include "node/agent/pod_worker.h"
#include "node/cri/grpc_health.h"

namespace berth::node::agent {
namespace {

constexpr std::size_t kMaxOutput = 10 * 1024;  // What an event shows of a command's words.

int port_of(const json::Value* value, const json::Value& container) {
  if (!value) return 0;
  if (value->is_int64()) return static_cast<int>(value->get_int64());
  if (!value->is_string()) return 0;
  for (const json::Value& port : json::get_array(container, {"ports"}))
    if (json::get_string(port, {"name"}) == json::as_view(*value)) return static_cast<int>(json::get_int(port, {"containerPort"}));
  return std::atoi(value->get_string().c_str());
}

std::string host_of(const json::Value& action, const ProbeTarget& target) {
  const std::string_view given = json::get_string(action, {"host"});
  return given.empty() ? target.pod_ip : std::string(given);
}

std::optional<std::string> probe_tcp(const std::string& host, int port, int timeout_ms) {
  const std::string where = host_and_port(host, port);
  sockaddr_storage address{};
  socklen_t length = 0;
  if (auto* v4 = reinterpret_cast<sockaddr_in*>(&address); inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET, v4->sin_port = htons(static_cast<std::uint16_t>(port)), length = sizeof *v4;
  } else if (auto* v6 = reinterpret_cast<sockaddr_in6*>(&address); inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6, v6->sin6_port = htons(static_cast<std::uint16_t>(port)), length = sizeof *v6;
  } else {
    return fmt::format("dial tcp: lookup {}: no such host", host);
  }
  const OwnedFd socket(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return std::nullopt;
  int error = errno;
  if (error == EINPROGRESS) {
    pollfd wait{socket.get(), POLLOUT, 0};
    if (::poll(&wait, 1, timeout_ms) <= 0) return fmt::format("dial tcp {}: i/o timeout", where);
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0) return std::nullopt;
  }
  const char* text = error == ECONNREFUSED ? "connection refused" : error == EHOSTUNREACH ? "no route to host" : std::strerror(error);
  return fmt::format("dial tcp {}: connect: {}", where, text);
}

/// What the action asks for of the pod.
HttpPlace place_of(const json::Value& get, const ProbeTarget& target) {
  std::string path(json::get_string(get, {"path"}, "/"));
  if (!path.starts_with('/')) path = "/" + path;
  return {json::get_string(get, {"scheme"}, "HTTP") == "HTTPS", host_of(get, target), port_of(json::find(get, "port"), target.container),
          std::move(path)};
}

net::Headers headers_of(const json::Value& get, std::string_view agent) {
  net::Headers headers;
  headers.add("User-Agent", std::string(agent));
  headers.add("Accept", "*/*");
  for (const json::Value& header : json::get_array(get, {"httpHeaders"}))
    headers.set(json::get_string(header, {"name"}), std::string(json::get_string(header, {"value"})));
  return headers;
}

/// GET by an action; a second look says of a pod that does not answer why, in the words of Go's dialler.
HttpAnswer http_get(const json::Value& get, const ProbeTarget& target, int timeout_ms, std::string_view agent) {
  const HttpPlace place = place_of(get, target);
  HttpAnswer answer = follow_http(place, headers_of(get, agent), timeout_ms);
  if (answer.status != 0) return answer;
  if (const auto unreachable = probe_tcp(place.host, place.port, std::min(timeout_ms, 1000))) answer.error = *unreachable;
  answer.error = fmt::format("Get \"{}\": {}", place.url(), answer.error);
  return answer;
}

std::string command_line(const json::Array& command) {
  std::vector<std::string> words;
  for (const json::Value& word : command)
    if (word.is_string()) words.emplace_back(json::as_view(word));
  return fmt::format("{}", fmt::join(words, " "));
}

struct ExecResult {
  std::int64_t exit_code = 0;
  std::string output, error_output;
  std::optional<std::string> error;  ///< It could not be run, or not in time.
  bool is_late = false;
};

ExecResult exec(const json::Value& action, const ProbeTarget& target, std::int64_t seconds, const std::atomic<bool>* cancel) {
  const json::Array& command = json::get_array(action, {"command"});
  const auto answer =
      target.runtime.call("RuntimeService/ExecSync",
                          json::Object{{"container_id", target.container_id}, {"cmd", command}, {"timeout", std::to_string(seconds)}},
                          static_cast<int>(seconds * 1000 + 2000), cancel);
  if (!answer)
    return {.exit_code = -1,
            .error = answer.error().is_late ? fmt::format("command timed out: \"{}\" timed out after {}s", command_line(command), seconds)
                                            : rpc_error(answer.error()),
            .is_late = answer.error().is_late};
  ExecResult result{json::get_int(*answer, {"exit_code"}), {}, decode_base64(json::get_string(*answer, {"stderr"})), {}};
  for (const std::string_view stream : {"stdout", "stderr"}) result.output += decode_base64(json::get_string(*answer, {stream}));
  if (result.output.size() > kMaxOutput) result.output.resize(kMaxOutput);
  return result;
}

}  // namespace

std::optional<ProbeFailure> run_probe(const json::Value& probe, const ProbeTarget& target) {
  const std::int64_t seconds = std::max<std::int64_t>(1, json::get_int(probe, {"timeoutSeconds"}, 1));
  const int timeout_ms = static_cast<int>(std::min<std::int64_t>(seconds, 3600) * 1000);
  if (const json::Value* action = json::find(probe, "exec")) {
    const ExecResult result = exec(*action, target, seconds, nullptr);
    if (result.error) return ProbeFailure{*result.error, !result.is_late};
    return result.exit_code == 0 ? std::nullopt : std::optional(ProbeFailure{result.output});
  }
  if (const json::Value* get = json::find(probe, "httpGet")) {
    const HttpAnswer answer = http_get(*get, target, timeout_ms, "kube-probe/1.36");
    if (answer.status == 0) return ProbeFailure{answer.error};
    if (answer.status >= 300 && answer.status < 400)
      return ProbeFailure{.text = "Probe terminated redirects, Response body: " + answer.body, .is_warning = true};
    if (answer.status >= 200 && answer.status < 300) return std::nullopt;
    return ProbeFailure{fmt::format("HTTP probe failed with statuscode: {}", answer.status)};
  }
  const auto failure = [](std::optional<std::string> wrong) {
    return wrong ? std::optional(ProbeFailure{std::move(*wrong)}) : std::nullopt;
  };
  if (const json::Value* tcp = json::find(probe, "tcpSocket"))
    return failure(probe_tcp(host_of(*tcp, target), port_of(json::find(*tcp, "port"), target.container), timeout_ms));
  if (const json::Value* action = json::find(probe, "grpc"))
    return failure(cri::check_grpc_health(host_and_port(target.pod_ip, static_cast<int>(json::get_int(*action, {"port"}))),
                                          std::string(json::get_string(*action, {"service"})), timeout_ms));
  return ProbeFailure{"missing probe handler", true};
}

std::optional<HookFailure> run_hook(const json::Value& handler, const ProbeTarget& target, std::int64_t seconds,
                                    const std::atomic<bool>* cancel) {
  if (const json::Value* action = json::find(handler, "exec")) {
    const ExecResult result = exec(*action, target, seconds, cancel);
    if (result.error) return HookFailure{*result.error, result.output};
    if (result.exit_code == 0) return std::nullopt;
    return HookFailure{fmt::format("command '{}' exited with {}: {}", command_line(json::get_array(*action, {"command"})), result.exit_code,
                                   result.error_output),
                       result.output};
  }
  if (const json::Value* get = json::find(handler, "httpGet")) {
    // Any answer will do, as in the kubelet.
    const HttpAnswer answer = http_get(*get, target, static_cast<int>(std::min<std::int64_t>(seconds, 3600) * 1000), "kube-lifecycle/1.36");
    return answer.status != 0 ? std::nullopt : std::optional(HookFailure{answer.error, {}});
  }
  if (const json::Value* sleep = json::find(handler, "sleep")) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(std::min(json::get_int(*sleep, {"seconds"}), seconds));
    while (std::chrono::steady_clock::now() < until && !(cancel && cancel->load()))
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return std::nullopt;
  }
  return HookFailure{"invalid handler: no action is set", {}};
}

std::string hook_message(const json::Value& handler, std::string_view container, std::string_view pod, const HookFailure& failure) {
  if (const json::Value* action = json::find(handler, "exec"))
    return fmt::format("Exec lifecycle hook ([{}]) for Container \"{}\" in Pod \"{}\" failed - error: {}, message: {}",
                       command_line(json::get_array(*action, {"command"})), container, pod, failure.error,
                       json::serialize(json::Value(failure.output)));
  if (json::find(handler, "httpGet"))
    return fmt::format("HTTP lifecycle hook ({}) for Container \"{}\" in Pod \"{}\" failed - error: {}",
                       json::get_string(handler, {"httpGet", "path"}), container, pod, failure.error);
  return fmt::format("Sleep lifecycle hook ({}) for Container \"{}\" in Pod \"{}\" failed - error: {}",
                     json::get_int(handler, {"sleep", "seconds"}), container, pod, failure.error);
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
