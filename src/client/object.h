// An object as a component's cache holds it.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/kept_text.h"
#include "base/shared_pool.h"
#include "model/selector.h"

namespace berth::client {

/// One revision of an object in a component's cache: the bytes, and the metadata that everybody asks for. Immutable, shared.
class Object {
 public:
  explicit Object(KeptTextRef text);
  explicit Object(std::string text) : Object(std::make_shared<const KeptText>(std::move(text))) {}
  explicit Object(const json::Value& document);

  [[nodiscard]] const std::string& ns() const { return alike_->ns; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] std::int64_t revision() const { return revision_; }
  [[nodiscard]] const model::Labels& labels() const { return alike_->labels; }
  /// The controlling owner reference's uid and kind, or empty.
  [[nodiscard]] const std::string& controller_uid() const { return alike_->controller_uid; }
  [[nodiscard]] const std::string& controller_kind() const { return alike_->controller_kind; }
  [[nodiscard]] const std::string& controller_name() const { return alike_->controller_name; }
  /// Of metadata.ownerReferences as they stand: alike for revisions that say the same of their owners. 0: none.
  [[nodiscard]] std::size_t owners_digest() const { return owners_digest_; }
  [[nodiscard]] bool is_deleting() const { return is_deleting_; }
  /// "ns/name", or "name" for cluster-scoped objects.
  [[nodiscard]] std::string key() const { return ns().empty() ? name_ : ns() + "/" + name_; }
  /// About a microsecond where it is old, and packed. What is to be looked at again is looked at in one hold.
  [[nodiscard]] HeldText text() const { return kept_->read(); }
  [[nodiscard]] std::size_t text_bytes() const { return kept_->size(); }
  [[nodiscard]] const KeptTextRef& kept() const { return kept_; }
  /// Parses the document anew: about 5 µs for a pod. Keep the result while you need it, not for ever.
  [[nodiscard]] json::Value document() const;
  /// The document for reading only, without metadata.managedFields, parsed once for all who ask at about the same time (each thread keeps
  /// its last few). Never null.
  [[nodiscard]] std::shared_ptr<const json::Value> parsed() const;

 private:
  /// What the pods of a workload have alike: one for all of them, and so the labels are where others' are.
  struct Alike {
    std::string ns, controller_uid, controller_kind, controller_name;
    model::Labels labels;
    friend bool operator==(const Alike&, const Alike&) = default;
    [[nodiscard]] auto parts() const { return std::tie(ns, controller_uid, controller_kind, controller_name, labels); }
  };

  mutable std::atomic<std::weak_ptr<const json::Value>> parsed_;
  KeptTextRef kept_;  ///< In the API server's own process shared with what it stores.
  Shared<Alike> alike_;
  std::string name_, uid_;
  std::int64_t revision_ = 0;
  std::size_t owners_digest_ = 0;
  bool is_deleting_ = false;
};
using ObjectRef = std::shared_ptr<const Object>;
/// The object of this text, one for all watches of the process. Thread-safe.
ObjectRef share_object(const KeptTextRef& text);

}  // namespace berth::client
