// The new and the old value of a place in an object: what is told of unchanged places is forgiven (KEP 4008; apiserver/pkg/cel/common,
// CorrelatedObject). Pure.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "custom/schema.h"

namespace berth::custom {

/// Elements of a list of type map by their keys.
class KeyedList {
 public:
  KeyedList(const json::Array& list, const Schema& schema);
  /// The element with the same keys; null when there is none, or when the keys are no scalars.
  [[nodiscard]] const json::Value* find(const json::Value& element) const;

 private:
  const Schema& schema_;
  std::unordered_map<std::string, const json::Value*> elements_;
};

/// Borrows both documents and the schema. Children are made when asked for; not for two threads at once.
class Correlated {
 public:
  Correlated(const json::Value& now, const json::Value& before, const Schema& schema) : now_(&now), before_(&before), schema_(&schema) {}
  /// Null where the old value of a member is not there, or nothing is known of it.
  Correlated* key(std::string_view name);
  /// Null but for lists of type map.
  Correlated* index(std::size_t i);
  /// Nothing changed here and below.
  bool is_same();
  [[nodiscard]] const json::Value& before() const { return *before_; }

 private:
  bool compare();
  const json::Value* now_;
  const json::Value* before_;
  const Schema* schema_;
  std::optional<bool> same_;
  std::map<std::string, std::unique_ptr<Correlated>, std::less<>> keys_;
  std::map<std::size_t, std::unique_ptr<Correlated>> indices_;
  std::unique_ptr<KeyedList> list_;
};

}  // namespace berth::custom
