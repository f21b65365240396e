#include "apiserver/audit/trail.h"

#include "base/mutex.h"
#include "base/split.h"
#include "security/uuid.h"

namespace berth::apiserver::audit {
namespace {

json::Object user_object(const UserInfo& user) {
  json::Object out;
  if (!user.name.empty()) out["username"] = user.name;
  if (!user.uid.empty()) out["uid"] = user.uid;
  if (!user.groups.empty()) out["groups"] = json::Array(user.groups.begin(), user.groups.end());
  if (user.extra.empty()) return out;
  json::Object extra;
  for (const auto& [key, values] : user.extra) extra[key] = json::Array(values.begin(), values.end());
  out["extra"] = std::move(extra);
  return out;
}

std::string without_port(std::string_view address) {
  if (address.starts_with('[')) return std::string(address.substr(1, address.find(']') - 1));
  const auto colon = address.rfind(':');
  return std::string(colon == std::string_view::npos || address.find(':') != colon ? address : address.substr(0, colon));
}

/// Who sent it, the farthest first: proxies say from whom they had it.
json::Array source_addresses(const net::HttpRequest& http) {
  json::Array out;
  const std::string_view forwarded = http.headers.get("X-Forwarded-For");
  for (std::string_view one : words(forwarded, ',')) {
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (!one.empty() && out.size() < 16) out.emplace_back(one);
  }
  if (const std::string own = without_port(http.remote_address); !own.empty()) out.emplace_back(own);
  return out;
}

json::Object object_reference(const Attributes& asked) {
  json::Object out;
  for (const auto& [key, value] :
       {std::pair("resource", &asked.resource), std::pair("namespace", &asked.ns), std::pair("name", &asked.name),
        std::pair("apiGroup", &asked.group), std::pair("apiVersion", &asked.version), std::pair("subresource", &asked.subresource)})
    if (!value->empty()) out[key] = *value;
  return out;
}

/// The client's own id of its request, where it is plain.
std::string audit_id(const net::HttpRequest& http) {
  const std::string_view given = http.headers.get("Audit-ID");
  constexpr std::size_t kLongest = 64;
  const bool is_plain = !given.empty() && given.size() <= kLongest && std::ranges::all_of(given, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  return is_plain ? std::string(given) : security::random_uuid();
}

std::string attempted(const net::HttpRequest& http) {
  std::string methods = http.peer ? "x509" : "";
  const std::string_view scheme = http.headers.get("Authorization");
  if (net::equal_ignoring_case(scheme.substr(0, 7), "bearer ")) methods += methods.empty() ? "bearer" : ", bearer";
  return methods.empty() ? "Authentication failed, no credentials provided" : "Authentication failed, attempted: " + methods;
}

}  // namespace

/// Between the server and the connection.
class AnswerWatcher final : public net::ResponseWriter {
 public:
  AnswerWatcher(std::shared_ptr<Trail> trail, std::shared_ptr<net::ResponseWriter> inner)
      : trail_(std::move(trail)), inner_(std::move(inner)) {}
  ~AnswerWatcher() override {
    // A stream whose reader went, or an answer that never came.
    if (!done_) trail_->answered(code_ == 0 ? 500 : code_, {}, {});
  }
  void respond(net::HttpResponse response) override {
    done_ = true;
    response.headers.set("Audit-Id", trail_->id());
    const bool keeps = trail_->decision_.level == Level::kRequestResponse || response.status >= 400;
    std::vector<Bytes> body;
    if (keeps) body.push_back(std::make_shared<const std::string>(response.body));
    trail_->answered(response.status, std::string(response.headers.get("Content-Type")), std::move(body));
    inner_->respond(std::move(response));
  }
  void respond_shared(int status, net::Headers headers, std::vector<Bytes> parts) override {
    done_ = true;
    headers.set("Audit-Id", trail_->id());
    const bool keeps = trail_->decision_.level == Level::kRequestResponse || status >= 400;
    trail_->answered(status, std::string(headers.get("Content-Type")), keeps ? parts : std::vector<Bytes>());
    inner_->respond_shared(status, std::move(headers), std::move(parts));
  }
  void start_stream(int status, net::Headers headers) override {
    code_ = status;
    headers.set("Audit-Id", trail_->id());
    type_ = headers.get("Content-Type");
    trail_->started(status);
    inner_->start_stream(status, std::move(headers));
  }
  bool write(Bytes chunk) override {
    // Long lists come in pieces; of a watch the events are not what was answered.
    if (trail_->decision_.level == Level::kRequestResponse && !trail_->is_long_running_ && kept_bytes_ < kMostKept) {
      kept_bytes_ += chunk->size();
      kept_.push_back(chunk);
    }
    return inner_->write(std::move(chunk));
  }
  [[nodiscard]] bool takes_events() const override { return inner_->takes_events(); }
  bool write_event(std::string_view type, const KeptTextRef& object) override { return inner_->write_event(type, object); }
  [[nodiscard]] std::size_t queued_bytes() const override { return inner_->queued_bytes(); }
  void on_drain(std::function<void()> more) override { inner_->on_drain(std::move(more)); }
  void finish() override {
    done_ = true;
    // Cut off it would be no document.
    if (kept_bytes_ >= kMostKept) kept_.clear();
    trail_->answered(code_, type_, std::move(kept_));
    inner_->finish();
  }
  void on_close(std::function<void()> closed) override { inner_->on_close(std::move(closed)); }
  std::unique_ptr<net::RawStream> upgrade(net::Headers headers) override {
    headers.set("Audit-Id", trail_->id());
    auto stream = inner_->upgrade(std::move(headers));
    code_ = stream == nullptr ? 500 : 101;
    if (stream != nullptr) trail_->started(code_);
    return stream;
  }

 private:
  static constexpr std::size_t kMostKept = 4U << 20;
  std::shared_ptr<Trail> trail_;
  std::shared_ptr<net::ResponseWriter> inner_;
  std::string type_;
  std::vector<Bytes> kept_;
  std::size_t kept_bytes_ = 0;
  int code_ = 0;
  bool done_ = false;
};

std::shared_ptr<Trail> Trail::begin(Log& log, const Clock& clock, const TrailStart& start) {
  static const UserInfo kNobody;
  auto decision = log.policy().decide(start.user != nullptr ? *start.user : kNobody, start.attributes);
  if (decision.level == Level::kNone) return nullptr;
  std::shared_ptr<Trail> trail(new Trail(log, clock, std::move(decision)));
  trail->id_ = audit_id(start.http);
  trail->is_long_running_ = start.is_long_running;
  trail->is_anonymous_failure_ = start.user == nullptr;
  auto& fields = trail->fields_;
  fields = {{"kind", "Event"},
            {"apiVersion", "audit.k8s.io/v1"},
            {"level", to_string(trail->decision_.level)},
            {"auditID", trail->id_},
            {"stage", ""},
            {"requestURI", start.http.query.empty() ? start.http.path : start.http.path + "?" + start.http.query},
            {"verb", start.attributes.verb},
            {"user", start.user == nullptr ? json::Object() : user_object(*start.user)},
            {"sourceIPs", source_addresses(start.http)}};
  if (const auto agent = start.http.headers.get("User-Agent"); !agent.empty()) fields["userAgent"] = agent;
  if (start.attributes.is_resource) fields["objectRef"] = object_reference(start.attributes);
  fields["requestReceivedTimestamp"] = format_rfc3339_micro(start.received);
  if (trail->decision_.level >= Level::kRequest && start.attributes.is_resource) {
    trail->request_type_ = start.http.headers.get("Content-Type");
    trail->request_body_ = start.http.body;
  }
  if (start.user == nullptr)
    fields["responseStatus"] = json::Object{{"metadata", json::Object{}}, {"status", "Failure"}, {"message", attempted(start.http)}};
  else
    trail->emit(Stage::kRequestReceived, 0);
  return trail;
}

std::shared_ptr<net::ResponseWriter> Trail::watch_answer(const std::shared_ptr<Trail>& trail, std::shared_ptr<net::ResponseWriter> writer) {
  if (trail == nullptr) return writer;
  return std::make_shared<AnswerWatcher>(trail, std::move(writer));
}

void Trail::set_impersonated(const UserInfo& user) {
  const MutexLock lock(mutex_);
  fields_["impersonatedUser"] = user_object(user);
}

void Trail::set_name(std::string_view name) {
  const MutexLock lock(mutex_);
  if (json::Value* reference = fields_.if_contains("objectRef"); reference != nullptr && !name.empty())
    reference->get_object()["name"] = name;
}

void Trail::annotate(std::string key, std::string value) {
  const MutexLock lock(mutex_);
  annotations_.emplace(std::move(key), std::move(value));
}

void Trail::started(int code) {
  if (is_long_running_) emit(Stage::kResponseStarted, code);
}

void Trail::answered(int code, std::string content_type, std::vector<Bytes> body) {
  emit(is_anonymous_failure_ ? Stage::kResponseStarted : Stage::kResponseComplete, code, std::move(content_type), std::move(body));
}

void Trail::emit(Stage stage, int code, std::string content_type, std::vector<Bytes> body) {
  if (decision_.omits(stage)) return;
  Event event;
  event.level = decision_.level;
  event.stage = stage;
  event.omit_managed_fields = decision_.omit_managed_fields;
  event.at = clock_.now();
  const MutexLock lock(mutex_);
  event.fields = fields_;
  event.fields["stage"] = to_string(stage);
  event.fields["stageTimestamp"] = format_rfc3339_micro(event.at);
  if (!annotations_.empty()) {
    json::Object annotations;
    for (const auto& [key, value] : annotations_) annotations[key] = value;
    event.fields["annotations"] = std::move(annotations);
  }
  if (code != 0) {
    json::Value& status = event.fields["responseStatus"];
    if (!status.is_object()) status = json::Object{{"metadata", json::Object{}}};
    status.get_object()["code"] = code;
  }
  if (stage != Stage::kRequestReceived) {
    event.request_type = request_type_;
    event.request_body = request_body_;
    event.response_is_status = code >= 400 && !is_anonymous_failure_;
    event.response_type = std::move(content_type);
    event.response_body = std::move(body);
  }
  log_.submit(std::move(event));
}

}  // namespace berth::apiserver::audit
