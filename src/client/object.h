// An object as a component's cache holds it.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/json.h"
#include "model/selector.h"

namespace berth::client {

/// One revision of an object in a component's cache: the bytes, and the metadata that everybody asks for. Immutable, shared.
class Object {
 public:
  explicit Object(Bytes bytes);
  explicit Object(std::string bytes) : Object(make_bytes(std::move(bytes))) {}
  explicit Object(const json::Value& document);

  [[nodiscard]] const std::string& ns() const { return ns_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] std::int64_t revision() const { return revision_; }
  [[nodiscard]] const model::Labels& labels() const { return labels_; }
  /// The controlling owner reference's uid and kind, or empty.
  [[nodiscard]] const std::string& controller_uid() const { return controller_uid_; }
  [[nodiscard]] const std::string& controller_kind() const { return controller_kind_; }
  [[nodiscard]] const std::string& controller_name() const { return controller_name_; }
  [[nodiscard]] bool is_deleting() const { return is_deleting_; }
  /// "ns/name", or "name" for cluster-scoped objects.
  [[nodiscard]] std::string key() const { return ns_.empty() ? name_ : ns_ + "/" + name_; }
  [[nodiscard]] const std::string& bytes() const { return *bytes_; }
  /// Parses the document anew: about 5 µs for a pod. Keep the result while you need it, not for ever.
  [[nodiscard]] json::Value document() const;
  /// The document for reading only, parsed once for all who ask at about the same time (each thread keeps its last few). Never null.
  [[nodiscard]] std::shared_ptr<const json::Value> parsed() const;

 private:
  mutable std::atomic<std::weak_ptr<const json::Value>> parsed_;
  Bytes bytes_;  ///< In the API server's own process shared with what it stores.
  std::string ns_, name_, uid_, controller_uid_, controller_kind_, controller_name_;
  std::int64_t revision_ = 0;
  bool is_deleting_ = false;
  model::Labels labels_;
};
using ObjectRef = std::shared_ptr<const Object>;
/// The object of these bytes, the same for all watches of one process that are told of it while it is young. Thread-safe.
ObjectRef share_object(const Bytes& bytes);

}  // namespace berth::client
