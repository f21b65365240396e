// What the kinds' strategies are built from. Within src/model only; everybody else calls prepare_for_create and prepare_for_update
// (schema.h).
#pragma once
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::model::strategy {

/// `to` has at `key` what `from` has there, or nothing.
void copy_member(const json::Value& from, json::Value& to, std::string_view key);
/// What must travel with every partial update: the precondition and the record of who wrote what.
void carry_request_metadata(const json::Value& doc, json::Value& kept);
/// Is everything but metadata and status the same: a change of the rest is a new generation.
bool same_but_metadata_and_status(const json::Value& a, const json::Value& b);
/// When the object was made, as its metadata says.
std::string created_at(const json::Value& doc);

}  // namespace berth::model::strategy
