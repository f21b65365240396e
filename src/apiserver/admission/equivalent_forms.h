// Custom objects in the version that a webhook or a policy named (matchPolicy Equivalent), where only a conversion webhook can make it.
#pragma once
#include <functional>
#include <vector>

#include "apiserver/admission/plugin.h"
#include "apiserver/webhook/conversion.h"

namespace berth::apiserver {

/// Asks the conversion webhooks for admission. Thread-safe. What is handed over runs on a worker, or before the call returns; requests
/// stay alive until then.
class EquivalentForms {
 public:
  explicit EquivalentForms(const AdmissionContext& context) : conversions_(context.cache, context.uid), offload_(context.offload) {}

  /// The request's objects are wanted in this form, and a webhook has to convert them.
  [[nodiscard]] static bool needs_webhook(const AdmissionRequest& request, const model::KindInfo& form);
  /// Makes the forms that are not there yet; in_form() has them afterwards. The error: a webhook failed (500).
  void prepare(const AdmissionRequest& request, std::vector<const model::KindInfo*> forms, AdmitDone done);

  using Document = std::function<void(model::ApiResult<json::Value>)>;
  /// An object in `form`, as somebody changed it, in the version of the request.
  void take_back(const AdmissionRequest& request, json::Value changed, Document done);

 private:
  Conversions conversions_;
  std::function<void(Task)> offload_;
};

}  // namespace berth::apiserver
