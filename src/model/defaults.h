// Defaulting pieces that the files of defaults share. Within src/model only; everybody else calls apply_defaults (schema.h).
#pragma once
#include <string_view>

#include "base/json.h"

namespace berth::model::defaults {

using json::Array;
using json::Object;
using json::Value;

/// Where nothing, or null, is there.
void put(Object& object, std::string_view key, Value value);
/// Where nothing, or an empty text, is there.
void put_string(Object& object, std::string_view key, std::string_view value);
/// Null when there is none.
Object* child(Object& object, std::string_view key);
Array* list(Object& object, std::string_view key);
Object& make_child(Object& object, std::string_view key);
/// Empty when there is no text; a view into `object`.
std::string_view string_at(Object& object, std::string_view key);
/// Every object of a list.
template <typename F>
void each(Object& object, std::string_view key, F&& apply) {
  if (Array* items = list(object, key))
    for (Value& item : *items)
      if (Object* one = item.if_object()) apply(*one);
}

/// Defaults a PodSpec, of a pod or a pod template (Kubernetes: SetDefaults_PodSpec and what hangs below it).
void pod_spec(Object& spec);
void pod(Object& doc);
/// The template of a workload's spec, or of a PodTemplate.
void pod_template(Object& owner);
/// A workload without labels has its template's, and one without a selector selects by them.
void labels_from_template(Object& doc, bool with_selector);
/// A claim, or a StatefulSet's template of one.
void persistent_volume_claim(Object& doc);
/// Of the disks that pods and PersistentVolumes name by the same fields: iscsi, rbd, azureDisk, scaleIO.
void disks(Object& source);

}  // namespace berth::model::defaults
