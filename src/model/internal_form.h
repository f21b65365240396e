// Objects as Kubernetes' error messages show them: its internal structs in Go's JSON, which have other names and orders than the API's.
#pragma once
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::model {

/// A struct of the type of the API called `type` ("core.v1.PodSpec"), or null where `value` is. A type whose shape is not known, or a
/// value of another kind, stays as it is. `shape`: another shape of the same fields ("core.v1.PersistentVolumeSource").
json::Value internal_form(std::string_view type, const json::Value* value, std::string_view shape = {});
/// A map with its keys in order, as Go writes them.
json::Value sorted_map(const json::Value& map);
/// Members by name at every depth, as Go writes what has no type.
json::Value sorted_members(const json::Value& value);

/// encoding/json's MarshalIndent with an indent of one space.
std::string go_pretty_json(const json::Value& value);
/// As encoding/json writes `<`, `>` and `&`.
std::string escape_html(std::string_view json);

}  // namespace berth::model
