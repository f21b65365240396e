// Asks one webhook about one request, over HTTPS.
#pragma once
#include <functional>

#include "apiserver/admission/webhook_config.h"

namespace berth::apiserver {

/// What a webhook said, or how it failed to say anything.
struct WebhookAnswer {
  bool allowed = false;
  std::string failure;       ///< Not empty: the call failed; nothing else counts.
  model::ApiStatus refusal;  ///< When not allowed.
  json::Value patch;         ///< A JSON patch document, or null.
  std::vector<std::string> warnings;
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
  WebhookClient(ObjectCache& cache, net::ClientConfig base, std::function<std::string()> uid)
      : cache_(cache), base_(std::move(base)), uid_(std::move(uid)) {}
  /// Calls under way fail; waits for the I/O thread.
  ~WebhookClient();
  WebhookClient(const WebhookClient&) = delete;
  WebhookClient& operator=(const WebhookClient&) = delete;
  /// `form`: the kind from match_webhook. `done` is called once, possibly from the client's I/O thread.
  void call(const Webhook& webhook, const AdmissionRequest& request, const model::KindInfo& form, std::function<void(WebhookAnswer)> done);
  /// Sends a review of any kind. `done` as above.
  void post(const Webhook& webhook, std::string review, std::string_view user_agent, std::function<void(PostAnswer)> done,
            std::string_view traceparent = {});

 private:
  struct Endpoint {
    std::string base_url, path, query, server_name;
  };
  Result<Endpoint> locate(const Webhook& webhook) const;
  Result<std::shared_ptr<net::HttpClient>> client_for(const Webhook& webhook, const Endpoint& endpoint);

  ObjectCache& cache_;
  net::ClientConfig base_;
  std::function<std::string()> uid_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<net::HttpClient>> clients_;
};

/// The request's object or old object (no copy of one) in the wanted form.
json::Value in_form(const AdmissionRequest& request, const model::KindInfo& form, const json::Value& document);
/// admission.k8s.io AdmissionRequest without uid and objects.
json::Object admission_request_fields(const AdmissionRequest& request, const model::KindInfo& form);
/// The AdmissionReview that is sent.
json::Value make_admission_review(const AdmissionRequest& request, const model::KindInfo& form, const std::string& uid, bool v1);
/// Reads the review that came back.
WebhookAnswer read_admission_review(const Webhook& webhook, const std::string& uid, int status, std::string_view body);

}  // namespace berth::apiserver
