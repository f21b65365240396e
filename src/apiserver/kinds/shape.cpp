#include "apiserver/kinds/shape.h"

namespace berth::apiserver {

using model::TypeRef;

Shape Shape::of(const model::KindInfo& kind) {
  Shape shape;
  shape.struct_ = model::type_of(kind);
  shape.keeps_nulls_ = model::is_unstructured(kind);
  static const TypeRef kStructRef = [] {
    TypeRef ref;
    ref.kind = TypeRef::Kind::kStruct;
    return ref;
  }();
  shape.ref_ = &kStructRef;
  return shape;
}

Shape Shape::member(std::string_view name) const {
  Shape below;
  below.keeps_nulls_ = keeps_nulls_;
  if (struct_ != nullptr) {
    below.field_ = struct_->field(name);
    if (below.field_ != nullptr) below.ref_ = &below.field_->ref;
  } else if (is_map()) {
    below.ref_ = ref_->element;
  }
  if (below.ref_ != nullptr && below.ref_->kind == TypeRef::Kind::kStruct) below.struct_ = below.ref_->type;
  return below;
}

Shape Shape::element() const {
  Shape below;
  below.keeps_nulls_ = keeps_nulls_;
  if (is_list()) below.ref_ = ref_->element;
  if (below.ref_ != nullptr && below.ref_->kind == TypeRef::Kind::kStruct) below.struct_ = below.ref_->type;
  return below;
}

const std::vector<std::string>& Shape::list_keys() const {
  static const std::vector<std::string> kNone;
  return field_ == nullptr ? kNone : field_->list_keys;
}

bool Shape::is_atomic_object() const {
  if (field_ != nullptr && (field_->is_atomic || field_->is_granular)) return field_->is_atomic;
  return struct_ != nullptr && struct_->is_atomic;
}

bool Shape::is_always_present(std::string_view name) const {
  if (struct_ == nullptr) return false;
  // Root objects' metadata stands in no table.
  if (name == "metadata") return true;
  const auto* field = struct_->field(name);
  return field != nullptr && field->is_always_written;
}

const json::Value* Shape::list_key_default(std::string_view key) const {
  static const json::Value kProtocol("TCP");
  if (field_ == nullptr) return nullptr;
  if (const auto found = field_->list_key_defaults.find(key); found != field_->list_key_defaults.end()) return &found->second;
  return key == "protocol" && !keeps_nulls_ ? &kProtocol : nullptr;
}

}  // namespace berth::apiserver
