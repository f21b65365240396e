#include "dashboard/dashboard.h"

#include <fstream>
#include <sstream>

#include "base/event_loop.h"
#include "dashboard/feed.h"
#include "dashboard/page.h"
#include "dashboard/recording.h"
#include "dashboard/relay.h"
#include "dashboard/sessions.h"
#include "net/server.h"

namespace berth::dashboard {

const char* const kNoPage =
    "this berth was built without the dashboard's page, for npm was not there; install Node.js with npm and build it again";

Failure::Failure(const Error& error)
    : status(error.code == ErrorCode::kNotFound  ? 404
             : error.code == ErrorCode::kInvalid ? 422
                                                 : 502),
      message(error.message) {}

Failure::Failure(const model::ApiStatus& refusal)
    : status(refusal.code >= 400 && refusal.code < 500 ? refusal.code : 502), message(refusal.message) {}

bool has_page() { return !page_files().empty(); }

namespace {

using Writer = std::shared_ptr<net::ResponseWriter>;

constexpr std::size_t kMostBody = 3 * 1024 * 1024, kMostRecording = 1024 * 1024 * 1024;
constexpr int kMostQuestions = 8;  ///< Waiting at once.

void respond_json(net::ResponseWriter& writer, int status, const json::Value& document) {
  net::HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.headers.add("Cache-Control", "no-store");
  add_security_headers(response.headers);
  response.body = json::serialize(document);
  writer.respond(std::move(response));
}

class DashboardImpl final : public Dashboard, private net::Handler {
 public:
  explicit DashboardImpl(Options options)
      : options_(std::move(options)), loop_("dashboard"), worker_("dashboard-answers"), sessions_([this] {
          Sessions::Options out;
          out.clock = &clock_;
          out.secret = random_secret;
          // Cookies do not know ports: two dashboards of one machine keep theirs apart by name.
          out.cookie = "berth-dashboard-" + random_secret().substr(0, 8);
          out.on_new_token = [this](std::string token) {
            if (options_.on_new_url) options_.on_new_url(url_with(token));
          };
          return out;
        }()) {
    if (options_.transport) {
      relay_.emplace(options_.transport, loop_, options_.allows_changes);
      feed_.emplace(options_.transport, loop_, FeedOptions{.ns = options_.ns, .own_ns = options_.own_ns});
    }
  }

  ~DashboardImpl() override {
    // Nobody asks any more, then nothing answers any more, then the threads that it was done on.
    listener_.reset();
    worker_.stop();
    feed_.reset();
    relay_.reset();
    options_.transport.reset();
    loop_.stop();
  }

  Result<void> listen() {
    net::ServerConfig config;
    config.address = "127.0.0.1";
    config.port = options_.port;
    config.io_threads = 1;
    config.max_connections = 500;
    config.max_body_bytes = kMostRecording;
    config.may_send_body = [this](const net::HttpRequest& head) {
      return is_loopback_host(head.headers.get("Host")) && sessions_.has_session(head);
    };
    auto listener = net::Server::start(std::move(config), *this);
    if (!listener) return std::unexpected(listener.error());
    listener_ = std::move(*listener);
    port_ = listener_->port();
    return {};
  }

  [[nodiscard]] std::string url() const override { return url_with(sessions_.token()); }

 private:
  [[nodiscard]] std::string url_with(const std::string& token) const {
    return fmt::format("http://127.0.0.1:{}/?token={}", port_.load(), token);
  }

  void handle(net::HttpRequest request, Writer writer) override {
    if (auto refused = sessions_.judge(request)) return writer->respond(std::move(*refused));
    const bool reads = request.method == "GET" || request.method == "HEAD";
    for (const PageFile& file : page_files())
      if (file.path == request.path || (request.path == "/" && file.path == "/index.html"))
        return reads ? serve(file, request, *writer) : writer->respond(refusal(request, 405, "the page is only read"));
    if (request.path.starts_with("/berth/")) return local(std::move(request), std::move(writer));
    if (!relay_) return writer->respond(refusal(request, 404, "there is no such page, and no cluster"));
    relay_->handle(request, std::move(writer));
  }

  static void serve(const PageFile& file, const net::HttpRequest& request, net::ResponseWriter& writer) {
    net::HttpResponse response;
    add_security_headers(response.headers);
    response.headers.add("ETag", std::string(file.etag));
    response.headers.add("Cache-Control", "no-cache");
    if (request.headers.get("If-None-Match") == file.etag) {
      response.status = 304;
      return writer.respond(std::move(response));
    }
    response.headers.add("Content-Type", std::string(file.content_type));
    response.headers.add("Content-Encoding", "gzip");
    response.body = file.gzip;
    writer.respond(std::move(response));
  }

  // --- what is answered here ---

  void local(net::HttpRequest request, Writer writer) {
    const std::string_view what = std::string_view(request.path).substr(7);
    const bool is_get = request.method == "GET";
    if (is_get && what == "about") return respond_json(*writer, 200, about());
    if (is_get && what == "live" && feed_) return feed_->subscribe(std::move(writer));
    if (is_get && what == "metrics" && options_.answers.metrics) return metrics(std::move(writer));
    if (is_get && what == "explain" && options_.answers.explain) return explain(request, std::move(writer));
    if (is_get && what == "node" && options_.answers.node) return node(request, std::move(writer));
    if (is_get && what == "recording" && !options_.recording_file.empty()) return recording_of_file(std::move(writer));
    if (request.method == "POST" && what == "recording") return send_recording(std::move(request.body), worker_, std::move(writer));
    if (request.method == "POST" && what == "what-if" && options_.answers.what_if) return what_if(request, std::move(writer));
    writer->respond(refusal(request, 404, fmt::format("{} {} is not served here", request.method, request.path)));
  }

  static std::string parameter(const net::HttpRequest& request, std::string_view name) {
    for (const auto& [key, value] : net::parse_query(request.query))
      if (key == name) return value;
    return {};
  }

  [[nodiscard]] json::Value about() const {
    json::Object out = options_.about;
    out["version"] = "0.1.0";
    out["live"] = feed_.has_value();
    out["recording"] = !options_.recording_file.empty();
    out["allowsChanges"] = options_.allows_changes;
    out["namespace"] = options_.ns;
    out["explain"] = static_cast<bool>(options_.answers.explain);
    out["whatIf"] = static_cast<bool>(options_.answers.what_if);
    out["metrics"] = static_cast<bool>(options_.answers.metrics);
    return out;
  }

  /// Runs the question on the worker.
  void ask(Writer writer, std::function<Answer()> question) {
    if (waiting_.fetch_add(1) >= kMostQuestions) {
      waiting_.fetch_sub(1);
      return writer->respond(refusal(net::HttpRequest(), 503, "too many questions at once; ask again when the others are answered"));
    }
    worker_.post([this, writer = std::move(writer), question = std::move(question)] {
      const auto answer = question();
      waiting_.fetch_sub(1);
      if (answer)
        respond_json(*writer, 200, *answer);
      else
        writer->respond(refusal(net::HttpRequest(), answer.error().status, answer.error().message));
    });
  }

  void explain(const net::HttpRequest& request, Writer writer) {
    const std::string ns = parameter(request, "namespace"), pod = parameter(request, "pod");
    if (ns.empty() || pod.empty()) return writer->respond(refusal(request, 400, "explain wants ?namespace=…&pod=…"));
    ask(std::move(writer), [this, ns, pod] { return options_.answers.explain(ns, pod); });
  }

  void node(const net::HttpRequest& request, Writer writer) {
    std::string name = parameter(request, "name");
    if (name.empty()) return writer->respond(refusal(request, 400, "node wants ?name=…"));
    ask(std::move(writer), [this, name = std::move(name)] { return options_.answers.node(name); });
  }

  void what_if(const net::HttpRequest& request, Writer writer) {
    if (request.body.size() > kMostBody) return writer->respond(refusal(request, 413, "the question is larger than 3 MiB"));
    auto question = json::parse(request.body);
    if (!question) return writer->respond(refusal(request, 400, "the question is no JSON: " + question.error().message));
    ask(std::move(writer), [this, question = std::move(*question)] { return options_.answers.what_if(question); });
  }

  void metrics(Writer writer) {
    net::HttpResponse response;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    response.headers.add("Cache-Control", "no-store");
    add_security_headers(response.headers);
    response.body = options_.answers.metrics();
    writer->respond(std::move(response));
  }

  void recording_of_file(Writer writer) {
    worker_.post([this, writer = std::move(writer)] {
      std::ifstream in(options_.recording_file, std::ios::binary);
      if (!in)
        return writer->respond(
            refusal(net::HttpRequest(), 404, fmt::format("{} cannot be read: {}", options_.recording_file, std::strerror(errno))));
      std::ostringstream text;
      text << in.rdbuf();
      send_recording(std::move(text).str(), worker_, writer);
    });
  }

  Options options_;
  SystemClock clock_;
  ThreadLoop loop_, worker_;
  Sessions sessions_;
  std::atomic<std::uint16_t> port_{0};
  std::atomic<int> waiting_{0};
  std::optional<Relay> relay_;
  std::optional<Feed> feed_;
  std::unique_ptr<net::Server> listener_;
};

}  // namespace

Result<std::unique_ptr<Dashboard>> Dashboard::start(Options options) {
  if (!has_page()) return fail(ErrorCode::kUnavailable, kNoPage);
  auto dashboard = std::make_unique<DashboardImpl>(std::move(options));
  if (auto listening = dashboard->listen(); !listening) return std::unexpected(listening.error());
  return dashboard;
}

}  // namespace berth::dashboard
