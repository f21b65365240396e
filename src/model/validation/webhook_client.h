// Where webhooks are, of admission and of conversion alike.
#pragma once
#include "model/validation/validation.h"

namespace berth::model::validation {

/// A place, and nothing that could carry credentials or speak for the server (k8s.io/apiserver util/webhook, ValidateWebhookURL).
void webhook_url(std::string_view url, const Path& at, Errors& errors);

}  // namespace berth::model::validation
