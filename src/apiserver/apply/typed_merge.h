// Merging, comparing and pruning documents by their schema (structured-merge-diff's typed package). Pure.
#pragma once
#include "apiserver/apply/field_set.h"
#include "apiserver/kinds/shape.h"

namespace berth::apiserver::apply {

/// Whether a configuration fits the kind's schema: no unknown fields, no wrong types, no list item twice. What does not, in the words of
/// structured-merge-diff; empty when all is well.
std::optional<std::string> check_typed(const model::KindInfo& kind, const json::Value& config);

/// Whether an object's members have the types that the kind's schema says. Of stored objects: an older schema may have let others in.
bool is_typed(const model::KindInfo& kind, const json::Value& object);

/// The paths a document names: what an applied configuration owns.
FieldSet set_of(const Shape& shape, const json::Value& value);

struct Comparison {
  FieldSet changed;  ///< Added or modified.
  FieldSet removed;
};
/// `before` null: everything is added. The member `left_out` of the root is passed over.
Comparison compare(const Shape& shape, const json::Value* before, const json::Value& after, std::string_view left_out = {});

/// Merges `config` into `live`: granular objects by key, associative lists by their keys, sets as unions, everything else replaced.
void merge(const Shape& shape, json::Value& live, const json::Value& config);

/// Removes from `value` what `last` names and `owned` does not, whole subtrees where nothing below is owned.
void prune(const Shape& shape, json::Value& value, const FieldSet& last, const FieldSet& owned);

/// "k:{…}" of a list element, keys sorted; nullopt when it lacks a key that has no default.
std::optional<std::string> key_element(const Shape& list, const json::Value& element);

}  // namespace berth::apiserver::apply
