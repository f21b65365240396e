// How values merge, as the kinds' schemas have it.
#pragma once
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/kinds.h"
#include "model/schema.h"

namespace berth::apiserver {

/// Where a value stands in its kind's schema: how lists and maps merge there. A value, cheap to copy; unknown places merge as Kubernetes
/// merges untyped values (objects by key, lists whole).
class Shape {
 public:
  using List = model::FieldDef::ListType;
  static Shape of(const model::KindInfo& kind);
  /// The shape of a member of an object here: a struct's field or a map's value.
  [[nodiscard]] Shape member(std::string_view name) const;
  /// The shape of an element of a list here.
  [[nodiscard]] Shape element() const;
  [[nodiscard]] List list() const { return field_ == nullptr ? List::kAtomic : field_->list_type; }
  /// Keys that identify elements of a kMap list, for server-side apply.
  [[nodiscard]] const std::vector<std::string>& list_keys() const;
  /// The object here is replaced whole (labelSelector, nodeSelector terms, …).
  [[nodiscard]] bool is_atomic_object() const;
  /// The value of a list key that an element leaves out ("protocol" is TCP in ports), or null.
  [[nodiscard]] const json::Value* list_key_default(std::string_view key) const;
  /// Nothing is said of what stands here: members are owned one by one.
  [[nodiscard]] bool is_untyped() const { return ref_ != nullptr && ref_->kind == model::TypeRef::Kind::kAny; }
  /// A null that is applied stays one (objects without a type in Go).
  [[nodiscard]] bool keeps_nulls() const { return keeps_nulls_; }
  /// A map from free keys to values, as opposed to a struct with fields.
  [[nodiscard]] bool is_map() const { return ref_ != nullptr && ref_->kind == model::TypeRef::Kind::kMap; }
  [[nodiscard]] bool is_struct() const { return struct_ != nullptr; }
  [[nodiscard]] bool is_list() const { return ref_ != nullptr && ref_->kind == model::TypeRef::Kind::kList; }
  /// Strategic merge: the list merges, by merge_key, or as a set of scalars when that is empty.
  [[nodiscard]] bool merges() const { return field_ != nullptr && field_->patch_merge; }
  /// Strategic merge: the object is replaced whole (patchStrategy replace).
  [[nodiscard]] bool is_replaced() const { return field_ != nullptr && field_->patch_replace; }
  [[nodiscard]] std::string_view merge_key() const {
    return field_ == nullptr ? std::string_view{} : std::string_view(field_->patch_merge_key);
  }
  [[nodiscard]] bool is_known() const { return ref_ != nullptr; }
  /// A struct's field whose presence in Go's JSON does not depend on being set (spec, status, template, containers, …): its own path is
  /// never owned, only what is below it.
  [[nodiscard]] bool is_always_present(std::string_view name) const;

 private:
  const model::TypeRef* ref_ = nullptr;
  const model::FieldDef* field_ = nullptr;  ///< Of which the value is the value; null at the root and below lists and maps.
  const model::TypeDef* struct_ = nullptr;
  bool keeps_nulls_ = false;
};

}  // namespace berth::apiserver
