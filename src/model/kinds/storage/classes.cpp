// StorageClasses, VolumeAttributesClasses, VolumeAttachments.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"

namespace berth::model::kinds {
namespace {

void default_class(Object& doc) {
  put(doc, "reclaimPolicy", "Delete");
  put(doc, "volumeBindingMode", "Immediate");
}

void storage_class_update(const Value& old, const Value& doc, Errors& errors) {
  for (const char* key : {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) immutable(old, doc, {key}, Path(key), errors);
}

void attributes_class_update(const Value& old, const Value& doc, Errors& errors) {
  for (const char* key : {"driverName", "parameters"}) {
    const Value *before = json::find(old, key), *after = json::find(doc, key);
    if ((before == nullptr) != (after == nullptr) || (before != nullptr && !json::equal(*before, *after)))
      errors.forbidden(Path(key), fmt::format("updates to {} are forbidden.", key));
  }
}

void warn_of_class(const Value& doc, Sentences& out) {
  const Path at("allowedTopologies");
  std::size_t i = 0;
  for (const Value& term : get_array(doc, {"allowedTopologies"})) {
    const Path term_at = at[i++];
    const Path list = term_at / "matchLabelExpressions";
    std::size_t k = 0;
    for (const Value& expression : get_array(term, {"matchLabelExpressions"})) {
      const Path one = list[k++];
      if (const auto why = old_node_label(get_string(expression, {"key"})); !why.empty())
        out.push_back(fmt::format("{}: {}", (one / "key").text(), why));
    }
  }
}

Array storage_class_cells(const Value& o, TimePoint now) {
  std::string name(get_string(o, {"metadata", "name"}));
  const bool is_default = get_string(o, {"metadata", "annotations", "storageclass.kubernetes.io/is-default-class"}) == "true" ||
                          get_string(o, {"metadata", "annotations", "storageclass.beta.kubernetes.io/is-default-class"}) == "true";
  if (is_default) name += " (default)";
  return {name,
          Value(get_string(o, {"provisioner"})),
          Value(get_string(o, {"reclaimPolicy"})),
          Value(get_string(o, {"volumeBindingMode"})),
          get_bool(o, {"allowVolumeExpansion"}),
          age_of(o, now)};
}

Array volume_attributes_class_cells(const Value& o, TimePoint now) {
  return {name_of(o), Value(get_string(o, {"driverName"})), age_of(o, now)};
}

Array attachment_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          Value(get_string(o, {"spec", "attacher"})),
          Value(get_string(o, {"spec", "source", "persistentVolumeName"})),
          Value(get_string(o, {"spec", "nodeName"})),
          get_bool(o, {"status", "attached"}),
          age_of(o, now)};
}

void same_attachment(const Value& old, const Value& doc, Errors& errors) {
  immutable(old, doc, {"spec"}, Path("spec"), errors, "storage.v1.VolumeAttachmentSpec");
}

}  // namespace

KindInfo storage_class() {
  return Record("storage.k8s.io", "v1", "StorageClass", "storageclasses")
      .shorts({"sc"})
      .cluster()
      .does({.form = Form{.defaults = default_class},
             .strategy = kDefault,
             .rules = Rules{.create = validation::storage_class,
                            .update = in_turn(validation::storage_class, storage_class_update),
                            .warnings =
                                [](const Value* old, const Value& doc, Sentences& out) {
                                  if (old == nullptr) warn_of_class(doc, out);
                                }},
             .printer = Printer{{{"Name"}, {"Provisioner"}, {"ReclaimPolicy"}, {"VolumeBindingMode"}, {"AllowVolumeExpansion"}, {"Age"}},
                                storage_class_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

KindInfo volume_attachment() {
  return Record("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments")
      .cluster()
      .subs({"status"})
      .does({.form = kDefault,
             .strategy = Strategy{.initial_status =
                                      [] {
                                        return Value{{"attached", false}};
                                      },
                                  .kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
             .rules = Rules{.metadata_looks = kLooksAtAllAgain,
                            .create = validation::volume_attachment,
                            .update = in_turn(validation::volume_attachment, same_attachment)},
             .printer = Printer{{{"Name"}, {"Attacher", 0, "string", "name"}, {"PV"}, {"Node"}, {"Attached", 0, "boolean"}, {"Age"}},
                                attachment_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.update_needs_revision = true, .is_answered_when_deleted = true},
             .counted = kDefault});
}

KindInfo volume_attributes_class() {
  return Record("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses")
      .shorts({"vac"})
      .cluster()
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::volume_attributes_class,
                            .update = in_turn(attributes_class_update, validation::volume_attributes_class)},
             .printer = Printer{{{"Name"}, {"DriverName"}, {"Age"}}, volume_attributes_class_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
