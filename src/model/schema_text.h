// The field tables as text, embedded by the build from src/model/schema/*.schema.
//
// A type is a line with its name, its fields are the indented lines below: NAME TYPE [required] [patch=merge,retainKeys] [key=MERGE_KEY]
// [list=atomic|set|map:KEY,KEY] [map=atomic] [off] [#NUMBER]. "off": of a feature that
// is off by default, so that what is given is dropped. NUMBER is the field's in Kubernetes' protobuf form; "2.3" is field 3 of the
// message in field 2, which JSON spreads into its parent. TYPE is any, string, int32, int64, double, bool, quantity, time, microtime,
// bytes, intorstring, a type's name, [TYPE] or {TYPE}. A field line "@atomic" marks the whole type.
#pragma once
#include <string_view>
#include <vector>

namespace berth::model {

const std::vector<std::string_view>& schema_texts();

/// "TYPE: FIELD FIELD …" a type, going on in indented lines: the fields that are written even when they are zero.
std::string_view kept_zeros();

}  // namespace berth::model
