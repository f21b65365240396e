// DeviceClasses and ResourceSlices.
#include "model/devices.h"

#include "model/kinds/record.h"
#include "model/validation/resource_parts.h"

namespace berth::model::kinds {
namespace {

Array resource_slice_cells(const Value& o, TimePoint now) {
  return {name_of(o), Value(get_string(o, {"spec", "nodeName"})), Value(get_string(o, {"spec", "driver"})),
          Value(get_string(o, {"spec", "pool", "name"})), age_of(o, now)};
}

}  // namespace

KindInfo device_class() {
  return Record("resource.k8s.io", "v1", "DeviceClass", "deviceclasses")
      .cluster()
      .generation()
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.create = validation::device_class, .update = in_turn(validation::device_class)},
             .printer = kDefault,
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

KindInfo resource_slice() {
  return Record("resource.k8s.io", "v1", "ResourceSlice", "resourceslices")
      .cluster()
      .generation()
      .fields({"spec.driver", "spec.nodeName"})
      .does({.form = Form{.defaults = devices::default_slice},
             .strategy = Strategy{.prepare_create = devices::drop_disabled_fields,
                                  .prepare_update = [](const Value&, Value& doc, std::string_view) { devices::drop_disabled_fields(doc); }},
             .rules = Rules{.create = [](const Value& doc, Errors& errors) { validation::devices::resource_slice(nullptr, doc, errors); },
                            .update = in_turn([](const Value& old, const Value& doc, Errors& errors) {
                              validation::devices::resource_slice(&old, doc, errors);
                            })},
             .printer = Printer{{{"Name"}, {"Node"}, {"Driver"}, {"Pool"}, {"Age"}}, resource_slice_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
