// What one webhook is asked about one request, and what it says (admission.k8s.io AdmissionReview).
#pragma once
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

/// `form`: the kind from match_webhook; `uid`: of this question. `done` is called once, possibly from the client's I/O thread.
void call_webhook(WebhookClient& client, const Webhook& asked, const AdmissionRequest& request, const model::KindInfo& form,
                  std::string uid, std::function<void(WebhookAnswer)> done);

/// The request's object or old object (no copy of one) in the wanted form.
json::Value in_form(const AdmissionRequest& request, const model::KindInfo& form, const json::Value& document);
/// admission.k8s.io AdmissionRequest without uid and objects.
json::Object admission_request_fields(const AdmissionRequest& request, const model::KindInfo& form);
/// The AdmissionReview that is sent.
json::Value make_admission_review(const AdmissionRequest& request, const model::KindInfo& form, const std::string& uid, bool v1);
/// Reads the review that came back.
WebhookAnswer read_admission_review(const Webhook& webhook, const std::string& uid, int status, std::string_view body);

}  // namespace berth::apiserver
