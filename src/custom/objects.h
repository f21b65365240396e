// What is done to a custom object by its schema: unknown fields pruned, nulls dropped, defaults set, keys of lists compared
// (apiextensions-apiserver/pkg/apiserver/schema: pruning, defaulting, listtype, objectmeta). Pure.
#pragma once
#include <string>
#include <vector>

#include "custom/schema.h"
#include "model/api_status.h"

namespace berth::custom {

/// Removes what the schema does not know; apiVersion, kind and metadata of the root and of embedded resources stay. The paths of what went
/// ("spec.foo[0].bar") are appended to `unknown`, where that is not null: as many as model/unknown_fields.h says. `root`: of a resource.
void prune(json::Value& object, const Schema& schema, bool is_root, std::vector<std::string>* unknown);

/// Removes nulls where the schema neither allows them nor has a default for them.
void drop_nulls(json::Value& object, const Schema& schema);

/// Of the defaults that one object is given, in JSON. One that would get more is larger than what may be stored.
inline constexpr std::size_t kMostDefaultBytes = 3 * 1024 * 1024;
/// Puts defaults where nothing, or a null that is not allowed, stands; no more when they have become kMostDefaultBytes.
void set_defaults(json::Value& object, const Schema& schema);

/// Equal keys in lists of type map, equal elements in lists of type set, below the root.
void check_lists(const json::Value& object, const Schema& schema, model::FieldErrors& errors);

/// apiVersion, kind and metadata of embedded resources. `is_root`: of the object itself as well. `path`: where it stands; may be empty.
void check_embedded(const json::Value& object, const Schema& schema, bool is_root, const std::string& path, model::FieldErrors& errors);

/// Brings the metadata of embedded resources into the form of ObjectMeta. An error where it has none: then nothing may be stored; with
/// `drops` such fields are dropped instead. `is_root`: of the object itself as well.
std::optional<model::FieldError> coerce_embedded(json::Value& object, const Schema& schema, const std::string& path, bool drops,
                                                 std::vector<std::string>* unknown, bool is_root = false);

/// "a.b", "a[0]", "a[key]".
std::string child_path(const std::string& parent, std::string_view name);
std::string key_path(const std::string& parent, std::string_view key);
std::string index_path(const std::string& parent, std::size_t index);

}  // namespace berth::custom
