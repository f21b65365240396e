#include "apiserver/admission/webhook_client.h"

#include "apiserver/auth/reviews.h"
#include "apiserver/cache/object_codec.h"
#include "base/base64.h"
#include "model/schema.h"
#include "net/reactor.h"

namespace berth::apiserver {
namespace {

/// A patch of a whole object in base64, with room for what is around it.
constexpr std::size_t kMaxAnswerBytes = 6 * 1024 * 1024;
/// More endpoints than that, and those that nobody is asking lose their connections.
constexpr std::size_t kMaxClients = 256;

json::Object gvk(std::string_view group, std::string_view version, std::string_view kind) {
  return json::Object{{"group", group}, {"version", version}, {"kind", kind}};
}
json::Object gvr(const model::KindInfo& kind) {
  return json::Object{{"group", kind.group}, {"version", kind.version}, {"resource", kind.plural}};
}

/// Why no connection came about, as Go's dialer says it: "dial tcp HOST:PORT: connect: connection refused".
std::string dial_words(const std::string& failure) {
  constexpr std::string_view kBegin = "cannot connect to ";
  for (const std::string_view errno_text : {"Connection refused", "No route to host", "Network is unreachable", "Host is down"}) {
    if (!failure.starts_with(kBegin) || !failure.ends_with(errno_text)) continue;
    std::string words = fmt::format("dial tcp {}", failure.substr(kBegin.size()));
    const std::size_t reason = words.size() - errno_text.size();
    words[reason] = static_cast<char>(words[reason] - 'A' + 'a');
    return words.insert(reason, "connect: ");
  }
  return failure;
}

}  // namespace

json::Value in_form(const AdmissionRequest& request, const model::KindInfo& form, const json::Value& document) {
  if (const auto made = request.forms.find(&form); made != request.forms.end())
    return &document == &request.old_object ? made->second.old_object : made->second.object;
  auto out = document;
  if (&form != request.kind && out.is_object() && request.object_kind.empty()) model::convert(*request.kind, form, out);
  return out;
}

json::Object admission_request_fields(const AdmissionRequest& request, const model::KindInfo& form) {
  json::Object kind = gvk(form.group, form.version, form.kind);
  json::Object request_kind = gvk(request.kind->group, request.kind->version, request.kind->kind);
  if (!request.object_kind.empty()) {
    const auto slash = request.object_api_version.find('/');
    const auto group = slash == std::string::npos ? std::string() : request.object_api_version.substr(0, slash);
    kind = request_kind = gvk(group, slash == std::string::npos ? request.object_api_version : request.object_api_version.substr(slash + 1),
                              request.object_kind);
  }
  json::Object body{{"kind", std::move(kind)},
                    {"resource", gvr(form)},
                    {"requestKind", std::move(request_kind)},
                    {"requestResource", gvr(*request.kind)},
                    {"operation", to_string(request.operation)},
                    {"userInfo", auth::user_to_json(*request.user)},
                    {"dryRun", request.dry_run},
                    {"options", request.options}};
  if (!request.name.empty()) body["name"] = request.name;
  if (!request.ns.empty()) body["namespace"] = request.ns;
  if (!request.subresource.empty()) body["subResource"] = body["requestSubResource"] = request.subresource;
  return body;
}

json::Value make_admission_review(const AdmissionRequest& request, const model::KindInfo& form, const std::string& uid, bool v1) {
  auto body = admission_request_fields(request, form);
  body["uid"] = uid;
  body["object"] = in_form(request, form, request.object);
  body["oldObject"] = in_form(request, form, request.old_object);
  return json::Object{
      {"kind", "AdmissionReview"}, {"apiVersion", v1 ? "admission.k8s.io/v1" : "admission.k8s.io/v1beta1"}, {"request", std::move(body)}};
}

WebhookAnswer read_admission_review(const Webhook& webhook, const std::string& uid, int status, std::string_view body) {
  WebhookAnswer answer;
  const auto failed = [&](std::string why) {
    answer.failure = std::move(why);
    return answer;
  };
  if (status != 200)
    return failed(
        fmt::format("an error on the server (\"{}\") has prevented the request from succeeding (HTTP {})", body.substr(0, 256), status));
  const auto review = json::parse(body);
  if (!review || json::get_string(*review, {"kind"}) != "AdmissionReview")
    return failed("received invalid webhook response: expected an AdmissionReview");
  const auto* response = json::find(*review, "response");
  if (response == nullptr) return failed("received invalid webhook response: webhook response was absent");
  if (webhook.is_v1 && json::get_string(*response, {"uid"}) != uid)
    return failed(fmt::format("received invalid webhook response: expected response.uid=\"{}\", got \"{}\"", uid,
                              json::get_string(*response, {"uid"})));
  for (const auto& warning : json::get_array(*response, {"warnings"}))
    if (warning.is_string()) answer.warnings.emplace_back(json::as_view(warning));
  answer.allowed = json::get_bool(*response, {"allowed"});
  if (!answer.allowed) {
    auto& refusal = answer.refusal;
    refusal.code = static_cast<int>(json::get_int(*response, {"status", "code"}));
    if (refusal.code < 400 || refusal.code > 599) refusal.code = 400;
    refusal.reason = json::get_string(*response, {"status", "reason"});
    const auto message = json::get_string(*response, {"status", "message"});
    const auto denied = fmt::format("admission webhook \"{}\" denied the request", webhook.name);
    refusal.message = !message.empty()          ? fmt::format("{}: {}", denied, message)
                      : !refusal.reason.empty() ? fmt::format("{}: {}", denied, refusal.reason)
                                                : denied + " without explanation";
    return answer;
  }
  const auto encoded = json::get_string(*response, {"patch"});
  if (encoded.empty()) return answer;
  if (const auto type = json::get_string(*response, {"patchType"}); type != "JSONPatch")
    return failed(fmt::format(
        "received invalid webhook response: webhook returned response.patch but response.patchType \"{}\" is not JSONPatch", type));
  const auto text = base64_decode(encoded);
  auto patch = text ? json::parse(*text) : Result<json::Value>(invalid("not base64"));
  if (!patch) return failed("received invalid webhook response: response.patch is not a JSON patch in base64");
  answer.patch = std::move(*patch);
  return answer;
}

Result<WebhookClient::Endpoint> WebhookClient::locate(const Webhook& webhook) const {
  Endpoint endpoint;
  if (!webhook.url.empty()) {
    const auto scheme_end = webhook.url.find("://");
    if (scheme_end == std::string::npos) return invalid(fmt::format("url \"{}\" is malformed", webhook.url));
    const auto path_start = std::min(webhook.url.find('/', scheme_end + 3), webhook.url.size());
    endpoint.base_url = webhook.url.substr(0, path_start);
    const auto rest = webhook.url.substr(path_start);
    const auto question = rest.find('?');
    endpoint.path = rest.substr(0, question);
    if (question != std::string::npos) endpoint.query = rest.substr(question + 1);
    if (endpoint.path.empty()) endpoint.path = "/";
    return endpoint;
  }
  const auto service_object = cache_.get(make_key("", "services", webhook.service_ns, webhook.service_name));
  if (service_object == nullptr) return fail(ErrorCode::kNotFound, fmt::format("service \"{}\" not found", webhook.service_name));
  const auto service = decode_object(*service_object);
  std::string port_name;
  bool has_port = false;
  for (const auto& port : json::get_array(service, {"spec", "ports"})) {
    if (json::get_int(port, {"port"}) != webhook.service_port) continue;
    port_name = json::get_string(port, {"name"});
    has_port = true;
  }
  if (!has_port)
    return fail(ErrorCode::kNotFound,
                fmt::format("no service port {} found for service \"{}\"", webhook.service_port, webhook.service_name));
  const auto endpoints = cache_.get(make_key("", "endpoints", webhook.service_ns, webhook.service_name));
  const auto document = endpoints ? decode_object(*endpoints) : json::Value();
  for (const auto& subset : json::get_array(document, {"subsets"})) {
    const auto& addresses = json::get_array(subset, {"addresses"});
    if (addresses.empty()) continue;
    for (const auto& port : json::get_array(subset, {"ports"})) {
      if (json::get_string(port, {"name"}) != port_name) continue;
      endpoint.base_url = fmt::format("https://{}:{}", json::get_string(addresses[0], {"ip"}), json::get_int(port, {"port"}));
      endpoint.path = webhook.service_path.empty() ? "/" : webhook.service_path;
      endpoint.server_name = fmt::format("{}.{}.svc", webhook.service_name, webhook.service_ns);
      return endpoint;
    }
  }
  return fail(ErrorCode::kUnavailable, fmt::format("no endpoints available for service \"{}\"", webhook.service_name));
}

Result<std::shared_ptr<net::HttpClient>> WebhookClient::client_for(const Webhook& webhook, const Endpoint& endpoint) {
  const auto key =
      fmt::format("{}|{}|{}|{}", endpoint.base_url, endpoint.server_name, webhook.timeout_ms, std::hash<std::string>()(webhook.ca_pem));
  const std::lock_guard lock(mutex_);
  if (const auto found = clients_.find(key); found != clients_.end()) return found->second;
  if (base_.reactor == nullptr) base_.reactor = net::Reactor::start("webhooks");
  if (base_.reactor == nullptr) return fail(ErrorCode::kUnavailable, "no I/O thread can be started");
  if (clients_.size() >= kMaxClients) std::erase_if(clients_, [](const auto& entry) { return entry.second.use_count() == 1; });
  auto config = base_;
  config.url = endpoint.base_url;
  if (!webhook.ca_pem.empty()) config.ca_pem = webhook.ca_pem;
  config.insecure_skip_verify = false;
  config.server_name = endpoint.server_name;
  config.timeout_ms = webhook.timeout_ms;
  config.max_answer_bytes = kMaxAnswerBytes;
  auto made = net::HttpClient::create(std::move(config));
  if (!made) return std::unexpected(made.error());
  return clients_[key] = std::shared_ptr<net::HttpClient>(std::move(*made));
}

WebhookClient::~WebhookClient() {
  std::shared_ptr<net::Reactor> reactor;
  {
    const std::lock_guard lock(mutex_);
    clients_.clear();
    reactor = base_.reactor;
  }
  if (reactor) reactor->stop();
}

void WebhookClient::post(const Webhook& webhook, std::string review, std::string_view user_agent, std::function<void(PostAnswer)> done,
                         std::string_view traceparent) {
  const auto endpoint = locate(webhook);
  // A service is found when it is dialled: by then the call has its address.
  if (!endpoint && webhook.url.empty())
    return done(
        {0, "",
         fmt::format("Post \"https://{}.{}.svc:{}{}?timeout={}s\": {}", webhook.service_name, webhook.service_ns, webhook.service_port,
                     webhook.service_path.empty() ? "/" : webhook.service_path, webhook.timeout_ms / 1000, endpoint.error().message)});
  if (!endpoint) return done({0, "", endpoint.error().message});
  const auto client = client_for(webhook, *endpoint);
  if (!client) return done({0, "", client.error().message});
  net::HttpRequest http;
  http.method = "POST";
  http.path = endpoint->path;
  http.query = fmt::format("{}{}timeout={}s", endpoint->query, endpoint->query.empty() ? "" : "&", webhook.timeout_ms / 1000);
  http.headers.add("Content-Type", "application/json");
  http.headers.add("Accept", "application/json");
  http.headers.add("User-Agent", std::string(user_agent));
  if (!traceparent.empty()) http.headers.add("traceparent", std::string(traceparent));
  http.body = std::move(review);
  // A service is called by its name, whatever its address.
  const auto host =
      endpoint->server_name.empty() ? endpoint->base_url : fmt::format("https://{}:{}", endpoint->server_name, webhook.service_port);
  const auto address = fmt::format("Post \"{}{}?{}\"", host, endpoint->path, http.query);
  (*client)->send(std::move(http), [address, done = std::move(done)](net::HttpResponse response) {
    PostAnswer answer{response.status, std::move(response.body), ""};
    if (response.status == 0) {
      const bool is_late = answer.body.ends_with("timeout awaiting the response") || answer.body.ends_with("connection timed out");
      answer.failure = fmt::format("{}: {}", address, is_late ? "context deadline exceeded" : dial_words(answer.body));
    }
    done(std::move(answer));
  });
}

namespace {

/// The webhook with no more time than is left of the request's, in whole seconds and at least one; nothing where its own is less.
std::optional<Webhook> hurried(const Webhook& webhook, const AdmissionRequest& request) {
  if (request.deadline == std::chrono::steady_clock::time_point::max()) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::seconds>(request.deadline - std::chrono::steady_clock::now());
  const auto left_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 30)) * 1000;
  if (left_ms >= webhook.timeout_ms) return std::nullopt;
  auto out = webhook;
  out.timeout_ms = left_ms;
  return out;
}

}  // namespace

void WebhookClient::call(const Webhook& asked, const AdmissionRequest& request, const model::KindInfo& form,
                         std::function<void(WebhookAnswer)> done) {
  const auto less = hurried(asked, request);
  const auto& webhook = less ? *less : asked;
  const auto uid = uid_();
  auto review = json::serialize(make_admission_review(request, form, uid, webhook.is_v1));
  auto answered = [webhook, uid, done = std::move(done)](PostAnswer posted) {
    if (posted.status != 0) return done(read_admission_review(webhook, uid, posted.status, posted.body));
    WebhookAnswer answer;
    answer.failure =
        posted.failure.starts_with("Post ") ? fmt::format("failed to call webhook: {}", posted.failure) : std::move(posted.failure);
    done(std::move(answer));
  };
  post(webhook, std::move(review), "kube-apiserver-admission", std::move(answered), request.traceparent);
}

}  // namespace berth::apiserver
