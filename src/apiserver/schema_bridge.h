// What the pipeline asks of the kinds' schemas, in its own words.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/context.h"
#include "base/json.h"
#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::model {
struct FieldSchema;
}

namespace berth::apiserver {

/// Where a value stands in its kind's schema: how lists and maps merge there. A value, cheap to copy; unknown places merge as Kubernetes merges
/// untyped values (maps by key, lists whole).
class Shape {
 public:
  enum class List { kAtomic, kSet, kMap };
  static Shape of(const model::KindInfo& kind);
  /// The shape of a member of an object here: a struct's field or a map's value.
  [[nodiscard]] Shape member(std::string_view name) const;
  /// The shape of an element of a list here.
  [[nodiscard]] Shape element() const;
  [[nodiscard]] List list() const;
  /// Keys that identify elements of a kMap list, for server-side apply.
  [[nodiscard]] const std::vector<std::string>& list_keys() const;
  /// The object here is replaced whole (labelSelector, nodeSelector terms, …).
  [[nodiscard]] bool is_atomic_object() const;
  /// A map from free keys to values, as opposed to a struct with fields.
  [[nodiscard]] bool is_map() const;
  /// Strategic merge: the list merges (by merge_key, or as a set of scalars when that is empty).
  [[nodiscard]] bool merges() const;
  [[nodiscard]] std::string_view merge_key() const;
  /// Strategic merge: patchStrategy retainKeys.
  [[nodiscard]] bool retains_keys() const;
  /// The default that an absent key field has ("protocol": TCP), or null.
  [[nodiscard]] const json::Value* key_default(std::string_view key) const;
  [[nodiscard]] bool is_known() const { return field_ != nullptr; }

 private:
  const void* field_ = nullptr;
};

}  // namespace berth::apiserver
