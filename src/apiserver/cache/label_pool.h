// One copy of each label set: the pods of a workload share theirs.
#pragma once
#include <memory>

#include "model/selector.h"

namespace berth::apiserver {

/// The shared set equal to `labels`; it lives as long as somebody holds it. Thread-safe.
std::shared_ptr<const model::Labels> share_labels(const model::Labels& labels);
/// The interned copy of a selectable field's path. Paths are few and stay for the life of the process. Thread-safe.
const std::string* intern_field_path(std::string_view path);

}  // namespace berth::apiserver
