#include "apiserver/audit/log.h"

#include <future>

#include "base/log.h"
#include "base/mutex.h"
#include "model/protobuf/protobuf.h"

namespace berth::apiserver::audit {
namespace {

constexpr std::size_t kEventOverhead = 1024;

/// A body as a document; null when it has no such form.
json::Value document_of(std::string_view type, std::string_view body) {
  if (body.empty()) return {};
  if (type.starts_with("application/vnd.kubernetes.protobuf")) {
    auto decoded = model::decode_protobuf(body);
    return decoded ? std::move(*decoded) : json::Value();
  }
  if (type.find("yaml") != std::string_view::npos) {
    auto parsed = json::parse_yaml(body);
    return parsed ? std::move(*parsed) : json::Value();
  }
  auto parsed = json::parse(body);
  return parsed ? std::move(*parsed) : json::Value();
}

void drop_managed_fields(json::Value& document) {
  if (!document.is_object()) return;
  json::erase(document, {"metadata", "managedFields"});
  if (json::Value* items = json::find(document, "items"); items != nullptr && items->is_array())
    for (json::Value& item : items->get_array())
      if (item.is_object()) json::erase(item, {"metadata", "managedFields"});
}

}  // namespace

std::size_t Event::bytes() const {
  std::size_t out = kEventOverhead + request_body.size();
  for (const Bytes& part : response_body) out += part->size();
  return out;
}

json::Object finish_event(Event event) {
  std::string response;
  for (const Bytes& part : event.response_body) response += *part;
  json::Value answer = document_of(event.response_type, response);
  if (event.response_is_status && json::get_string(answer, {"kind"}) == "Status") {
    json::Object status{{"metadata", json::Object{}}};
    for (const char* field : {"status", "message", "reason", "details", "code"})
      if (const json::Value* value = json::find(answer, field)) status[field] = *value;
    event.fields["responseStatus"] = std::move(status);
  }
  if (event.level >= Level::kRequest) {
    json::Value asked = document_of(event.request_type, event.request_body);
    if (event.omit_managed_fields) drop_managed_fields(asked);
    if (!asked.is_null()) event.fields["requestObject"] = std::move(asked);
  }
  if (event.level >= Level::kRequestResponse && event.stage == Stage::kResponseComplete) {
    if (event.omit_managed_fields) drop_managed_fields(answer);
    if (!answer.is_null()) event.fields["responseObject"] = std::move(answer);
  }
  return std::move(event.fields);
}

/// Posts batches on its own thread: a slow service does not hold up the file.
class Log::Webhook {
 public:
  Webhook(WebhookOptions options, std::unique_ptr<net::HttpClient> client, metrics::Counter& dropped)
      : options_(std::move(options)), client_(std::move(client)), dropped_(dropped), thread_([this] { run(); }) {}
  ~Webhook() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  void add(const json::Object& event) {
    std::string text = json::serialize(json::Value(event));
    {
      const MutexLock lock(mutex_);
      if (waiting_.size() >= options_.buffer_events || waiting_bytes_ + text.size() > options_.buffer_bytes) return dropped_.add();
      waiting_bytes_ += text.size();
      waiting_.push_back(std::move(text));
      if (!has_batch()) return;
    }
    wake_.notify_all();
  }

 private:
  [[nodiscard]] bool has_batch() const BERTH_REQUIRES(mutex_) {
    return waiting_.size() >= options_.batch_events || waiting_bytes_ >= options_.batch_bytes;
  }

  void run() {
    MutexLock lock(mutex_);
    while (true) {
      wake_.wait_for(mutex_, options_.max_wait, [this]() BERTH_REQUIRES(mutex_) { return stopping_ || has_batch(); });
      std::string batch;
      std::size_t count = 0;
      while (!waiting_.empty() && count < options_.batch_events && batch.size() < options_.batch_bytes) {
        if (count++ > 0) batch += ',';
        batch += waiting_.front();
        waiting_bytes_ -= waiting_.front().size();
        waiting_.pop_front();
      }
      if (count > 0) {
        lock.unlock();
        const bool has_arrived = send(std::move(batch), count);
        lock.lock();
        // Who ends does not wait for a service that hangs once for each batch.
        if (!has_arrived && stopping_) {
          dropped_.add(static_cast<double>(waiting_.size()));
          return;
        }
      }
      if (stopping_ && waiting_.empty()) return;
    }
  }
  /// Tried four times with growing pauses, as Kubernetes; once when everything ends.
  bool send(std::string items, std::size_t count) {
    const std::string body =
        fmt::format(R"({{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{{}},"items":[{}]}})", std::exchange(items, {}));
    Duration pause = options_.first_pause;
    for (int attempt = 0; attempt < 4; ++attempt, pause = pause * 3 / 2) {
      if (attempt > 0) {
        MutexLock lock(mutex_);
        if (wake_.wait_for(mutex_, pause, [this]() BERTH_REQUIRES(mutex_) { return stopping_; })) break;
      }
      net::HttpRequest request;
      request.method = "POST";
      request.headers.set("Content-Type", "application/json");
      if (!options_.bearer_token.empty()) request.headers.set("Authorization", "Bearer " + options_.bearer_token);
      request.body = body;
      auto done = std::make_shared<std::promise<net::HttpResponse>>();
      auto answer = done->get_future();
      client_->send(std::move(request), [done](net::HttpResponse response) { done->set_value(std::move(response)); });
      const auto response = answer.get();
      if (response.status >= 200 && response.status < 300) return true;
      const bool may_pass = response.status == 0 || response.status == 429 || response.status >= 500;
      log::warning("audit", "the audit webhook answers {}", response.status == 0 ? response.body : fmt::format("HTTP {}", response.status));
      if (!may_pass) break;
    }
    dropped_.add(static_cast<double>(count));
    log::error("audit", "{} audit events did not reach the webhook and are lost to it", count);
    return false;
  }

  WebhookOptions options_;
  std::unique_ptr<net::HttpClient> client_;
  metrics::Counter& dropped_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::string> waiting_ BERTH_GUARDED_BY(mutex_);  ///< In JSON.
  std::size_t waiting_bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  bool stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

Log::Log(LogOptions options, metrics::Registry& metrics)
    : options_(std::move(options)),
      written_(&metrics.counter("apiserver_audit_event_total", "Counter of audit events generated and sent to the audit backend.")),
      dropped_(&metrics.counter("apiserver_audit_error_total",
                                "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the "
                                "error.",
                                {{"plugin", "buffered"}})),
      failed_(&metrics.counter("apiserver_audit_error_total",
                               "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the "
                               "error.",
                               {{"plugin", "log"}})) {}

Result<std::unique_ptr<Log>> Log::start(LogOptions options, metrics::Registry& metrics) {
  std::unique_ptr<Log> out(new Log(std::move(options), metrics));
  if (!out->options_.file.path.empty()) {
    auto file = RotatedFile::open(out->options_.file);
    if (!file) return std::unexpected(file.error());
    out->file_ = std::move(*file);
  }
  if (!out->options_.webhook.http.url.empty()) {
    auto client = net::HttpClient::create(out->options_.webhook.http);
    if (!client) return invalid("the audit webhook: " + client.error().message);
    auto& lost = metrics.counter("apiserver_audit_error_total",
                                 "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the "
                                 "error.",
                                 {{"plugin", "webhook"}});
    out->webhook_ = std::make_unique<Webhook>(out->options_.webhook, std::move(*client), lost);
  }
  out->thread_ = std::thread([log = out.get()] { log->run(); });
  return out;
}

Log::~Log() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Log::submit(Event event) {
  const std::size_t bytes = event.bytes();
  {
    const MutexLock lock(mutex_);
    if (queue_.size() >= options_.queue_events || queued_bytes_ + bytes > options_.queue_bytes) return dropped_->add();
    queued_bytes_ += bytes;
    queue_.push_back(std::move(event));
    if (queue_.size() > 1) return;  // It is awake, or about to be.
  }
  wake_.notify_one();
}

void Log::flush() {
  MutexLock lock(mutex_);
  idle_.wait(mutex_, [this]() BERTH_REQUIRES(mutex_) { return queue_.empty() && !busy_; });
}

void Log::run() {
  constexpr std::size_t kAtOnce = 256;
  MutexLock lock(mutex_);
  while (true) {
    wake_.wait(mutex_, [this]() BERTH_REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::vector<Event> batch;
    while (!queue_.empty() && batch.size() < kAtOnce) {
      queued_bytes_ -= queue_.front().bytes();
      batch.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    busy_ = true;
    lock.unlock();
    write(std::move(batch));
    lock.lock();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

void Log::write(std::vector<Event> events) {
  std::string lines;
  const TimePoint now = events.back().at;
  const auto count = static_cast<double>(events.size());
  for (Event& event : events) {
    json::Object finished = finish_event(std::move(event));
    if (file_ != nullptr) {
      json::serialize_to(lines, json::Value(finished));
      lines += '\n';
    }
    if (webhook_ != nullptr) webhook_->add(finished);
  }
  written_->add(count);
  if (file_ == nullptr) return;
  if (const auto done = file_->append(lines, now); !done) {
    failed_->add(count);
    log::error("audit", "{}; {} audit events are lost", done.error().message, events.size());
  }
}

}  // namespace berth::apiserver::audit
