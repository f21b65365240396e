#include "client/client.h"

#include "base/json_scan.h"
#include "base/mutex.h"
#include "client/response.h"

namespace berth::client {
namespace {

using net::HttpRequest;
using net::HttpResponse;

constexpr int kMaxRetries = 10;  // client-go's rest.Request
constexpr int kMaxRetryAfterSeconds = 60;

std::string_view http_method(std::string_view verb) {
  if (verb == "create") return "POST";
  if (verb == "update") return "PUT";
  if (verb == "patch") return "PATCH";
  if (verb == "delete" || verb == "deletecollection") return "DELETE";
  return "GET";
}

HttpRequest make_request(const Call& call, const std::string& user_agent) {
  HttpRequest request;
  request.method = http_method(call.verb);
  request.path = resource_path(call.gvr, call.ns, call.name, call.subresource);
  request.query = call.query;
  request.headers.add("User-Agent", user_agent);
  request.headers.add("Accept", "application/json");
  if (!call.body.empty()) request.headers.add("Content-Type", call.content_type);
  request.body = call.body;
  return request;
}

/// The server asks to come again: 429, or 5xx with a time (client-go's rest.withRetry). A 429 without a time is an answer (a PDB's
/// refusal).
bool asks_for_retry(const HttpResponse& response) {
  return (response.status == 429 || response.status >= 500) && !response.headers.get("Retry-After").empty();
}

/// Who the object is, and its revision, without parsing the rest of it; null when the answer is no object.
json::Value read_identity(std::string_view body) {
  static constexpr std::array<std::string_view, 4> kNames = {"name", "namespace", "uid", "resourceVersion"};
  static const json::PathScanner scanner({"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"});
  std::array<std::string_view, kNames.size()> raw;
  if (!scanner.scan(body, raw)) return nullptr;
  json::Object metadata;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (raw[i].starts_with('"')) metadata.emplace(kNames[i], json::unquote(raw[i]));
  }
  return json::Object{{"metadata", std::move(metadata)}};
}

ApiResult<json::Value> read_response(const HttpResponse& response, Answer answer = Answer::kDocument) {
  if (response.status < 200 || response.status > 299) return std::unexpected(status_of(response));
  if (response.body.empty() || answer == Answer::kNone) return json::Value(nullptr);
  if (answer == Answer::kIdentity) {
    if (auto identity = read_identity(response.body); !identity.is_null()) return identity;
  }
  auto document = json::parse(response.body);
  if (!document) return std::unexpected(transport_error("the server's answer is not JSON: " + document.error().message));
  return std::move(*document);
}

ApiResult<ListPage> read_page(ApiResult<json::Value> result) {
  if (!result) return std::unexpected(std::move(result.error()));
  ListPage page;
  page.resource_version = json::get_string(*result, {"metadata", "resourceVersion"});
  page.continue_token = json::get_string(*result, {"metadata", "continue"});
  if (auto* items = json::find(*result, "items"); items != nullptr && items->is_array()) {
    auto& array = items->get_array();
    page.items.reserve(array.size());
    for (auto& item : array) page.items.push_back(std::move(item));
  }
  return page;
}

void append_query(std::string& query, std::string_view key, std::string_view value) {
  if (!query.empty()) query += '&';
  query.append(key).append("=").append(net::percent_encode(value));
}

Call list_call(const Gvr& gvr, const std::string& ns, const ListOptions& options) {
  Call call{.verb = "list", .gvr = gvr, .ns = ns};
  if (!options.label_selector.empty()) append_query(call.query, "labelSelector", options.label_selector);
  if (!options.field_selector.empty()) append_query(call.query, "fieldSelector", options.field_selector);
  if (!options.resource_version.empty()) append_query(call.query, "resourceVersion", options.resource_version);
  if (!options.continue_token.empty()) append_query(call.query, "continue", options.continue_token);
  if (options.limit > 0) append_query(call.query, "limit", std::to_string(options.limit));
  return call;
}

std::string delete_body(const DeleteOptions& options) {
  json::Object body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  switch (options.propagation) {
    case Propagation::kDefault:
      break;
    case Propagation::kBackground:
      body["propagationPolicy"] = "Background";
      break;
    case Propagation::kForeground:
      body["propagationPolicy"] = "Foreground";
      break;
    case Propagation::kOrphan:
      body["propagationPolicy"] = "Orphan";
      break;
  }
  json::Object preconditions;
  if (!options.precondition_uid.empty()) preconditions["uid"] = options.precondition_uid;
  if (!options.precondition_resource_version.empty()) preconditions["resourceVersion"] = options.precondition_resource_version;
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  if (options.dry_run) body["dryRun"] = json::Array{"All"};
  return body.size() == 2 ? std::string() : json::serialize(json::Value(std::move(body)));
}

std::string_view content_type_of(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return {};
}

/// One call with its repetitions, on its way.
struct Sending : std::enable_shared_from_this<Sending> {
  std::shared_ptr<Transport> transport;
  EventLoop* loop;
  std::string user_agent;
  Call call;
  Client::Done done;
  int retries = 0;

  void start() {
    transport->send(make_request(call, user_agent),
                    [self = shared_from_this()](HttpResponse response) { self->finish(std::move(response)); });
  }

  void finish(HttpResponse response) {
    if (loop == nullptr) return done(read_response(response, call.answer));
    if (call.comes_again && asks_for_retry(response) && retries < kMaxRetries) {
      ++retries;
      loop->schedule_after(std::chrono::seconds(std::max(1, retry_after_seconds(response.headers))),
                           [self = shared_from_this()] { self->start(); });
      return;
    }
    // Parsed here, on the transport's thread: the loop has the component's work to do.
    auto result = std::make_shared<ApiResult<json::Value>>(read_response(response, call.answer));
    loop->post([done = std::move(done), result] { done(std::move(*result)); });
  }
};

}  // namespace

int retry_after_seconds(const net::Headers& headers) {
  const auto text = headers.get("Retry-After");
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::clamp(seconds, 0, kMaxRetryAfterSeconds);
}

bool is_uncertain(const ApiStatus& status) {
  return status.code == 0 || status.code == 500 || status.code == 502 || status.code == 503 || status.code == 504;
}

ApiStatus transport_error(std::string message) {
  ApiStatus status;
  status.code = 0;
  status.reason = "TransportError";
  status.message = std::move(message);
  return status;
}

ApiStatus status_of(const net::HttpResponse& response) {
  if (response.status == 0) return transport_error(response.body);
  auto status = ApiStatus::from_json(response.status, response.body);
  if (status.retry_after_seconds == 0) status.retry_after_seconds = retry_after_seconds(response.headers);
  return status;
}

Client::Client(std::shared_ptr<Transport> transport, EventLoop* loop, std::string user_agent)
    : transport_(std::move(transport)), loop_(loop), user_agent_(std::move(user_agent)) {}

void Client::call(Call call, Done done) {
  auto attempt = std::make_shared<Sending>();
  attempt->transport = transport_;
  attempt->loop = loop_;
  attempt->user_agent = user_agent_;
  attempt->call = std::move(call);
  attempt->done = std::move(done);
  attempt->start();
}

void Client::get(const Gvr& gvr, const std::string& ns, const std::string& name, Done done) {
  call({.verb = "get", .gvr = gvr, .ns = ns, .name = name}, std::move(done));
}

void Client::create(const Gvr& gvr, const std::string& ns, const json::Value& body, Done done, Answer answer, bool comes_again) {
  call({.verb = "create", .gvr = gvr, .ns = ns, .body = json::serialize(body), .answer = answer, .comes_again = comes_again},
       std::move(done));
}

void Client::update(const Gvr& gvr, const std::string& ns, const std::string& name, const json::Value& body, Done done,
                    const std::string& subresource, Answer answer) {
  Call update{.verb = "update", .gvr = gvr, .ns = ns, .name = name, .subresource = subresource, .body = json::serialize(body)};
  update.answer = answer;
  call(std::move(update), std::move(done));
}

void Client::patch(const Gvr& gvr, const std::string& ns, const std::string& name, PatchType type, const json::Value& body, Done done,
                   const std::string& subresource, Answer answer) {
  Call patch{.verb = "patch", .gvr = gvr, .ns = ns, .name = name, .subresource = subresource, .body = json::serialize(body)};
  patch.content_type = content_type_of(type);
  patch.answer = answer;
  if (type == PatchType::kApply) {
    append_query(patch.query, "fieldManager", std::string_view(user_agent_).substr(0, user_agent_.find('/')));
    append_query(patch.query, "force", "true");
  }
  call(std::move(patch), std::move(done));
}

void Client::remove(const Gvr& gvr, const std::string& ns, const std::string& name, const DeleteOptions& options, Done done) {
  call({.verb = "delete", .gvr = gvr, .ns = ns, .name = name, .body = delete_body(options)}, std::move(done));
}

void Client::list(const Gvr& gvr, const std::string& ns, const ListOptions& options, std::function<void(ApiResult<ListPage>)> done) {
  call(list_call(gvr, ns, options), [done = std::move(done)](ApiResult<json::Value> result) { done(read_page(std::move(result))); });
}

struct PendingAnswer::State {
  Client& client;
  Call call;
  Mutex mutex;
  CondVar ready;
  std::optional<HttpResponse> response BERTH_GUARDED_BY(mutex);
  State(Client& c, Call what) : client(c), call(std::move(what)) {}
};

PendingAnswer::PendingAnswer(Client& client, Call call) : state_(std::make_shared<State>(client, std::move(call))) { send(); }
PendingAnswer::~PendingAnswer() = default;
PendingAnswer::PendingAnswer(PendingAnswer&&) noexcept = default;
PendingAnswer& PendingAnswer::operator=(PendingAnswer&&) noexcept = default;

void PendingAnswer::send() {
  Client& client = state_->client;
  client.transport()->send(make_request(state_->call, client.user_agent()), [state = state_](HttpResponse response) {
    MutexLock lock(state->mutex);
    state->response = std::move(response);
    state->ready.notify_one();
  });
}

HttpResponse PendingAnswer::wait() {
  for (int retries = 0;; ++retries) {
    HttpResponse response;
    {
      State& state = *state_;
      MutexLock lock(state.mutex);
      state.ready.wait(state.mutex, [&]() BERTH_REQUIRES(state.mutex) { return state.response.has_value(); });
      response = *std::exchange(state.response, std::nullopt);
    }
    if (!asks_for_retry(response) || retries == kMaxRetries) return response;
    // The caller asked to be blocked, and the server for a pause.
    std::this_thread::sleep_for(std::chrono::seconds(std::max(1, retry_after_seconds(response.headers))));
    send();
  }
}

net::HttpResponse send_and_wait(Client& client, const Call& call) { return PendingAnswer(client, call).wait(); }

ApiResult<json::Value> Client::call_and_wait(Call call) { return read_response(send_and_wait(*this, call), call.answer); }

ApiResult<json::Value> Client::get_and_wait(const Gvr& gvr, const std::string& ns, const std::string& name) {
  return call_and_wait({.verb = "get", .gvr = gvr, .ns = ns, .name = name});
}

ApiResult<json::Value> Client::create_and_wait(const Gvr& gvr, const std::string& ns, const json::Value& body) {
  return call_and_wait({.verb = "create", .gvr = gvr, .ns = ns, .body = json::serialize(body)});
}

ApiResult<ListPage> Client::list_and_wait(const Gvr& gvr, const std::string& ns, const ListOptions& options) {
  return read_page(call_and_wait(list_call(gvr, ns, options)));
}

std::string resource_path(const Gvr& gvr, std::string_view ns, std::string_view name, std::string_view subresource) {
  std::string out = gvr.group.empty() ? "/api/" + gvr.version : "/apis/" + gvr.group + "/" + gvr.version;
  if (!ns.empty()) out.append("/namespaces/").append(ns);
  out.append("/").append(gvr.resource);
  if (!name.empty()) out.append("/").append(name);
  if (!subresource.empty()) out.append("/").append(subresource);
  return out;
}

}  // namespace berth::client
