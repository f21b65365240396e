// What an update must leave of a pod's annotations, of its status or otherwise.
#pragma once
#include "model/validation/validation.h"

namespace berth::model::validation {

/// What the annotations of a pod say of who made it and how it is confined stays (ValidatePodSpecificAnnotationUpdates).
void pod_annotations_update(const Value& old, const Value& doc, Errors& errors);

}  // namespace berth::model::validation
