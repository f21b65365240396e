// Conversion webhooks (apiextensions.k8s.io/v1 ConversionReview; apiextensions-apiserver/pkg/apiserver/conversion): objects of custom kinds
// between the versions of their definition.
//
//   read:  stored bytes ─> webhook, where they are of another version than the request ─> pruned and defaulted by that version's schema
//   write: document     ─> webhook, where another version is stored                    ─> pruned by the stored version's schema
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/webhook/webhook_client.h"
#include "custom/definition.h"

namespace berth::apiserver {

/// Asks the webhooks of definitions. Thread-safe; never blocks.
class Conversions {
 public:
  using Done = std::function<void(model::ApiResult<std::vector<json::Value>>)>;
  Conversions(ObjectCache& cache, std::function<std::string()> uid);

  /// The objects, all of another version than `api_version`, in that version and in their order. All or none: what a webhook says that is
  /// not a conversion (another object, another kind, fewer of them) is an error in Kubernetes' words. `done` is called once, from any
  /// thread or before this returns.
  void convert(std::shared_ptr<const custom::Definition> definition, std::string api_version, std::vector<json::Value> objects, Done done);

 private:
  struct Batch;
  void next_part(const std::shared_ptr<Batch>& batch);
  std::function<std::string()> uid_;
  WebhookClient client_;
};

/// Takes a ConversionReview that came back for `sent`; the error is what follows "conversion webhook for KIND ".
Expected<std::vector<json::Value>, std::string> read_conversion_review(const std::vector<json::Value>& sent, const json::Value& review,
                                                                       std::string_view review_version, std::string_view uid,
                                                                       std::string_view api_version);

}  // namespace berth::apiserver
