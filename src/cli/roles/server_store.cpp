#include "cli/roles/server_store.h"

#include "apiserver/etcd/shared_cache.h"
#include "apiserver/etcd/transfer.h"
#include "apiserver/server.h"
#include "apiserver/upkeep/memory_guard.h"
#include "cli/keep/snapshot_etcd.h"
#include "cli/roles/server_role.h"

namespace berth::cli {
namespace {

Result<OpenedCache> open_etcd(const ServerPlan& plan, const Clock& clock, const std::shared_ptr<apiserver::encryption::StaleKeys>& stale,
                              const MayUse& may_use) {
  auto opened = store::open_etcd_store(plan.etcd.options);
  if (!opened) return std::unexpected(opened.error());
  OpenedCache out;
  out.shared = std::move(*opened);
  if (auto whole = apiserver::etcd::expect_no_mark(*out.shared, plan.etcd.options.prefix); !whole) return std::unexpected(whole.error());
  if (auto usable = may_use(out.shared); !usable) return std::unexpected(usable.error());
  apiserver::CacheOptions options;
  options.compaction_interval = plan.etcd.compaction_interval;
  options.expiring_bytes = plan.memory_limit_bytes / 16;
  auto cache = apiserver::etcd::open_shared_cache(
      out.shared, clock, options, {plan.etcd.options.prefix, plan.etcd.writes_protobuf, plan.security.encryption, stale}, plan.event_ttl);
  if (!cache) return std::unexpected(cache.error());
  out.cache = std::move(*cache);
  return out;
}

/// Words at the start, before requests are refused for ever or the kernel ends the process.
Result<void> expect_room(std::size_t limit) {
  const std::size_t used = apiserver::resident_bytes();
  if (limit == 0 || used < limit / 100 * 90) return {};
  return invalid(fmt::format("--memory-limit: {} MiB are too few for what is stored: {} MiB are in use and not all of it has been read",
                             limit >> 20, used >> 20));
}

}  // namespace

Result<OpenedCache> open_cache(const ServerPlan& plan, bool never_syncs, const Clock& clock,
                               const std::shared_ptr<apiserver::encryption::StaleKeys>& stale, const MayUse& may_use) {
  if (auto started = plan.security.encryption.start_key_services(); !started) return std::unexpected(started.error());
  if (plan.etcd.is_wanted()) return open_etcd(plan, clock, stale, may_use);
  if (auto here = expect_not_moved(plan.data_dir); !here) return std::unexpected(here.error());
  auto store = store::open_sqlite_store({plan.data_dir + "/store.db", !never_syncs});
  if (!store) {
    if (store.error().code == ErrorCode::kConflict)
      return fail(ErrorCode::kConflict,
                  fmt::format("the data directory {} is in use by another berth: {}", plan.data_dir, store.error().message));
    return std::unexpected(store.error());
  }
  auto encrypted = apiserver::encryption::encrypt_store(std::move(*store), plan.security.encryption, stale);
  apiserver::CacheOptions options;
  options.has_room = [limit = plan.memory_limit_bytes] { return expect_room(limit); };
  options.expiring_bytes = plan.memory_limit_bytes / 16;
  auto cache = apiserver::open_object_cache(std::move(encrypted), clock, std::move(options), false, plan.event_ttl);
  if (!cache) return std::unexpected(cache.error());
  return OpenedCache{std::move(*cache), nullptr};
}

}  // namespace berth::cli
