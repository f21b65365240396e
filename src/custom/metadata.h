// What custom objects and embedded resources share with all others: their metadata, and how values look in findings.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/decode_error.h"

namespace berth::custom {

/// A value as field.Error prints it: strings quoted, objects by the names of their members.
std::string shown(const json::Value& value);

/// Checks and canonicalises an ObjectMeta as Go's decoder does; `unknown`: fields that it has not ("foo.bar"), which go. What is wrong,
/// seen from the metadata ("labels").
std::optional<model::DecodeError> decode_metadata(json::Value& metadata, std::vector<std::string>* unknown);

/// Validates the metadata of an embedded resource, which may lack a name.
model::FieldErrors check_embedded_metadata(const json::Value& metadata, const std::string& path);

}  // namespace berth::custom
