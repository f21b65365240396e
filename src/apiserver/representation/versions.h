// Objects between the version that is stored and the version that a request asks for.
#pragma once
#include "apiserver/cache/object_codec.h"
#include "apiserver/ground/ground.h"
#include "apiserver/request/context.h"
#include "model/api_status.h"

namespace berth::apiserver {

class Conversions;

/// Objects of the request's kind may have to be converted by a webhook before they can be shown or stored.
[[nodiscard]] bool asks_converter(const Request& request);
/// The stored bytes are what the request's version shows of the object.
[[nodiscard]] bool is_shown_as_stored(const Request& request, const StoredObject& object);
/// The stored object in the request's version, where no webhook is asked, or was already.
[[nodiscard]] json::Value read_document(const Request& request, const StoredObject& object);

/// Converts, by a webhook (conversion.h) where the kind has one. What is handed over runs on another thread, or before the call returns.
/// Thread-safe.
class Versions {
 public:
  explicit Versions(Ground& ground);
  ~Versions();
  /// No webhook is asked any more. After the workers have stopped.
  void stop();

  using ShownObjects = std::function<void(model::ApiResult<std::vector<ObjectPtr>>)>;
  using Document = std::function<void(model::ApiResult<json::Value>)>;
  /// The objects with bytes of the request's version; null ones stay null.
  void convert_ahead(const RequestPtr& request, std::vector<ObjectPtr> objects, ShownObjects done);
  /// One of them as a document.
  void read_converted(const RequestPtr& request, const ObjectPtr& object, Document done);
  /// A document of `kind`, the request's or another of this server's own, as it is stored.
  void convert_to_storage(const RequestPtr& request, const model::KindInfo& kind, json::Value document, Document done);

 private:
  Ground& ground_;
  std::unique_ptr<Conversions> conversions_;
};

}  // namespace berth::apiserver
