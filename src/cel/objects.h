// Objects that expressions make: `Object.spec{replicas: 3}`, `JSONPatch{op: "add", …}` (apiserver/pkg/cel/mutation).
#pragma once
#include <string>

#include "cel/cel.h"

namespace berth::cel {

/// Declares Object and all that begins with "Object.", JSONPatch, and jsonpatch.escapeKey.
void declare_patch_types(Environment& environment);

/// An object literal's value: a map that knows the name of its type. Immutable once made.
class MadeObject final : public Map {
 public:
  explicit MadeObject(std::string type) : type_(std::move(type)) {}
  void set(std::string field, Value value) { fields_.emplace_back(std::move(field), std::move(value)); }
  [[nodiscard]] const std::string& type() const { return type_; }
  [[nodiscard]] const Value* field(std::string_view name) const;
  [[nodiscard]] std::size_t size() const override { return fields_.size(); }
  [[nodiscard]] std::optional<Value> find(const Value& key) const override;
  void each(const std::function<bool(const Value&, const Value&)>& visit) const override;

 private:
  std::string type_;
  std::vector<std::pair<std::string, Value>> fields_;
};

/// The object behind a value; null when it is none.
const MadeObject* made_object(const Value& value);

/// The names of types that are not where they say they belong (`Object.spec.wrong` below the field "selector"), a sentence a line; empty:
/// all are. `path`: where the value itself stands ("Object").
std::string misplaced_types(const Value& value, const std::string& path);

}  // namespace berth::cel
