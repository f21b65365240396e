// An API server in process: memory store, synchronous cache, virtual time; and a client that speaks plain requests.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "apiserver/server.h"
#include "base/json.h"

namespace berth::apiserver::testing {

/// Takes down an answer.
class RecordedResponse : public net::ResponseWriter {
 public:
  void respond(net::HttpResponse response) override {
    status = response.status;
    headers = std::move(response.headers);
    body = std::move(response.body);
    end();
  }
  void respond_shared(int code, net::Headers fields, std::vector<Bytes> parts) override {
    status = code;
    headers = std::move(fields);
    for (const auto& part : parts) body += *part;
    end();
  }
  void start_stream(int code, net::Headers fields) override {
    status = code;
    headers = std::move(fields);
  }
  bool write(Bytes chunk) override {
    if (is_gone) return false;
    body += *chunk;
    ++chunks;
    return true;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return stalled ? 100 << 20 : 0; }
  void on_drain(std::function<void()> more) override { drain = std::move(more); }
  void finish() override { end(); }
  void on_close(std::function<void()> callback) override { closed = std::move(callback); }
  std::unique_ptr<net::RawStream> upgrade(net::Headers) override { return nullptr; }

  /// The client goes away.
  void disconnect() {
    is_gone = true;
    if (auto callback = std::exchange(closed, nullptr)) callback();
  }
  [[nodiscard]] json::Value document() const {
    auto parsed = json::parse(body);
    return parsed ? *parsed : json::Value();
  }
  /// A watch's events so far.
  [[nodiscard]] std::vector<json::Value> events() const {
    std::vector<json::Value> out;
    std::size_t start = 0;
    while (start < body.size()) {
      const auto end_of_line = body.find('\n', start);
      if (end_of_line == std::string::npos) break;
      if (auto event = json::parse(std::string_view(body).substr(start, end_of_line - start))) out.push_back(*event);
      start = end_of_line + 1;
    }
    return out;
  }

  int status = 0;
  net::Headers headers;
  std::string body;
  int chunks = 0;
  bool finished = false, stalled = false, is_gone = false;
  std::function<void()> drain;

 private:
  void end() {
    finished = true;
    if (auto callback = std::exchange(closed, nullptr)) callback();
  }
  std::function<void()> closed;
};

/// Lets everybody in and allows what `allow` says.
class PickyAuthorizer final : public Authorizer {
 public:
  explicit PickyAuthorizer(std::function<bool(const UserInfo&, const Attributes&)> allow) : allow_(std::move(allow)) {}
  Decision authorize(const UserInfo& user, const Attributes& attributes) override { return {allow_(user, attributes), ""}; }
  UserRules rules_for(const UserInfo&, const std::string&) override { return {}; }

 private:
  std::function<bool(const UserInfo&, const Attributes&)> allow_;
};

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }
  void TearDown() override { server_.reset(); }

  void start(ServerOptions options) {
    server_.reset();
    auto cache = open_object_cache(store::make_memory_store(), loop_, cache_options_, true);
    ASSERT_TRUE(cache) << cache.error().message;
    options.cache = wrap_cache_ ? wrap_cache_(std::move(*cache)) : std::move(*cache);
    options.loop = &loop_;
    auto trusting = std::make_shared<TrustingAuth>();
    if (!options.authenticator) options.authenticator = trusting;
    if (!options.authorizer) options.authorizer = trusting;
    options.seed = 42;
    options.single_threaded = true;
    options.keeps_flow_objects = keeps_flow_objects_;
    auto server = ApiServer::create(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  bool keeps_flow_objects_ = false;
  /// What stands between the server and its cache; empty: nothing.
  std::function<std::unique_ptr<ObjectCache>(std::unique_ptr<ObjectCache>)> wrap_cache_;
  CacheOptions cache_options_;

  using Response = std::shared_ptr<RecordedResponse>;
  Response send(std::string method, std::string path_and_query, std::string body = {}, std::string content_type = "application/json",
                std::vector<std::pair<std::string, std::string>> headers = {}) {
    net::HttpRequest request;
    request.method = std::move(method);
    const auto question = path_and_query.find('?');
    request.path = path_and_query.substr(0, question);
    if (question != std::string::npos) request.query = path_and_query.substr(question + 1);
    request.body = std::move(body);
    if (!request.body.empty()) request.headers.add("Content-Type", std::move(content_type));
    for (auto& [name, value] : headers) request.headers.add(name, value);
    if (peer_) request.peer = peer_;
    auto response = std::make_shared<RecordedResponse>();
    server_->handle(std::move(request), response);
    return response;
  }
  Response get(const std::string& path) { return send("GET", path); }
  Response post(const std::string& path, const std::string& body) { return send("POST", path, body); }
  Response put(const std::string& path, const json::Value& body) { return send("PUT", path, json::serialize(body)); }
  Response patch(const std::string& path, const std::string& body, const std::string& type = "merge") {
    const std::string media = type == "json"        ? "application/json-patch+json"
                              : type == "merge"     ? "application/merge-patch+json"
                              : type == "strategic" ? "application/strategic-merge-patch+json"
                                                    : "application/apply-patch+yaml";
    return send("PATCH", path, body, media);
  }
  Response remove(const std::string& path, const std::string& body = {}) { return send("DELETE", path, body); }

  /// Creates and expects success.
  json::Value create(const std::string& path, const std::string& body) {
    auto response = post(path, body);
    EXPECT_EQ(response->status, 201) << response->body;
    return response->document();
  }
  json::Value read(const std::string& path) {
    auto response = get(path);
    EXPECT_EQ(response->status, 200) << response->body;
    return response->document();
  }
  /// `{"metadata":{"name":…}}` with data.
  static std::string config_map(const std::string& name, const std::string& data = "{}", const std::string& labels = "{}") {
    return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","labels":{}}},"data":{}}})", name, labels, data);
  }
  static std::string pod(const std::string& name, const std::string& extra_spec = "") {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{{"app":"{}"}}}},"spec":{{"containers":[{{"name":"c","image":"i:1"}}]{}}}}})",
        name, name, extra_spec.empty() ? "" : "," + extra_spec);
  }
  static std::string text(const json::Value& value, json::Path path) { return std::string(json::get_string(value, path)); }

  static constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
  static constexpr const char* kPods = "/api/v1/namespaces/default/pods";
  VirtualLoop loop_{*parse_rfc3339("2026-01-02T03:04:05Z")};
  std::optional<net::PeerCertificate> peer_;
  std::unique_ptr<ApiServer> server_;
};

#define EXPECT_STATUS(response, code, reason_text)                                                              \
  do {                                                                                                          \
    const auto status_response = (response);                                                                    \
    EXPECT_EQ(status_response->status, code) << status_response->body;                                          \
    EXPECT_EQ(json::get_string(status_response->document(), {"reason"}), reason_text) << status_response->body; \
  } while (false)

}  // namespace berth::apiserver::testing
