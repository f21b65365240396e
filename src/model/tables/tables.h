// Server-side tables (meta.k8s.io/v1 Table): Kubernetes' columns and cells (pkg/printers/internalversion).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/kinds.h"

namespace berth::model {

enum class IncludeObject { kNone, kMetadata, kObject };

/// `columnDefinitions` of a kind.
json::Array table_columns(const KindInfo& kind);
/// One row: cells parallel to the columns, and the object as `include` says. Missing or odd fields never fail.
json::Value table_row(const KindInfo& kind, const json::Value& object, TimePoint now, IncludeObject include);
/// The whole Table; `list_metadata` is what the list's or object's metadata tells (resourceVersion, continue, remainingItemCount). Without
/// `columns` it has no definitions of them.
json::Value make_table(const KindInfo& kind, std::span<const json::Value> objects, TimePoint now, IncludeObject include,
                       json::Object list_metadata, bool columns = true);

/// kubectl's age: "5s", "3m12s", "2h", "4d3h", "<unknown>" for an empty time.
std::string human_age(std::string_view rfc3339, TimePoint now);
std::string human_duration(Duration d);

}  // namespace berth::model
