// Sets of field paths in the form of metadata.managedFields[].fieldsV1 (structured-merge-diff's fieldpath.Set). Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace berth::apiserver::apply {

/// A tree of path elements as fieldsV1 writes them: "f:NAME" (field or map key), "k:{…}" (list item by its keys, sorted), "v:VALUE" (set
/// item), "i:N" (index). A node that is a member is itself in the set; its children are longer paths. Nothing costs more than n log n in
/// the number of paths, whatever their order: sets come from requests.
class FieldSet {
 public:
  using Children = std::vector<std::pair<std::string, FieldSet>>;  ///< By element.

  FieldSet() = default;
  /// A set of `children` in any order; what comes several times is united.
  static FieldSet of(bool member, Children children);
  /// The paths that are in any of `sets`.
  static FieldSet union_of(const std::vector<const FieldSet*>& sets);

  [[nodiscard]] bool is_member() const { return member_; }
  void set_member(bool member = true) { member_ = member; }
  [[nodiscard]] const Children& children() const { return children_; }
  /// Null when there is no such element.
  [[nodiscard]] const FieldSet* find(std::string_view element) const;
  /// Made when there is none. Valid until another child is made or erased. Costs as much as there are children, as does erase: for the few
  /// elements that have a meaning of their own.
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
  /// Member paths in order, rendered as conflicts print them (".spec.containers[name="a"].image"): all that fit into `max_bytes`.
  [[nodiscard]] std::vector<std::string> render_members(std::size_t max_bytes = SIZE_MAX) const;

  /// fieldsV1's JSON. Malformed parts are passed over.
  static FieldSet from_json(const json::Value& fields);
  [[nodiscard]] json::Value to_json() const;
  friend bool operator==(const FieldSet&, const FieldSet&) = default;

 private:
  /// Where the element is, or would be.
  [[nodiscard]] std::size_t place_of(std::string_view element) const;
  [[nodiscard]] bool is_at(std::size_t place, std::string_view element) const;

  bool member_ = false;
  Children children_;  // A few, made in one piece: every creation of an object makes some dozens of sets.
};

/// "f:name", as a path element.
std::string field_element(std::string_view name);

}  // namespace berth::apiserver::apply
