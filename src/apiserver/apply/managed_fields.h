// Who owns which field: metadata.managedFields (KEP 555; structured-merge-diff's merge/update.go). Pure.
#pragma once
#include <string>
#include <string_view>

#include "apiserver/apply/field_set.h"
#include "base/clock.h"
#include "base/json.h"
#include "model/api_status.h"
#include "model/kinds.h"

namespace berth::apiserver::apply {

/// Who writes.
struct Writer {
  std::string manager, subresource;
  TimePoint time{};
};

/// Gives the fields that an Update of `updated` changed against `live` (null: creation) to the writer. What the client sent as
/// managedFields counts as present state when it is a valid list; an empty list (or [{}]) forgets all owners. Objects nobody has applied
/// and that have no owners recorded stay so, as in Kubernetes. Entries keep their time stamps when their fields do not change.
void track_update(const model::KindInfo& kind, const json::Value* live, json::Value& updated, const Writer& writer);

/// The same of a write of the status, of documents that lack their managedFields: `owners` is the live object's list in JSON, empty where
/// there is none; so is what is given. What the client sent as managedFields counts for nothing, but that it forgets all owners: not here.
std::string track_status(const model::KindInfo& kind, const json::Value& live, const json::Value& updated, const Writer& writer,
                         std::string_view owners);

/// Whether what was sent forgets all owners: an empty list, or [{}].
bool forgets_owners(const json::Value& sent);

/// Server-side apply of `config` on `live` (an object without spec when it is to be created: pass an empty object). The result has
/// managedFields; 409 with causes when other managers own what changes and `force` is off. The result is not defaulted or validated.
/// `written`: the configuration as the client wrote it, empty maps and lists included: what it names is owned.
model::ApiResult<json::Value> apply(const model::KindInfo& kind, const json::Value& live, const json::Value& config,
                                    const json::Value& written, const Writer& writer, bool force);

/// The manager's name from a user agent: what stands before the first '/'.
std::string manager_of_user_agent(std::string_view user_agent);

/// Equal but for managedFields' time stamps and the resourceVersion.
bool is_same_state(const json::Value& a, const json::Value& b);

/// Whether two lists of owners in JSON are equal but for time stamps.
bool are_same_owners(std::string_view before, std::string_view after);

}  // namespace berth::apiserver::apply
