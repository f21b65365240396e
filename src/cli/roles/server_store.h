// Where a server keeps everything: the data directory's SQLite file, or an etcd that others may share.
#pragma once
#include <memory>

#include "apiserver/cache/object_cache.h"
#include "apiserver/encryption/store.h"
#include "base/clock.h"
#include "store/shared.h"

namespace berth::cli {

struct ServerPlan;

struct OpenedCache {
  std::unique_ptr<apiserver::ObjectCache> cache;
  std::shared_ptr<store::SharedStore> shared;  ///< Null over a store of one's own.
};

/// Whether an etcd that others share may be used; asked before it is read.
using MayUse = std::function<Result<void>(const std::shared_ptr<store::SharedStore>&)>;

/// The error says what is wrong with the place and what to do.
Result<OpenedCache> open_cache(const ServerPlan& plan, bool never_syncs, const Clock& clock,
                               const std::shared_ptr<apiserver::encryption::StaleKeys>& stale, const MayUse& may_use);

}  // namespace berth::cli
