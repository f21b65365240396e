#include "node/agent/kubelet_server.h"

#include <thread>

#include "net/client.h"
#include "node/agent/cgroups.h"

namespace berth::node::agent {
namespace {

using Writer = std::shared_ptr<net::ResponseWriter>;

void respond(net::ResponseWriter& writer, int status, std::string type, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", std::move(type));
  response.body = std::move(body);
  writer.respond(std::move(response));
}
void respond_text(net::ResponseWriter& writer, int status, std::string body) { respond(writer, status, "text/plain; charset=utf-8", std::move(body)); }

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : path + "/") {
    if (c != '/') part += c;
    else if (!part.empty()) parts.push_back(std::move(part)), part.clear();
  }
  return parts;
}

LogOptions read_log_options(const std::string& query) {
  LogOptions options;
  const auto number = [](const std::string& text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  for (const auto& [key, value] : net::parse_query(query)) {
    const bool yes = value == "true" || value == "1";
    if (key == "timestamps") options.timestamps = yes;
    else if (key == "previous") options.previous = yes;
    else if (key == "follow") options.follow = yes;
    else if (key == "tailLines") options.tail_lines = number(value);
    else if (key == "limitBytes") options.limit_bytes = number(value);
    else if (key == "sinceTime") options.since = parse_rfc3339(value);
    else if (key == "sinceSeconds") options.since = TimePoint(std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch())) - std::chrono::seconds(number(value));
  }
  return options;
}

/// Two upgraded connections, each one's bytes written to the other until either ends.
class Splice : public std::enable_shared_from_this<Splice> {
 public:
  Splice(std::unique_ptr<net::RawStream> a, std::unique_ptr<net::RawStream> b, std::shared_ptr<net::HttpClient> owner) : a_(std::move(a)), b_(std::move(b)), owner_(std::move(owner)) {}
  void start() {
    pump(*a_, *b_);
    pump(*b_, *a_);
  }

 private:
  void pump(net::RawStream& from, net::RawStream& to) {
    from.async_read([self = shared_from_this(), &from, &to](std::string data, bool eof) {
      if (!data.empty()) to.write(std::move(data));
      if (!eof) return self->pump(from, to);
      to.close();
      from.close();
    });
  }
  std::unique_ptr<net::RawStream> a_, b_;
  std::shared_ptr<net::HttpClient> owner_;
};

class KubeletHandler final : public net::Handler {
 public:
  explicit KubeletHandler(KubeletBackend backend) : backend_(std::move(backend)) {}
  ~KubeletHandler() override {
    stopping_ = true;
    for (auto& follower : followers_) follower.join();
  }

  void handle(net::HttpRequest request, Writer writer) override {
    const std::vector<std::string> path = split_path(request.path);
    if (path.size() == 1 && path[0] == "healthz") return respond_text(*writer, 200, "ok");
    if (!request.peer) return respond_text(*writer, 401, "Unauthorized\n");
    if (path.size() == 4 && path[0] == "containerLogs") return logs(path, request, writer);
    if (path.size() == 4 && path[0] == "exec") return stream("RuntimeService/Exec", path, request, writer);
    if (path.size() == 4 && path[0] == "attach") return stream("RuntimeService/Attach", path, request, writer);
    if (path.size() == 3 && path[0] == "portForward") return stream("RuntimeService/PortForward", path, request, writer);
    if (path.size() == 1 && path[0] == "pods") return respond(*writer, 200, "application/json", json::serialize(backend_.pods()));
    if (path.size() == 2 && path[0] == "stats" && path[1] == "summary") return respond(*writer, 200, "application/json", json::serialize(backend_.summary()));
    if (path.size() >= 1 && path[0] == "metrics") return respond(*writer, 200, "text/plain; version=0.0.4", backend_.metrics());
    respond_text(*writer, 404, "404 page not found\n");
  }

 private:
  void logs(const std::vector<std::string>& path, const net::HttpRequest& request, const Writer& writer) {
    const auto pod = backend_.find_pod(path[1], path[2]);
    if (!pod) return respond_text(*writer, 404, fmt::format("pod \"{}\" not found on this node\n", path[2]));
    const auto container = std::ranges::find(pod->spec.containers, path[3], &ContainerSpec::name);
    if (container == pod->spec.containers.end()) return respond_text(*writer, 404, fmt::format("container {} is not valid for pod {}\n", path[3], path[2]));
    const ContainerRecord& record = pod->state.containers[static_cast<std::size_t>(container - pod->spec.containers.begin())];
    const LogOptions options = read_log_options(request.query);
    int attempt = record.restart_count;
    const bool waiting_again = record.state.kind == ContainerState::Kind::kWaiting && record.last;
    if (options.previous) {
      if (!record.last || (attempt == 0 && !waiting_again)) return respond_text(*writer, 400, fmt::format("previous terminated container \"{}\" in pod \"{}\" not found\n", path[3], path[2]));
      if (!waiting_again) --attempt;
    } else if (record.state.kind == ContainerState::Kind::kWaiting && !record.last) {
      return respond_text(*writer, 400, fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}\n", path[3], path[2], record.state.reason));
    }
    const std::string file = fmt::format("{}/{}/{}.log", pod->log_directory, path[3], attempt);
    if (!options.follow) return respond_text(*writer, 200, render_log(read_small_file(file).value_or(""), options));
    follow(file, options, path, writer);
  }

  /// Sends what the file has, then what is added, until the container is over or the reader gone.
  void follow(const std::string& file, LogOptions options, const std::vector<std::string>& path, const Writer& writer) {
    net::Headers headers;
    headers.add("Content-Type", "text/plain; charset=utf-8");
    writer->start_stream(200, std::move(headers));
    auto closed = std::make_shared<std::atomic<bool>>(false);
    writer->on_close([closed] { *closed = true; });
    std::lock_guard lock(mutex_);
    followers_.emplace_back([this, file, options, path, writer, closed]() mutable {
      std::size_t sent = 0;
      while (!*closed && !stopping_) {
        const auto pod = backend_.find_pod(path[1], path[2]);
        bool running = false;
        if (pod)
          for (std::size_t i = 0; i < pod->spec.containers.size(); ++i)
            running = running || (pod->spec.containers[i].name == path[3] && pod->state.containers[i].state.kind == ContainerState::Kind::kRunning);
        const std::string raw = read_small_file(file).value_or("");
        const std::size_t end = raw.rfind('\n') == std::string::npos ? 0 : raw.rfind('\n') + 1;
        if (end < sent) sent = 0;  // Rotated.
        if (end > sent) {
          std::string text = render_log(std::string_view(raw).substr(sent, end - sent), options);
          sent = end;
          options.tail_lines.reset();
          if (!text.empty() && !writer->write(make_bytes(std::move(text)))) break;
        } else if (!running) {
          break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      writer->finish();
    });
  }

  /// exec, attach and port-forward: the runtime opens a streaming server and says where; the client's upgrade is passed on to it.
  void stream(const std::string& method, const std::vector<std::string>& path, const net::HttpRequest& request, const Writer& writer) {
    const auto pod = backend_.find_pod(path[1], path[2]);
    if (!pod) return respond_text(*writer, 404, fmt::format("pod \"{}\" not found on this node\n", path[2]));
    json::Object call;
    if (path.size() == 4) {
      const auto container = std::ranges::find(pod->spec.containers, path[3], &ContainerSpec::name);
      if (container == pod->spec.containers.end()) return respond_text(*writer, 404, fmt::format("container {} is not valid for pod {}\n", path[3], path[2]));
      std::string id = pod->state.containers[static_cast<std::size_t>(container - pod->spec.containers.begin())].container_id;
      id.erase(0, id.find("://") == std::string::npos ? 0 : id.find("://") + 3);
      call["container_id"] = id;
      json::Array command;
      bool tty = false, in = false, out = false, err = false;
      for (const auto& [key, value] : net::parse_query(request.query)) {
        const bool yes = value == "1" || value == "true";
        if (key == "command") command.push_back(json::Value(value));
        else if (key == "tty") tty = yes;
        else if (key == "input" || key == "stdin") in = yes;
        else if (key == "output" || key == "stdout") out = yes;
        else if (key == "error" || key == "stderr") err = yes;
      }
      if (method == "RuntimeService/Exec") call["cmd"] = std::move(command);
      call["tty"] = tty;
      call["stdin"] = in;
      call["stdout"] = out;
      call["stderr"] = err && !tty;
    } else {
      call["pod_sandbox_id"] = pod->sandbox_id;
    }
    const auto answer = backend_.runtime.call(method, call);
    if (!answer) return respond_text(*writer, 500, answer.error().message + "\n");
    const std::string url(json::get_string(*answer, {"url"}));
    const std::size_t slash = url.find('/', url.find("://") + 3);
    net::ClientConfig config;
    config.url = url.substr(0, slash);
    auto client = net::HttpClient::create(config);
    if (!client) return respond_text(*writer, 500, client.error().message + "\n");
    std::shared_ptr<net::HttpClient> shared = std::move(*client);
    net::HttpRequest onward;
    onward.method = request.method;
    onward.path = slash == std::string::npos ? "/" : url.substr(slash);
    for (const auto& [name, value] : request.headers.fields()) {
      std::string lower(name);
      std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (lower != "host" && lower != "authorization" && lower != "content-length") onward.headers.add(name, value);
    }
    shared->upgrade(std::move(onward), [writer, shared](std::unique_ptr<net::RawStream> runtime, net::HttpResponse response) {
      if (!runtime) return writer->respond(response.status == 0 ? net::HttpResponse{502, {}, response.body} : std::move(response));
      auto caller = writer->upgrade(std::move(response.headers));
      if (!caller) return runtime->close();
      std::make_shared<Splice>(std::move(caller), std::move(runtime), shared)->start();
    });
  }

  KubeletBackend backend_;
  std::mutex mutex_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> followers_;
};

}  // namespace

std::string render_log(std::string_view raw, const LogOptions& options) {
  std::vector<std::string> lines;
  bool open = false;
  while (!raw.empty()) {
    const std::size_t end = raw.find('\n');
    std::string_view line = raw.substr(0, end);
    raw.remove_prefix(end == std::string_view::npos ? raw.size() : end + 1);
    // TIME STREAM TAG TEXT
    const std::size_t stream = line.find(' ');
    const std::size_t tag = stream == std::string_view::npos ? stream : line.find(' ', stream + 1);
    const std::size_t text = tag == std::string_view::npos ? tag : line.find(' ', tag + 1);
    if (text == std::string_view::npos) continue;
    const std::string_view time = line.substr(0, stream);
    const bool is_partial = line.substr(tag + 1, text - tag - 1).starts_with('P');
    if (options.since) {
      const auto at = parse_rfc3339(time);
      if (at && *at < *options.since) continue;
    }
    if (open) lines.back() += line.substr(text + 1);
    else lines.push_back((options.timestamps ? std::string(time) + " " : std::string()) + std::string(line.substr(text + 1)));
    open = is_partial;
    if (!is_partial) lines.back() += '\n';
  }
  std::size_t first = 0;
  if (options.tail_lines && *options.tail_lines >= 0 && static_cast<std::size_t>(*options.tail_lines) < lines.size()) first = lines.size() - static_cast<std::size_t>(*options.tail_lines);
  std::string out;
  for (std::size_t i = first; i < lines.size(); ++i) out += lines[i];
  if (options.limit_bytes && *options.limit_bytes >= 0 && out.size() > static_cast<std::size_t>(*options.limit_bytes)) out.resize(static_cast<std::size_t>(*options.limit_bytes));
  return out;
}

std::unique_ptr<net::Handler> make_kubelet_handler(KubeletBackend backend) { return std::make_unique<KubeletHandler>(std::move(backend)); }

}  // namespace berth::node::agent
