// ControllerRevisions: the numbered templates of StatefulSets and DaemonSets (pkg/controller/history).
#pragma once
#include "controllers/common.h"

namespace berth::controllers {

struct Revision {
  ObjectRef object;
  json::Value document;
  std::int64_t number = 0;
  [[nodiscard]] const std::string& name() const { return object->name(); }
  [[nodiscard]] const json::Value* pod_template() const { return json::find(document, {"data", "spec", "template"}); }
};

struct Revisions {
  std::vector<Revision> all;  ///< By number.
  std::string update_name;    ///< The present template's; its object may only be on its way.
  std::string update_hash;
  [[nodiscard]] const Revision* find(std::string_view name) const;
};
/// Reads the owner's revisions and adds to the plan what makes the present template the newest one.
Revisions sync_revisions(Plan& plan, Kind owner_kind, const Object& owner, const json::Value& document, const Cache& cache);
/// Deletes the oldest revisions beyond revisionHistoryLimit that are not in `live` (names).
void truncate_history(Plan& plan, const json::Value& document, const Revisions& revisions, const std::set<std::string>& live);

}  // namespace berth::controllers
