#include "apiserver/webhook/webhook_client.h"

#include "apiserver/cache/object_codec.h"
#include "base/base64.h"
#include "base/mutex.h"
#include "net/reactor.h"

namespace berth::apiserver {
namespace {

/// A patch of a whole object in base64, with room for what is around it.
constexpr std::size_t kMaxAnswerBytes = 6 * 1024 * 1024;
/// More endpoints than that, and those that nobody is asking lose their connections.
constexpr std::size_t kMaxClients = 256;

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

void WebhookTarget::read(const json::Value& config) {
  url = json::get_string(config, {"url"});
  service_ns = json::get_string(config, {"service", "namespace"});
  service_name = json::get_string(config, {"service", "name"});
  service_path = json::get_string(config, {"service", "path"}, "/");
  service_port = static_cast<int>(json::get_int(config, {"service", "port"}, 443));
  ca_pem = base64_decode(json::get_string(config, {"caBundle"})).value_or("");
}

Result<WebhookClient::Endpoint> WebhookClient::locate(const WebhookTarget& webhook) const {
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

Result<std::shared_ptr<net::HttpClient>> WebhookClient::client_for(const WebhookTarget& webhook, const Endpoint& endpoint) {
  const auto key =
      fmt::format("{}|{}|{}|{}", endpoint.base_url, endpoint.server_name, webhook.timeout_ms, std::hash<std::string>()(webhook.ca_pem));
  const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    clients_.clear();
    reactor = base_.reactor;
  }
  if (reactor) reactor->stop();
}

void WebhookClient::post(const WebhookTarget& webhook, std::string review, std::string_view user_agent,
                         std::function<void(PostAnswer)> done, std::string_view traceparent) {
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

}  // namespace berth::apiserver
