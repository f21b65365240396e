// CSIDrivers, CSINodes, CSIStorageCapacities.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_driver(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "attachRequired", true);
  put(spec, "podInfoOnMount", false);
  put(spec, "storageCapacity", false);
  put(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
  put(spec, "requiresRepublish", false);
  put(spec, "seLinuxMount", false);
  if (list(spec, "volumeLifecycleModes") == nullptr) spec["volumeLifecycleModes"] = Array{"Persistent"};
}

void warn_of_driver(const Value* old, const Value& doc, Sentences& out) {
  // What was asked for before is no news.
  const auto* asked = json::find(doc, {"spec", "tokenRequests"});
  const auto* before = old == nullptr ? nullptr : json::find(*old, {"spec", "tokenRequests"});
  if (asked != nullptr && before != nullptr && json::equal(*asked, *before)) return;
  if (!get_array(doc, {"spec", "tokenRequests"}).empty() && json::find(doc, {"spec", "serviceAccountTokenInSecrets"}) == nullptr)
    out.emplace_back(
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in "
        "volume attributes");
}

void capacity_update(const Value& old, const Value& doc, Errors& errors) {
  for (const char* key : {"nodeTopology", "storageClassName"}) immutable(old, doc, {key}, Path(key), errors);
}

Array csi_node_cells(const Value& o, TimePoint now) { return {name_of(o), get_array(o, {"spec", "drivers"}).size(), age_of(o, now)}; }

Array csi_driver_cells(const Value& o, TimePoint now) {
  std::vector<std::string> audiences;
  for (const Value& request : get_array(o, {"spec", "tokenRequests"})) audiences.emplace_back(get_string(request, {"audience"}));
  return {name_of(o),
          get_bool(o, {"spec", "attachRequired"}),
          get_bool(o, {"spec", "podInfoOnMount"}),
          get_bool(o, {"spec", "storageCapacity"}),
          audiences.empty() ? or_unset("") : Value(fmt::format("{}", fmt::join(audiences, ","))),
          get_bool(o, {"spec", "requiresRepublish"}),
          tables::array_text(get_array(o, {"spec", "volumeLifecycleModes"})),
          age_of(o, now)};
}

}  // namespace

KindInfo csi_driver() {
  return Record("storage.k8s.io", "v1", "CSIDriver", "csidrivers")
      .cluster()
      .generation()
      .does({.form = Form{.defaults = default_driver},
             .strategy = Strategy{.generation_from = GenerationFrom::kFirstChange},
             .rules = Rules{.create = validation::csi_driver,
                            .update = in_turn(validation::csi_driver, validation::csi_driver_update),
                            .warnings = warn_of_driver},
             .printer = Printer{{{"Name"},
                                 {"AttachRequired", 0, "boolean"},
                                 {"PodInfoOnMount", 0, "boolean"},
                                 {"StorageCapacity", 0, "boolean"},
                                 {"TokenRequests"},
                                 {"RequiresRepublish", 0, "boolean"},
                                 {"Modes"},
                                 {"Age"}},
                                csi_driver_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.update_needs_revision = true, .is_answered_when_deleted = true},
             .counted = kDefault});
}

KindInfo csi_node() {
  return Record("storage.k8s.io", "v1", "CSINode", "csinodes")
      .cluster()
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.metadata_looks = kLooksAtAllAgain,
                            .create = validation::csi_node,
                            .update = in_turn(validation::csi_node, validation::csi_node_update)},
             .printer = Printer{{{"Name"}, {"Drivers", 0, "integer"}, {"Age"}}, csi_node_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.update_needs_revision = true, .is_answered_when_deleted = true},
             .counted = kDefault});
}

KindInfo csi_storage_capacity() {
  return Record("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities")
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.create = validation::storage_capacity, .update = in_turn(validation::storage_capacity, capacity_update)},
             .printer = created_at_printer(),
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.update_needs_revision = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
