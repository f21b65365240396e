// Hearing of every change of one resource.
#pragma once
#include "apiserver/cache/object_cache.h"

namespace berth::apiserver {

/// Tells `changed` of everything below `prefix` as it is (as added), then of each change of it: when and on which thread, and how it ends,
/// say WatchSink and Watch. `after`: of changes after that revision alone.
std::unique_ptr<Watch> follow(ObjectCache& cache, std::string prefix, std::function<void(const WatchEvent&)> changed,
                              std::optional<Revision> after = std::nullopt);

}  // namespace berth::apiserver
