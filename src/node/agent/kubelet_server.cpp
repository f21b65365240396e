#include "node/agent/kubelet_server.h"

#include <filesystem>

#include "base/split.h"
#include "net/client.h"
#include "net/onward.h"
#include "net/reactor.h"
#include "net/splice.h"
#include "node/agent/container_logs.h"
#include "node/agent/log_streams.h"
#include "node/agent/node_metrics.h"
#include "node/agent/pod_worker.h"
#include "node/agent/system_logs.h"
#include "node/agent/task_group.h"
#include "node/request_path.h"

namespace berth::node::agent {
namespace {

constexpr Duration kFirstWords = std::chrono::seconds(1);  // So old a container must be before its log may be empty.

using Writer = std::shared_ptr<net::ResponseWriter>;
constexpr int kMaxTasks = 128;

void respond(net::ResponseWriter& writer, int status, std::string type, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", std::move(type));
  response.body = std::move(body);
  writer.respond(std::move(response));
}
void respond_text(net::ResponseWriter& writer, int status, std::string body) {
  respond(writer, status, "text/plain; charset=utf-8", std::move(body));
}

std::string quoted(const std::string& text) { return json::serialize(json::Value(text)); }

bool has_init(const PodSpec& spec) {
  return std::ranges::any_of(spec.containers, [](const ContainerSpec& container) {
    return container.role == ContainerRole::kInit || container.role == ContainerRole::kSidecar;
  });
}

/// The id that the runtime knows a container by; empty: it has none.
std::string runtime_id(const ContainerRecord& record) {
  const std::size_t scheme = record.container_id.find("://");
  return scheme == std::string::npos ? record.container_id : record.container_id.substr(scheme + 3);
}

/// The part of a path that tells requests apart in figures; those of strangers are one.
std::string counted_path(const std::string& path) {
  const std::vector<std::string> parts = split_path(path);
  if (parts.size() > 1 && parts[0] == "metrics")
    return "metrics/" + std::string(parts[1] == "resource" || parts[1] == "cadvisor" || parts[1] == "probes" ? parts[1] : "other");
  static constexpr std::string_view kKnown[] = {"containerLogs", "exec",        "attach", "portForward", "healthz", "logs",
                                                "pods",          "runningpods", "stats",  "metrics",     "configz", "checkpoint"};
  return parts.empty() || std::ranges::find(kKnown, parts[0]) == std::end(kKnown) ? "other" : parts[0];
}

/// Which ports a WebSocket session forwards; other protocols name them as they go.
std::expected<json::Array, std::string> forwarded_ports(const net::HttpRequest& request) {
  json::Array ports;
  if (!net::equal_ignoring_case(request.headers.get("Upgrade"), "websocket")) return ports;
  bool is_named = false;
  for (const auto& [key, value] : net::parse_query(request.query)) {
    if (key != "port") continue;
    is_named = true;
    if (value.empty()) return std::unexpected(R"(query parameter "port" cannot be empty)");
    for (const auto part : split(value, ',')) {
      const std::string one(part);
      std::uint16_t port = 0;
      const auto [stop, error] = std::from_chars(one.data(), one.data() + one.size(), port);
      if (error != std::errc() || stop != one.data() + one.size())
        return std::unexpected(fmt::format("unable to parse {} as a port: strconv.ParseUint: parsing {}: {}", quoted(value), quoted(one),
                                           error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax"));
      if (port < 1) return std::unexpected(fmt::format("port {} must be > 0", quoted(value)));
      ports.emplace_back(port);
    }
  }
  if (!is_named) return std::unexpected(R"(query parameter "port" is required)");
  return ports;
}

class HandlerImpl final : public KubeletHandler {
 public:
  explicit HandlerImpl(KubeletBackend backend) : backend_(std::move(backend)) {}
  ~HandlerImpl() override { finish(); }

  void finish() override {
    log_streams_.stop();
    tasks_.wait();
    if (reactor_) reactor_->stop();
  }

  void handle(net::HttpRequest request, Writer writer) override {
    if (backend_.counts) backend_.counts->asked(request.method, counted_path(request.path));
    // Judging a request may ask the API server, and answering one the runtime.
    auto shared = std::make_shared<net::HttpRequest>(std::move(request));
    const bool runs = tasks_.run_up_to(kMaxTasks, [this, shared, writer] {
      if (const auto refusal = backend_.refuse(*shared)) return respond_text(*writer, refusal->status, refusal->message);
      answer(*shared, writer);
    });
    if (!runs) respond_text(*writer, 429, "too many requests to this node are under way\n");
  }

 private:
  void answer(const net::HttpRequest& request, const Writer& writer) {
    const std::vector<std::string> path = split_path(request.path);
    const std::size_t parts = path.size();
    const std::string first = parts > 0 ? path[0] : "";
    if (first == "containerLogs" && parts == 4) return logs(path, request, writer);
    // exec and attach may name the pod's uid behind its name.
    if (first == "exec" && (parts == 4 || parts == 5)) return stream("RuntimeService/Exec", path, request, writer);
    if (first == "attach" && (parts == 4 || parts == 5)) return stream("RuntimeService/Attach", path, request, writer);
    if (first == "portForward" && (parts == 3 || parts == 4)) return stream("RuntimeService/PortForward", path, request, writer);
    if (first == "healthz" && (parts == 1 || (parts == 2 && (path[1] == "ping" || path[1] == "log" || path[1] == "syncloop"))))
      return respond_text(*writer, 200, "ok");
    if (first == "checkpoint" && parts == 4) return checkpoint(path, request, *writer);
    if (request.method != "GET") return respond_text(*writer, 405, "405: Method Not Allowed");
    if (first == "logs") return answer_system_log(backend_.system_logs, request.path, writer);
    if ((first == "pods" || first == "runningpods") && parts == 1)
      return respond(*writer, 200, "application/json", json::serialize(backend_.pods()));
    if (first == "stats" && parts == 2 && path[1] == "summary")
      return respond(*writer, 200, "application/json", json::serialize(backend_.summary()));
    if (first == "metrics" && parts <= 2)
      if (const auto* text = metrics_page(parts == 1 ? "" : path[1]))
        return respond(*writer, 200, "text/plain; version=0.0.4; charset=utf-8", (*text)());
    if (first == "configz" && parts == 1)
      return respond(*writer, 200, "application/json", json::serialize(json::Object{{"kubeletconfig", backend_.configuration()}}));
    respond_text(*writer, 404, "404 page not found\n");
  }

  [[nodiscard]] const std::function<std::string()>* metrics_page(const std::string& name) const {
    if (name.empty()) return &backend_.metrics;
    if (name == "resource") return &backend_.resource_metrics;
    if (name == "cadvisor") return &backend_.cadvisor_metrics;
    return name == "probes" ? &backend_.probe_metrics : nullptr;
  }

  /// A running container is written to a file, as far as the runtime can do that.
  void checkpoint(const std::vector<std::string>& path, const net::HttpRequest& request, net::ResponseWriter& writer) {
    if (request.method != "POST") return respond_text(writer, 405, "405: Method Not Allowed");
    const auto pod = backend_.find_pod(path[1], path[2]);
    if (!pod) return respond_text(writer, 404, "pod does not exist");
    const auto container = std::ranges::find(pod->spec.containers, path[3], &ContainerSpec::name);
    if (container == pod->spec.containers.end()) return respond_text(writer, 404, fmt::format("container {} does not exist", path[3]));
    std::int64_t timeout = 0;
    for (const auto& [key, value] : net::parse_query(request.query)) {
      if (key != "timeout") continue;
      const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), timeout);
      if (value.empty() || error != std::errc() || stop != value.data() + value.size())
        return respond_text(writer, 404, "cannot parse value of timeout parameter");
    }
    const auto index = static_cast<std::size_t>(container - pod->spec.containers.begin());
    const std::string failed = fmt::format("checkpointing of {}/{}/{} failed", path[1], path[2], path[3]);
    const std::string id = index < pod->state.containers.size() ? runtime_id(pod->state.containers[index]) : "";
    if (id.empty()) return respond_text(writer, 500, fmt::format("{} (container {} not found)", failed, path[3]));
    std::error_code error;
    std::filesystem::create_directories(backend_.checkpoints, error);
    std::filesystem::permissions(backend_.checkpoints, std::filesystem::perms::owner_all, error);
    const std::string file =
        fmt::format("{}/checkpoint-{}_{}-{}-{}.tar", backend_.checkpoints, path[2], path[1], path[3], format_rfc3339(SystemClock().now()));
    const int patience_ms = timeout > 0 ? static_cast<int>(std::min<std::int64_t>(timeout, 3600) * 1000) : 120'000;
    const auto done =
        backend_.runtime.call("RuntimeService/CheckpointContainer",
                              json::Object{{"container_id", id}, {"location", file}, {"timeout", std::to_string(timeout)}}, patience_ms);
    if (!done) return respond_text(writer, 500, fmt::format("{} ({})", failed, rpc_error(done.error())));
    respond(writer, 200, "application/json", json::serialize(json::Object{{"items", json::Array{json::Value(file)}}}));
  }

  void logs(const std::vector<std::string>& path, const net::HttpRequest& request, const Writer& writer) {
    LogOptions options;
    if (const auto wrong = read_log_options(request.query, SystemClock().now(), options))
      return wrong == LogQueryError::kUnreadable ? respond_text(*writer, 400, R"({"message": "Unable to decode query."})")
                                                 : respond_text(*writer, 422, R"({"message": "Invalid request."})");
    const auto pod = backend_.find_pod(path[1], path[2]);
    if (!pod) return respond_text(*writer, 404, fmt::format("pod \"{}\" does not exist", path[2]));
    const auto container = std::ranges::find(pod->spec.containers, path[3], &ContainerSpec::name);
    if (container == pod->spec.containers.end())
      return respond_text(*writer, 404, fmt::format("container \"{}\" not found in pod \"{}\"", path[3], path[2]));
    const auto index = static_cast<std::size_t>(container - pod->spec.containers.begin());
    if (index >= pod->state.containers.size())
      return respond_text(*writer, 400, fmt::format("container \"{}\" in pod \"{}\" is not available", path[3], path[2]));
    const ContainerRecord& record = pod->state.containers[index];
    int attempt = record.restart_count;
    const bool waiting_again = record.state.kind == ContainerState::Kind::kWaiting && record.last;
    if (options.previous) {
      if (!record.last || (attempt == 0 && !waiting_again))
        return respond_text(*writer, 400, fmt::format("previous terminated container \"{}\" in pod \"{}\" not found", path[3], path[2]));
      if (record.last->container_id.empty())
        return respond_text(*writer, 400, fmt::format("previous terminated container \"{}\" in pod \"{}\" not found", path[3], path[2]));
      if (!waiting_again) --attempt;
    } else if (record.state.kind == ContainerState::Kind::kWaiting && !record.last) {
      const std::string_view reason = record.state.reason;
      const std::string_view shown = reason == "ErrImagePull"       ? "image can't be pulled"
                                     : reason == "ImagePullBackOff" ? "trying and failing to pull image"
                                     : !reason.empty()              ? reason
                                     : has_init(pod->spec)          ? "PodInitializing"
                                                                    : "ContainerCreating";
      return respond_text(*writer, 400, fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}", path[3], path[2], shown));
    }
    const std::string file = fmt::format("{}/{}/{}.log", pod->log_directory, path[3], attempt);
    const int run = options.previous ? record.restart_count - 1 : attempt;
    auto patience = std::chrono::steady_clock::time_point{};
    if (record.state.kind == ContainerState::Kind::kRunning && !options.previous)
      patience =
          std::chrono::steady_clock::now() + std::min<Duration>(kFirstWords, record.state.started_at + kFirstWords - SystemClock().now());
    log_streams_.send(
        writer, file, options, [this, path, run] { return is_over(path, run); }, patience);
  }

  /// Whether this run of the container writes no more.
  bool is_over(const std::vector<std::string>& path, int run) const {
    const auto pod = backend_.find_pod(path[1], path[2]);
    if (!pod) return true;
    for (std::size_t i = 0; i < pod->spec.containers.size() && i < pod->state.containers.size(); ++i) {
      const ContainerRecord& record = pod->state.containers[i];
      if (pod->spec.containers[i].name == path[3])
        return record.state.kind != ContainerState::Kind::kRunning || record.restart_count != run;
    }
    return true;
  }

  /// exec, attach and port-forward: the runtime opens a streaming server and says where; the client's upgrade is passed on to it.
  void stream(const std::string& method, const std::vector<std::string>& path, const net::HttpRequest& request, const Writer& writer) {
    const auto pod = backend_.find_pod(path[1], path[2]);
    if (!pod) return respond_text(*writer, 404, fmt::format("pod \"{}\" not found on this node\n", path[2]));
    json::Object call;
    if (method != "RuntimeService/PortForward") {
      const auto container = std::ranges::find(pod->spec.containers, path.back(), &ContainerSpec::name);
      const auto index = static_cast<std::size_t>(container - pod->spec.containers.begin());
      if (container == pod->spec.containers.end() || index >= pod->state.containers.size() ||
          pod->state.containers[index].state.kind != ContainerState::Kind::kRunning)
        return respond_text(*writer, 404, fmt::format("container not found (\"{}\")", path.back()));
      call["container_id"] = runtime_id(pod->state.containers[index]);
      json::Array command;
      bool tty = false, in = false, out = false, err = false;
      for (const auto& [key, value] : net::parse_query(request.query)) {
        const bool yes = value == "1" || value == "true";
        if (key == "command")
          command.push_back(json::Value(value));
        else if (key == "tty")
          tty = yes;
        else if (key == "input" || key == "stdin")
          in = yes;
        else if (key == "output" || key == "stdout")
          out = yes;
        else if (key == "error" || key == "stderr")
          err = yes;
      }
      if (method == "RuntimeService/Exec") call["cmd"] = std::move(command);
      call["tty"] = tty;
      call["stdin"] = in;
      call["stdout"] = out;
      call["stderr"] = err && !tty;
    } else {
      auto ports = forwarded_ports(request);
      if (!ports) return respond_text(*writer, 400, ports.error() + "\n");
      call["pod_sandbox_id"] = pod->sandbox_id;
      if (!ports->empty()) call["port"] = std::move(*ports);
    }
    const auto answer = backend_.runtime.call(method, call);
    if (!answer) return respond_text(*writer, 500, answer.error().message + "\n");
    const std::string url(json::get_string(*answer, {"url"}));
    const std::size_t slash = url.find('/', url.find("://") + 3);
    net::ClientConfig config;
    config.url = url.substr(0, slash);
    config.reactor = reactor_;
    auto client = net::HttpClient::create(config);
    if (!client) return respond_text(*writer, 500, client.error().message + "\n");
    std::shared_ptr<net::HttpClient> shared = std::move(*client);
    auto onward = net::onward_request(request, net::Onward::kSession);
    onward.path = slash == std::string::npos ? "/" : url.substr(slash);
    auto call_off =
        shared->upgrade(std::move(onward), [writer, shared](std::unique_ptr<net::RawStream> runtime, net::HttpResponse response) {
          if (!runtime)
            return writer->respond(
                {response.status == 0 ? 502 : response.status, net::headers_back(response.headers), std::move(response.body)});
          auto caller = writer->upgrade(std::move(response.headers));
          if (!caller) return runtime->close();
          net::splice(std::move(caller), std::move(runtime));
        });
    writer->on_close(std::move(call_off));
  }

  KubeletBackend backend_;
  LogStreams log_streams_;
  std::shared_ptr<net::Reactor> reactor_ =
      net::Reactor::start("runtime-streams");  ///< Of all connections to the runtime's streaming server.
  TaskGroup tasks_;
};

}  // namespace

std::unique_ptr<KubeletHandler> make_kubelet_handler(KubeletBackend backend) { return std::make_unique<HandlerImpl>(std::move(backend)); }

}  // namespace berth::node::agent
