// Sets of field paths in the form of metadata.managedFields[].fieldsV1 (structured-merge-diff's fieldpath.Set). Pure.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::apiserver::apply {

/// A tree of path elements as fieldsV1 writes them: "f:NAME" (field or map key), "k:{…}" (list item by its keys, sorted), "v:VALUE" (set
/// item), "i:N" (index). A node that is a member is itself in the set; its children are longer paths.
class FieldSet {
 public:
  using Children = std::map<std::string, FieldSet, std::less<>>;

  [[nodiscard]] bool is_member() const { return member_; }
  void set_member(bool member = true) { member_ = member; }
  [[nodiscard]] const Children& children() const { return children_; }
  /// Null when there is no such element.
  [[nodiscard]] const FieldSet* find(std::string_view element) const;
  FieldSet& child(std::string_view element);
  void erase(std::string_view element);
  /// Nothing in the set, here or below.
  [[nodiscard]] bool empty() const { return !member_ && children_.empty(); }

  /// Paths in this or the other.
  void unite(const FieldSet& other);
  /// Takes away exactly the other's members.
  void subtract(const FieldSet& other);
  /// Keeps the members that both have.
  [[nodiscard]] FieldSet intersect(const FieldSet& other) const;
  [[nodiscard]] bool has(const std::vector<std::string>& path) const;
  /// Inserts a path as a member.
  void insert(const std::vector<std::string>& path);
  /// All member paths, rendered as conflicts print them (".spec.containers[name="a"].image"), in order.
  [[nodiscard]] std::vector<std::string> render_members() const;

  /// fieldsV1's JSON. Malformed parts are passed over.
  static FieldSet from_json(const json::Value& fields);
  [[nodiscard]] json::Value to_json() const;
  friend bool operator==(const FieldSet&, const FieldSet&) = default;

 private:
  bool member_ = false;
  Children children_;
};

/// "f:name", as a path element.
std::string field_element(std::string_view name);

}  // namespace berth::apiserver::apply
