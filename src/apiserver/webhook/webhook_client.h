// Posts reviews to webhooks, over HTTPS.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "apiserver/cache/object_cache.h"
#include "base/json.h"
#include "base/mutex.h"
#include "net/client.h"

namespace berth::apiserver {

/// How a webhook is reached.
struct WebhookTarget {
  std::string url;  ///< Or:
  std::string service_ns, service_name, service_path;
  int service_port = 443;
  std::string ca_pem;
  int timeout_ms = 10'000;
  /// From a clientConfig.
  void read(const json::Value& config);
};

/// How an answer to a POST came, or why none did.
struct PostAnswer {
  int status = 0;       ///< 0: none came.
  std::string body;     ///< Of the answer.
  std::string failure;  ///< In client-go's words.
};

/// Thread-safe. Connections are kept per endpoint; one I/O thread serves them all.
class WebhookClient {
 public:
  WebhookClient(ObjectCache& cache, net::ClientConfig base) : cache_(cache), base_(std::move(base)) {}
  /// Calls under way fail; waits for the I/O thread.
  ~WebhookClient();
  WebhookClient(const WebhookClient&) = delete;
  WebhookClient& operator=(const WebhookClient&) = delete;
  /// Sends a review. `done` is called once, possibly from the client's I/O thread.
  void post(const WebhookTarget& webhook, std::string review, std::string_view user_agent, std::function<void(PostAnswer)> done,
            std::string_view traceparent = {});

 private:
  struct Endpoint {
    std::string base_url, path, query, server_name;
  };
  Result<Endpoint> locate(const WebhookTarget& webhook) const;
  Result<std::shared_ptr<net::HttpClient>> client_for(const WebhookTarget& webhook, const Endpoint& endpoint);

  ObjectCache& cache_;
  net::ClientConfig base_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<net::HttpClient>> clients_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::apiserver
